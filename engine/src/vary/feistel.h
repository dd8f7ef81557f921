// The rounds of the permutation's Feistel network, for one number or for a burst (see
// permutation.h for what they make).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace dutperf::vary {

// A reciprocal that is never too small, by which a product is never below the true quotient. It is
// above by less than 1 / divisor, which would reach the next whole number, as long as
// number + divisor < 2^50. So cutting off the fraction divides without correction.
constexpr double reciprocal(uint64_t divisor) {
  constexpr double kJustAbove1 = 1 + std::numeric_limits<double>::epsilon();
  return 1.0 / static_cast<double>(divisor) * kJustAbove1;
}

// left < rows, right < columns; four rounds with four keys. The functions are inlined always: into
// each CPU generation's build of lanes::encrypt.
struct Feistel {
  // REQUIRES: rows, columns <= 2^31: the sum of two numbers below has 32 bits (lanes_avx2.cc).
  constexpr Feistel(uint64_t r, uint64_t c, const std::array<uint64_t, 4>& keys)
      : rows(r), columns(c), inverse_columns(reciprocal(c)), key(keys) {}

  uint64_t rows;
  uint64_t columns;
  double inverse_columns;
  std::array<uint64_t, 4> key;
};

namespace feistel {

struct Pair {
  uint64_t left;
  uint64_t right;
  bool operator==(const Pair&) const = default;
};

// A keyed function of one half, uniform in [0, size): the half's product with itself, each factor
// with a key of its own, so that it grows by another step every time; the upper bits stir the lower
// ones. REQUIRES: half, size < 2^32.
[[gnu::always_inline]] inline uint64_t round(uint64_t half, uint64_t key, uint64_t size) {
  constexpr uint64_t kLow = 0xffffffff;
  const uint64_t x = ((half + (key >> 32)) & kLow) * ((half ^ key) & kLow);
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
