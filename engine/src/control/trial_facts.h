// From a trial's result to what the verdict needs to know of it (measure/verdict.h): counts of the
// streams added up, and how much of the tester's own doing is in them. Pure.
#pragma once

#include <vector>

#include "control/messages.h"
#include "dataplane/trial_spec.h"
#include "measure/verdict.h"

namespace dutperf::control {

// What was asked for; nothing has happened yet.
measure::TrialFacts facts_of(const dataplane::TrialSpec& spec);

// `ports_of_side`: of the tester; they stand in `TrialFacts` one side after the other.
measure::DirectionFacts facts_of(const DirectionResult& result, bool gave_up,
                                 const dataplane::TrialSpec& spec, size_t ports_of_side);

// Any sender's stall may cost frames of either direction, a receiver's those of its own.
// REQUIRES: `facts` has the directions of `results`, in their order.
void add_longest_stalls(const std::vector<DirectionResult>& results, measure::TrialFacts& facts);

}  // namespace dutperf::control
