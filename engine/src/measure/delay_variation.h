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
    if (count > 0 && arrivals[0].sequence >= newest_ && in_a_row(arrivals, count)) [[likely]] {
      pair_in_a_row(arrivals[0].sequence, delays_ns, count, shorter, longer);
    } else {
      pair_any(arrivals, delays_ns, count, shorter, longer);
    }
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
    // A frame may find both neighbours; and room for one that is written before it is known.
    uint64_t differences[2 * kMaxBurst + 1];
  };

  static bool in_a_row(const Arrival* arrivals, uint32_t count) {
    const uint64_t first = arrivals[0].sequence;
    uint64_t apart = 0;
    for (uint32_t i = 1; i < count; ++i) apart |= arrivals[i].sequence ^ (first + i);
    return apart == 0;
  }

  // Of frames first, first + 1, ..., beyond which none has come.
  void pair_in_a_row(uint64_t first, const uint64_t* delays_ns, uint32_t count, Pairs& shorter,
                     Pairs& longer) {
    uint64_t before = first > 0 ? delay_of(first - 1) : kNone;
    uint32_t i = 0;
    if (before == kNone) before = put(first, delays_ns[i++]);
    for (; i < count; ++i) {
      const uint64_t delay = put(first + i, delays_ns[i]);
      // Of which kind it is, is a toss-up: no branch.
      const bool is_shorter = delay < before;
      const uint64_t difference = is_shorter ? before - delay : delay - before;
      shorter.differences[shorter.count] = longer.differences[longer.count] = difference;
      shorter.count += is_shorter;
      longer.count += !is_shorter;
      before = delay;
    }
    newest_ = first + count - 1;
  }

  void pair_any(const Arrival* arrivals, const uint64_t* delays_ns, uint32_t count, Pairs& shorter,
                Pairs& longer) {
    uint64_t newest = newest_;
    uint64_t last = kNone;  // the frame before in the burst, and its delay
    uint64_t last_delay = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t sequence = arrivals[i].sequence;
      const uint64_t delay = put(sequence, delays_ns[i]);
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
  }

  // Leaves the frame's delay where its neighbours look for it.
  uint64_t put(uint64_t sequence, uint64_t delay_ns) {
    const uint64_t delay = std::min(delay_ns, kDelayMask - 1);
    ring_[sequence & mask_] = ((sequence >> ring_shift_) << kDelayWidth) | delay;
    return delay;
  }

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
