#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "vary/draw.h"
#include "vary/lanes_by_cpu.h"

namespace dutperf::vary::lanes {

#if defined(__x86_64__)

#define WIDE __attribute__((target("avx512f,avx512dq")))

namespace avx512 {

constexpr uint32_t kLanes = 8;
using Vector = uint64_t __attribute__((vector_size(64), may_alias));
using Doubles = double __attribute__((vector_size(64)));

// All lanes are wanted; GCC 12 warns of the plain intrinsics.
WIDE static inline Vector product(Vector a, Vector b) {
  return reinterpret_cast<Vector>(
      _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}

WIDE static inline Vector smaller(Vector a, Vector b) { return a < b ? a : b; }

// Turning each lane by an amount of its own takes one operation, all by the same two.
WIDE static inline Vector turned(Vector x, const RandomPart& part) {
  return reinterpret_cast<Vector>(_mm512_maskz_rolv_epi64(
      0xff, reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(Vector{} + part.turn)));
}

WIDE static inline Vector quotient(Vector number, double inverse) {
  return __builtin_convertvector(__builtin_convertvector(number, Doubles) * inverse, Vector);
}

#include "vary/lanes_wide.inc"

}  // namespace avx512

const Kernels kAvx512 = avx512::kWide;

#else

const Kernels kAvx512 = kPlain;

#endif

}  // namespace dutperf::vary::lanes
