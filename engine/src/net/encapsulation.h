// Outer headers: what a frame's IP packet stands in on one side of a device that takes them off or
// puts them on (RFC 8219 4.2; a tester that sends and expects them needs no second device).
//
// A port has one tunnel and all its test frames go through it; ARP and neighbour discovery go
// without. What stands before the inner packet has the same length in all frames that a port sends,
// so a frame is like one without it `bytes()` further on, but for the EtherType; in all that it
// receives `received_bytes()`, which differ where segments do. Of the outer headers a device may
// choose hop limit, class, flow label, identification and UDP source port: these are not compared.
// Their lengths and checksums must hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "net/address.h"
#include "net/damage.h"
#include "net/headers.h"

namespace dutperf::net {

enum class Tunnel : uint8_t {
  kNone,
  kIp,     // an IP header alone (RFC 2473, RFC 4213): DS-Lite, lw4o6, MAP-E, 6rd
  kGre,    // without key, checksum and sequence number (RFC 2784)
  kVxlan,  // RFC 7348
  kSrv6,   // an IPv6 header, and a Segment Routing Header if it has segments (RFC 8986 5.1, 5.2)
};

// The segments that a packet visits, first to last (RFC 8754 2, RFC 8402 2).
struct SegmentPath {
  static constexpr size_t kMost = 16;

  std::vector<IpAddress> segments;
  uint8_t left = 0;      // behind the one that the packet is on its way to
  bool reduced = false;  // the header goes without the first one (RFC 8754 4.1.1)
  uint16_t tag = 0;

  bool operator==(const SegmentPath&) const = default;

  const IpAddress& destination() const { return segments[segments.size() - 1 - left]; }
  // That stand in the header; without any there is none.
  size_t entries() const { return segments.size() - (reduced ? 1 : 0); }
};

// As seen from the tester, which is one end. With segments `local` is the source of what is sent,
// `remote` that of what arrives, and the destinations are segments.
struct TunnelEnds {
  Tunnel kind = Tunnel::kNone;
  IpAddress local;
  IpAddress remote;  // the device's, of the same version
  // How many bits are compared of what arrives; the rest of an address may vary.
  uint8_t local_bits = 128;
  uint8_t remote_bits = 128;
  uint8_t ttl = 64;            // of the outer header
  uint32_t flow_label = 0;     // likewise, if it is one of IPv6; of what is sent
  uint32_t vni = 0;            // VXLAN
  uint16_t src_port = 0xC000;  // VXLAN
  Mac inner_mac;               // VXLAN: the device's, inside
  SegmentPath sent;            // SRv6
  SegmentPath received;        // SRv6: as they are when the tester has it

  bool operator==(const TunnelEnds&) const = default;
};

class Encapsulation {
 public:
  Encapsulation() = default;
  // REQUIRES: addresses of one version; vni below 2^24; of SRv6 addresses of IPv6, and of both ways
  // 1 to SegmentPath::kMost segments, fewer left.
  explicit Encapsulation(const TunnelEnds& ends);

  bool operator==(const Encapsulation&) const = default;

  const TunnelEnds& ends() const { return ends_; }
  uint32_t bytes() const { return bytes_; }
  uint32_t received_bytes() const { return received_bytes_; }
  // From the outer IP header on; 0: the kind has none.
  uint32_t udp_offset() const { return ends_.kind == Tunnel::kVxlan ? ip_bytes_ : 0; }

  // Writes the EtherType and what stands before an inner packet of so many bytes; `inner_src` is
  // VXLAN's, and the same in all frames. REQUIRES: bytes() behind the EtherType may be written.
  void write(uint8_t* ether_type, int inner_version, size_t inner_bytes,
             const Mac& inner_src) const noexcept;

  // Whether the packet there carries a packet, GRE or segments, of a frame that without its VLAN
  // tags has so many bytes.
  static bool begins_at(const uint8_t* ether_type, size_t frame_bytes) noexcept;

  // Whether it stands there, from the device to the tester. REQUIRES: received_bytes() behind the
  // EtherType may be read.
  bool stands_at(const uint8_t* ether_type) const noexcept;
  // What it says stands behind it, as an EtherType. REQUIRES: it stands there.
  uint16_t inner_type(const uint8_t* ether_type) const noexcept;
  // How the outer headers before an inner packet of so many bytes are damaged, if they are.
  // REQUIRES: it stands there, and the inner packet is there.
  std::optional<Damage> damage_at(const uint8_t* ether_type, size_t inner_bytes,
                                  bool verify_checksums) const noexcept;

  // The same tunnel as its other end has it.
  Encapsulation from_other_end() const;

  // Out of a frame in which it stands behind the Ethernet header, into one that has room; return
  // the new size. REQUIRES: an IP packet stands behind the Ethernet header of the frame put into.
  size_t take_out(uint8_t* frame, size_t size) const noexcept;
  size_t put_in(uint8_t* frame, size_t size) const noexcept;
  // Of a frame that it was put in: to another end than `remote`, of the same version.
  static void redirect(uint8_t* frame, const IpAddress& remote) noexcept;

 private:
  // What stands behind an outer IPv6 header, but for the first byte, the next header.
  using Segments = std::array<uint8_t, sizeof(SegmentRoutingHeader) +
                                           SegmentPath::kMost * sizeof(Ipv6Header::dst)>;

  static Segments written(const SegmentPath& path);
  bool holds_addresses(const uint8_t* src, const uint8_t* dst) const noexcept;
  // Where an outer header that stands there says what is in it.
  const uint8_t* inner_protocol(const uint8_t* ip) const noexcept;

  TunnelEnds ends_;
  IpAddress sent_to_;
  IpAddress received_at_;
  uint32_t bytes_ = 0;
  uint32_t received_bytes_ = 0;
  uint32_t ip_bytes_ = 0;  // of the outer IP header
  Segments sent_segments_{};
  Segments received_segments_{};
};

}  // namespace dutperf::net
