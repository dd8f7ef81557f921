// UDP datagrams that are no test frames: what a device is asked, and what it answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "net/headers.h"

namespace dutperf::net {

// A whole UDP datagram in a frame; offsets from its IP header on. Valid while the frame is.
struct Datagram {
  uint8_t ip_version = 4;
  uint16_t ip_headers = 0;
  uint32_t ip_bytes = 0;
  uint16_t src_port = 0;
  uint16_t dst_port = 0;

  std::span<const uint8_t> payload(const uint8_t* frame) const {
    const size_t headers = ip_headers + sizeof(UdpHeader);
    return {frame + sizeof(EthernetHeader) + headers, ip_bytes - headers};
  }
};

// Of a frame without VLAN tags; none: it has no such datagram, or options or extension headers
// before it.
inline std::optional<Datagram> datagram_in(const uint8_t* frame, size_t size) {
  constexpr size_t kAt = sizeof(EthernetHeader);
  if (size < kAt + sizeof(Ipv4Header) + sizeof(UdpHeader)) return std::nullopt;
  const uint16_t ether_type = reinterpret_cast<const EthernetHeader*>(frame)->ether_type;
  Datagram result;
  if (ether_type == kEtherTypeIpv4) {
    const auto* header = reinterpret_cast<const Ipv4Header*>(frame + kAt);
    const bool whole = (header->flags_fragment & kMoreFragmentsOrOffset) == 0;
    if (header->version_ihl != 0x45 || header->protocol != kProtocolUdp || !whole) {
      return std::nullopt;
    }
    result.ip_headers = sizeof(Ipv4Header);
    result.ip_bytes = header->total_length;
  } else if (ether_type == kEtherTypeIpv6 && size >= kAt + sizeof(Ipv6Header)) {
    const auto* header = reinterpret_cast<const Ipv6Header*>(frame + kAt);
    if (header->next_header != kProtocolUdp) return std::nullopt;
    result.ip_version = 6;
    result.ip_headers = sizeof(Ipv6Header);
    result.ip_bytes = static_cast<uint32_t>(sizeof(Ipv6Header)) + header->payload_length;
  } else {
    return std::nullopt;
  }
  if (result.ip_bytes < result.ip_headers + sizeof(UdpHeader) || kAt + result.ip_bytes > size) {
    return std::nullopt;
  }
  const auto* udp = reinterpret_cast<const UdpHeader*>(frame + kAt + result.ip_headers);
  result.src_port = udp->src_port;
  result.dst_port = udp->dst_port;
  return result;
}

// The IP packet of a frame that has such a datagram from `port` in it; else empty.
inline std::span<const uint8_t> udp_packet_from(uint16_t port, const uint8_t* frame, size_t size) {
  const std::optional<Datagram> datagram = datagram_in(frame, size);
  if (!datagram || datagram->src_port != port) return {};
  return {frame + sizeof(EthernetHeader), datagram->ip_bytes};
}

}  // namespace dutperf::net
