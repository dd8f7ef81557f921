// Cheap randomness. Every draw is a pure function of (seed, stream, group of fields, frame number),
// so frames are the same on any number of cores, and a receiver can tell what frame k carried.
//
// The generator is SplitMix64's output function over a keyed counter (Steele, Lea, Flood 2014); its
// name and the seed are part of each result (RFC 4814 3.2, RFC 6985 6.4).
#pragma once

#include <cstdint>

namespace dutperf::vary {

inline constexpr const char* kGeneratorName = "splitmix64-counter-3";

inline constexpr uint64_t kDrawStep = 0x9e3779b97f4a7c15;
inline constexpr uint64_t kMix1 = 0xbf58476d1ce4e5b9;
inline constexpr uint64_t kMix2 = 0x94d049bb133111eb;

constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * kMix1;
  x = (x ^ (x >> 27)) * kMix2;
  return x ^ (x >> 31);
}

// The key of one sequence of draws; different (stream, group) give unrelated sequences.
constexpr uint64_t key_of(uint64_t seed, uint64_t stream, uint64_t group) {
  return mix64(mix64(seed + kDrawStep) ^ mix64((stream << 32) + group + 1));
}

// 64 random bits for frame `number`.
constexpr uint64_t draw(uint64_t key, uint64_t number) { return mix64(key + number * kDrawStep); }

// Uniform in [0, size) from 32 random bits, without division; no value's probability is off by more
// than size / 2^32 of itself. REQUIRES: size <= 2^32.
constexpr uint32_t to_range(uint32_t random, uint64_t size) {
  return static_cast<uint32_t>((random * size) >> 32);
}

}  // namespace dutperf::vary
