// Which frames of a stream arrived: how many of each block of consecutive numbers, and which were
// lost in a row. A validation sends connection k as frame k, so this tells which connections
// survived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "measure/sequence_tracker.h"

namespace dutperf::measure {

struct Survival {
  uint64_t block_frames = 1;
  std::vector<uint64_t> received;                          // of each block; the last may be shorter
  std::vector<std::pair<uint64_t, uint64_t>> lost_ranges;  // first, how many
  uint64_t more_ranges = 0;                                // beside those
};

inline constexpr size_t kMaxLostRanges = 4096;

// Of `intended` frames in at most `blocks` blocks, of which numbers 0 .. sent-1 left.
// REQUIRES: blocks >= 1; the tracker has a bit for each frame (no window).
Survival survival_of(const SequenceTracker& tracker, uint64_t intended, uint64_t sent,
                     uint64_t blocks);

}  // namespace dutperf::measure
