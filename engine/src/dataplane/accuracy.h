// How much of a direction's delays may be the tester's own.
#pragma once

#include <cstdint>
#include <optional>

#include "dataplane/receiver.h"
#include "dataplane/sender.h"
#include "timing/clock.h"

namespace dutperf::dataplane {

struct Accuracy {
  uint64_t floor_ns;  // the shortest delay that there can be
  uint64_t bound_ns;  // the most that the tester may have put into one
};

// Nullopt: no frame was sent and received. A NIC that says when each frame came leaves its clock's
// own doubt.
inline std::optional<Accuracy> accuracy_of(const SendReport& sent, const ReceiveReport& received,
                                           const timing::TscClock& clock) {
  if (sent.call_ns.count() == 0 || received.gap_ns.count() == 0) return std::nullopt;
  const bool stamped = received.stamped > 0 && received.unstamped == 0;
  const uint64_t poll_ns = stamped ? 0 : clock.to_ns(received.shortest_poll_tsc);
  const uint64_t gap_ns = stamped ? 0 : received.gap_ns.max();
  const uint64_t doubt_ns =
      clock.to_ns(sent.clock_worst_tsc) + clock.to_ns(received.clock_worst_tsc);
  return Accuracy{sent.call_ns.min() + poll_ns, sent.call_ns.max() + gap_ns + doubt_ns};
}

}  // namespace dutperf::dataplane
