// One-way delays of one stream: how many of which length, and how many longer than the timeouts.
//
// A frame that arrives before it left is a defect of the clocks: it is counted and has no delay.
// slower_than() may be asked by other threads while one records.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "measure/histogram.h"
#include "measure/published_count.h"

namespace dutperf::measure {

inline constexpr unsigned kDelayBits = 10;  // 0.1 %
inline constexpr size_t kMaxTimeouts = 17;  // those to be counted, and the one that fails the DUT

class Delays {
 public:
  // `timeouts_ns` rise.
  void reset(std::span<const uint64_t> timeouts_ns) {
    histogram_.reset();
    negative_ = 0;
    timeouts_ = timeouts_ns.size();
    timeouts_ns_.fill(UINT64_MAX);
    std::copy(timeouts_ns.begin(), timeouts_ns.end(), timeouts_ns_.begin());
    slower_.fill({});
  }

  void record(const uint64_t* delays_ns, uint32_t count) {
    histogram_.record_all(delays_ns, count);
    if (histogram_.max() <= timeouts_ns_[0]) [[likely]]
      return;
    for (uint32_t i = 0; i < count; ++i) count_slower(delays_ns[i]);
  }

  void record_negative() { ++negative_; }

  uint64_t negative() const { return negative_; }
  // Frames that took longer. REQUIRES: one of the timeouts.
  uint64_t slower_than(uint64_t timeout_ns) const {
    const auto found = std::find(timeouts_ns_.begin(), timeouts_ns_.end(), timeout_ns);
    return slower_[static_cast<size_t>(found - timeouts_ns_.begin())].value();
  }
  const Histogram& histogram() const { return histogram_; }

 private:
  void count_slower(uint64_t ns) {
    for (size_t i = 0; i < timeouts_ && ns > timeouts_ns_[i]; ++i) slower_[i].add(1);
  }

  Histogram histogram_{kDelayBits};
  uint64_t negative_ = 0;
  size_t timeouts_ = 0;
  std::array<uint64_t, kMaxTimeouts> timeouts_ns_{};
  std::array<PublishedCount, kMaxTimeouts> slower_{};
};

}  // namespace dutperf::measure
