// One's complement sums (RFC 1071). Sums are kept unfolded and added freely; 2^16 = 1 mod 65535.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dutperf::net {

// Sum of the 16-bit big-endian words of `bytes`; an odd last byte counts as the high half of a
// word. The result is unfolded: add others to it, then fold.
uint64_t sum_words(const uint8_t* bytes, size_t size);

constexpr uint16_t fold(uint64_t sum) {
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
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
