#include "control/trial_facts.h"

#include <algorithm>
#include <utility>

namespace dutperf::control {

using dataplane::index_of;
using dataplane::other;

measure::TrialFacts facts_of(const dataplane::TrialSpec& spec) {
  measure::TrialFacts facts;
  facts.duration_ns = spec.duration_ns;
  facts.frame_timeout_ns = spec.frame_timeout_ns.value_or(0);
  facts.loss_tolerance_ppb = spec.loss_tolerance_ppb;
  return facts;
}

namespace {

// Which gave up most frames; else which was behind the most. 0 of none.
size_t slowest_of(const std::vector<ShareReport>& shares) {
  const auto behind = [](const ShareReport& share) {
    return std::pair(share.intended - share.sent, share.max_lag_ns);
  };
  const auto slowest = std::max_element(shares.begin(), shares.end(),
                                        [&](const ShareReport& one, const ShareReport& another) {
                                          return behind(one) < behind(another);
                                        });
  return static_cast<size_t>(std::distance(shares.begin(), slowest));
}

}  // namespace

measure::DirectionFacts facts_of(const DirectionResult& result, bool gave_up,
                                 const dataplane::TrialSpec& spec, size_t ports_of_side) {
  measure::DirectionFacts facts;
  facts.name = direction_name(result.from);
  facts.receiving_port = index_of(spec.receiver_of(result.from)) * ports_of_side;
  facts.receiving_ports = ports_of_side;
  for (const StreamResult& stream : result.streams) {
    facts.intended += stream.intended;
    facts.sent += stream.sent;
    facts.received += stream.received;
    facts.duplicate += stream.duplicate;
    facts.overdue += stream.late;
    facts.lost_in_shadow += stream.lost_in_shadow;
    facts.overdue_in_shadow += stream.late_in_shadow;
    facts.negative_delay += stream.negative_delays;
    facts.damaged += stream.damaged;
  }
  facts.sending_ns = result.sending_ns;
  facts.idle_end_ns = spec.idle_end_ns(result.from);
  facts.max_lag_ns = result.lag_ns->max();
  if (spec.frame_timeout_ns) {
    const uint64_t long_ns = *spec.frame_timeout_ns / measure::kHeldShare;
    facts.held_frames =
        result.send_call_ns->count_from(long_ns) + result.receive_gap_ns->count_from(long_ns);
  }
  facts.port_full_ns = result.port_full_ns;
  facts.shares = std::max<size_t>(result.by_share.size(), 1);
  facts.slowest_share = slowest_of(result.by_share);
  facts.ring_full = result.ring_full;
  for (const std::vector<measure::Shadow>& of_share : result.shadows) {
    for (const measure::Shadow& shadow : of_share) facts.burst_shadow |= shadow.of_sender;
  }
  if (result.stalled) facts.away_at_end_ns = result.stalled->away_ns;
  facts.gave_up = gave_up;
  return facts;
}

void add_longest_stalls(const std::vector<DirectionResult>& results, measure::TrialFacts& facts) {
  uint64_t longest_ns = 0;
  for (const DirectionResult& direction : results) {
    for (const measure::Stall& stall : direction.stalls) {
      longest_ns = std::max(longest_ns, stall.max_lag_ns);
    }
  }
  for (size_t i = 0; i < facts.directions.size(); ++i) {
    const measure::Histogram& gap_ns = *results[i].receive_gap_ns;
    facts.directions[i].longest_stall_ns =
        facts.directions[i].burst_shadow ? longest_ns : gap_ns.max();
  }
}

}  // namespace dutperf::control
