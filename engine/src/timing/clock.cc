#include "timing/clock.h"

#include <ctime>

namespace dutperf::timing {
namespace {

struct Pair {
  uint64_t tsc;
  uint64_t ns;
};

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

// The tightest of many readings: a preemption between the two clocks would spoil a single one.
Pair read_pair() {
  Pair best{};
  uint64_t best_gap = UINT64_MAX;
  for (int i = 0; i < 200; ++i) {
    const uint64_t before = read_tsc();
    const uint64_t ns = monotonic_ns();
    const uint64_t gap = read_tsc() - before;
    if (gap < best_gap) {
      best_gap = gap;
      best = {before + gap / 2, ns};
    }
  }
  return best;
}

}  // namespace

TscClock calibrate_tsc(uint64_t duration_ns) {
  const Pair start = read_pair();
  const timespec pause{static_cast<time_t>(duration_ns / kNsPerSecond),
                       static_cast<long>(duration_ns % kNsPerSecond)};
  nanosleep(&pause, nullptr);
  const Pair end = read_pair();
  const auto ticks = (unsigned __int128){end.tsc - start.tsc} * kNsPerSecond;
  return TscClock(static_cast<uint64_t>(ticks / (end.ns - start.ns)));
}

}  // namespace dutperf::timing
