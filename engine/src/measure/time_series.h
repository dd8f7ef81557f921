// Counts by interval of time. Fixed length: what comes after the last interval counts there.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/arrival.h"

namespace dutperf::measure {

class TimeSeries {
 public:
  // `intervals` of `interval_ns` each, both at least 1.
  void reset(uint64_t interval_ns, uint64_t intervals) {
    interval_ns_ = interval_ns;
    counts_.assign(intervals, 0);
    enter(0);
  }

  void add(uint64_t at_ns, uint64_t count) {
    // Neighbours in time share an interval; a division only when it changes.
    if (at_ns - begin_ns_ >= length_ns_) [[unlikely]]
      enter(at_ns);
    counts_[current_] += count;
  }

  void add_all(const Arrival* arrivals, uint32_t count) {
    uint32_t first = 0;  // of those in the current interval
    for (uint32_t i = 0; i < count; ++i) {
      if (arrivals[i].sent_ns - begin_ns_ < length_ns_) [[likely]]
        continue;
      counts_[current_] += i - first;
      first = i;
      enter(arrivals[i].sent_ns);
    }
    counts_[current_] += count - first;
  }

  uint64_t interval_ns() const { return interval_ns_; }
  const std::vector<uint64_t>& counts() const { return counts_; }

 private:
  void enter(uint64_t at_ns) {
    const uint64_t last = counts_.size() - 1;
    const uint64_t interval = at_ns / interval_ns_;
    current_ = interval < last ? interval : last;
    begin_ns_ = current_ * interval_ns_;
    length_ns_ = current_ < last ? interval_ns_ : UINT64_MAX - begin_ns_;
  }

  uint64_t interval_ns_ = 1;
  std::vector<uint64_t> counts_ = {0};
  uint64_t current_ = 0;
  uint64_t begin_ns_ = 0;
  uint64_t length_ns_ = 0;
};

}  // namespace dutperf::measure
