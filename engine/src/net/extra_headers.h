// What may stand between the IP header and UDP: IPv4 options (RFC 791 3.1), or IPv6 extension
// headers (RFC 8200 4). Written once, into a stream's template.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/headers.h"

namespace dutperf::net {

enum class Ipv6Extension : uint8_t {
  kHopByHop,            // 8 bytes, padding only
  kDestinationOptions,  // 8 bytes, padding only
  kRouting,             // 24 bytes: an experimental type, no segments left
  kFragment,            // 8 bytes: an atomic fragment, all of the packet
  kAuthentication,      // 24 bytes with an integrity check value that nobody can check
  kMobility,            // 8 bytes: a binding refresh request
};

enum class Ipv4Option : uint8_t {
  kRouterAlert,  // RFC 2113
  kNop,          // four of them, so that the header ends in whole words
};

inline bool is_ipv6_extension(uint8_t protocol) {
  switch (protocol) {
    case kIpv6HopByHop:
    case kIpv6Routing:
    case kIpv6FragmentHeader:
    case kIpv6Authentication:
    case kIpv6DestinationOptions:
    case kIpv6Mobility: return true;
    default: return false;
  }
}

// By its own length field, of an extension header; at least 8.
inline size_t ipv6_extension_bytes(uint8_t protocol, uint8_t length) {
  switch (protocol) {
    case kIpv6FragmentHeader: return 8;
    case kIpv6Authentication: return std::max<size_t>(8, (size_t{length} + 2) * 4);
    default: return (size_t{length} + 1) * 8;
  }
}

struct ExtraHeaders {
  uint8_t first_protocol = kProtocolUdp;  // what the IP header says that follows
  std::vector<uint8_t> bytes;
  // Where mobility headers begin in `bytes`. Their checksums are of the packet's addresses, too.
  std::vector<uint32_t> mobility;

  bool operator==(const ExtraHeaders&) const = default;
};

ExtraHeaders ipv6_extensions(std::span<const Ipv6Extension> extensions);
// Of the mobility header there (RFC 6275 6.1.1); whatever its checksum field holds is no part of
// it.
uint16_t mobility_checksum(const uint8_t* ip_header, const uint8_t* mobility);
// REQUIRES: at most kMaxIpv4Options.
ExtraHeaders ipv4_options(std::span<const Ipv4Option> options);
inline constexpr size_t kIpv4OptionBytes = 4;
inline constexpr size_t kMaxIpv4Options = size_t{15 - 5} * 4 / kIpv4OptionBytes;

}  // namespace dutperf::net
