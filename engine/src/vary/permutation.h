// A keyed permutation of [0, size): all numbers in random order, each exactly once, in constant
// memory and without start-up. Any prefix is usable, and the order can be inverted.
//
// A generalised Feistel network (Black and Rogaway 2002, method 3) over pairs (left, right) with
// left < rows, right < columns, which stand for left * columns + right. Where the numbers are no
// such rectangle, rows * columns lies just above size, and a number that falls outside is encrypted
// again ("cycle walking"), which happens to one in sqrt(size) at most.
#pragma once

#include <cstdint>

#include "vary/divisor.h"
#include "vary/feistel.h"
#include "vary/lanes.h"

namespace dutperf::vary {

class Permutation {
 public:
  static constexpr uint64_t kMaxSize = 1ULL << 48;

  // A rectangle with sides from kMinSide to kMaxSide serves as it is: with a shorter one numbers
  // would follow each other in too few ways.
  static constexpr uint64_t kMinSide = 1ULL << 12;
  static constexpr uint64_t kMaxSide = 1ULL << 31;

  // REQUIRES: 1 <= size <= kMaxSize.
  Permutation(uint64_t size, uint64_t key);

  // Of all pairs. REQUIRES: sides as above, rows * columns <= kMaxSize.
  Permutation(uint64_t rows, uint64_t columns, uint64_t key);

  uint64_t size() const { return size_; }

  // The number at place `index`. REQUIRES: index < size().
  uint64_t at(uint64_t index) const;

  // out = at(index) for a burst.
  void at_all(const Lanes& indices, Lanes& out, uint32_t count) const;

  // The same in pairs. REQUIRES: this is a permutation of pairs.
  void pairs_at(const Lanes& indices, Lanes& left, Lanes& right, uint32_t count) const;

  // The place of `value`: at(place_of(value)) == value. REQUIRES: value < size().
  uint64_t place_of(uint64_t value) const;

 private:
  uint64_t encrypt(uint64_t number) const;
  uint64_t decrypt(uint64_t number) const;

  uint64_t size_;
  Feistel feistel_;
  Divisor columns_;
};

}  // namespace dutperf::vary
