// TCP connections in requests and results: what dataplane/exchange.h does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "control/json.h"
#include "dataplane/trial_run.h"
#include "measure/shadow_watch.h"
#include "measure/verdict.h"

namespace dutperf::control {

// A trial's `tcp`; none: its frames are of UDP. Of the connections' number the directions tell.
// Each trial has other sequence numbers: what is late is none of the next one's.
std::optional<dataplane::ExchangeSpec> parse_exchange(ObjectReader& trial, uint64_t seed,
                                                      uint16_t trial_id);
// A trial's `tcp_data`; none: its frames are no data of TCP connections.
std::optional<dataplane::DataSpec> parse_data(ObjectReader& trial, uint64_t seed,
                                              uint16_t trial_id);
// SYNs that nobody answers, by which nothing opens: each trial has others.
net::SegmentLayout flood_of(uint64_t seed, uint16_t trial_id);
// Refuses what does not go with TCP. REQUIRES: all else of the trial is parsed.
void check_exchange(const ObjectReader& trial, const dataplane::TrialSpec& spec);
void check_data(const ObjectReader& trial, const dataplane::TrialSpec& spec);
void check_flood(const ObjectReader& trial, const dataplane::TrialSpec& spec);

// Whom the initiator's frames are of, if they have to come as somebody else's.
void note_own_sources(std::optional<dataplane::OwnSources>& own,
                      const dataplane::StreamSpec& stream);

// What both sides say together.
struct ExchangeResult {
  struct Segments {
    uint64_t sent = 0;
    uint64_t received = 0;
    uint64_t duplicate = 0;
    uint64_t retransmitted = 0;  // beside `sent`
  };
  std::array<Segments, dataplane::kSteps> segments;
  dataplane::Side initiator = dataplane::Side::kLeft;
  dataplane::Step first = dataplane::Step::kSyn;  // that the trial began with
  uint32_t pieces = 1;                            // segments of a response
  bool retransmits = false;
  dataplane::ExchangeReport ends[dataplane::kSides];  // by side
};

// REQUIRES: the trial's streams are SYNs, and it has ended.
ExchangeResult exchange_result(const dataplane::TrialSpec& spec, const dataplane::TrialRun& run);
// `shadows`: of the tester's stalls, in which the SYNs stood.
measure::ExchangeFacts facts_of(const ExchangeResult& result,
                                const std::vector<measure::Shadow>& shadows);
Json to_json(const ExchangeResult& result);

}  // namespace dutperf::control
