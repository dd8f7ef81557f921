#include "alteration.h"

#include <algorithm>

#include "net/checksum.h"

namespace dutperf::refdut {
namespace {

uint8_t fallen(uint8_t ttl, uint8_t hops_taken, uint8_t hops) {
  return static_cast<uint8_t>(std::clamp(ttl + hops_taken - hops, 1, 255));
}

void alter_ipv4(const Alteration& alteration, uint8_t hops_taken, uint8_t* ip, size_t bytes) {
  auto* header = reinterpret_cast<net::Ipv4Header*>(ip);
  if (alteration.hops) header->ttl = fallen(header->ttl, hops_taken, *alteration.hops);
  if (alteration.dscp) {
    header->tos = static_cast<uint8_t>(*alteration.dscp << 2 | (header->tos & 0x03));
  }
  header->checksum = 0;
  header->checksum = net::finish(net::sum_words(ip, bytes));
}

void alter_ipv6(const Alteration& alteration, uint8_t hops_taken, uint8_t* ip) {
  constexpr uint32_t kDscp = 0x3fU << 22;
  auto* header = reinterpret_cast<net::Ipv6Header*>(ip);
  if (alteration.hops) header->hop_limit = fallen(header->hop_limit, hops_taken, *alteration.hops);
  if (alteration.dscp) {
    header->version_class_flow = (header->version_class_flow & ~kDscp) | uint32_t{*alteration.dscp}
                                                                             << 22;
  }
}

}  // namespace

void alter(const Alteration& alteration, uint8_t hops_taken, uint8_t* frame,
           const net::Classified& classified) {
  uint8_t* const ip = frame + sizeof(net::EthernetHeader);
  if (classified.ip_version == 4) {
    alter_ipv4(alteration, hops_taken, ip, classified.ip_headers);
  } else {
    alter_ipv6(alteration, hops_taken, ip);
  }
  const size_t payload = net::payload_offset(frame, classified);
  const size_t tag = sizeof(net::EthernetHeader) + classified.ip_bytes - sizeof(net::WireTag);
  if (alteration.exchanges && payload + 4 <= tag) {
    std::swap_ranges(frame + payload, frame + payload + 2, frame + payload + 2);
  }
}

}  // namespace dutperf::refdut
