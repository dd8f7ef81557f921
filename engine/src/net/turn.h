// A received frame turned round: what answers it is written over it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "net/checksum.h"
#include "net/headers.h"

namespace dutperf::net {

inline void turn_ethernet(uint8_t* mac) {
  auto* header = reinterpret_cast<EthernetHeader*>(mac);
  std::swap_ranges(header->dst, header->dst + sizeof(header->dst), header->src);
}

// An IP header without options, of a packet that carries so many bytes then.
inline void turn_ip(uint8_t* ip, int version, size_t carried_bytes) {
  constexpr uint8_t kHops = 64;
  if (version == 4) {
    auto* header = reinterpret_cast<Ipv4Header*>(ip);
    header->total_length = static_cast<uint16_t>(sizeof(Ipv4Header) + carried_bytes);
    header->id = 0;
    header->flags_fragment = kDontFragment;
    header->ttl = kHops;
    header->checksum = 0;
    std::swap_ranges(header->src, header->src + sizeof(header->src), header->dst);
    header->checksum = finish(sum_words(ip, sizeof(Ipv4Header)));
    return;
  }
  auto* header = reinterpret_cast<Ipv6Header*>(ip);
  header->payload_length = static_cast<uint16_t>(carried_bytes);
  header->hop_limit = kHops;
  std::swap_ranges(header->src, header->src + sizeof(header->src), header->dst);
}

}  // namespace dutperf::net
