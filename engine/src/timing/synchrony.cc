#include "timing/synchrony.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "timing/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace dutperf::timing {
namespace {

// Not before what precedes it: an answer must not be older than its question.
uint64_t read_tsc_in_order() {
#if defined(__x86_64__)
  _mm_lfence();
#endif
  return read_tsc();
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

}  // namespace

bool tsc_is_invariant() {
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned kPowerManagement = 0x80000007;
  constexpr unsigned kInvariantTsc = 1U << 8;
  return __get_cpuid(kPowerManagement, &eax, &ebx, &ecx, &edx) != 0 && (edx & kInvariantTsc) != 0;
#else
  return true;  // by the architecture
#endif
}

std::string hypervisor() {
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned kIsVirtual = 1U << 31;
  constexpr unsigned kHypervisor = 0x40000000;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kIsVirtual) == 0) return "";
  std::array<unsigned, 3> name{};
  __cpuid(kHypervisor, eax, name[0], name[1], name[2]);
  std::array<char, sizeof(name)> letters{};
  std::memcpy(letters.data(), name.data(), sizeof(name));
  return {letters.data(), letters.size()};
#else
  return "";
#endif
}

// QEMU without KVM. It has no flag for a counter of constant rate, and one counter for all CPUs.
bool counts_by_host(std::string_view hypervisor) { return hypervisor == "TCGTCGTCGTCG"; }

void OffsetBounds::narrow(uint64_t asked, uint64_t answer, uint64_t heard) {
  lowest = std::max(lowest, static_cast<int64_t>(answer - heard));
  highest = std::min(highest, static_cast<int64_t>(answer - asked));
}

uint64_t OffsetBounds::possible() const { return std::max(magnitude(lowest), magnitude(highest)); }

uint64_t OffsetBounds::certain() const {
  if (lowest <= 0 && highest >= 0) return 0;
  return std::min(magnitude(lowest), magnitude(highest));
}

void SynchronyProbe::answer(uint64_t patience_tsc) {
  const uint64_t start = read_tsc();
  for (uint64_t round = 1; round <= kRounds; ++round) {
    while (question_.load(std::memory_order_acquire) < round) {
      if (read_tsc() - start > patience_tsc) return;
      cpu_relax();
    }
    answer_tsc_.store(read_tsc_in_order(), std::memory_order_relaxed);
    answered_.store(round, std::memory_order_release);
  }
}

OffsetBounds SynchronyProbe::ask(uint64_t patience_tsc) {
  OffsetBounds bounds;
  const uint64_t start = read_tsc();
  for (uint64_t round = 1; round <= kRounds; ++round) {
    const uint64_t asked = read_tsc_in_order();
    question_.store(round, std::memory_order_release);
    while (answered_.load(std::memory_order_acquire) < round) {
      if (read_tsc() - start > patience_tsc) return bounds;
      cpu_relax();
    }
    bounds.narrow(asked, answer_tsc_.load(std::memory_order_relaxed), read_tsc_in_order());
  }
  return bounds;
}

}  // namespace dutperf::timing
