// The absolute schedule: frame k of a sender is due at start + k / rate.
//
// Times are 64.64 fixed point, so after 2^40 frames the drift is below 2^-24 of a tick, and the
// loop neither divides nor sleeps. A sender that fell behind sends all that is due; it never shifts
// the schedule (that would turn a slow tester into a lower offered load).
#pragma once

#include <algorithm>
#include <cstdint>

namespace dutperf::timing {

class Schedule {
 public:
  // Frames first, first + stride, first + 2 stride, ... of a stream of `rate_fps`, so that several
  // senders can share one stream. REQUIRES: rate_fps >= 1, stride >= 1.
  Schedule(uint64_t start_tsc, uint64_t tsc_hz, uint64_t rate_fps, uint64_t first = 0,
           uint64_t stride = 1)
      : due_(fixed(start_tsc) + interval(tsc_hz, rate_fps) * first),
        interval_(interval(tsc_hz, rate_fps) * stride),
        frames_per_tick_(frames_per_tick(interval_)) {}

  // The first tick at which the next frame is due.
  uint64_t next_due_tsc() const { return static_cast<uint64_t>((due_ + UINT64_MAX) >> 64); }

  // How many frames are due at `now`, at most `limit`. Never one too many; the last due frame may
  // be missing for a tick, as the rate in frames per tick is rounded down.
  uint32_t due_count(uint64_t now, uint32_t limit) const {
    if (now < next_due_tsc()) return 0;
    const uint64_t waited = now - next_due_tsc();
    const auto more = static_cast<uint64_t>((Fixed{waited} * frames_per_tick_) >> 64);
    return static_cast<uint32_t>(more < limit ? std::min<uint64_t>(more + 1, limit) : limit);
  }

  // All are due so much later.
  void shift(uint64_t ticks) { due_ += fixed(ticks); }

  // The next `frames` frames have left.
  void advance(uint32_t frames) { due_ += interval_ * frames; }

 private:
  using Fixed = unsigned __int128;

  static constexpr Fixed fixed(uint64_t whole) { return Fixed{whole} << 64; }
  static constexpr Fixed interval(uint64_t tsc_hz, uint64_t rate_fps) {
    return fixed(tsc_hz) / rate_fps;
  }

  // Frames per tick as a 64-bit fraction, rounded down; a frame a tick and more count as just
  // below.
  static constexpr uint64_t frames_per_tick(Fixed interval) {
    const auto whole_ticks = static_cast<uint64_t>(interval >> 64);
    if (whole_ticks == 0) return UINT64_MAX;
    return static_cast<uint64_t>((~Fixed{0}) / (interval + 1));
  }

  Fixed due_;
  Fixed interval_;
  uint64_t frames_per_tick_;
};

// Frames of a trial: rate * duration, rounded to the nearest frame, at least 1.
constexpr uint64_t frames_in(uint64_t rate_fps, uint64_t duration_ns) {
  const auto frames = ((unsigned __int128){rate_fps} * duration_ns + 500'000'000) / 1'000'000'000;
  return frames == 0 ? 1 : static_cast<uint64_t>(frames);
}

}  // namespace dutperf::timing
