// The rounds of the permutation's Feistel network, for one number or for a burst (see
// permutation.h for what they make).
#pragma once

#include <algorithm>
#include <cstdint>

namespace dutperf::vary {

// left < rows, right < columns; four rounds with four keys. The functions are inlined always: into
// each CPU generation's build of lanes::encrypt.
struct Feistel {
  uint64_t rows;
  uint64_t columns;
  uint64_t key[4];
};

namespace feistel {

struct Pair {
  uint64_t left;
  uint64_t right;
  bool operator==(const Pair&) const = default;
};

// A keyed function of one half, uniform in [0, size): the half's product with itself, each factor
// with a key of its own, so that it grows by another step every time; the upper bits stir the lower
// ones. REQUIRES: half < 2^32, size <= 2^32.
[[gnu::always_inline]] inline uint64_t round(uint64_t half, uint64_t key, uint64_t size) {
  constexpr uint64_t kLow = 0xffffffff;
  const uint64_t x = (half + (key >> 32)) * (half ^ (key & kLow));
  return (((x ^ (x >> 32)) & kLow) * size) >> 32;
}

// a + b mod size. REQUIRES: a, b < size < 2^63.
[[gnu::always_inline]] inline uint64_t add(uint64_t a, uint64_t b, uint64_t size) {
  const uint64_t sum = a + b;
  return std::min(sum, sum - size);  // which is huge when there was nothing to take off
}

[[gnu::always_inline]] inline uint64_t subtract(uint64_t a, uint64_t b, uint64_t size) {
  return a >= b ? a - b : a + size - b;
}

[[gnu::always_inline]] inline Pair encrypt(const Feistel& f, Pair pair) {
  auto [left, right] = pair;
  left = add(left, round(right, f.key[0], f.rows), f.rows);
  right = add(right, round(left, f.key[1], f.columns), f.columns);
  left = add(left, round(right, f.key[2], f.rows), f.rows);
  right = add(right, round(left, f.key[3], f.columns), f.columns);
  return {left, right};
}

[[gnu::always_inline]] inline Pair decrypt(const Feistel& f, Pair pair) {
  auto [left, right] = pair;
  right = subtract(right, round(left, f.key[3], f.columns), f.columns);
  left = subtract(left, round(right, f.key[2], f.rows), f.rows);
  right = subtract(right, round(left, f.key[1], f.columns), f.columns);
  left = subtract(left, round(right, f.key[0], f.rows), f.rows);
  return {left, right};
}

}  // namespace feistel
}  // namespace dutperf::vary
