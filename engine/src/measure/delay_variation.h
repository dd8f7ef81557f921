// Inter-packet delay variation (RFC 8219 7.3.2, RFC 3393): D(i) - D(i-1) of frames sent in a row.
//
// Frames may arrive in any order, so each leaves its delay in a ring, at its own number, and looks
// for the neighbours that came before it: a pair is found by the one of the two that comes second.
// Pairs further apart than the ring is long (a million frames) are not found; the count of pairs
// shows it. Eight bytes a frame: 20 bits tell whose delay it is, 44 bits hold it (4.8 hours).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "measure/arrival.h"
#include "measure/histogram.h"

namespace dutperf::measure {

class DelayVariation {
 public:
  static constexpr unsigned kBits = 10;  // 0.1 %
  static constexpr uint64_t kMaxRing = 1 << 20;

  static constexpr uint64_t ring_for(uint64_t frames) {
    return std::bit_ceil(std::clamp<uint64_t>(frames, 1, kMaxRing));
  }

  // For frames 0 .. frames-1, frames up to 2^40.
  void reset(uint64_t frames) {
    const uint64_t ring = ring_for(frames);
    if (ring_.size() < ring) ring_.resize(ring);
    std::fill_n(ring_.begin(), ring, kEmpty);
    mask_ = ring - 1;
    ring_shift_ = static_cast<unsigned>(std::bit_width(mask_));
    newest_ = 0;
    shorter_.reset();
    longer_.reset();
    shorter_shaded_.reset();
    longer_shaded_.reset();
  }

  // What it keeps from trial to trial.
  uint64_t held_bytes() const { return 8 * ring_.size(); }

  static constexpr uint32_t kMaxBurst = 64;

  // REQUIRES: each frame once, with a sequence below `frames`; `count` at most kMaxBurst. `shaded`
  // ones stood in the shadow of one of the tester's stalls (shadow_watch.h), and so did their
  // pairs.
  void record(const Arrival* arrivals, const uint64_t* delays_ns, uint32_t count, bool shaded) {
    Pairs shorter;
    Pairs longer;
    uint64_t newest = newest_;
    uint64_t last = kNone;  // the frame before in the burst, and its delay
    uint64_t last_delay = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t sequence = arrivals[i].sequence;
      const uint64_t delay = std::min(delays_ns[i], kDelayMask - 1);
      ring_[sequence & mask_] = ((sequence >> ring_shift_) << kDelayWidth) | delay;
      if (sequence > 0) {
        const uint64_t before = sequence - 1 == last ? last_delay : delay_of(sequence - 1);
        if (before != kNone) (delay < before ? shorter : longer).add(delay, before);
      }
      // Nobody has come from beyond the newest.
      if (sequence < newest) [[unlikely]] {
        const uint64_t after = delay_of(sequence + 1);
        if (after != kNone) (after < delay ? shorter : longer).add(delay, after);
      } else {
        newest = sequence;
      }
      last = sequence;
      last_delay = delay;
    }
    newest_ = newest;
    shorter_.record_all(shorter.differences, shorter.count);
    longer_.record_all(longer.differences, longer.count);
    if (!shaded) [[likely]]
      return;
    shorter_shaded_.record_all(shorter.differences, shorter.count);
    longer_shaded_.record_all(longer.differences, longer.count);
  }

  // D(i) < D(i-1): by how much; and the rest.
  const Histogram& shorter() const { return shorter_; }
  const Histogram& longer() const { return longer_; }
  AroundOrigin around_zero() const { return {0, shorter_, longer_}; }
  AroundOrigin shaded_around_zero() const { return {0, shorter_shaded_, longer_shaded_}; }

 private:
  static constexpr unsigned kDelayWidth = 44;
  static constexpr uint64_t kDelayMask = (1ULL << kDelayWidth) - 1;
  static constexpr uint64_t kEmpty = UINT64_MAX;

  static constexpr uint64_t kNone = kDelayMask;

  struct Pairs {
    void add(uint64_t a, uint64_t b) { differences[count++] = a < b ? b - a : a - b; }

    uint32_t count = 0;
    uint64_t differences[2 * kMaxBurst];  // a frame may find both neighbours
  };

  uint64_t delay_of(uint64_t sequence) const {
    const uint64_t entry = ring_[sequence & mask_];
    return entry >> kDelayWidth == sequence >> ring_shift_ ? entry & kDelayMask : kNone;
  }

  std::vector<uint64_t> ring_;
  uint64_t mask_ = 0;
  unsigned ring_shift_ = 0;
  uint64_t newest_ = 0;
  Histogram shorter_{kBits};
  Histogram longer_{kBits};
  Histogram shorter_shaded_{kBits};
  Histogram longer_shaded_{kBits};
};

}  // namespace dutperf::measure
