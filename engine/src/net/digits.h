// Numbers as eight hexadecimal digits of a text, all at once: the highest in the lowest byte, as
// they stand in the text.
#pragma once

#include <cstdint>

#include "net/byte_order.h"

namespace dutperf::net::digits {

inline constexpr uint64_t kEach = 0x0101010101010101;
inline constexpr uint64_t kZeros = '0' * kEach;

inline uint64_t text_of(uint32_t number) {
  uint64_t nibbles = byte_swap(uint64_t{number});  // in the upper half, the highest byte first
  nibbles >>= 32;
  nibbles = (nibbles | nibbles << 16) & 0x0000ffff0000ffff;
  nibbles = (nibbles | nibbles << 8) & 0x00ff00ff00ff00ff;
  nibbles = (nibbles >> 4 | nibbles << 8) & 0x0f0f0f0f0f0f0f0f;
  const uint64_t letters = (nibbles + 6 * kEach) >> 4 & kEach;
  return nibbles + '0' * kEach + letters * ('a' - '0' - 10);
}

// Of what are digits; else of anything.
inline uint32_t number_of(uint64_t digits) {
  const uint64_t letters = digits >> 6 & kEach;
  uint64_t nibbles = (digits & 0x0f * kEach) + 9 * letters;
  nibbles = (nibbles << 4 | nibbles >> 8) & 0x00ff00ff00ff00ff;
  nibbles = (nibbles | nibbles >> 8) & 0x0000ffff0000ffff;
  nibbles = (nibbles | nibbles >> 16) & 0x00000000ffffffff;
  return static_cast<uint32_t>(byte_swap(nibbles << 32));
}

}  // namespace dutperf::net::digits
