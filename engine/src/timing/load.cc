#include "timing/load.h"

#include <algorithm>
#include <utility>

#include "timing/clock.h"

namespace dutperf::timing {

Load::Load(uint64_t rate_fps, std::vector<RateStep> steps, bool between)
    : steps_(std::move(steps)), between_(between) {
  if (steps_.empty()) steps_.push_back({rate_fps, UINT64_MAX});
  for (const RateStep& step : steps_) {
    period_ns_ += step.duration_ns;
    period_frames_ += frames_of(step);
  }
}

Load::Wide Load::frames_of(const RateStep& step) {
  return (Wide{step.rate_fps} * step.duration_ns + kNsPerSecond / 2) / kNsPerSecond;
}

uint64_t Load::frames_in(uint64_t ns) const {
  Wide frames = ns / period_ns_ * period_frames_;
  uint64_t left_ns = ns % period_ns_;
  for (const RateStep& step : steps_) {
    const uint64_t cut_ns = std::min(step.duration_ns, left_ns);
    frames += frames_of({step.rate_fps, cut_ns});
    left_ns -= cut_ns;
  }
  return static_cast<uint64_t>(std::min<Wide>(frames, UINT64_MAX));
}

uint64_t Load::due_ns(uint64_t frame) const {
  const Place place = place_of(frame);
  const Wide rate_fps = steps_[place.step].rate_fps;
  const Wide halves = 2 * Wide{place.frame} + (between_ ? 1 : 0);
  const Wide since_ns = (halves * kNsPerSecond + 2 * rate_fps - 1) / (2 * rate_fps);
  return place.begin_ns + static_cast<uint64_t>(since_ns);
}

uint64_t Load::step_end_ns(uint64_t frame) const {
  const Place place = place_of(frame);
  return place.begin_ns + steps_[place.step].duration_ns;
}

Load::Place Load::place_of(uint64_t frame) const {
  const auto rounds = static_cast<uint64_t>(frame / period_frames_);
  Place place{0, rounds * period_ns_, static_cast<uint64_t>(frame % period_frames_)};
  for (; place.frame >= frames_of(steps_[place.step]); ++place.step) {
    place.frame -= static_cast<uint64_t>(frames_of(steps_[place.step]));
    place.begin_ns += steps_[place.step].duration_ns;
  }
  return place;
}

}  // namespace dutperf::timing
