// What is this received frame? One function for the receive loop: everything that is not one of
// our test frames is told apart cheaply and left to slower code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/checksum.h"
#include "net/damage.h"
#include "net/encapsulation.h"
#include "net/frame.h"
#include "net/headers.h"
#include "net/mpls.h"
#include "net/vlan.h"

namespace dutperf::net {

enum class FrameKind : uint8_t {
  kTest,       // carries a tag of ours, of any trial, in a UDP datagram or a TCP segment
  kTruncated,  // one of ours, or UDP, and ends before its IP packet does
  kNeighbour,  // ARP, or an ICMPv6 message of neighbour discovery
  kFragment,   // a piece of an IP packet
  kOtherVlan,  // its VLAN tags, MPLS labels or outer headers are not the port's
  kIcmp,       // any other message of ICMP or ICMPv6; its type and code are there
  kForeign,    // anything else
};

// View into a received frame. Valid while the frame is. `tag` is null unless kind is kTest, or
// kTruncated and the tag is there up to its sequence number; the stamp may be missing then, of
// which sequence() reads a part.
struct Classified {
  FrameKind kind = FrameKind::kForeign;
  uint8_t ip_version = 0;
  // Bytes from the IP header to UDP, TCP or ICMP: options or extension headers, too.
  uint16_t ip_headers = 0;
  uint32_t ip_bytes = 0;  // length of the IP packet by its own header
  const WireTag* tag = nullptr;
};

namespace detail {

// Of a frame that ends before its IP packet of `ip_bytes` does.
Classified cut_short(const uint8_t* frame, size_t size, int version, size_t ip_headers,
                     size_t ip_bytes);

[[gnu::always_inline]] inline Classified with_tag(const uint8_t* frame, size_t size, int version,
                                                  size_t ip_headers, size_t ip_bytes,
                                                  size_t transport_bytes = sizeof(UdpHeader)) {
  const size_t least = ip_headers + transport_bytes + sizeof(WireTag);
  if (ip_bytes < least) return {};
  if (sizeof(EthernetHeader) + ip_bytes > size) {
    return cut_short(frame, size, version, ip_headers, ip_bytes);
  }
  const auto* tag =
      reinterpret_cast<const WireTag*>(frame + sizeof(EthernetHeader) + ip_bytes - sizeof(WireTag));
  if (tag->magic != kTagMagic) return {};
  return {FrameKind::kTest, static_cast<uint8_t>(version), static_cast<uint16_t>(ip_headers),
          static_cast<uint32_t>(ip_bytes), tag};
}

// Of an IPv4 packet that has options, or no UDP; of an IPv6 one whose header is not followed by
// UDP. REQUIRES: the IP header is there.
[[gnu::cold, gnu::noinline]] Classified behind_options(const uint8_t* frame, size_t size);
[[gnu::cold, gnu::noinline]] Classified behind_extensions(const uint8_t* frame, size_t size);

inline FrameKind kind_of_other(uint16_t ether_type) {
  if (ether_type == kEtherTypeArp) return FrameKind::kNeighbour;
  const bool other = is_vlan_type(ether_type) || ether_type == kEtherTypeMpls;
  return other ? FrameKind::kOtherVlan : FrameKind::kForeign;
}

}  // namespace detail

// Of a frame behind whose Ethernet header is what `ether_type` says, whether it stands there or
// not. REQUIRES: a whole IPv4 header's room.
[[gnu::always_inline]] inline Classified classify_as(uint16_t ether_type, const uint8_t* frame,
                                                     size_t size) {
  const uint8_t* ip = frame + sizeof(EthernetHeader);
  if (ether_type == kEtherTypeIpv4) {
    const auto* header = reinterpret_cast<const Ipv4Header*>(ip);
    if ((header->flags_fragment & kMoreFragmentsOrOffset) != 0) return {FrameKind::kFragment};
    const bool plain = header->version_ihl == 0x45 && header->protocol == kProtocolUdp;
    if (!plain) [[unlikely]] {
      return detail::behind_options(frame, size);
    }
    return detail::with_tag(frame, size, 4, sizeof(Ipv4Header), header->total_length);
  }
  if (ether_type == kEtherTypeIpv6) {
    if (size < sizeof(EthernetHeader) + sizeof(Ipv6Header)) return {};
    const auto* header = reinterpret_cast<const Ipv6Header*>(ip);
    if (header->next_header != kProtocolUdp) [[unlikely]] {
      return detail::behind_extensions(frame, size);
    }
    return detail::with_tag(frame, size, 6, sizeof(Ipv6Header),
                            sizeof(Ipv6Header) + header->payload_length);
  }
  return {detail::kind_of_other(ether_type)};
}

// Of a frame without VLAN tags. IPv4 options and IPv6 extension headers hide nothing. The tag is
// found from the end of the IP packet, so padding and translation do not hide it.
[[gnu::always_inline]] inline Classified classify(const uint8_t* frame, size_t size) {
  if (size < sizeof(EthernetHeader) + sizeof(Ipv4Header)) return {};
  return classify_as(reinterpret_cast<const EthernetHeader*>(frame)->ether_type, frame, size);
}

// What an IP packet's own version says, where nothing before it does.
inline uint16_t ether_type_of(const uint8_t* ip) {
  return ip[0] >> 4 == 4 ? kEtherTypeIpv4 : kEtherTypeIpv6;
}

// Of a frame that should carry `vlan`: what stands behind these tags. A frame too short to tell is
// foreign, whatever it carries. All else that is asked of a frame is asked of `frame` and
// vlan.bytes().
[[gnu::always_inline]] inline Classified classify_behind(const VlanTags& vlan, const uint8_t* frame,
                                                         size_t size) {
  constexpr size_t kLeast = sizeof(EthernetHeader) + sizeof(Ipv4Header);
  const size_t tags_bytes = vlan.bytes();
  if (size < kLeast + tags_bytes) return {};
  if (!vlan.stand_in(frame)) return {FrameKind::kOtherVlan};
  return classify(frame + tags_bytes, size - tags_bytes);
}

// Of a frame whose IP packet should stand behind `vlan` and `labels`; neighbours ask and answer
// without labels. All else that is asked of a test frame is asked of `frame` and the bytes of both.
[[gnu::always_inline]] inline Classified classify_labelled(const VlanTags& vlan,
                                                           const LabelStack& labels,
                                                           const uint8_t* frame, size_t size) {
  constexpr size_t kLeast = sizeof(EthernetHeader) + sizeof(Ipv4Header);
  const size_t before = vlan.bytes() + labels.bytes();
  const uint8_t* const ether_type = frame + offsetof(EthernetHeader, ether_type) + vlan.bytes();
  if (size >= kLeast + before && vlan.stand_in(frame) && labels.stands_at(ether_type)) [[likely]] {
    const uint8_t* const ip = frame + sizeof(EthernetHeader) + before;
    return classify_as(ether_type_of(ip), frame + before, size - before);
  }
  const Classified without = classify_behind(vlan, frame, size);
  switch (without.kind) {
    case FrameKind::kNeighbour: return {FrameKind::kNeighbour};
    case FrameKind::kForeign:
    case FrameKind::kIcmp: return {FrameKind::kForeign};
    default: return {FrameKind::kOtherVlan};
  }
}

// Of a frame whose IP packet should stand behind `vlan` and `outer`; neighbours ask and answer
// without outer headers, and what says why a packet was not forwarded may. All else that is asked
// of a test frame is asked of `frame` and the (received) bytes of both; its outer headers have
// lengths and checksums of their own (see Encapsulation::damage_at).
[[gnu::always_inline]] inline Classified classify_tunnelled(const VlanTags& vlan,
                                                            const Encapsulation& outer,
                                                            const uint8_t* frame, size_t size) {
  constexpr size_t kLeast = sizeof(EthernetHeader) + sizeof(Ipv4Header);
  const size_t before = vlan.bytes() + outer.received_bytes();
  const uint8_t* const ether_type = frame + offsetof(EthernetHeader, ether_type) + vlan.bytes();
  if (size >= kLeast + before && vlan.stand_in(frame) && outer.stands_at(ether_type)) [[likely]] {
    const Classified inner =
        classify_as(outer.inner_type(ether_type), frame + before, size - before);
    // Nobody is asked in a tunnel, nor answered.
    return inner.kind == FrameKind::kNeighbour ? Classified{FrameKind::kForeign} : inner;
  }
  const Classified without = classify_behind(vlan, frame, size);
  switch (without.kind) {
    case FrameKind::kTest:
    case FrameKind::kTruncated: return {FrameKind::kOtherVlan};
    case FrameKind::kForeign:
      return {Encapsulation::begins_at(ether_type, size - vlan.bytes()) ? FrameKind::kOtherVlan
                                                                        : FrameKind::kForeign};
    default: return without;
  }
}

// Whether a test frame is a segment of TCP.
inline bool is_segment(const uint8_t* frame, const Classified& classified) {
  const size_t at = classified.ip_version == 4 ? offsetof(Ipv4Header, protocol)
                                               : offsetof(Ipv6Header, next_header);
  return frame[sizeof(EthernetHeader) + at] == kProtocolTcp;
}
[[gnu::noinline]] bool segment_checksums_hold(const uint8_t* frame, const Classified& classified);

// What a test frame carries, from the end of its headers to the tag.
size_t payload_offset(const uint8_t* frame, const Classified& classified);

// True when the IPv4 header checksum and the UDP or TCP checksum hold (RFC 1242 3.17 asks for
// both). An IPv4 datagram without UDP checksum (0) is whole; an IPv6 one is not (RFC 8200 8.1).
// REQUIRES: `classified` came from classify(frame, ...) with kind kTest.
[[gnu::always_inline]] inline bool checksums_hold(const uint8_t* frame,
                                                  const Classified& classified) {
  if (is_segment(frame, classified)) [[unlikely]] {
    return segment_checksums_hold(frame, classified);
  }
  const uint8_t* ip = frame + sizeof(EthernetHeader);
  const int version = classified.ip_version;
  const size_t ip_headers = classified.ip_headers;
  const uint8_t* udp = ip + ip_headers;
  const auto* header = reinterpret_cast<const UdpHeader*>(udp);
  const size_t datagram_bytes = classified.ip_bytes - ip_headers;
  if (header->length != datagram_bytes) return false;
  uint64_t addresses = 0;
  if (version == 4) {
    constexpr size_t kBefore = offsetof(Ipv4Header, src);
    addresses = native::sum(ip + kBefore, 8);
    uint64_t ipv4_header = native::add(native::sum(ip, kBefore), addresses);
    if (ip_headers > sizeof(Ipv4Header)) [[unlikely]] {
      ipv4_header = native::add(
          ipv4_header, native::sum(ip + sizeof(Ipv4Header), ip_headers - sizeof(Ipv4Header)));
    }
    if (!native::holds(ipv4_header)) return false;
  } else {
    addresses = native::sum(ip + offsetof(Ipv6Header, src), 32);
  }
  if (header->checksum == 0) return version == 4;
  constexpr uint64_t kProtocol = byte_swap(uint16_t{kProtocolUdp});
  const uint64_t length = byte_swap(static_cast<uint16_t>(datagram_bytes));
  const uint64_t datagram = native::add(native::sum(udp, datagram_bytes), kProtocol + length);
  return native::holds(native::add(addresses, datagram));
}

// How a frame is damaged of which the length is not `expected_ip_bytes`, or the checksums do not
// hold. REQUIRES: as above.
Damage damage_of(const uint8_t* frame, const Classified& classified, size_t expected_ip_bytes);

}  // namespace dutperf::net
