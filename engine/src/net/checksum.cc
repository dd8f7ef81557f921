#include "net/checksum.h"

#include <cstring>

#include "net/byte_order.h"

namespace dutperf::net {

uint64_t sum_words(const uint8_t* bytes, size_t size) {
  // Native-order words sum to the byte-swapped big-endian sum (RFC 1071 2(B)); swap once at the
  // end.
  uint64_t sum = 0;
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    sum += (word & 0xffffffff) + (word >> 32);
  }
  if (size >= 4) {
    uint32_t word = 0;
    std::memcpy(&word, bytes, 4);
    sum += word;
    bytes += 4;
    size -= 4;
  }
  if (size > 0) {
    uint32_t word = 0;
    std::memcpy(&word, bytes, size);
    sum += word;
  }
  return byte_swap(fold(sum));
}

}  // namespace dutperf::net
