// A keyed permutation of [0, size): all numbers in random order, each exactly once, in constant
// memory and without start-up. Any prefix is usable, and the order can be inverted.
//
// A generalised Feistel network (Black and Rogaway 2002, method 3) over pairs (left, right) with
// left < a, right < b and a * b just above size; a number that falls outside is encrypted again
// ("cycle walking"), which happens to one in sqrt(size) at most.
#pragma once

#include <array>
#include <cstdint>

#include "vary/divisor.h"
#include "vary/draw.h"

namespace dutperf::vary {

class Permutation {
 public:
  static constexpr uint64_t kMaxSize = 1ULL << 48;

  // REQUIRES: 1 <= size <= kMaxSize.
  Permutation(uint64_t size, uint64_t key);

  uint64_t size() const { return size_; }

  // The number at place `index`. REQUIRES: index < size().
  uint64_t at(uint64_t index) const {
    uint64_t value = encrypt(index);
    while (__builtin_expect(value >= size_, 0)) value = encrypt(value);
    return value;
  }

  // The place of `value`: at(place_of(value)) == value. REQUIRES: value < size().
  uint64_t place_of(uint64_t value) const {
    uint64_t index = decrypt(value);
    while (index >= size_) index = decrypt(index);
    return index;
  }

 private:
  static constexpr int kRounds = 4;

  static uint64_t round(uint64_t half, uint64_t key, uint64_t size) {
    uint64_t x = (half + key) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 32)) * 0x94d049bb133111ebULL;
    return ((x >> 32) * size) >> 32;
  }
  static uint64_t add(uint64_t a, uint64_t b, uint64_t size) {
    const uint64_t sum = a + b;
    return sum >= size ? sum - size : sum;
  }
  static uint64_t subtract(uint64_t a, uint64_t b, uint64_t size) {
    return a >= b ? a - b : a + size - b;
  }

  uint64_t encrypt(uint64_t number) const {
    auto [left, right] = columns_.divide(number);
    for (int i = 0; i < kRounds; i += 2) {
      left = add(left, round(right, keys_[i], rows_), rows_);
      right = add(right, round(left, keys_[i + 1], columns_.value()), columns_.value());
    }
    return left * columns_.value() + right;
  }
  uint64_t decrypt(uint64_t number) const {
    auto [left, right] = columns_.divide(number);
    for (int i = kRounds - 2; i >= 0; i -= 2) {
      right = subtract(right, round(left, keys_[i + 1], columns_.value()), columns_.value());
      left = subtract(left, round(right, keys_[i], rows_), rows_);
    }
    return left * columns_.value() + right;
  }

  uint64_t size_;
  uint64_t rows_;
  Divisor columns_;
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace dutperf::vary
