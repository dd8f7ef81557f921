// Test frames: RFC 2544 C.2.6.4 (IPv4) and its IPv6 analogue, ending in the wire tag; of UDP, or
// data of TCP connections. Or segments that open and close these, which have sequence numbers and
// timestamps in its place (net/tcp.h).
//
// A FrameTemplate is built once per stream; vary/frame_writer.h makes frames out of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "net/address.h"
#include "net/byte_order.h"
#include "net/checksum.h"
#include "net/dns.h"
#include "net/encapsulation.h"
#include "net/extra_headers.h"
#include "net/headers.h"
#include "net/mpls.h"
#include "net/tcp.h"
#include "net/vlan.h"

namespace dutperf::net {

// What one stream's frames look like. Sizes include the FCS, and neither VLAN tags, MPLS labels nor
// outer headers: what a frame has of these makes it longer (IEEE 802.3ac, RFC 5695 4.1.5).
struct FrameLayout {
  int ip_version = 4;
  uint32_t frame_size = 64;
  Mac src_mac;
  Mac dst_mac;
  VlanTags vlan;
  LabelStack labels;
  Encapsulation outer;  // of a frame without labels
  IpAddress src_ip;
  IpAddress dst_ip;
  uint16_t src_port = 0xC020;
  uint16_t dst_port = 7;
  uint8_t ttl = 10;
  uint8_t dscp = 0;
  uint32_t flow_label = 0;  // IPv6
  bool df = false;
  // IPv4: frames have identifications, the low 16 bits of their sequence numbers, so that pieces of
  // one can be told from those of another (RFC 791 2.3). Without it is 0 (RFC 6864 4.1).
  bool identified = false;
  ExtraHeaders extra;  // between the IP header and UDP; part of the frame's size
  // A query of DNS about a name of this zone, in place of a tag; of its own size.
  std::optional<DnsZone> query;
  // In place of UDP, without extra headers; of its own size, where it is no data.
  std::optional<SegmentLayout> tcp;

  bool operator==(const FrameLayout&) const = default;
};

struct TagIdentity {
  uint16_t trial = 0;
  uint8_t stream = 0;
  uint8_t flags = 0;

  bool operator==(const TagIdentity&) const = default;
};

inline constexpr uint8_t kTagFlagBackground = 0x01;
inline constexpr uint8_t kTagFlagBeside = 0x02;  // need not be forwarded

constexpr size_t ip_header_bytes(int ip_version) {
  return ip_version == 4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header);
}

// Smallest frame size with room for the tag: 64 (IPv4), 84 (IPv6; RFC 8219 5.1.1).
constexpr uint32_t minimum_frame_size(int ip_version) {
  return static_cast<uint32_t>(sizeof(EthernetHeader) + ip_header_bytes(ip_version) +
                               sizeof(UdpHeader) + sizeof(WireTag) + kFcsBytes);
}
static_assert(minimum_frame_size(4) == 64 && minimum_frame_size(6) == 84);

// Of data: the smallest.
inline uint32_t segment_frame_size(int ip_version, const SegmentLayout& segment) {
  return static_cast<uint32_t>(sizeof(EthernetHeader) + ip_header_bytes(ip_version) +
                               segment.bytes() + (segment.is_data ? sizeof(WireTag) : 0) +
                               kFcsBytes);
}

// Of a query.
inline uint32_t query_frame_size(int ip_version) {
  return static_cast<uint32_t>(sizeof(EthernetHeader) + ip_header_bytes(ip_version) +
                               sizeof(UdpHeader) + kDnsQueryBytes + kFcsBytes);
}

class FrameTemplate {
 public:
  // REQUIRES: layout.frame_size >= minimum_frame_size(layout.ip_version) and the extra headers, or
  // that of its segments; addresses of that version.
  FrameTemplate(const FrameLayout& layout, const TagIdentity& tag);

  // The frame without FCS, its VLAN tags, labels and outer headers in it, with sequence number and
  // stamp zero and a valid checksum.
  const std::vector<uint8_t>& bytes() const { return bytes_; }

  // Where the headers stand, and what changes from frame to frame.
  uint32_t ip_offset() const { return ip_offset_; }
  // Of the outer IP header, and from there to its UDP header (0: it has none).
  uint32_t outer_offset() const { return ip_offset_ - outer_bytes_; }
  int outer_ip_version() const { return outer_ip_version_; }  // 0: no outer IP header
  uint32_t outer_udp_offset() const { return outer_udp_offset_; }
  uint32_t udp_offset() const { return udp_offset_; }  // or TCP's
  uint32_t tag_offset() const { return tag_offset_; }
  // The tag lies at an odd offset in the datagram: its words count byte-swapped in the checksum.
  bool tag_is_odd() const { return tag_is_odd_; }
  // Mobility headers, whose checksums change with the addresses.
  const std::vector<uint32_t>& mobility_offsets() const { return mobility_offsets_; }

  // What the checksums cover, as unfolded sums with the checksum fields zero; UDP's or TCP's.
  uint64_t udp_sum() const { return udp_sum_; }
  uint64_t ipv4_sum() const { return ipv4_sum_; }

 private:
  void write_udp(const FrameLayout& layout);
  // From the end of the headers on: what is carried, and the tag.
  void write_tagged(size_t offset, const TagIdentity& tag);

  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> mobility_offsets_;
  uint64_t udp_sum_ = 0;
  uint64_t ipv4_sum_ = 0;
  uint32_t ip_offset_ = 0;
  uint32_t outer_bytes_ = 0;
  int outer_ip_version_ = 0;
  uint32_t outer_udp_offset_ = 0;
  uint32_t udp_offset_ = 0;
  uint32_t tag_offset_ = 0;
  bool tag_is_odd_ = false;
};

// What stands between the UDP header and the tag: it counts up from 0 (RFC 2544 C.2.6.4).
void write_payload(uint8_t* out, size_t bytes);
bool is_payload(const uint8_t* found, size_t bytes);

// Sum of the UDP pseudo-header and datagram at `udp` (its checksum field included).
uint64_t udp_sum(int ip_version, const uint8_t* ip_header, const uint8_t* udp, size_t udp_length);

}  // namespace dutperf::net
