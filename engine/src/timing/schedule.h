// The absolute schedule of a load (load.h), step by step: frame j of a step is due at the step's
// begin + j / rate. A constant rate is the schedule of one step without an end.
//
// Times are 64.64 fixed point, so after 2^40 frames and steps the drift is below 2^-24 of a tick,
// and the loop neither divides nor sleeps. A sender that fell behind sends all that is due; it
// never shifts the schedule (that would turn a slow tester into a lower offered load).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "timing/clock.h"
#include "timing/load.h"

namespace dutperf::timing {

class Schedule {
 public:
  // Of each `every` frames of the load the one numbered `first`, from 0 on: a share of them, each
  // of which is due when it is due in the whole.
  Schedule(uint64_t start_tsc, uint64_t tsc_hz, const Load& load, uint64_t first = 0,
           uint64_t every = 1)
      : first_(first), every_(every), period_begin_(fixed(start_tsc)) {
    uint64_t offset_ns = 0;
    for (const RateStep& step : load.steps()) {
      const Load::Wide frames = Load::frames_of(step);
      if (frames > 0) {
        const Fixed interval = fixed(tsc_hz) / step.rate_fps;
        const Fixed first_due = ticks(tsc_hz, offset_ns) + (load.between() ? interval / 2 : 0);
        steps_.push_back({first_due, interval, frames_per_tick(interval),
                          static_cast<uint64_t>(std::min<Load::Wide>(frames, UINT64_MAX))});
      }
      offset_ns += step.duration_ns;
    }
    period_ = ticks(tsc_hz, offset_ns);
    begin_step();
    if (left_ == 0) go_to_next_step();
  }

  // The first tick at which the next frame is due.
  uint64_t next_due_tsc() const { return static_cast<uint64_t>((due_ + UINT64_MAX) >> 64); }

  // The same of the frame that so many come before. REQUIRES: of the same step.
  uint64_t due_tsc(uint32_t before) const {
    return static_cast<uint64_t>((due_ + interval_ * before + UINT64_MAX) >> 64);
  }

  // How many frames are due at `now`, at most `limit`, all of one step: those of the next one are
  // told when these have left. Never one too many; the last due frame may be missing for a tick, as
  // the rate in frames per tick is rounded down.
  uint32_t due_count(uint64_t now, uint32_t limit) const {
    if (now < next_due_tsc()) return 0;
    const uint64_t waited = now - next_due_tsc();
    const auto more = static_cast<uint64_t>((Fixed{waited} * frames_per_tick_) >> 64);
    const uint64_t most = std::min<uint64_t>(limit, left_);
    return static_cast<uint32_t>(more < most ? more + 1 : most);
  }

  // All are due so much later.
  void shift(uint64_t ticks) {
    period_begin_ += fixed(ticks);
    due_ += fixed(ticks);
  }

  // The next `frames` frames have left. REQUIRES: all of one step.
  void advance(uint32_t frames) {
    due_ += interval_ * frames;
    left_ -= frames;
    if (left_ == 0) [[unlikely]]
      go_to_next_step();
  }

 private:
  using Fixed = unsigned __int128;
  // One that has frames.
  struct Step {
    Fixed first;  // when the first one is due, after the period begins
    Fixed interval;
    uint64_t frames_per_tick;
    uint64_t frames;
  };

  static constexpr Fixed fixed(uint64_t whole) { return Fixed{whole} << 64; }
  // Of a load without an end nobody gets to it.
  static constexpr Fixed ticks(uint64_t tsc_hz, uint64_t ns) {
    const Fixed scaled = Fixed{ns} * tsc_hz;
    return ((scaled / kNsPerSecond) << 64) + ((scaled % kNsPerSecond) << 64) / kNsPerSecond;
  }

  // Frames per tick as a 64-bit fraction, rounded down; a frame a tick and more count as just
  // below.
  static constexpr uint64_t frames_per_tick(Fixed interval) {
    const auto whole_ticks = static_cast<uint64_t>(interval >> 64);
    if (whole_ticks == 0) return UINT64_MAX;
    return static_cast<uint64_t>((~Fixed{0}) / (interval + 1));
  }

  // A step with fewer frames than there are shares may have none of this one.
  [[gnu::noinline]] void go_to_next_step() {
    do {
      first_ = (first_ + every_ - steps_[step_].frames % every_) % every_;
      if (++step_ == steps_.size()) {
        step_ = 0;
        period_begin_ += period_;
      }
      begin_step();
    } while (left_ == 0);
  }

  void begin_step() {
    const Step& step = steps_[step_];
    due_ = period_begin_ + step.first + step.interval * first_;
    interval_ = step.interval * every_;
    frames_per_tick_ = step.frames_per_tick / every_;
    left_ = step.frames / every_ + (first_ < step.frames % every_ ? 1 : 0);
  }

  uint64_t first_;  // of the step's frames
  uint64_t every_;
  Fixed due_ = 0;
  Fixed interval_ = 0;
  uint64_t frames_per_tick_ = 0;
  uint64_t left_ = 0;  // of the step's frames
  Fixed period_begin_;
  Fixed period_ = 0;
  size_t step_ = 0;
  std::vector<Step> steps_;
};

}  // namespace dutperf::timing
