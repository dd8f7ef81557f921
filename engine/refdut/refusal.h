// What a host is sent whose connection a gateway does not make (nat_settings.h, Refusal).
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/headers.h"
#include "translation.h"

namespace dutperf::refdut {

// Both write what follows the Ethernet header, and return the bytes of the IP packet. `packet`: the
// one of `flow`, from its IP header on.

// A RST in the name of whom the SYN was for (RFC 9293 3.10.7.1).
inline constexpr size_t kResetBytes = sizeof(net::Ipv6Header) + sizeof(net::TcpHeader);
size_t write_reset(const Flow& flow, const uint8_t* packet, uint8_t* out);

// Destination unreachable, administratively prohibited (RFC 1812 5.2.7.1, RFC 4443 3.1), from
// `own`, with the begin of what it is about.
inline constexpr size_t kMostQuotedBytes = 128;
inline constexpr size_t kMostProhibitionBytes = sizeof(net::Ipv6Header) + 8 + kMostQuotedBytes;
size_t write_prohibition(const Flow& flow, const net::IpAddress& own, const uint8_t* packet,
                         uint8_t* out);

}  // namespace dutperf::refdut
