#include "net/checksum.h"

#include "net/simd.h"

namespace dutperf::net::native {

FOR_EACH_CPU
uint64_t sum_blocks(const uint8_t* bytes, size_t blocks) {
  uint64_t low = 0;
  uint64_t high = 0;
  for (size_t i = 0; i < blocks * kBlock; i += 8) {
    uint64_t four_words = 0;
    std::memcpy(&four_words, bytes + i, 8);
    low += four_words & 0xffffffff;
    high += four_words >> 32;
  }
  return low + high;
}

}  // namespace dutperf::net::native
