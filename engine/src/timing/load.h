// The load of one direction over time: steps of a rate each, begun again and again. A constant rate
// is one step without an end.
//
// A step has rate * duration frames, rounded; number j of them is due j / rate after the step
// begins, or half an interval later. What is asked here is answered exactly and takes its time; the
// send loop has its own way to the same times, schedule.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dutperf::timing {

struct RateStep {
  uint64_t rate_fps = 0;  // 0: a pause
  uint64_t duration_ns = 0;

  bool operator==(const RateStep&) const = default;
};

class Load {
 public:
  using Wide = unsigned __int128;

  // `rate_fps` throughout, or `steps` if there are any. `between`: all frames are due half an
  // interval later. REQUIRES: rate_fps >= 1; steps last.
  explicit Load(uint64_t rate_fps, std::vector<RateStep> steps = {}, bool between = false);

  const std::vector<RateStep>& steps() const { return steps_; }
  bool between() const { return between_; }

  static Wide frames_of(const RateStep& step);
  // How many frames the first `ns` have; a step that they cut, to the nearest frame.
  uint64_t frames_in(uint64_t ns) const;
  // When frame number `frame` is due, rounded up; and when its step ends. REQUIRES: a step has a
  // frame.
  uint64_t due_ns(uint64_t frame) const;
  uint64_t step_end_ns(uint64_t frame) const;

 private:
  struct Place {
    size_t step;
    uint64_t begin_ns;  // of the step
    uint64_t frame;     // in it
  };
  Place place_of(uint64_t frame) const;

  std::vector<RateStep> steps_;
  bool between_;
  uint64_t period_ns_ = 0;
  Wide period_frames_ = 0;
};

}  // namespace dutperf::timing
