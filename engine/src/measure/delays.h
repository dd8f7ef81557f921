// One-way delays of one stream: how many of which length, and how many longer than the timeouts.
//
// What is wanted of delays is how far they spread, which may be a millionth of their length. So a
// bucket is as wide as a share of the distance from an origin, not of the delay. The origin is the
// smallest of the first kExact delays, which are kept as they are until the trial has ended; what
// falls below it has buckets of its own. A percentile above the origin is known to 0.1 % of its
// distance from the smallest delay, as the smallest is no larger than the origin.
//
// A frame that arrives before it left is a defect of the clocks: it is counted and has no delay.
// slower_than() may be asked by other threads while one records. What stood in the shadow of one of
// the tester's stalls (shadow_watch.h) is kept beside the whole.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/histogram.h"
#include "measure/published_count.h"

namespace dutperf::measure {

inline constexpr unsigned kDelayBits = 10;  // 0.1 %
inline constexpr size_t kMaxTimeouts = 17;  // those to be counted, and the one that fails the DUT

class Delays {
 public:
  static constexpr uint32_t kMaxBurst = 64;
  static constexpr size_t kExact = 16384;

  // `timeouts_ns` rise. Several whose delays will be put together agree on an `origin`, UINT64_MAX
  // at first: that of the one who has kExact delays first.
  void reset(std::span<const uint64_t> timeouts_ns, std::atomic<uint64_t>* origin = nullptr) {
    agreed_ns_ = origin;
    kept_ = shaded_kept_ = 0;
    least_ns_ = UINT64_MAX;
    origin_ns_ = kNone;
    below_.reset();
    above_.reset();
    shaded_below_.reset();
    shaded_above_.reset();
    negative_ = 0;
    timeouts_ = timeouts_ns.size();
    timeouts_ns_.fill(UINT64_MAX);
    std::copy(timeouts_ns.begin(), timeouts_ns.end(), timeouts_ns_.begin());
    slower_.fill({});
    slower_shaded_.fill(0);
  }

  // All of them `shaded` or none. REQUIRES: `count` is at most kMaxBurst.
  void record(const uint64_t* delays_ns, uint32_t count, bool shaded) {
    const uint64_t origin = origin_ns_;  // all of a burst have the same
    if (shaded) [[unlikely]]
      record_shaded(origin, delays_ns, count);
    if (least_of(delays_ns, count) >= origin) [[likely]] {
      above_.record_all(delays_ns, count, origin);
    } else {
      record_around(origin, delays_ns, count);
    }
    if (origin <= timeouts_ns_[0] && above_.max() <= timeouts_ns_[0] - origin) [[likely]]
      return;
    for (uint32_t i = 0; i < count; ++i) count_slower(delays_ns[i], shaded);
  }

  void record_negative() { ++negative_; }

  // In place of recording: what the others, which agree on an origin, have recorded.
  // REQUIRES: reset with their timeouts.
  void put_together(std::span<const Delays* const> parts) {
    uint64_t origin = kNone;
    uint64_t least_ns = UINT64_MAX;
    for (const Delays* part : parts) {
      origin = std::min(origin, part->origin_ns_);  // all that have one have the same
      least_ns = std::min(least_ns, part->least_ns_);
    }
    origin_ns_ = origin != kNone ? origin : least_ns;
    for (const Delays* part : parts) {
      below_.merge(part->below_);
      above_.merge(part->above_);
      shaded_below_.merge(part->shaded_below_);
      shaded_above_.merge(part->shaded_above_);
      put(part->exact_ns_, part->kept_, origin_ns_, below_, above_);
      put(part->shaded_exact_ns_, part->shaded_kept_, origin_ns_, shaded_below_, shaded_above_);
      negative_ += part->negative_;
      for (size_t i = 0; i < timeouts_; ++i) {
        slower_[i].add(part->slower_[i].value());
        slower_shaded_[i] += part->slower_shaded_[i];
      }
    }
  }

  uint64_t negative() const { return negative_; }
  // Frames that took longer. REQUIRES: one of the timeouts.
  uint64_t slower_than(uint64_t timeout_ns) const { return slower_[place_of(timeout_ns)].value(); }
  // Of these: in a shadow. After the trial.
  uint64_t slower_shaded(uint64_t timeout_ns) const { return slower_shaded_[place_of(timeout_ns)]; }

