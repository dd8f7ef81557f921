// Other addresses, ports and, for NAT64 and NAT46, another IP header for a UDP packet or a TCP
// segment (RFC 7915 4.1 and 5.1). Checksums are corrected, not made anew: a wrong one stays wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "connection_table.h"

namespace dutperf::refdut {

// Who sends a UDP packet or TCP segment to whom.
struct Flow {
  int version = 4;
  Endpoint source;
  Endpoint destination;
  size_t ip_bytes = 0;
  Protocol protocol = Protocol::kUdp;
  bool may_open = true;  // of TCP a SYN alone
  // Of an IPv4 packet without DF: its identification, which its pieces have.
  std::optional<uint16_t> id;
};

// None: the frame is no whole IPv4 or IPv6 packet with UDP or TCP right behind a plain header.
std::optional<Flow> read_flow(const uint8_t* frame, size_t size);

// The frame's size when it is sent with the other IP version, or the same; without FCS.
size_t translated_size(const Flow& flow, int version);

// Gives the packet of `flow`, in `frame`, the version and ends of `other`. False, and nothing has
// happened, when it has no UDP checksum and IPv6 needs one.
// REQUIRES: there is room for translated_size().
bool translate(const Flow& flow, const Flow& other, uint8_t* frame);

// The plain header of an IP packet from one end of `flow` to the other, of `bytes` behind it.
void write_ip_header(const Flow& flow, uint8_t protocol, uint8_t hops, size_t bytes, uint8_t* ip);

// Makes plain headers of `flow`, which is of UDP, IP's and UDP's, with fresh checksums; its payload
// is there already.
void write_headers(const Flow& flow, uint8_t hops, uint8_t* ip);

}  // namespace dutperf::refdut
