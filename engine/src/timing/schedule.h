// The absolute schedule: frame k of a sender is due at start + k / rate.
//
// Times are 64.64 fixed point, so after 2^40 frames the drift is below 2^-24 of a tick, and the
// loop neither divides nor sleeps. A sender that fell behind sends all that is due; it never shifts
// the schedule (that would turn a slow tester into a lower offered load).
#pragma once

#include <cstdint>

namespace dutperf::timing {

class Schedule {
 public:
  // Frames first, first + stride, first + 2 stride, ... of a stream of `rate_fps`, so that several
  // senders can share one stream. REQUIRES: rate_fps >= 1, stride >= 1.
  Schedule(uint64_t start_tsc, uint64_t tsc_hz, uint64_t rate_fps, uint64_t first = 0,
           uint64_t stride = 1)
      : due_(fixed(start_tsc) + interval(tsc_hz, rate_fps) * first),
        interval_(interval(tsc_hz, rate_fps) * stride) {}

  // When the next frame is due.
  uint64_t next_due_tsc() const { return static_cast<uint64_t>(due_ >> 64); }

  // How many frames are due at `now`, at most `limit`.
  uint32_t due_count(uint64_t now, uint32_t limit) const {
    Fixed due = due_;
    uint32_t count = 0;
    while (count < limit && static_cast<uint64_t>(due >> 64) <= now) {
      due += interval_;
      ++count;
    }
    return count;
  }

  // The next frame has left.
  void advance() { due_ += interval_; }

 private:
  using Fixed = unsigned __int128;

  static constexpr Fixed fixed(uint64_t whole) { return Fixed{whole} << 64; }
  static constexpr Fixed interval(uint64_t tsc_hz, uint64_t rate_fps) {
    return fixed(tsc_hz) / rate_fps;
  }

  Fixed due_;
  Fixed interval_;
};

// Frames of a trial: rate * duration, rounded to the nearest frame, at least 1.
constexpr uint64_t frames_in(uint64_t rate_fps, uint64_t duration_ns) {
  const auto frames = ((unsigned __int128){rate_fps} * duration_ns + 500'000'000) / 1'000'000'000;
  return frames == 0 ? 1 : static_cast<uint64_t>(frames);
}

}  // namespace dutperf::timing
