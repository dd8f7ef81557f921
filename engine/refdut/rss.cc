#include "rss.h"

#include <cstddef>

#include "net/headers.h"

namespace dutperf::refdut {
namespace {

constexpr std::array<uint8_t, 40> kKey = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

// Bits first .. first + 31 of the key, the highest bit of its first byte being bit 0.
uint32_t key_window(size_t first) {
  uint64_t bits = 0;
  for (size_t i = 0; i < 5; ++i) bits = bits << 8 | kKey[first / 8 + i];
  return static_cast<uint32_t>(bits >> (8 - first % 8));
}

}  // namespace

Rss::Rss(RssFields fields, uint32_t queues)
    : queues_(queues),
      port_bytes_(fields == RssFields::kAddressesAndPorts ? 2 * sizeof(net::Be16) : 0),
      of_byte_(kMaxBytes) {
  for (size_t i = 0; i < kMaxBytes; ++i) {
    for (uint32_t value = 0; value < 256; ++value) {
      uint32_t sum = 0;
      for (size_t bit = 0; bit < 8; ++bit) {
        if ((value & (0x80U >> bit)) != 0) sum ^= key_window(8 * i + bit);
      }
      of_byte_[i][value] = sum;
    }
  }
}

uint32_t Rss::hash(const uint8_t* frame, int ip_version) const {
  // The ports follow the addresses in both versions.
  const size_t addresses =
      ip_version == 4 ? offsetof(net::Ipv4Header, src) : offsetof(net::Ipv6Header, src);
  const uint8_t* input = frame + sizeof(net::EthernetHeader) + addresses;
  const size_t bytes = (ip_version == 4 ? 8 : 32) + port_bytes_;
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes; ++i) sum ^= of_byte_[i][input[i]];
  return sum;
}

}  // namespace dutperf::refdut