  // All of them, after the trial; and those in a shadow, in the same buckets.
  AroundOrigin around_origin() const { return around(below_, above_, exact_ns_, kept_); }
  AroundOrigin shaded_around_origin() const {
    return around(shaded_below_, shaded_above_, shaded_exact_ns_, shaded_kept_);
  }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;  // above every delay

  AroundOrigin around(const Histogram& below, const Histogram& above,
                      const std::vector<uint64_t>& exact_ns, size_t kept) const {
    AroundOrigin all{origin_ns_ != kNone ? origin_ns_ : least_ns_, below, above};
    put(exact_ns, kept, all.origin, all.below, all.above);
    return all;
  }

  static void put(const std::vector<uint64_t>& delays_ns, size_t count, uint64_t origin,
                  Histogram& below, Histogram& above) {
    for (size_t i = 0; i < count; ++i) {
      const uint64_t delay_ns = delays_ns[i];
      if (delay_ns >= origin) {
        above.record(delay_ns - origin);
      } else {
        below.record(origin - delay_ns);
      }
    }
  }

  // The first of those that agree says which it is.
  uint64_t agreed() const {
    uint64_t origin = kNone;
    if (agreed_ns_ == nullptr) return least_ns_;
    return agreed_ns_->compare_exchange_strong(origin, least_ns_) ? least_ns_ : origin;
  }

  static uint64_t least_of(const uint64_t* delays_ns, uint32_t count) {
    uint64_t least_ns = UINT64_MAX;
    for (uint32_t i = 0; i < count; ++i) least_ns = std::min(least_ns, delays_ns[i]);
    return least_ns;
  }

  [[gnu::noinline]] void record_around(uint64_t origin, const uint64_t* delays_ns, uint32_t count) {
    for_each_run(delays_ns, count, [this, origin](uint64_t delay_ns, uint64_t times) {
      if (delay_ns >= origin) {
        above_.record(delay_ns - origin, times);
      } else {
        record_below(origin, delay_ns, times);
      }
    });
  }

  void record_below(uint64_t origin, uint64_t delay_ns, uint64_t times) {
    if (origin != kNone) {
      below_.record(origin - delay_ns, times);
      return;
    }
    // The burst that brings the last of them may bring some more.
    for (uint64_t i = 0; i < times; ++i) exact_ns_[kept_++] = delay_ns;
    least_ns_ = std::min(least_ns_, delay_ns);
    if (kept_ >= kExact) origin_ns_ = agreed();
  }

  [[gnu::noinline]] void record_shaded(uint64_t origin, const uint64_t* delays_ns, uint32_t count) {
    if (origin == kNone) {
      for (uint32_t i = 0; i < count; ++i) shaded_exact_ns_[shaded_kept_++] = delays_ns[i];
      return;
    }
    for_each_run(delays_ns, count, [this, origin](uint64_t delay_ns, uint64_t times) {
      if (delay_ns >= origin) {
        shaded_above_.record(delay_ns - origin, times);
      } else {
        shaded_below_.record(origin - delay_ns, times);
      }
    });
  }

  size_t place_of(uint64_t timeout_ns) const {
    const auto found = std::find(timeouts_ns_.begin(), timeouts_ns_.end(), timeout_ns);
    return static_cast<size_t>(found - timeouts_ns_.begin());
  }
  void count_slower(uint64_t ns, bool shaded) {
    for (size_t i = 0; i < timeouts_ && ns > timeouts_ns_[i]; ++i) {
      slower_[i].add(1);
      slower_shaded_[i] += shaded ? 1 : 0;
    }
  }

  std::atomic<uint64_t>* agreed_ns_ = nullptr;  // null: it is alone
  std::vector<uint64_t> exact_ns_ = std::vector<uint64_t>(kExact + kMaxBurst);
  std::vector<uint64_t> shaded_exact_ns_ = std::vector<uint64_t>(kExact + kMaxBurst);
  size_t kept_ = 0;
  size_t shaded_kept_ = 0;
  uint64_t least_ns_ = UINT64_MAX;  // of those
  uint64_t origin_ns_ = kNone;      // until there are kExact
  Histogram below_{kDelayBits};
  Histogram above_{kDelayBits};
  Histogram shaded_below_{kDelayBits};
  Histogram shaded_above_{kDelayBits};
  uint64_t negative_ = 0;
  size_t timeouts_ = 0;
  std::array<uint64_t, kMaxTimeouts> timeouts_ns_{};
  std::array<PublishedCount, kMaxTimeouts> slower_{};
  std::array<uint64_t, kMaxTimeouts> slower_shaded_{};
};

}  // namespace dutperf::measure
