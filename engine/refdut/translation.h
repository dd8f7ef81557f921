// Other addresses, ports and, for NAT64 and NAT46, another IP header for a UDP packet
// (RFC 7915 4.1 and 5.1). Checksums are corrected, not made anew: a wrong one stays wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "connection_table.h"

namespace dutperf::refdut {

// Who sends a UDP packet to whom.
struct UdpFlow {
  int version = 4;
  Endpoint source;
  Endpoint destination;
  size_t ip_bytes = 0;
};

// None: the frame is no whole IPv4 or IPv6 packet with UDP right behind a plain header.
std::optional<UdpFlow> read_flow(const uint8_t* frame, size_t size);

// The frame's size when it is sent with the other IP version, or the same; without FCS.
size_t translated_size(const UdpFlow& flow, int version);

// Gives the packet of `flow`, in `frame`, the version and ends of `other`. False, and nothing has
// happened, when it has no UDP checksum and IPv6 needs one.
// REQUIRES: there is room for translated_size().
bool translate(const UdpFlow& flow, const UdpFlow& other, uint8_t* frame);

// Makes plain headers of `flow`, IP's and UDP's, with fresh checksums; its payload is there
// already.
void write_headers(const UdpFlow& flow, uint8_t hops, uint8_t* ip);

}  // namespace dutperf::refdut
