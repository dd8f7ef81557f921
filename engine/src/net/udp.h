// UDP datagrams that are no test frames: what a device answers when it is asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "net/headers.h"

namespace dutperf::net {

// The IP packet of a frame that has a whole UDP datagram from `port` in it, and neither options nor
// extension headers before that; else empty. A view into the frame, which has no VLAN tags.
inline std::span<const uint8_t> udp_packet_from(uint16_t port, const uint8_t* frame, size_t size) {
  constexpr size_t kAt = sizeof(EthernetHeader);
  if (size < kAt + sizeof(Ipv4Header) + sizeof(UdpHeader)) return {};
  const uint16_t ether_type = reinterpret_cast<const EthernetHeader*>(frame)->ether_type;
  size_t headers = 0;
  size_t packet_bytes = 0;
  if (ether_type == kEtherTypeIpv4) {
    const auto* header = reinterpret_cast<const Ipv4Header*>(frame + kAt);
    const bool whole = (header->flags_fragment & kMoreFragmentsOrOffset) == 0;
    if (header->version_ihl != 0x45 || header->protocol != kProtocolUdp || !whole) return {};
    headers = sizeof(Ipv4Header);
    packet_bytes = header->total_length;
  } else if (ether_type == kEtherTypeIpv6 && size >= kAt + sizeof(Ipv6Header)) {
    const auto* header = reinterpret_cast<const Ipv6Header*>(frame + kAt);
    if (header->next_header != kProtocolUdp) return {};
    headers = sizeof(Ipv6Header);
    packet_bytes = headers + header->payload_length;
  } else {
    return {};
  }
  if (packet_bytes < headers + sizeof(UdpHeader) || kAt + packet_bytes > size) return {};
  const auto* udp = reinterpret_cast<const UdpHeader*>(frame + kAt + headers);
  if (udp->src_port != port) return {};
  return {frame + kAt, packet_bytes};
}

}  // namespace dutperf::net
