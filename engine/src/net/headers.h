// The headers of test frames and of neighbour discovery, as they stand on the wire.
// No other file knows an offset.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/byte_order.h"

namespace dutperf::net {

inline constexpr size_t kFcsBytes = 4;  // counted in frame sizes (RFC 1242 3.5), added by the NIC
inline constexpr size_t kMinFrameBytes = 60;  // without FCS

inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeArp = 0x0806;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86dd;
inline constexpr uint16_t kEtherTypeVlan = 0x8100;         // IEEE 802.1Q
inline constexpr uint16_t kEtherTypeServiceVlan = 0x88a8;  // IEEE 802.1ad
inline constexpr uint8_t kProtocolIcmp = 1;
inline constexpr uint8_t kProtocolTcp = 6;
inline constexpr uint8_t kProtocolUdp = 17;
inline constexpr uint8_t kProtocolIcmpv6 = 58;
inline constexpr uint8_t kIpv6HopByHop = 0;
inline constexpr uint8_t kIpv6Routing = 43;
inline constexpr uint8_t kIpv6FragmentHeader = 44;
inline constexpr uint8_t kIpv6Authentication = 51;
inline constexpr uint8_t kIpv6DestinationOptions = 60;
inline constexpr uint8_t kIpv6Mobility = 135;
inline constexpr uint16_t kIpv6FragmentOffsetOrMore = 0xfff9;
inline constexpr uint16_t kMoreFragmentsOrOffset = 0x3fff;  // in IPv4's flags_fragment
inline constexpr uint16_t kDontFragment = 0x4000;

struct EthernetHeader {
  uint8_t dst[6];
  uint8_t src[6];
  Be16 ether_type;
};
static_assert(sizeof(EthernetHeader) == 14);

// Between the MAC addresses and the EtherType, perhaps several.
struct VlanHeader {
  Be16 tpid;        // where an EtherType would be
  Be16 pcp_dei_id;  // priority code point 3 bits, drop eligible 1, VLAN id 12
};
static_assert(sizeof(VlanHeader) == 4);

struct Ipv4Header {
  uint8_t version_ihl;
  uint8_t tos;
  Be16 total_length;
  Be16 id;
  Be16 flags_fragment;
  uint8_t ttl;
  uint8_t protocol;
  Be16 checksum;
  uint8_t src[4];
  uint8_t dst[4];
};
static_assert(sizeof(Ipv4Header) == 20);

struct Ipv6Header {
  Be32 version_class_flow;
  Be16 payload_length;
  uint8_t next_header;
  uint8_t hop_limit;
  uint8_t src[16];
  uint8_t dst[16];
};
static_assert(sizeof(Ipv6Header) == 40);

// RFC 8200 4.5: of a packet in pieces.
struct Ipv6FragmentHeader {
  uint8_t next_header;
  uint8_t reserved;
  Be16 offset_more;  // offset in units of 8 bytes 13 bits, reserved 2, more fragments 1
  Be32 id;
};
static_assert(sizeof(Ipv6FragmentHeader) == 8);
inline constexpr uint16_t kIpv6FragmentOffset = 0xfff8;  // in bytes
inline constexpr uint16_t kIpv6MoreFragments = 1;

// The shortest one: a message without options (RFC 6275 6.1.1).
struct MobilityHeader {
  uint8_t next_header;  // "payload proto"
  uint8_t length;       // in units of 8 bytes, without the first 8
  uint8_t type;
  uint8_t reserved;
  Be16 checksum;
  Be16 message;
};
static_assert(sizeof(MobilityHeader) == 8);

struct UdpHeader {
  Be16 src_port;
  Be16 dst_port;
  Be16 length;
  Be16 checksum;
};
static_assert(sizeof(UdpHeader) == 8);

// RFC 9293 3.1, without options.
struct TcpHeader {
  Be16 src_port;
  Be16 dst_port;
  Be32 sequence;
  Be32 acknowledgment;
  uint8_t data_offset;  // length in units of 4 bytes, in the upper half
  uint8_t flags;
  Be16 window;
  Be16 checksum;
  Be16 urgent;
};
static_assert(sizeof(TcpHeader) == 20);

inline constexpr uint8_t kTcpFin = 0x01;
inline constexpr uint8_t kTcpSyn = 0x02;
inline constexpr uint8_t kTcpRst = 0x04;
inline constexpr uint8_t kTcpPsh = 0x08;
inline constexpr uint8_t kTcpAck = 0x10;

// The option of RFC 9293 3.7.1.
struct TcpMss {
  uint8_t kind;
  uint8_t length;
  Be16 bytes;
};
static_assert(sizeof(TcpMss) == 4);
inline constexpr uint8_t kTcpMssKind = 2;

// The option of RFC 7323 3.2, behind two of no operation, as its appendix A would have it.
struct TcpTimestamps {
  Be32 kind;  // and length, and what stands before
  Be32 value;
  Be32 echo;
};
static_assert(sizeof(TcpTimestamps) == 12);
inline constexpr uint32_t kTcpTimestampsKind = 0x0101080a;

// RFC 2784 2.1, without its optional fields.
struct GreHeader {
  Be16 flags_version;
  Be16 protocol;  // an EtherType
};
static_assert(sizeof(GreHeader) == 4);

// RFC 8754 2; the segments stand behind it, the last one first.
struct SegmentRoutingHeader {
  uint8_t next_header;
  uint8_t length;  // in 8 bytes, without the first ones
  uint8_t routing_type;
  uint8_t segments_left;
  uint8_t last_entry;
  uint8_t flags;
  Be16 tag;
};
static_assert(sizeof(SegmentRoutingHeader) == 8);
inline constexpr uint8_t kSegmentRouting = 4;  // of routing headers' types

struct VxlanHeader {
  uint8_t flags;
  uint8_t reserved[3];
  Be32 vni_reserved;  // VXLAN network identifier 24 bits, reserved 8
};
static_assert(sizeof(VxlanHeader) == 8);
inline constexpr uint16_t kVxlanPort = 4789;

struct ArpPacket {
  Be16 hardware_type;
  Be16 protocol_type;
  uint8_t hardware_size;
  uint8_t protocol_size;
  Be16 operation;
  uint8_t sender_mac[6];
  uint8_t sender_ip[4];
  uint8_t target_mac[6];
  uint8_t target_ip[4];
};
static_assert(sizeof(ArpPacket) == 28);

// Neighbour solicitation and advertisement with one link-layer address option (RFC 4861 4.3, 4.4).
struct NeighbourMessage {
  uint8_t type;
  uint8_t code;
  Be16 checksum;
  Be32 flags;
  uint8_t target[16];
  uint8_t option_type;
  uint8_t option_length;  // in units of 8 bytes
  uint8_t option_mac[6];
};
static_assert(sizeof(NeighbourMessage) == 32);
inline constexpr size_t kNeighbourMessageWithoutOption = offsetof(NeighbourMessage, option_type);

inline constexpr uint16_t kArpRequest = 1;
inline constexpr uint16_t kArpReply = 2;
inline constexpr uint8_t kNeighbourSolicitation = 135;
inline constexpr uint8_t kNeighbourAdvertisement = 136;

// The wire tag: the last 18 bytes of every test frame's UDP payload.
struct WireTag {
  Be16 magic;
  Be16 trial;
  uint8_t stream;
  uint8_t flags;
  // 48-bit sequence number and the upper 16 bits of the 48-bit send stamp, then its lower 32:
  // two stores instead of twelve.
  Be64 sequence_stamp_high;
  Be32 stamp_low;

  uint64_t sequence() const { return sequence_stamp_high >> 16; }
  uint64_t stamp_ns() const { return ((sequence_stamp_high & 0xffff) << 32) | stamp_low; }
};
static_assert(sizeof(WireTag) == 18);
static_assert(offsetof(WireTag, sequence_stamp_high) == 6);

inline constexpr uint16_t kTagMagic = 0xd07f;
// The tag up to its sequence number, of 48 bits: whose frame it is.
inline constexpr size_t kTagIdentityBytes = offsetof(WireTag, sequence_stamp_high) + 6;

}  // namespace dutperf::net
