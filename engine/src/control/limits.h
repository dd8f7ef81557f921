// The longest times and the most frames that a request may ask for.
#pragma once

#include <cstdint>

namespace dutperf::control {

inline constexpr uint64_t kMaxNs = 1ULL << 47;
inline constexpr uint64_t kMaxFrames = 1ULL << 40;

}  // namespace dutperf::control
