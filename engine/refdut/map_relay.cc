#include "map_relay.h"

#include <algorithm>

#include "net/byte_order.h"
#include "net/headers.h"

namespace dutperf::refdut {
namespace {

constexpr uint8_t kProtocolTcp = 6;

uint16_t load16(const uint8_t* bytes) { return *reinterpret_cast<const net::Be16*>(bytes); }
uint32_t load32(const uint8_t* bytes) { return *reinterpret_cast<const net::Be32*>(bytes); }
uint64_t load64(const uint8_t* bytes) { return *reinterpret_cast<const net::Be64*>(bytes); }

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

const char* MapRule::fault() const {
  const int suffix_bits = 32 - ipv4_bits;
  const int psid_bits = ea_bits - suffix_bits;
  if (psid_bits < 0) return "ea_bits are fewer than the IPv4 suffix has";
  if (psid_offset + psid_bits > 16) return "psid_offset and the PSID are more bits than a port has";
  if (ipv6_bits + ea_bits > 64) return "ea_bits reach into the interface identifier";
  return "";
}

MapRelay::MapRelay(const MapRule& rule)
    : prefix_(load64(rule.ipv6.bytes.data())),
      ipv4_(load32(rule.ipv4.bytes.data())),
      suffix_bits_(32U - rule.ipv4_bits),
      psid_bits_(rule.ea_bits - suffix_bits_),
      psid_offset_(rule.psid_offset),
      ea_shift_(64U - rule.ipv6_bits - rule.ea_bits) {}

std::optional<net::IpAddress> MapRelay::edge_of(uint32_t ipv4, uint16_t port) const {
  const uint64_t suffix = ipv4 & ((1ULL << suffix_bits_) - 1);
  if (ipv4 - suffix != ipv4_) return std::nullopt;
  if (psid_offset_ > 0 && port >> (16 - psid_offset_) == 0) return std::nullopt;
  const uint64_t psid =
      uint64_t{port} >> (16 - psid_offset_ - psid_bits_) & ((1ULL << psid_bits_) - 1);
  const uint64_t embedded = suffix << psid_bits_ | psid;
  const uint64_t high = prefix_ | (ea_shift_ < 64 ? embedded << ea_shift_ : 0);
  const uint64_t low = uint64_t{ipv4} << 16 | psid;
  net::IpAddress address{6, {}};
  *reinterpret_cast<net::Be64*>(address.bytes.data()) = high;
  *reinterpret_cast<net::Be64*>(address.bytes.data() + sizeof(high)) = low;
  return address;
}

bool MapRelay::is_from(const uint8_t* outer_ip, const uint8_t* inner_ip, size_t size) const {
  const std::optional<Ipv4Flow> flow = flow_of(inner_ip, size);
  const auto edge = flow ? edge_of(flow->src, flow->src_port) : std::nullopt;
  const uint8_t* const src = outer_ip + offsetof(net::Ipv6Header, src);
  return edge && std::equal(edge->bytes.begin(), edge->bytes.end(), src);
}

std::optional<net::IpAddress> MapRelay::edge_for(const uint8_t* ip, size_t size) const {
  const std::optional<Ipv4Flow> flow = flow_of(ip, size);
  return flow ? edge_of(flow->dst, flow->dst_port) : std::nullopt;
}

}  // namespace dutperf::refdut
