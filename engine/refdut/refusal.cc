#include "refusal.h"

#include <algorithm>
#include <cstring>

#include "net/checksum.h"
#include "net/frame.h"
#include "net/tcp.h"

namespace dutperf::refdut {
namespace {

constexpr uint8_t kHops = 64;
constexpr size_t kIcmpHeaderBytes = 8;

Flow back(const Flow& flow) {
  Flow turned = flow;
  std::swap(turned.source, turned.destination);
  return turned;
}

}  // namespace

size_t write_reset(const Flow& flow, const uint8_t* packet, uint8_t* out) {
  const size_t ip_bytes = net::ip_header_bytes(flow.version);
  const auto* syn = reinterpret_cast<const net::TcpHeader*>(packet + ip_bytes);
  const size_t syn_bytes = size_t{syn->data_offset} / 16 * 4;
  const auto data =
      static_cast<uint32_t>(flow.ip_bytes - std::min(flow.ip_bytes, ip_bytes + syn_bytes));
  write_ip_header(back(flow), net::kProtocolTcp, kHops, sizeof(net::TcpHeader), out);
  auto* reset = reinterpret_cast<net::TcpHeader*>(out + ip_bytes);
  *reset = {};
  reset->src_port = flow.destination.port;
  reset->dst_port = flow.source.port;
  reset->acknowledgment = syn->sequence + 1 + data;
  reset->data_offset = uint8_t{sizeof(net::TcpHeader) / 4 << 4};
  reset->flags = net::kTcpRst | net::kTcpAck;
  reset->checksum =
      net::finish(net::tcp_sum(flow.version, out, out + ip_bytes, sizeof(net::TcpHeader)));
  return ip_bytes + sizeof(net::TcpHeader);
}

size_t write_prohibition(const Flow& flow, const net::IpAddress& own, const uint8_t* packet,
                         uint8_t* out) {
  const size_t ip_bytes = net::ip_header_bytes(flow.version);
  const size_t quoted = std::min(flow.ip_bytes, kMostQuotedBytes);
  const size_t icmp_bytes = kIcmpHeaderBytes + quoted;
  const uint8_t protocol = flow.version == 4 ? net::kProtocolIcmp : net::kProtocolIcmpv6;
  Flow turned = back(flow);
  turned.source.address = own.bytes;
  write_ip_header(turned, protocol, kHops, icmp_bytes, out);
  uint8_t* const icmp = out + ip_bytes;
  std::memset(icmp, 0, kIcmpHeaderBytes);
  icmp[0] = flow.version == 4 ? 3 : 1;
  icmp[1] = flow.version == 4 ? 13 : 1;
  std::memcpy(icmp + kIcmpHeaderBytes, packet, quoted);
  uint64_t sum = net::sum_words(icmp, icmp_bytes);
  if (flow.version == 6) {  // RFC 4443 2.3
    const auto* header = reinterpret_cast<const net::Ipv6Header*>(out);
    sum += net::sum_words(header->src, 2 * sizeof header->src) + icmp_bytes + protocol;
  }
  const uint16_t checksum = net::finish(sum);
  icmp[2] = static_cast<uint8_t>(checksum >> 8);
  icmp[3] = static_cast<uint8_t>(checksum);
  return ip_bytes + icmp_bytes;
}

}  // namespace dutperf::refdut
