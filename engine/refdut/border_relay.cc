#include "border_relay.h"

#include <algorithm>

#include "net/byte_order.h"
#include "net/headers.h"

namespace dutperf::refdut {
namespace {

constexpr uint8_t kProtocolTcp = 6;

uint16_t load16(const uint8_t* bytes) { return *reinterpret_cast<const net::Be16*>(bytes); }
uint32_t load32(const uint8_t* bytes) { return *reinterpret_cast<const net::Be32*>(bytes); }
uint64_t load64(const uint8_t* bytes) { return *reinterpret_cast<const net::Be64*>(bytes); }

unsigned __int128 load128(const uint8_t* bytes) {
  return static_cast<unsigned __int128>(load64(bytes)) << 64 | load64(bytes + sizeof(uint64_t));
}

net::IpAddress ipv6_of(uint64_t high, uint64_t low) {
  net::IpAddress address{6, {}};
  *reinterpret_cast<net::Be64*>(address.bytes.data()) = high;
  *reinterpret_cast<net::Be64*>(address.bytes.data() + sizeof(uint64_t)) = low;
  return address;
}

struct Ipv4Flow {
  uint32_t src;
  uint32_t dst;
  uint16_t src_port;
  uint16_t dst_port;
};

std::optional<Ipv4Flow> flow_of(const uint8_t* ip, size_t size) {
  if (size < sizeof(net::Ipv4Header) + sizeof(uint32_t)) return std::nullopt;
  const auto* header = reinterpret_cast<const net::Ipv4Header*>(ip);
  const size_t header_bytes = header->version_ihl % 16U * 4;
  const bool has_ports = header->protocol == net::kProtocolUdp || header->protocol == kProtocolTcp;
  if (header->version_ihl >> 4 != 4 || header_bytes < sizeof(net::Ipv4Header)) return std::nullopt;
  if (!has_ports || size < header_bytes + sizeof(uint32_t)) return std::nullopt;
  if ((header->flags_fragment & net::kMoreFragmentsOrOffset) != 0) return std::nullopt;
  const uint8_t* const ports = ip + header_bytes;
  return Ipv4Flow{load32(header->src), load32(header->dst), load16(ports),
                  load16(ports + sizeof(uint16_t))};
}

}  // namespace

const char* EdgeRule::fault() const {
  const int suffix_bits = 32 - ipv4_bits;
  const int psid_bits = ea_bits - suffix_bits;
  if (psid_bits < 0) return "ea_bits are fewer than the IPv4 suffix has";
  if (psid_offset + psid_bits > 16) return "psid_offset and the PSID are more bits than a port has";
  if (kind != Kind::kBinding && ipv6_bits + ea_bits > 64)
    return "ea_bits reach into the interface identifier";
  return "";
}

BorderRelay::~BorderRelay() = default;

BorderRelay::BorderRelay(const EdgeRule& rule)
    : common_(load128(rule.ipv6.bytes.data())),
      ipv4_(load32(rule.ipv4.bytes.data())),
      suffix_bits_(32U - rule.ipv4_bits),
      psid_bits_(rule.ea_bits - suffix_bits_),
      psid_offset_(rule.psid_offset),
      ea_shift_(128U - rule.ipv6_bits - rule.ea_bits),
      ipv6_bits_(rule.ipv6_bits),
      kind_(rule.kind),
      table_(rule.table) {}

std::optional<net::IpAddress> BorderRelay::edge_of(uint32_t ipv4, uint16_t port) const {
  if (table_) {
    const net::BindingTable::Address* const b4 = table_->find(ipv4, port);
    if (b4 == nullptr) return std::nullopt;
    return ipv6_of((*b4)[0], (*b4)[1]);
  }
  const uint64_t suffix = ipv4 & ((1ULL << suffix_bits_) - 1);
  if (ipv4 - suffix != ipv4_) return std::nullopt;
  if (psid_offset_ > 0 && port >> (16 - psid_offset_) == 0) return std::nullopt;
  const uint64_t psid =
      uint64_t{port} >> (16 - psid_offset_ - psid_bits_) & ((1ULL << psid_bits_) - 1);
  // Of no bits, behind a prefix of none, it would be shifted by all that the type has.
  const unsigned __int128 number = suffix << psid_bits_ | psid;
  unsigned __int128 own = common_ | (ea_shift_ < 128 ? number << ea_shift_ : 0);
  if (kind_ == EdgeRule::Kind::kMap) own |= uint64_t{ipv4} << 16 | psid;
  return ipv6_of(static_cast<uint64_t>(own >> 64), static_cast<uint64_t>(own));
}

std::optional<net::IpAddress> BorderRelay::edge_of(const uint8_t* ipv6) const {
  const unsigned __int128 address = load128(ipv6);
  if (ipv6_bits_ > 0 && (address ^ common_) >> (128 - ipv6_bits_) != 0) return std::nullopt;
  const uint64_t suffix =
      suffix_bits_ > 0 ? static_cast<uint64_t>(address >> ea_shift_) & ((1ULL << suffix_bits_) - 1)
                       : 0;
  net::IpAddress edge{4, {}};
  *reinterpret_cast<net::Be32*>(edge.bytes.data()) = ipv4_ | static_cast<uint32_t>(suffix);
  return edge;
}

std::optional<net::IpAddress> BorderRelay::edge_at(const uint8_t* ip, size_t size,
                                                   bool by_source) const {
  if (kind_ != EdgeRule::Kind::kSixRd) {
    const std::optional<Ipv4Flow> flow = flow_of(ip, size);
    if (!flow) return std::nullopt;
    return by_source ? edge_of(flow->src, flow->src_port) : edge_of(flow->dst, flow->dst_port);
  }
  if (size < sizeof(net::Ipv6Header) || ip[0] >> 4 != 6) return std::nullopt;
  return edge_of(ip +
                 (by_source ? offsetof(net::Ipv6Header, src) : offsetof(net::Ipv6Header, dst)));
}

Sender BorderRelay::sender_of(const uint8_t* outer_ip, const uint8_t* inner_ip, size_t size) const {
  const auto edge = edge_at(inner_ip, size, true);
  if (!edge) return Sender::kNobody;
  const bool is_ipv4 = edge->version == 4;
  const uint8_t* const src =
      outer_ip + (is_ipv4 ? offsetof(net::Ipv4Header, src) : offsetof(net::Ipv6Header, src));
  const auto end = edge->bytes.begin() + (is_ipv4 ? 4 : 16);
  return std::equal(edge->bytes.begin(), end, src) ? Sender::kOwn : Sender::kAnother;
}

std::optional<net::IpAddress> BorderRelay::edge_for(const uint8_t* ip, size_t size) const {
  return edge_at(ip, size, false);
}

}  // namespace dutperf::refdut
