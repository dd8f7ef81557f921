#include "translation.h"

#include <algorithm>
#include <cstring>

#include "net/checksum.h"
#include "net/frame.h"
#include "net/headers.h"

namespace dutperf::refdut {
namespace {

constexpr size_t kEthernet = sizeof(net::EthernetHeader);
constexpr size_t kLargestWithoutDf = 1260;  // RFC 7915 5.1

size_t address_bytes(int version) { return version == 4 ? 4 : 16; }

Endpoint endpoint(const uint8_t* address, int version, uint16_t port) {
  Endpoint end;
  std::memcpy(end.address.data(), address, address_bytes(version));
  end.port = port;
  return end;
}

// What the flow adds to the sum under the checksum of UDP or TCP, ports and pseudo header.
uint64_t sum_of_ends(const Flow& flow) {
  const size_t bytes = address_bytes(flow.version);
  return net::sum_words(flow.source.address.data(), bytes) +
         net::sum_words(flow.destination.address.data(), bytes) + flow.source.port +
         flow.destination.port;
}

struct IpFields {
  uint8_t hops;
  uint8_t traffic_class;
};

IpFields read_fields(const uint8_t* ip, int version) {
  if (version == 4) {
    const auto* header = reinterpret_cast<const net::Ipv4Header*>(ip);
    return {header->ttl, header->tos};
  }
  const auto* header = reinterpret_cast<const net::Ipv6Header*>(ip);
  return {header->hop_limit, static_cast<uint8_t>(header->version_class_flow >> 20)};
}

void write_ipv4(const Flow& flow, const IpFields& fields, size_t bytes, uint8_t* ip) {
  auto* header = reinterpret_cast<net::Ipv4Header*>(ip);
  const size_t total = sizeof(net::Ipv4Header) + bytes;
  *header = {};
  header->version_ihl = 0x45;
  header->tos = fields.traffic_class;
  header->total_length = static_cast<uint16_t>(total);
  header->flags_fragment = total > kLargestWithoutDf ? net::kDontFragment : uint16_t{0};
  header->ttl = fields.hops;
  header->protocol = static_cast<uint8_t>(flow.protocol);
  std::memcpy(header->src, flow.source.address.data(), sizeof header->src);
  std::memcpy(header->dst, flow.destination.address.data(), sizeof header->dst);
  header->checksum = net::finish(net::sum_words(ip, sizeof *header));
}

void write_ipv6(const Flow& flow, const IpFields& fields, size_t bytes, uint8_t* ip) {
  auto* header = reinterpret_cast<net::Ipv6Header*>(ip);
  header->version_class_flow = 6U << 28 | uint32_t{fields.traffic_class} << 20;
  header->payload_length = static_cast<uint16_t>(bytes);
  header->next_header = static_cast<uint8_t>(flow.protocol);
  header->hop_limit = fields.hops;
  std::memcpy(header->src, flow.source.address.data(), sizeof header->src);
  std::memcpy(header->dst, flow.destination.address.data(), sizeof header->dst);
}

// The same version: all else in the header stays.
void replace_addresses(const Flow& flow, uint8_t* ip) {
  if (flow.version == 6) {
    auto* header = reinterpret_cast<net::Ipv6Header*>(ip);
    std::memcpy(header->src, flow.source.address.data(), sizeof header->src);
    std::memcpy(header->dst, flow.destination.address.data(), sizeof header->dst);
    return;
  }
  auto* header = reinterpret_cast<net::Ipv4Header*>(ip);
  const uint64_t before = net::sum_words(header->src, 8);
  std::memcpy(header->src, flow.source.address.data(), sizeof header->src);
  std::memcpy(header->dst, flow.destination.address.data(), sizeof header->dst);
  header->checksum =
      net::finish(uint64_t{static_cast<uint16_t>(~header->checksum)} +
                  static_cast<uint16_t>(~net::fold(before)) + net::sum_words(header->src, 8));
}

std::optional<Protocol> protocol_of(uint8_t number) {
  if (number == net::kProtocolUdp) return Protocol::kUdp;
  return number == net::kProtocolTcp ? std::optional(Protocol::kTcp) : std::nullopt;
}

// Both begin with the ports.
size_t header_bytes_of(Protocol protocol) {
  return protocol == Protocol::kUdp ? sizeof(net::UdpHeader) : sizeof(net::TcpHeader);
}

net::Be16& checksum_of(Protocol protocol, uint8_t* header) {
  return protocol == Protocol::kUdp ? reinterpret_cast<net::UdpHeader*>(header)->checksum
                                    : reinterpret_cast<net::TcpHeader*>(header)->checksum;
}

}  // namespace

std::optional<Flow> read_flow(const uint8_t* frame, size_t size) {
  const uint16_t type = reinterpret_cast<const net::EthernetHeader*>(frame)->ether_type;
  const int version = type == net::kEtherTypeIpv4 ? 4 : 6;
  const size_t header_bytes = net::ip_header_bytes(version);
  if (size < kEthernet + header_bytes + sizeof(net::UdpHeader)) return std::nullopt;
  const uint8_t* ip = frame + kEthernet;
  const auto* udp = reinterpret_cast<const net::UdpHeader*>(ip + header_bytes);
  Flow flow{.version = version};
  std::optional<Protocol> protocol;
  if (type == net::kEtherTypeIpv4) {
    const auto* header = reinterpret_cast<const net::Ipv4Header*>(ip);
    const bool whole = (header->flags_fragment & net::kMoreFragmentsOrOffset) == 0;
    if (header->version_ihl != 0x45 || !whole) return std::nullopt;
    protocol = protocol_of(header->protocol);
    flow.ip_bytes = header->total_length;
    if ((header->flags_fragment & net::kDontFragment) == 0) flow.id = header->id;
    flow.source = endpoint(header->src, 4, udp->src_port);
    flow.destination = endpoint(header->dst, 4, udp->dst_port);
  } else if (type == net::kEtherTypeIpv6) {
    const auto* header = reinterpret_cast<const net::Ipv6Header*>(ip);
    protocol = protocol_of(header->next_header);
    flow.ip_bytes = header_bytes + header->payload_length;
    flow.source = endpoint(header->src, 6, udp->src_port);
    flow.destination = endpoint(header->dst, 6, udp->dst_port);
  } else {
    return std::nullopt;
  }
  if (!protocol || kEthernet + flow.ip_bytes > size) return std::nullopt;
  if (flow.ip_bytes < header_bytes + header_bytes_of(*protocol)) return std::nullopt;
  flow.protocol = *protocol;
  if (flow.protocol == Protocol::kTcp) {
    const uint8_t flags = reinterpret_cast<const net::TcpHeader*>(ip + header_bytes)->flags;
    flow.may_open = (flags & (net::kTcpSyn | net::kTcpAck | net::kTcpRst)) == net::kTcpSyn;
  }
  return flow;
}

size_t translated_size(const Flow& flow, int version) {
  const size_t ip_bytes =
      flow.ip_bytes - net::ip_header_bytes(flow.version) + net::ip_header_bytes(version);
  return std::max(kEthernet + ip_bytes, net::kMinFrameBytes);
}

bool translate(const Flow& flow, const Flow& other, uint8_t* frame) {
  const bool of_udp = flow.protocol == Protocol::kUdp;
  const size_t old_header = net::ip_header_bytes(flow.version);
  const size_t new_header = net::ip_header_bytes(other.version);
  const size_t udp_bytes = flow.ip_bytes - old_header;
  uint8_t* ip = frame + kEthernet;
  const uint16_t checksum = checksum_of(flow.protocol, ip + old_header);
  const bool has_checksum = !of_udp || checksum != 0;
  if (!has_checksum && other.version == 6) return false;
  if (flow.version == other.version) {
    replace_addresses(other, ip);
  } else {
    const IpFields fields = read_fields(ip, flow.version);
    std::memmove(ip + new_header, ip + old_header, udp_bytes);
    const size_t end = kEthernet + new_header + udp_bytes;
    if (end < net::kMinFrameBytes) std::memset(frame + end, 0, net::kMinFrameBytes - end);
    reinterpret_cast<net::EthernetHeader*>(frame)->ether_type =
        other.version == 4 ? net::kEtherTypeIpv4 : net::kEtherTypeIpv6;
    Flow written = other;
    written.protocol = flow.protocol;
    (other.version == 4 ? write_ipv4 : write_ipv6)(written, fields, udp_bytes, ip);
  }
  auto* udp = reinterpret_cast<net::UdpHeader*>(ip + new_header);
  udp->src_port = other.source.port;
  udp->dst_port = other.destination.port;
  if (has_checksum) {
    const uint64_t sum = uint64_t{static_cast<uint16_t>(~checksum)} +
                         static_cast<uint16_t>(~net::fold(sum_of_ends(flow))) + sum_of_ends(other);
    checksum_of(flow.protocol, ip + new_header) = of_udp ? net::finish_udp(sum) : net::finish(sum);
  }
  return true;
}

void write_ip_header(const Flow& flow, uint8_t protocol, uint8_t hops, size_t bytes, uint8_t* ip) {
  Flow written = flow;
  written.protocol = Protocol{protocol};
  (flow.version == 4 ? write_ipv4 : write_ipv6)(written, {hops, 0}, bytes, ip);
}

void write_headers(const Flow& flow, uint8_t hops, uint8_t* ip) {
  const size_t header_bytes = net::ip_header_bytes(flow.version);
  const size_t udp_bytes = flow.ip_bytes - header_bytes;
  write_ip_header(flow, net::kProtocolUdp, hops, udp_bytes, ip);
  auto* udp = reinterpret_cast<net::UdpHeader*>(ip + header_bytes);
  udp->src_port = flow.source.port;
  udp->dst_port = flow.destination.port;
  udp->length = static_cast<uint16_t>(udp_bytes);
  udp->checksum = uint16_t{0};
  constexpr size_t kAlready = 2 * sizeof(uint16_t);  // the ports, which are among the ends
  const uint8_t* const rest = ip + header_bytes + kAlready;
  udp->checksum = net::finish_udp(sum_of_ends(flow) + net::kProtocolUdp + udp_bytes +
                                  net::sum_words(rest, udp_bytes - kAlready));
}

}  // namespace dutperf::refdut
