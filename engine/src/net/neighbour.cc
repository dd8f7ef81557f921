#include "net/neighbour.h"

#include <algorithm>
#include <cstring>

#include "net/checksum.h"
#include "net/headers.h"

namespace dutperf::net {
namespace {

constexpr uint32_t kSolicitedOverride = 0x60000000;  // RFC 4861 4.4: S and O flags
constexpr uint32_t kOverride = 0x20000000;
constexpr uint8_t kSourceLinkLayer = 1;
constexpr uint8_t kTargetLinkLayer = 2;
constexpr uint8_t kNeighbourHopLimit = 255;  // RFC 4861 7.1: proof that no router was between

void copy_mac(const Mac& mac, uint8_t* out) { std::copy(mac.bytes.begin(), mac.bytes.end(), out); }

void write_ethernet(const Mac& dst, const Mac& src, uint16_t ether_type, uint8_t* out) {
  auto* header = reinterpret_cast<EthernetHeader*>(out);
  copy_mac(dst, header->dst);
  copy_mac(src, header->src);
  header->ether_type = ether_type;
}

struct ArpFields {
  uint16_t operation;
  Mac sender_mac;
  const uint8_t* sender_ip;
  Mac target_mac;
  const uint8_t* target_ip;
};

size_t write_arp(const Mac& dst, const ArpFields& fields, uint8_t* out) {
  std::memset(out, 0, kMinFrameBytes);
  write_ethernet(dst, fields.sender_mac, kEtherTypeArp, out);
  auto* arp = reinterpret_cast<ArpPacket*>(out + sizeof(EthernetHeader));
  arp->hardware_type = 1;
  arp->protocol_type = kEtherTypeIpv4;
  arp->hardware_size = 6;
  arp->protocol_size = 4;
  arp->operation = fields.operation;
  copy_mac(fields.sender_mac, arp->sender_mac);
  std::memcpy(arp->sender_ip, fields.sender_ip, 4);
  copy_mac(fields.target_mac, arp->target_mac);
  std::memcpy(arp->target_ip, fields.target_ip, 4);
  return kMinFrameBytes;
}

struct NeighbourFields {
  uint8_t type;
  uint32_t flags;
  const uint8_t* target;
  uint8_t option_type;
};

size_t write_neighbour(const Mac& dst_mac, const Mac& src_mac, const uint8_t* src_ip,
                       const uint8_t* dst_ip, const NeighbourFields& fields, uint8_t* out) {
  write_ethernet(dst_mac, src_mac, kEtherTypeIpv6, out);
  auto* ip = reinterpret_cast<Ipv6Header*>(out + sizeof(EthernetHeader));
  ip->version_class_flow = 6U << 28;
  ip->payload_length = sizeof(NeighbourMessage);
  ip->next_header = kProtocolIcmpv6;
  ip->hop_limit = kNeighbourHopLimit;
  std::memcpy(ip->src, src_ip, 16);
  std::memcpy(ip->dst, dst_ip, 16);

  auto* message = reinterpret_cast<NeighbourMessage*>(out + sizeof(EthernetHeader) + sizeof(*ip));
  message->type = fields.type;
  message->code = 0;
  message->checksum = 0;
  message->flags = fields.flags;
  std::memcpy(message->target, fields.target, 16);
  message->option_type = fields.option_type;
  message->option_length = 1;
  copy_mac(src_mac, message->option_mac);
  message->checksum =
      finish(sum_words(ip->src, 32) + kProtocolIcmpv6 + sizeof(*message) +
             sum_words(reinterpret_cast<const uint8_t*>(message), sizeof(*message)));
  return sizeof(EthernetHeader) + sizeof(*ip) + sizeof(*message);
}

const ArpPacket* as_arp(const uint8_t* frame, size_t size, uint16_t operation) {
  if (size < sizeof(EthernetHeader) + sizeof(ArpPacket)) return nullptr;
  if (reinterpret_cast<const EthernetHeader*>(frame)->ether_type != kEtherTypeArp) return nullptr;
  const auto* arp = reinterpret_cast<const ArpPacket*>(frame + sizeof(EthernetHeader));
  const bool wanted = arp->protocol_type == kEtherTypeIpv4 && arp->protocol_size == 4 &&
                      arp->hardware_size == 6 && arp->operation == operation;
  return wanted ? arp : nullptr;
}

// A neighbour message of `type`; its option may be missing.
const NeighbourMessage* as_neighbour(const uint8_t* frame, size_t size, uint8_t type) {
  constexpr size_t kHeaders = sizeof(EthernetHeader) + sizeof(Ipv6Header);
  if (size < kHeaders + kNeighbourMessageWithoutOption) return nullptr;
  if (reinterpret_cast<const EthernetHeader*>(frame)->ether_type != kEtherTypeIpv6) return nullptr;
  const auto* ip = reinterpret_cast<const Ipv6Header*>(frame + sizeof(EthernetHeader));
  if (ip->next_header != kProtocolIcmpv6 || ip->hop_limit != kNeighbourHopLimit) return nullptr;
  const auto* message = reinterpret_cast<const NeighbourMessage*>(frame + kHeaders);
  return message->type == type ? message : nullptr;
}

const Ipv6Header* ip_of(const uint8_t* frame) {
  return reinterpret_cast<const Ipv6Header*>(frame + sizeof(EthernetHeader));
}

Mac source_mac(const uint8_t* frame) {
  Mac mac;
  std::memcpy(mac.bytes.data(), reinterpret_cast<const EthernetHeader*>(frame)->src, 6);
  return mac;
}

// The target link-layer address option; without it (allowed in unicast answers, RFC 4861 4.4) the
// frame's own source.
Mac target_mac(const uint8_t* frame, size_t size, const NeighbourMessage& message) {
  constexpr size_t kWithOption =
      sizeof(EthernetHeader) + sizeof(Ipv6Header) + sizeof(NeighbourMessage);
  const bool has_option = size >= kWithOption && ip_of(frame)->payload_length >= sizeof(message) &&
                          message.option_type == kTargetLinkLayer && message.option_length == 1;
  if (!has_option) return source_mac(frame);
  Mac mac;
  std::memcpy(mac.bytes.data(), message.option_mac, 6);
  return mac;
}

size_t reply_to_solicitation(const uint8_t* frame, const NeighbourMessage& message,
                             const OwnAddresses& own, uint8_t* out) {
  static constexpr uint8_t kUnspecified[16] = {};
  static constexpr uint8_t kAllNodes[16] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  const uint8_t* asker = ip_of(frame)->src;
  const bool anonymous = std::memcmp(asker, kUnspecified, 16) == 0;  // duplicate address detection
  const Mac all_nodes{{0x33, 0x33, 0, 0, 0, 1}};
  const NeighbourFields fields{kNeighbourAdvertisement, anonymous ? kOverride : kSolicitedOverride,
                               message.target, kTargetLinkLayer};
  return write_neighbour(anonymous ? all_nodes : source_mac(frame), own.mac, message.target,
                         anonymous ? kAllNodes : asker, fields, out);
}

}  // namespace

bool OwnAddresses::contains(const IpAddress& address) const {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const AddressRange& range) { return range.contains(address); });
}

