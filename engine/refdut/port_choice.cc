#include "port_choice.h"

#include <cstring>

#include "net/byte_order.h"
#include "net/headers.h"

namespace dutperf::refdut {
namespace {

template <typename T>
T read(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return net::byte_swap(value);
}

}  // namespace

PortChoice::PortChoice(std::span<const std::vector<net::IpAddress>> own) {
  for (size_t number = 0; number < own.size(); ++number) {
    for (const net::IpAddress& address : own[number]) {
      auto& candidates = address.version == 4 ? ipv4_ : ipv6_;
      candidates.push_back(
          {key_of(address.version, address.bytes.data()), static_cast<uint8_t>(number)});
    }
  }
}

PortChoice::Key PortChoice::key_of(int version, const uint8_t* address) {
  if (version == 4) return {read<uint32_t>(address), 0};
  return {read<uint64_t>(address), read<uint64_t>(address + sizeof(uint64_t))};
}

uint8_t PortChoice::number_for(uint16_t ether_type, const uint8_t* ip) const {
  const bool is_ipv4 = ether_type == net::kEtherTypeIpv4;
  const auto& candidates = is_ipv4 ? ipv4_ : ipv6_;
  if (candidates.empty()) return 0;
  const Key wanted = is_ipv4 ? key_of(4, reinterpret_cast<const net::Ipv4Header*>(ip)->dst)
                             : key_of(6, reinterpret_cast<const net::Ipv6Header*>(ip)->dst);
  // What two addresses differ in is a number; the first bit of it counts most.
  Key least{UINT64_MAX, UINT64_MAX};
  uint8_t nearest = 0;
  for (const Candidate& candidate : candidates) {
    const Key difference{candidate.address.high ^ wanted.high, candidate.address.low ^ wanted.low};
    if (difference.high > least.high) continue;
    if (difference.high == least.high && difference.low >= least.low) continue;
    least = difference;
    nearest = candidate.number;
  }
  return nearest;
}

}  // namespace dutperf::refdut
