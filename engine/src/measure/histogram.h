// A log-linear histogram of 64-bit values: fixed memory, constant time, bounded relative error,
// exact minimum and maximum. Values below 2^bits have buckets of their own; above, each power of
// two is split into 2^bits buckets, so a bucket is narrower than its values / 2^bits.
//
// Not thread safe: a worker owns its histograms; `merge` combines them afterwards.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace dutperf::measure {

// Calls `of(value, times)` for each run of equal ones among `count` values: frames of one burst
// often have the same.
template <typename Of>
[[gnu::always_inline]] inline void for_each_run(const uint64_t* values, uint32_t count, Of of) {
  for (uint32_t i = 0; i < count;) {
    const uint32_t first = i;
    const uint64_t value = values[first];
    do {
      ++i;
    } while (i < count && values[i] == value);
    of(value, uint64_t{i - first});
  }
}

class Histogram {
 public:
  struct Bucket {
    uint64_t lowest;
    uint64_t highest;
    uint64_t count;
  };

  // `bits` 5 bounds the relative error by 3.2 %, 10 by 0.1 %.
  explicit Histogram(unsigned bits) : bits_(bits), counts_((65 - bits) << bits) {}

  void record(uint64_t value) { record(value, 1); }

  void record(uint64_t value, uint64_t times) {
    counts_[index(value)] += times;
    count_ += times;
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }

  // Each of `count` values less `origin`; faster than one by one, above all when equal ones follow
  // each other. REQUIRES: none is below it.
  void record_all(const uint64_t* values, uint32_t count, uint64_t origin = 0) {
    uint64_t* const counts = counts_.data();
    const unsigned bits = bits_;  // copies that no count can alias
    uint64_t least = min_;
    uint64_t most = max_;
    for_each_run(values, count, [&](uint64_t value, uint64_t times) {
      const uint64_t above = value - origin;
      counts[index(above, bits)] += times;
      least = std::min(least, above);
      most = std::max(most, above);
    });
    count_ += count;
    min_ = least;
    max_ = most;
  }

  // REQUIRES: same `bits`.
  void merge(const Histogram& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
  }

  // The same values in buckets of `bits`, not more than this one's.
  Histogram coarser(unsigned bits) const {
    Histogram result(bits);
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] > 0) result.counts_[result.index(lowest_of(i))] += counts_[i];
    }
    result.count_ = count_;
    result.min_ = min_;
    result.max_ = max_;
    return result;
  }

  void reset() {
    std::fill(counts_.begin(), counts_.end(), 0);
    count_ = 0;
    min_ = UINT64_MAX;
    max_ = 0;
  }

  uint64_t count() const { return count_; }
  uint64_t min() const { return min_; }  // meaningful only when count() > 0
  uint64_t max() const { return max_; }  // 0 of none

  // How many values are `value` or more; those in its own bucket all count.
  uint64_t count_from(uint64_t value) const {
    uint64_t total = 0;
    for (size_t i = index(value); i < counts_.size(); ++i) total += counts_[i];
    return total;
  }

  // Non-empty buckets in rising order, their ends clipped to the exact minimum and maximum.
  std::vector<Bucket> buckets() const {
    std::vector<Bucket> result;
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] == 0) continue;
      const uint64_t highest = i + 1 < counts_.size() ? lowest_of(i + 1) - 1 : UINT64_MAX;
      result.push_back({std::max(lowest_of(i), min_), std::min(highest, max_), counts_[i]});
    }
    return result;
  }

 private:
  size_t index(uint64_t value) const { return index(value, bits_); }

  static size_t index(uint64_t value, unsigned bits) {
    // Without a branch: values below 2^bits are in group 0 with those of the first power of two,
    // whose buckets are one wide too.
    const auto magnitude = static_cast<unsigned>(std::bit_width(value | (1ULL << bits)));
    const unsigned shift = magnitude - bits - 1;
    return (uint64_t{shift} << bits) + (value >> shift);
  }

  uint64_t lowest_of(size_t index) const {
    const size_t group = index >> bits_;
    if (group == 0) return index;
    const uint64_t mantissa = (1ULL << bits_) + (index & ((1ULL << bits_) - 1));
    return mantissa << (group - 1);
  }

  unsigned bits_;
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  uint64_t min_ = UINT64_MAX;
  uint64_t max_ = 0;
};

// Values by how far they are below an origin, and how far at or above it.
struct AroundOrigin {
  uint64_t origin;
  Histogram below;
  Histogram above;

  uint64_t count() const { return below.count() + above.count(); }
};

}  // namespace dutperf::measure
