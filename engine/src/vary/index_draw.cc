#include "vary/index_draw.h"

#include <algorithm>

#include "vary/draw.h"

namespace dutperf::vary {

IndexDraw::IndexDraw(IndexOrder order, uint64_t count, IndexSource source, uint64_t seed,
                     uint64_t stream)
    : order_(order), count_(count), key_(key_of(seed, stream, group_of(source))) {
  if (order == IndexOrder::kShuffled) permutation_.emplace(count, key_);
}

uint64_t IndexDraw::at(uint64_t number) const {
  switch (order_) {
    case IndexOrder::kOnce: return number;
    case IndexOrder::kFirst: return 0;
    case IndexOrder::kIncreasing: return number % count_;
    case IndexOrder::kDecreasing: return count_ - 1 - number % count_;
    case IndexOrder::kRandom:
      return static_cast<uint64_t>(((unsigned __int128){draw(key_, number)} * count_) >> 64);
    case IndexOrder::kShuffled: return permutation_->at(number % count_);
  }
  return 0;
}

void IndexDraw::at_all(const Lanes& numbers, Lanes& out, uint32_t count) const noexcept {
  Lanes unused;
  switch (order_) {
    case IndexOrder::kOnce: std::copy_n(numbers.lane, count, out.lane); return;
    case IndexOrder::kFirst: lanes::fill(0, out, count); return;
    case IndexOrder::kIncreasing: lanes::digits_up(numbers, count_, 0, unused, out, count); return;
    case IndexOrder::kDecreasing:
      lanes::digits_down(numbers, count_, count_ - 1, unused, out, count);
      return;
    case IndexOrder::kRandom: lanes::draw_indices(key_, count_, numbers, out, count); return;
    case IndexOrder::kShuffled: {
      Lanes rest;
      lanes::digits_up(numbers, count_, 0, unused, rest, count);
      permutation_->at_all(rest, out, count);
      return;
    }
  }
}

}  // namespace dutperf::vary
