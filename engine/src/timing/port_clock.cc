#include "timing/port_clock.h"

#include <algorithm>

namespace dutperf::timing {

PortClock::PortClock(Read read, const ClockReading& earlier, const TscClock& clock)
    : read_(std::move(read)),
      period_tsc_(clock.to_tsc(kPeriodNs)),
      pause_tsc_(clock.to_tsc(kFirstNs)),
      base_(earlier),
      anchor_(best_reading(read_)) {
  worst_tsc_ = (earlier.window_tsc() + anchor_.window_tsc()) / 2;
  fit(base_);
}

ClockReading PortClock::best_reading(const Read& read) {
  ClockReading best = read();
  for (int i = 1; i < kTries; ++i) {
    const ClockReading next = read();
    if (next.window_tsc() < best.window_tsc()) best = next;
  }
  return best;
}

void PortClock::fit(const ClockReading& earlier) {
  const auto ticks = static_cast<int64_t>(anchor_.ticks - earlier.ticks);
  const auto tsc = static_cast<int64_t>(anchor_.middle_tsc() - earlier.middle_tsc());
  if (ticks <= 0 || tsc <= 0) {
    worst_tsc_ = kUnknownTsc;
    return;
  }
  tsc_per_tick_ = static_cast<double>(tsc) / static_cast<double>(ticks);
}

// The rate is that of half a period or more: the shorter, the more a slow reading would tilt it.
[[gnu::cold, gnu::noinline]] void PortClock::read_again() {
  const ClockReading next = best_reading(read_);
  const auto off = static_cast<int64_t>(to_tsc(next.ticks) - next.middle_tsc());
  const uint64_t off_tsc = static_cast<uint64_t>(off < 0 ? -off : off) + next.window_tsc() / 2;
  worst_tsc_ = std::max(worst_tsc_, off_tsc);
  if (next.middle_tsc() - anchor_.middle_tsc() >= period_tsc_ / 2) base_ = anchor_;
  anchor_ = next;
  fit(base_);
  next_tsc_ = next.after_tsc + pause_tsc_;
  pause_tsc_ = std::min(2 * pause_tsc_, period_tsc_);
}

}  // namespace dutperf::timing
