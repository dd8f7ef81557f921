// The time stamp counter, and its conversion to nanoseconds.
//
// All times of a trial come from one counter, so sending and receiving cores need no
// synchronisation. Its rate is calibrated against CLOCK_MONOTONIC_RAW, because DPDK's own estimate
// is rounded to 10 MHz: up to 0.2 % of rate error on a 2.5 GHz counter, where RFC 5180 A.1 allows
// 100 ppm. CLOCK_MONOTONIC is no better while a time service corrects it: chrony makes it faster or
// slower by up to 8 %.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace dutperf::timing {

inline uint64_t read_tsc() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
#error "no time stamp counter known for this CPU"
#endif
}

inline void cpu_relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

inline constexpr uint64_t kNsPerSecond = 1'000'000'000;

// Converts counter differences to nanoseconds and back. A value; freely copied.
class TscClock {
 public:
  // REQUIRES: hz >= 1 MHz.
  explicit TscClock(uint64_t hz)
      : hz_(hz),
        multiplier_(static_cast<uint64_t>(((unsigned __int128){kNsPerSecond} << 32) / hz)) {}

  uint64_t hz() const { return hz_; }

  // Rounds down; relative error below 2^-30 for counters of up to 4 GHz.
  uint64_t to_ns(uint64_t tsc_delta) const {
    return static_cast<uint64_t>(((unsigned __int128){tsc_delta} * multiplier_) >> 32);
  }

  uint64_t to_tsc(uint64_t ns) const {
    return static_cast<uint64_t>((unsigned __int128){ns} * hz_ / kNsPerSecond);
  }

 private:
  uint64_t hz_;
  uint64_t multiplier_;  // nanoseconds per tick, 32.32 fixed point
};

// Measures the counter's rate against CLOCK_MONOTONIC_RAW, from its construction to `finish`;
// what there is to do meanwhile costs no time. The pairing error of about 50 ns at both ends bounds
// the relative error: 1 ppm for 100 ms.
class TscCalibration {
 public:
  TscCalibration() : start_(read()) {}
  // Blocks until `duration_ns` have passed, if they have not.
  TscClock finish(uint64_t duration_ns) const;

 private:
  struct Pair {
    uint64_t tsc = 0;
    uint64_t ns = 0;
  };
  static Pair read();

  Pair start_;
};

// Blocks for about `duration_ns`.
inline TscClock calibrate_tsc(uint64_t duration_ns) { return TscCalibration().finish(duration_ns); }

}  // namespace dutperf::timing
