// Counts by interval of time. Fixed length: what comes after the last interval counts there.
//
// One thread counts; others may read what is const at any time, except during reset().
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "measure/arrival.h"
#include "measure/published_count.h"

namespace dutperf::measure {

class TimeSeries {
 public:
  // `intervals` of `interval_ns` each, both at least 1.
  void reset(uint64_t interval_ns, uint64_t intervals) {
    interval_ns_ = interval_ns;
    counts_.assign(intervals, {});
    enter(0);
  }

  void add(uint64_t at_ns, uint64_t count) {
    // Neighbours in time share an interval; a division only when it changes.
    if (at_ns - begin_ns_ >= length_ns_) [[unlikely]]
      enter(at_ns);
    counts_[current_].add(count);
  }

  void add_all(const Arrival* arrivals, uint32_t count) {
    uint32_t first = 0;  // of those in the current interval
    for (uint32_t i = 0; i < count; ++i) {
      if (arrivals[i].sent_ns - begin_ns_ < length_ns_) [[likely]]
        continue;
      counts_[current_].add(i - first);
      first = i;
      enter(arrivals[i].sent_ns);
    }
    counts_[current_].add(count - first);
  }

  // Those of another one of the same intervals.
  void add_all_of(const TimeSeries& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i].add(other.counts_[i].value());
  }

  uint64_t interval_ns() const { return interval_ns_; }
  std::vector<uint64_t> counts() const {
    std::vector<uint64_t> result;
    for (const PublishedCount& count : counts_) result.push_back(count.value());
    return result;
  }
  // The sum over the intervals that end at `end_ns` or before. The last one never ends.
  uint64_t sum_before(uint64_t end_ns) const {
    const uint64_t ended = std::min<uint64_t>(end_ns / interval_ns_, counts_.size() - 1);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < ended; ++i) sum += counts_[i].value();
    return sum;
  }

 private:
  void enter(uint64_t at_ns) {
    const uint64_t last = counts_.size() - 1;
    const uint64_t interval = at_ns / interval_ns_;
    current_ = interval < last ? interval : last;
    begin_ns_ = current_ * interval_ns_;
    length_ns_ = current_ < last ? interval_ns_ : UINT64_MAX - begin_ns_;
  }

  uint64_t interval_ns_ = 1;
  std::vector<PublishedCount> counts_ = std::vector<PublishedCount>(1);
  uint64_t current_ = 0;
  uint64_t begin_ns_ = 0;
  uint64_t length_ns_ = 0;
};

}  // namespace dutperf::measure
