// The longest times, the most frames and the longest sequences that a request may ask for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dutperf::control {

inline constexpr uint64_t kMaxNs = 1ULL << 47;
inline constexpr uint64_t kMaxFrames = 1ULL << 40;
inline constexpr size_t kMaxSequence = 4096;  // frames, then their sizes and flows begin again

}  // namespace dutperf::control
