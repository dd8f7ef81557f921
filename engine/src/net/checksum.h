// One's complement sums (RFC 1071). Sums are kept unfolded and added freely; 2^16 = 1 mod 65535.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "net/byte_order.h"

namespace dutperf::net {

// Sums of words as the CPU reads them: byte-swapped, and so is their sum (RFC 1071 2(B)). To ask
// whether a checksum holds, nothing need be swapped.
namespace native {

template <typename T>
uint64_t load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// Of whole blocks; takes 32 bytes or more at a time where the CPU can.
inline constexpr size_t kBlock = 64;
uint64_t sum_blocks(const uint8_t* bytes, size_t blocks);

// The carry comes round the end: 2^64 = 1 mod 65535, too.
constexpr uint64_t add(uint64_t a, uint64_t b) {
  const uint64_t sum = a + b;
  return sum + static_cast<uint64_t>(sum < b);
}

// The 16-bit words of `bytes`, the last of which may be half a word, unfolded; to be added by
// `add`.
inline uint64_t sum(const uint8_t* bytes, size_t size) {
  uint64_t sum = 0;
  if (size >= 2 * kBlock) {
    sum = sum_blocks(bytes, size / kBlock);
    bytes += size / kBlock * kBlock;
    size %= kBlock;
  }
  for (; size >= 8; bytes += 8, size -= 8) sum = add(sum, load<uint64_t>(bytes));
  if ((size & 4) != 0) {
    sum = add(sum, load<uint32_t>(bytes));
    bytes += 4;
  }
  if ((size & 2) != 0) {
    sum = add(sum, load<uint16_t>(bytes));
    bytes += 2;
  }
  if ((size & 1) != 0) sum = add(sum, *bytes);
  return sum;
}

// Whether what covers its own checksum adds up to ffff. (A sum is 0 only of nothing but zeros.)
constexpr bool holds(uint64_t sum) { return sum % 0xffff == 0 && sum != 0; }

}  // namespace native

constexpr uint16_t fold(uint64_t sum) {
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

// Sum of the 16-bit big-endian words of `bytes`; an odd last byte counts as the high half of a
// word. The result is unfolded: add others to it, then fold.
inline uint64_t sum_words(const uint8_t* bytes, size_t size) {
  return byte_swap(fold(native::sum(bytes, size)));
}

// Checksum field for a header whose sum (checksum field zero) is `sum`.
constexpr uint16_t finish(uint64_t sum) { return static_cast<uint16_t>(~fold(sum)); }

// As `finish`, but never 0: a UDP checksum of 0 means "none" and no translator may see it
// (RFC 768, RFC 7915 4.5).
constexpr uint16_t finish_udp(uint64_t sum) {
  const uint16_t checksum = finish(sum);
  return checksum == 0 ? 0xffff : checksum;
}

}  // namespace dutperf::net
