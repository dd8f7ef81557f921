#include "net/encapsulation.h"

#include <algorithm>
#include <cstring>

#include "net/checksum.h"
#include "net/frame.h"

namespace dutperf::net {
namespace {

constexpr uint8_t kProtocolIpv4 = 4;
constexpr uint8_t kProtocolIpv6 = 41;
constexpr uint8_t kProtocolGre = 47;
constexpr uint8_t kVxlanHasVni = 0x08;
constexpr size_t kTypeBytes = sizeof(EthernetHeader::ether_type);
constexpr size_t kSegmentBytes = sizeof(Ipv6Header::dst);

uint32_t segments_bytes(const SegmentPath& path) {
  if (path.entries() == 0) return 0;
  return static_cast<uint32_t>(sizeof(SegmentRoutingHeader) + path.entries() * kSegmentBytes);
}

uint32_t bytes_behind_ip(Tunnel kind, const SegmentPath& path) {
  switch (kind) {
    case Tunnel::kNone:
    case Tunnel::kIp: return 0;
    case Tunnel::kSrv6: return segments_bytes(path);
    case Tunnel::kGre: return sizeof(GreHeader);
    case Tunnel::kVxlan: return sizeof(UdpHeader) + sizeof(VxlanHeader) + sizeof(EthernetHeader);
  }
  return 0;
}

bool has_segments(Tunnel kind, size_t behind_ip_bytes) {
  return kind == Tunnel::kSrv6 && behind_ip_bytes > 0;
}

uint8_t protocol_of_packet(int version) { return version == 4 ? kProtocolIpv4 : kProtocolIpv6; }

bool is_packet(uint8_t protocol) { return protocol == kProtocolIpv4 || protocol == kProtocolIpv6; }

uint8_t protocol_of(Tunnel kind, size_t behind_ip_bytes, int inner_version) {
  if (kind == Tunnel::kGre) return kProtocolGre;
  if (kind == Tunnel::kVxlan) return kProtocolUdp;
  if (has_segments(kind, behind_ip_bytes)) return kIpv6Routing;
  return protocol_of_packet(inner_version);
}

bool is_protocol_of(Tunnel kind, size_t behind_ip_bytes, uint8_t protocol) {
  return protocol == protocol_of(kind, behind_ip_bytes, 4) ||
         protocol == protocol_of(kind, behind_ip_bytes, 6);
}

// Whether the first `bits` of two numbers of `width` bits are the same, of which this is where they
// differ.
template <typename Number>
bool agree(Number difference, size_t bits) {
  constexpr size_t kWidth = 8 * sizeof(Number);
  return bits == 0 || difference >> (kWidth - bits) == 0;
}

template <typename Word>
auto difference(const uint8_t* found, const uint8_t* wanted) {
  return *reinterpret_cast<const Word*>(found) ^ *reinterpret_cast<const Word*>(wanted);
}

bool begins_as(const uint8_t* found, const IpAddress& wanted, size_t bits) {
  const uint8_t* const bytes = wanted.bytes.data();
  if (wanted.version == 4) {
    return agree<uint32_t>(difference<Be32>(found, bytes), std::min<size_t>(bits, 32));
  }
  const uint64_t high = difference<Be64>(found, bytes);
  const uint64_t low = difference<Be64>(found + 8, bytes + 8);
  return bits > 64 ? high == 0 && agree(low, bits - 64) : agree(high, bits);
}

uint16_t type_of(int version) { return version == 4 ? kEtherTypeIpv4 : kEtherTypeIpv6; }

}  // namespace

Encapsulation::Encapsulation(const TunnelEnds& ends) : ends_(ends) {
  if (ends.kind == Tunnel::kNone) return;
  ip_bytes_ = static_cast<uint32_t>(ip_header_bytes(ends.local.version));
  bytes_ = ip_bytes_ + bytes_behind_ip(ends.kind, ends.sent);
  received_bytes_ = ip_bytes_ + bytes_behind_ip(ends.kind, ends.received);
  sent_to_ = ends.remote;
  received_at_ = ends.local;
  if (ends.kind != Tunnel::kSrv6) return;
  sent_to_ = ends.sent.destination();
  received_at_ = ends.received.destination();
  sent_segments_ = written(ends.sent);
  received_segments_ = written(ends.received);
}

Encapsulation::Segments Encapsulation::written(const SegmentPath& path) {
  Segments all{};
  if (path.entries() == 0) return all;
  auto* header = reinterpret_cast<SegmentRoutingHeader*>(all.data());
  header->length = static_cast<uint8_t>(path.entries() * kSegmentBytes / 8);
  header->routing_type = kSegmentRouting;
  header->segments_left = path.left;
  header->last_entry = static_cast<uint8_t>(path.entries() - 1);
  header->tag = path.tag;
  for (size_t i = 0; i < path.entries(); ++i) {
    const IpAddress& segment = path.segments[path.segments.size() - 1 - i];
    std::memcpy(all.data() + sizeof(*header) + i * kSegmentBytes, segment.bytes.data(),
                kSegmentBytes);
  }
  return all;
}

void Encapsulation::write(uint8_t* ether_type, int inner_version, size_t inner_bytes,
                          const Mac& inner_src) const noexcept {
  if (bytes_ == 0) return;
  const int version = ends_.local.version;
  *reinterpret_cast<Be16*>(ether_type) = type_of(version);
  uint8_t* const ip = ether_type + kTypeBytes;
  uint8_t* const behind = ip + ip_bytes_;
  std::memset(ip, 0, bytes_);
  const uint32_t behind_bytes = bytes_ - ip_bytes_;
  const auto carried = static_cast<uint16_t>(behind_bytes + inner_bytes);
  const uint8_t protocol = protocol_of(ends_.kind, behind_bytes, inner_version);
  if (version == 4) {
    auto* header = reinterpret_cast<Ipv4Header*>(ip);
    header->version_ihl = 0x45;
    header->total_length = static_cast<uint16_t>(sizeof(Ipv4Header) + carried);
    header->flags_fragment = kDontFragment;
    header->ttl = ends_.ttl;
    header->protocol = protocol;
    std::memcpy(header->src, ends_.local.bytes.data(), sizeof(header->src));
    std::memcpy(header->dst, sent_to_.bytes.data(), sizeof(header->dst));
    header->checksum = finish(sum_words(ip, sizeof(Ipv4Header)));
  } else {
    auto* header = reinterpret_cast<Ipv6Header*>(ip);
    header->version_class_flow = (6U << 28) | ends_.flow_label;
    header->payload_length = carried;
    header->next_header = protocol;
    header->hop_limit = ends_.ttl;
    std::memcpy(header->src, ends_.local.bytes.data(), sizeof(header->src));
    std::memcpy(header->dst, sent_to_.bytes.data(), sizeof(header->dst));
  }
  if (ends_.kind == Tunnel::kGre) {
    reinterpret_cast<GreHeader*>(behind)->protocol = type_of(inner_version);
  } else if (has_segments(ends_.kind, behind_bytes)) {
    std::memcpy(behind, sent_segments_.data(), behind_bytes);
    behind[0] = protocol_of_packet(inner_version);
  } else if (ends_.kind == Tunnel::kVxlan) {
    auto* udp = reinterpret_cast<UdpHeader*>(behind);
    udp->src_port = ends_.src_port;
    udp->dst_port = kVxlanPort;
    udp->length = carried;
    auto* vxlan = reinterpret_cast<VxlanHeader*>(behind + sizeof(UdpHeader));
    vxlan->flags = kVxlanHasVni;
    vxlan->vni_reserved = ends_.vni << 8;
    auto* inner = reinterpret_cast<EthernetHeader*>(behind + sizeof(UdpHeader) + sizeof(*vxlan));
    std::copy(ends_.inner_mac.bytes.begin(), ends_.inner_mac.bytes.end(), inner->dst);
    std::copy(inner_src.bytes.begin(), inner_src.bytes.end(), inner->src);
    inner->ether_type = type_of(inner_version);
  }
}

bool Encapsulation::holds_addresses(const uint8_t* src, const uint8_t* dst) const noexcept {
  return begins_as(src, ends_.remote, ends_.remote_bits) &&
         begins_as(dst, received_at_, ends_.local_bits);
}

bool Encapsulation::begins_at(const uint8_t* ether_type, size_t frame_bytes) noexcept {
  if (frame_bytes < sizeof(EthernetHeader) + sizeof(Ipv4Header)) return false;
  const uint16_t type = *reinterpret_cast<const Be16*>(ether_type);
  const uint8_t* const ip = ether_type + kTypeBytes;
  if (type != kEtherTypeIpv4 && type != kEtherTypeIpv6) return false;
  const size_t at =
      type == kEtherTypeIpv4 ? offsetof(Ipv4Header, protocol) : offsetof(Ipv6Header, next_header);
  if (ip[at] != kIpv6Routing) return is_packet(ip[at]) || ip[at] == kProtocolGre;
  const auto* header = reinterpret_cast<const SegmentRoutingHeader*>(ip + sizeof(Ipv6Header));
  return type == kEtherTypeIpv6 &&
         frame_bytes >= sizeof(EthernetHeader) + sizeof(Ipv6Header) + sizeof(*header) &&
         header->routing_type == kSegmentRouting;
}

const uint8_t* Encapsulation::inner_protocol(const uint8_t* ip) const noexcept {
  if (has_segments(ends_.kind, received_bytes_ - ip_bytes_)) return ip + ip_bytes_;
  return ip + (ends_.local.version == 4 ? offsetof(Ipv4Header, protocol)
                                        : offsetof(Ipv6Header, next_header));
}

bool Encapsulation::stands_at(const uint8_t* ether_type) const noexcept {
  const int version = ends_.local.version;
  if (*reinterpret_cast<const Be16*>(ether_type) != type_of(version)) return false;
  const uint8_t* const ip = ether_type + kTypeBytes;
  const uint8_t* const behind = ip + ip_bytes_;
  const uint32_t behind_bytes = received_bytes_ - ip_bytes_;
  if (version == 4) {
    const auto* header = reinterpret_cast<const Ipv4Header*>(ip);
    if (header->version_ihl != 0x45) return false;
    if ((header->flags_fragment & kMoreFragmentsOrOffset) != 0) return false;
    if (!is_protocol_of(ends_.kind, behind_bytes, header->protocol)) return false;
    if (!holds_addresses(header->src, header->dst)) return false;
  } else {
    const auto* header = reinterpret_cast<const Ipv6Header*>(ip);
    if (ip[0] >> 4 != 6) return false;
    if (!is_protocol_of(ends_.kind, behind_bytes, header->next_header)) return false;
    if (!holds_addresses(header->src, header->dst)) return false;
  }
  if (ends_.kind == Tunnel::kGre) {
    return reinterpret_cast<const GreHeader*>(behind)->flags_version == 0;
  }
  if (ends_.kind == Tunnel::kVxlan) {
    const auto* vxlan = reinterpret_cast<const VxlanHeader*>(behind + sizeof(UdpHeader));
    return reinterpret_cast<const UdpHeader*>(behind)->dst_port == kVxlanPort &&
           vxlan->flags == kVxlanHasVni && vxlan->vni_reserved >> 8 == ends_.vni;
  }
  if (has_segments(ends_.kind, behind_bytes)) {
    return is_packet(behind[0]) &&
           std::memcmp(behind + 1, received_segments_.data() + 1, behind_bytes - 1) == 0;
  }
  return true;
}

uint16_t Encapsulation::inner_type(const uint8_t* ether_type) const noexcept {
  const uint8_t* const ip = ether_type + kTypeBytes;
  const uint8_t* const behind = ip + ip_bytes_;
  switch (ends_.kind) {
    case Tunnel::kGre: return reinterpret_cast<const GreHeader*>(behind)->protocol;
    case Tunnel::kVxlan:
      return reinterpret_cast<const EthernetHeader*>(behind + sizeof(UdpHeader) +
                                                     sizeof(VxlanHeader))
          ->ether_type;
    default: break;
  }
  return type_of(*inner_protocol(ip) == kProtocolIpv4 ? 4 : 6);
}

std::optional<Damage> Encapsulation::damage_at(const uint8_t* ether_type, size_t inner_bytes,
                                               bool verify_checksums) const noexcept {
  const uint8_t* const ip = ether_type + kTypeBytes;
  const auto* const udp = reinterpret_cast<const UdpHeader*>(ip + ip_bytes_);
  const size_t carried = received_bytes_ - ip_bytes_ + inner_bytes;
  const int version = ends_.local.version;
  const size_t told =
      version == 4 ? size_t{reinterpret_cast<const Ipv4Header*>(ip)->total_length}
                   : sizeof(Ipv6Header) + reinterpret_cast<const Ipv6Header*>(ip)->payload_length;
  const bool has_udp = ends_.kind == Tunnel::kVxlan;
  if (told != ip_bytes_ + carried || (has_udp && udp->length != carried)) return Damage::kLength;
  if (!verify_checksums) return std::nullopt;
  if (version == 4 && !native::holds(native::sum(ip, sizeof(Ipv4Header)))) {
    return Damage::kChecksumWrong;
  }
  // A tunnel may go without, over IPv6, too (RFC 7348 5, RFC 6935).
  if (!has_udp || udp->checksum == 0) return std::nullopt;
  const uint64_t sum = udp_sum(version, ip, reinterpret_cast<const uint8_t*>(udp), carried);
  return fold(sum) == 0xffff ? std::nullopt : std::optional(Damage::kChecksumWrong);
}

Encapsulation Encapsulation::from_other_end() const {
  TunnelEnds ends = ends_;
  std::swap(ends.local, ends.remote);
  std::swap(ends.local_bits, ends.remote_bits);
  std::swap(ends.sent, ends.received);
  return Encapsulation(ends);
}

size_t Encapsulation::take_out(uint8_t* frame, size_t size) const noexcept {
  uint8_t* const ether_type = frame + offsetof(EthernetHeader, ether_type);
  const uint16_t type = inner_type(ether_type);
  const size_t inner = sizeof(EthernetHeader) + received_bytes_;
  std::memmove(frame + sizeof(EthernetHeader), frame + inner, size - inner);
  *reinterpret_cast<Be16*>(ether_type) = type;
  return size - received_bytes_;
}

size_t Encapsulation::put_in(uint8_t* frame, size_t size) const noexcept {
  if (bytes_ == 0) return size;
  uint8_t* const ip = frame + sizeof(EthernetHeader);
  const size_t inner_bytes = size - sizeof(EthernetHeader);
  const int inner_version = ip[0] >> 4 == 4 ? 4 : 6;
  Mac own;
  std::memcpy(own.bytes.data(), frame + offsetof(EthernetHeader, src), own.bytes.size());
  std::memmove(ip + bytes_, ip, inner_bytes);
  write(frame + offsetof(EthernetHeader, ether_type), inner_version, inner_bytes, own);
  return size + bytes_;
}

void Encapsulation::redirect(uint8_t* frame, const IpAddress& remote) noexcept {
  uint8_t* const ip = frame + sizeof(EthernetHeader);
  if (remote.version == 6) {
    std::memcpy(ip + offsetof(Ipv6Header, dst), remote.bytes.data(), sizeof(Ipv6Header::dst));
    return;
  }
  auto* const header = reinterpret_cast<Ipv4Header*>(ip);
  std::memcpy(header->dst, remote.bytes.data(), sizeof(header->dst));
  header->checksum = 0;
  header->checksum = finish(sum_words(ip, sizeof(Ipv4Header)));
}

}  // namespace dutperf::net
