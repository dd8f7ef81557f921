// What an interruption did to each connection of a stream whose frames go round: frame k is of
// connection k mod n. Read after the trial from the bits that tell which frames arrived, so that
// the receive loop does nothing for it, and no connection has a record.
//
// A connection is told to within the distance of its frames, n of the stream's:
//
//   whole   no frame of it was lost
//   back    some were, and its last one arrived
//   open    its last one was lost: it was not back when the trial ended
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "measure/histogram.h"
#include "measure/sequence_tracker.h"

namespace dutperf::measure {

struct ConnectionGaps {
  static constexpr unsigned kGapBits = 10;
  static constexpr size_t kMostNamed = 64;
  static constexpr uint64_t kTenths = 10;

  // Of connections that were opened in a row.
  struct Tenth {
    uint64_t connections = 0;
    uint64_t back = 0;
    uint64_t open = 0;

    bool operator==(const Tenth&) const = default;
  };
  struct Named {
    uint64_t connection = 0;
    uint64_t lost = 0;  // frames, up to its last one

    bool operator==(const Named&) const = default;
  };

  std::vector<Tenth> tenths;      // in the order of opening
  Histogram back_lost{kGapBits};  // frames in a row: the longest of each that is back
  Histogram open_lost{kGapBits};  // up to the last one: of each that is open
  uint64_t last_back = 0;         // the frame by which the last of those back was; 0: none is
  std::vector<Named> named;       // the first open ones
  uint64_t block_frames = 1;      // of the stream
  std::vector<uint64_t> out;      // how many had lost their last frame, at each block's begin
};

// Of `connections`, of whose `intended` frames in at most `blocks` blocks numbers 0 .. sent-1 left.
// REQUIRES: connections, blocks >= 1; the tracker has a bit for each frame (no window).
ConnectionGaps gaps_of(const SequenceTracker& tracker, uint64_t connections, uint64_t intended,
                       uint64_t sent, uint64_t blocks);

}  // namespace dutperf::measure