size_t write_reply(const uint8_t* frame, size_t size, const OwnAddresses& own, uint8_t* out) {
  if (const ArpPacket* arp = as_arp(frame, size, kArpRequest)) {
    if (!own.contains(IpAddress::from_bytes(4, arp->target_ip))) return 0;
    const Mac asker = source_mac(frame);
    return write_arp(asker, {kArpReply, own.mac, arp->target_ip, asker, arp->sender_ip}, out);
  }
  if (const NeighbourMessage* message = as_neighbour(frame, size, kNeighbourSolicitation)) {
    if (!own.contains(IpAddress::from_bytes(6, message->target))) return 0;
    return reply_to_solicitation(frame, *message, own, out);
  }
  return 0;
}

size_t write_request(const IpAddress& own_ip, const Mac& own_mac, const IpAddress& target,
                     uint8_t* out) {
  if (target.version == 4) {
    return write_arp(kBroadcastMac,
                     {kArpRequest, own_mac, own_ip.bytes.data(), Mac{}, target.bytes.data()}, out);
  }
  const uint8_t* t = target.bytes.data();  // solicited-node multicast (RFC 4291 2.7.1)
  const uint8_t group[16] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, t[13], t[14], t[15]};
  const Mac group_mac{{0x33, 0x33, 0xff, t[13], t[14], t[15]}};
  return write_neighbour(group_mac, own_mac, own_ip.bytes.data(), group,
                         {kNeighbourSolicitation, 0, t, kSourceLinkLayer}, out);
}

std::optional<NeighbourAnswer> parse_answer(const uint8_t* frame, size_t size) {
  if (const ArpPacket* arp = as_arp(frame, size, kArpReply)) {
    NeighbourAnswer answer{IpAddress::from_bytes(4, arp->sender_ip), {}};
    std::memcpy(answer.mac.bytes.data(), arp->sender_mac, 6);
    return answer;
  }
  if (const NeighbourMessage* message = as_neighbour(frame, size, kNeighbourAdvertisement)) {
    return NeighbourAnswer{IpAddress::from_bytes(6, message->target),
                           target_mac(frame, size, *message)};
  }
  return std::nullopt;
}

std::optional<NeighbourAnswer> parse_claim(const uint8_t* frame, size_t size) {
  if (const ArpPacket* arp = as_arp(frame, size, kArpRequest)) {
    NeighbourAnswer claim{IpAddress::from_bytes(4, arp->sender_ip), {}};
    std::memcpy(claim.mac.bytes.data(), arp->sender_mac, 6);
    return claim;
  }
  if (as_neighbour(frame, size, kNeighbourSolicitation) != nullptr) {
    return NeighbourAnswer{IpAddress::from_bytes(6, ip_of(frame)->src), source_mac(frame)};
  }
  return parse_answer(frame, size);
}

bool contradicts(const NeighbourAnswer& claim, const OwnAddresses& own,
                 std::span<const NeighbourAnswer> neighbours) {
  if (own.contains(claim.ip)) return claim.mac != own.mac;
  return std::any_of(neighbours.begin(), neighbours.end(), [&](const NeighbourAnswer& known) {
    return known.ip == claim.ip && known.mac != claim.mac;
  });
}

}  // namespace dutperf::net
