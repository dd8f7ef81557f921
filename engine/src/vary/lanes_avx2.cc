#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "vary/draw.h"
#include "vary/lanes_by_cpu.h"

namespace dutperf::vary::lanes {

#if defined(__x86_64__)

#define WIDE __attribute__((target("avx2")))

namespace avx2 {

constexpr uint32_t kLanes = 4;
using Vector = uint64_t __attribute__((vector_size(32), may_alias));
using Doubles = double __attribute__((vector_size(32)));

WIDE static inline Vector product(Vector a, Vector b) {
  return reinterpret_cast<Vector>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}

// By halves: there is no such operation of 64 bits. A negative b has a large lower half, too, as
// what was taken off is 2^31 at most.
WIDE static inline Vector smaller(Vector a, Vector b) {
  return reinterpret_cast<Vector>(
      _mm256_min_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}

// What the mask leaves comes from one side only, so the other may as well not be turned in.
WIDE static inline Vector turned(Vector x, const RandomPart& part) {
  const Vector right = Vector{} + (part.turn >= 32 ? 64 - part.turn : 0);
  const Vector left = Vector{} + (part.turn >= 32 ? 0 : part.turn);
  return x >> right << left;
}

// A whole number below 2^52 is the lower bits of 2^52 + number as a double.
WIDE static inline Vector quotient(Vector number, double inverse) {
  constexpr double k2To52 = 4503599627370496.0;
  constexpr uint64_t kBits = 0x4330000000000000;
  const Doubles exact = reinterpret_cast<Doubles>(number | kBits) - k2To52;
  const Doubles whole = _mm256_floor_pd(exact * inverse);
  return reinterpret_cast<Vector>(whole + k2To52) ^ kBits;
}

#include "vary/lanes_wide.inc"

}  // namespace avx2

const Kernels kAvx2 = avx2::kWide;

#else

const Kernels kAvx2 = kPlain;

#endif

}  // namespace dutperf::vary::lanes
