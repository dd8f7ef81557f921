#include "timing/clock.h"

#include <algorithm>
#include <ctime>

namespace dutperf::timing {
namespace {

uint64_t raw_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

// The tightest of many readings: a preemption between the two clocks would spoil a single one.
TscCalibration::Pair TscCalibration::read() {
  Pair best{};
  uint64_t best_gap = UINT64_MAX;
  for (int i = 0; i < 200; ++i) {
    const uint64_t before = read_tsc();
    const uint64_t ns = raw_ns();
    const uint64_t gap = read_tsc() - before;
    if (gap < best_gap) {
      best_gap = gap;
      best = {before + gap / 2, ns};
    }
  }
  return best;
}

TscClock TscCalibration::finish(uint64_t duration_ns) const {
  const uint64_t passed_ns = raw_ns() - start_.ns;
  const uint64_t left_ns = duration_ns - std::min(duration_ns, passed_ns);
  const timespec pause{static_cast<time_t>(left_ns / kNsPerSecond),
                       static_cast<long>(left_ns % kNsPerSecond)};
  nanosleep(&pause, nullptr);
  const Pair end = read();
  const auto ticks = (unsigned __int128){end.tsc - start_.tsc} * kNsPerSecond;
  return TscClock(static_cast<uint64_t>(ticks / (end.ns - start_.ns)));
}

}  // namespace dutperf::timing
