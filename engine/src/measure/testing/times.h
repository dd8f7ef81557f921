// Times of nanoseconds, as tests write them.
#pragma once

#include <cstdint>

namespace dutperf::measure::testing {

inline constexpr uint64_t kUs = 1'000;
inline constexpr uint64_t kMs = 1'000'000;

}  // namespace dutperf::measure::testing
