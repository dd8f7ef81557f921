// What the known-answer device does to one direction's test frames, and its own account of it.
#pragma once

#include <cstdint>

namespace dutperf::refdut {

struct Impairment {
  uint64_t drop_every = 0;       // 0: none; k: every k-th test frame
  uint64_t duplicate_every = 0;  // 0: none; k: every k-th forwarded test frame
};

struct Account {
  uint64_t test_frames = 0;
  uint64_t dropped = 0;
  uint64_t duplicated = 0;
  uint64_t other_frames = 0;  // neighbour discovery and the like: always forwarded
  uint64_t queue_full = 0;    // not as told: the other port did not take the frame
};

// What happens to the next test frame. Deterministic: depends on the account only.
struct Fate {
  bool drop = false;
  bool duplicate = false;
};

inline Fate decide(const Impairment& impairment, Account& account) {
  ++account.test_frames;
  Fate fate;
  if (impairment.drop_every > 0 && account.test_frames % impairment.drop_every == 0) {
    fate.drop = true;
    ++account.dropped;
    return fate;
  }
  const uint64_t forwarded = account.test_frames - account.dropped;
  if (impairment.duplicate_every > 0 && forwarded % impairment.duplicate_every == 0) {
    fate.duplicate = true;
    ++account.duplicated;
  }
  return fate;
}

}  // namespace dutperf::refdut
