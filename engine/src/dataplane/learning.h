// Which of a receiver's frames are learned, and where their four-tuples go: to the entry of the
// tuple's number, which follows from the frame's (see vary/index_draw.h).
//
// A burst is looked up first and learned later: meanwhile its entries come from memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "dataplane/trial_spec.h"
#include "measure/arrival.h"
#include "state/tuple_table.h"
#include "vary/index_draw.h"
#include "vary/lanes.h"

namespace dutperf::dataplane {

class Learning {
 public:
  struct Burst {
    // Left as they are: clearing would cost more than filling what is used.
    Burst() {}  // NOLINT(cppcoreguidelines-pro-type-member-init,modernize-use-equals-default)

    uint32_t count;
    vary::Lanes entries;
    std::array<const uint8_t*, vary::kMaxBurst> tuples;
  };

  // REQUIRES: spec.learn with a table of its version and size.
  explicit Learning(const TrialSpec& spec);

  // The frames of the learned stream that were received, whole. Those of another IP version, with
  // IPv4 options or IPv6 extension headers, or
  // with numbers of none that were sent, are left out. REQUIRES: count <= vary::kMaxBurst.
  void look_up(const measure::Arrival* arrivals, const uint8_t* const* frames, uint32_t count,
               Burst& burst) noexcept;
  // The frames that were looked up must still be there.
  void learn(const Burst& burst) noexcept;

  // Frames of another IP version count as unexpected.
  state::Learner::Counts counts() const;

 private:
  const int ip_version_;
  const uint16_t ether_type_;
  const uint64_t frames_;
  std::optional<vary::IndexDraw> draw_;  // none: a frame's number is its tuple's
  const uint64_t entries_;
  const bool goes_round_;  // more tuples than entries
  state::Learner learner_;
  uint64_t other_versions_ = 0;
};

}  // namespace dutperf::dataplane
