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

uint32_t bytes_behind_ip(Tunnel kind) {
  switch (kind) {
    case Tunnel::kNone:
    case Tunnel::kIp: return 0;
    case Tunnel::kGre: return sizeof(GreHeader);
    case Tunnel::kVxlan: return sizeof(UdpHeader) + sizeof(VxlanHeader) + sizeof(EthernetHeader);
  }
  return 0;
}

uint8_t protocol_of(Tunnel kind, int inner_version) {
  if (kind == Tunnel::kGre) return kProtocolGre;
  if (kind == Tunnel::kVxlan) return kProtocolUdp;
  return inner_version == 4 ? kProtocolIpv4 : kProtocolIpv6;
}

bool is_protocol_of(Tunnel kind, uint8_t protocol) {
  return protocol == protocol_of(kind, 4) || protocol == protocol_of(kind, 6);
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
  bytes_ = ip_bytes_ + bytes_behind_ip(ends.kind);
}

void Encapsulation::write(uint8_t* ether_type, int inner_version, size_t inner_bytes,
                          const Mac& inner_src) const noexcept {
  if (bytes_ == 0) return;
  const int version = ends_.local.version;
  *reinterpret_cast<Be16*>(ether_type) = type_of(version);
  uint8_t* const ip = ether_type + kTypeBytes;
  uint8_t* const behind = ip + ip_bytes_;
  std::memset(ip, 0, bytes_);
  const auto carried = static_cast<uint16_t>(bytes_ - ip_bytes_ + inner_bytes);
  const uint8_t protocol = protocol_of(ends_.kind, inner_version);
  if (version == 4) {
    auto* header = reinterpret_cast<Ipv4Header*>(ip);
    header->version_ihl = 0x45;
    header->total_length = static_cast<uint16_t>(sizeof(Ipv4Header) + carried);
    header->flags_fragment = kDontFragment;
    header->ttl = ends_.ttl;
    header->protocol = protocol;
    std::memcpy(header->src, ends_.local.bytes.data(), sizeof(header->src));
    std::memcpy(header->dst, ends_.remote.bytes.data(), sizeof(header->dst));
    header->checksum = finish(sum_words(ip, sizeof(Ipv4Header)));
  } else {
    auto* header = reinterpret_cast<Ipv6Header*>(ip);
    header->version_class_flow = 6U << 28;
    header->payload_length = carried;
    header->next_header = protocol;
    header->hop_limit = ends_.ttl;
    std::memcpy(header->src, ends_.local.bytes.data(), sizeof(header->src));
    std::memcpy(header->dst, ends_.remote.bytes.data(), sizeof(header->dst));
  }
  if (ends_.kind == Tunnel::kGre) {
    reinterpret_cast<GreHeader*>(behind)->protocol = type_of(inner_version);
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
         begins_as(dst, ends_.local, ends_.local_bits);
}

bool Encapsulation::begins_at(const uint8_t* ether_type, size_t frame_bytes) noexcept {
  if (frame_bytes < sizeof(EthernetHeader) + sizeof(Ipv4Header)) return false;
  const uint16_t type = *reinterpret_cast<const Be16*>(ether_type);
  const uint8_t* const ip = ether_type + kTypeBytes;
  if (type != kEtherTypeIpv4 && type != kEtherTypeIpv6) return false;
  const size_t at =
      type == kEtherTypeIpv4 ? offsetof(Ipv4Header, protocol) : offsetof(Ipv6Header, next_header);
  return ip[at] == kProtocolIpv4 || ip[at] == kProtocolIpv6 || ip[at] == kProtocolGre;
}

bool Encapsulation::stands_at(const uint8_t* ether_type) const noexcept {
  const int version = ends_.local.version;
  if (*reinterpret_cast<const Be16*>(ether_type) != type_of(version)) return false;
  const uint8_t* const ip = ether_type + kTypeBytes;
  const uint8_t* const behind = ip + ip_bytes_;
  if (version == 4) {
    const auto* header = reinterpret_cast<const Ipv4Header*>(ip);
    if (header->version_ihl != 0x45) return false;
    if ((header->flags_fragment & kMoreFragmentsOrOffset) != 0) return false;
    if (!is_protocol_of(ends_.kind, header->protocol)) return false;
    if (!holds_addresses(header->src, header->dst)) return false;
  } else {
    const auto* header = reinterpret_cast<const Ipv6Header*>(ip);
    if (ip[0] >> 4 != 6 || !is_protocol_of(ends_.kind, header->next_header)) return false;
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
  const uint8_t protocol = ends_.local.version == 4
                               ? reinterpret_cast<const Ipv4Header*>(ip)->protocol
                               : reinterpret_cast<const Ipv6Header*>(ip)->next_header;
  return type_of(protocol == kProtocolIpv4 ? 4 : 6);
}

std::optional<Damage> Encapsulation::damage_at(const uint8_t* ether_type, size_t inner_bytes,
                                               bool verify_checksums) const noexcept {
  const uint8_t* const ip = ether_type + kTypeBytes;
  const auto* const udp = reinterpret_cast<const UdpHeader*>(ip + ip_bytes_);
  const size_t carried = bytes_ - ip_bytes_ + inner_bytes;
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
  return Encapsulation(ends);
}

size_t Encapsulation::take_out(uint8_t* frame, size_t size) const noexcept {
  uint8_t* const ether_type = frame + offsetof(EthernetHeader, ether_type);
  const uint16_t type = inner_type(ether_type);
  const size_t inner = sizeof(EthernetHeader) + bytes_;
  std::memmove(frame + sizeof(EthernetHeader), frame + inner, size - inner);
  *reinterpret_cast<Be16*>(ether_type) = type;
  return size - bytes_;
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

}  // namespace dutperf::net
