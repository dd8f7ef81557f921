#include "vary/lanes_avx512.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "vary/draw.h"

namespace dutperf::vary::lanes::avx512 {

#if defined(__x86_64__)

#define AVX512 __attribute__((target("avx512f,avx512dq")))

namespace {

constexpr uint32_t kLanes = 8;
using Vector = uint64_t __attribute__((vector_size(64), may_alias));
using Doubles = double __attribute__((vector_size(64)));

AVX512 inline Vector load(const Lanes& from, uint32_t lane) {
  return *reinterpret_cast<const Vector*>(&from.lane[lane]);
}

AVX512 inline void store(Vector value, Lanes& to, uint32_t lane) {
  *reinterpret_cast<Vector*>(&to.lane[lane]) = value;
}

// Of the lanes' lower halves. (All lanes are wanted; GCC 12 warns of the plain intrinsic.)
AVX512 inline Vector product(Vector a, Vector b) {
  return reinterpret_cast<Vector>(
      _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}

AVX512 inline Vector all(uint64_t value) { return Vector{} + value; }

AVX512 inline Vector mixed(Vector x) {
  x = (x ^ (x >> 30)) * kMix1;
  x = (x ^ (x >> 27)) * kMix2;
  return x ^ (x >> 31);
}

// As in lanes.cc. Turning each lane by an amount of its own takes one operation, all by the same
// two.
AVX512 inline Vector placed(Vector random, const RandomPart& part) {
  const Vector fraction = product(random, all(part.size));
  const auto turned = reinterpret_cast<Vector>(_mm512_maskz_rolv_epi64(
      0xff, reinterpret_cast<__m512i>(fraction), reinterpret_cast<__m512i>(all(part.turn))));
  return turned & part.mask;
}

// As in feistel.h.
AVX512 inline Vector round(Vector half, uint64_t key, uint64_t size) {
  const Vector x = product(half + (key >> 32), half ^ key);
  return product(x ^ (x >> 32), all(size)) >> 32;
}

AVX512 inline Vector add(Vector a, Vector b, uint64_t size) {
  const Vector sum = a + b;
  const Vector less = sum - size;
  return sum < less ? sum : less;
}

AVX512 inline Vector quotient(Vector number, double inverse) {
  return __builtin_convertvector(__builtin_convertvector(number, Doubles) * inverse, Vector);
}

}  // namespace

bool is_here() { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"); }

AVX512 void random_windows(const RandomWindow* windows, uint32_t window_count, const Lanes& numbers,
                           Lanes* out, uint32_t count) {
  for (uint32_t i = 0; i < count; i += kLanes) {
    const Vector step = load(numbers, i) * kDrawStep;
    for (uint32_t w = 0; w < window_count; ++w) {
      const RandomWindow& window = windows[w];
      const Vector random = mixed(step + window.key);
      const Vector high = placed(random >> 32, window.high);
      const Vector low = placed(random, window.low);
      store(window.fixed + (high | low), out[window.place], i);
    }
  }
}

AVX512 void draw_indices(uint64_t key, uint64_t size, const Lanes& numbers, Lanes& out,
                         uint32_t count) {
  constexpr uint64_t kLow = 0xffffffff;
  const Vector size_low = all(size & kLow);
  const Vector size_high = all(size >> 32);
  for (uint32_t i = 0; i < count; i += kLanes) {
    const Vector low = mixed(load(numbers, i) * kDrawStep + key);
    const Vector high = low >> 32;
    const Vector middle = product(high, size_low) + (product(low, size_low) >> 32);
    const Vector other = product(low, size_high) + (middle & kLow);
    store(product(high, size_high) + (middle >> 32) + (other >> 32), out, i);
  }
}

AVX512 void encrypt(const Feistel& network, const Lanes& numbers, Lanes& left, Lanes& right,
                    uint32_t count) {
  const Feistel f = network;
  for (uint32_t i = 0; i < count; i += kLanes) {
    const Vector number = load(numbers, i);
    Vector l = quotient(number, f.inverse_columns);
    Vector r = number - product(l, all(f.columns));
    l = add(l, round(r, f.key[0], f.rows), f.rows);
    r = add(r, round(l, f.key[1], f.columns), f.columns);
    l = add(l, round(r, f.key[2], f.rows), f.rows);
    r = add(r, round(l, f.key[3], f.columns), f.columns);
    store(l, left, i);
    store(r, right, i);
  }
}

#else

bool is_here() { return false; }
void random_windows(const RandomWindow*, uint32_t, const Lanes&, Lanes*, uint32_t) {}
void draw_indices(uint64_t, uint64_t, const Lanes&, Lanes&, uint32_t) {}
void encrypt(const Feistel&, const Lanes&, Lanes&, Lanes&, uint32_t) {}

#endif

}  // namespace dutperf::vary::lanes::avx512
