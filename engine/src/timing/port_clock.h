// The clock of a NIC, in ticks of the time stamp counter.
//
// It counts ticks of a rate of its own, which drifts. A line through two readings says which tick
// is which of the counter's, and the clock is read anew while a trial runs: at once, after 1 ms, 2
// ms, 4 ms, ... and each 100 ms. A reading says how far the line was off until then: the largest of
// these is how well the clock is known, and part of each delay's bound.
//
// Not thread safe: each worker has one of its own, by the same reader.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "timing/clock.h"

namespace dutperf::timing {

// The clock said `ticks` at some time between two of the counter's.
struct ClockReading {
  uint64_t before_tsc = 0;
  uint64_t ticks = 0;
  uint64_t after_tsc = 0;

  uint64_t middle_tsc() const { return before_tsc + window_tsc() / 2; }
  uint64_t window_tsc() const { return after_tsc - before_tsc; }
};

class PortClock {
 public:
  using Read = std::function<ClockReading()>;

  static constexpr uint64_t kPeriodNs = 100'000'000;
  static constexpr uint64_t kFirstNs = 1'000'000;
  static constexpr uint64_t kUnknownTsc = 1ULL << 62;
  static constexpr int kTries = 3;  // the fastest of them counts

  // A preemption within a reading makes all of it the clock's doubt.
  static ClockReading best_reading(const Read& read);

  // `earlier`: half a period ago or more; the longer, the better is the rate known.
  PortClock(Read read, const ClockReading& earlier, const TscClock& clock);

  // Costs a comparison, unless it is time to read again.
  void read_if_due(uint64_t now_tsc) {
    if (now_tsc >= next_tsc_) [[unlikely]]
      read_again();
  }

  uint64_t to_tsc(uint64_t ticks) const {
    const auto since = static_cast<double>(static_cast<int64_t>(ticks - anchor_.ticks));
    return anchor_.middle_tsc() +
           static_cast<uint64_t>(static_cast<int64_t>(since * tsc_per_tick_));
  }
  uint64_t to_ticks(uint64_t tsc) const {
    const auto since = static_cast<double>(static_cast<int64_t>(tsc - anchor_.middle_tsc()));
    return anchor_.ticks + static_cast<uint64_t>(static_cast<int64_t>(since / tsc_per_tick_));
  }

  // How far a time may be off, as far as it was looked at; kUnknownTsc: the clock stood still or
  // ran backwards.
  uint64_t worst_tsc() const { return worst_tsc_; }

 private:
  void read_again();
  // The line through `earlier` and the anchor.
  void fit(const ClockReading& earlier);

  Read read_;
  uint64_t period_tsc_;
  uint64_t pause_tsc_;
  ClockReading base_;
  ClockReading anchor_;
  double tsc_per_tick_ = 1;
  uint64_t worst_tsc_ = 0;
  uint64_t next_tsc_ = 0;
};

}  // namespace dutperf::timing
