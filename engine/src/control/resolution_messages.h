// DNS64 in requests and results: what dataplane/resolution.h does.
#pragma once

#include <optional>

#include "control/json.h"
#include "dataplane/trial_run.h"
#include "measure/verdict.h"

namespace dutperf::control {

// A trial's `dns`; none: its frames are no queries. Complete but for how many queries there are.
std::optional<dataplane::ResolutionSpec> parse_resolution(ObjectReader& trial);
// Refuses what does not go with it. REQUIRES: all else of the trial is parsed.
void check_resolution(const ObjectReader& trial, const dataplane::TrialSpec& spec);

// What both sides say.
struct ResolutionResult {
  dataplane::ResolutionReport client;
  dataplane::ResolutionReport authority;
};

// REQUIRES: the trial has `dns`, and it has ended.
ResolutionResult resolution_result(const dataplane::TrialSpec& spec,
                                   const dataplane::TrialRun& run);
// `answered`: how many queries were, each once.
measure::ResolutionFacts facts_of(const dataplane::ResolutionSpec& spec,
                                  const ResolutionResult& result, uint64_t answered);
Json to_json(const ResolutionResult& result);

}  // namespace dutperf::control
