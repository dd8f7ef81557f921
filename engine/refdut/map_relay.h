// The border relay of MAP-E (RFC 7597): to which customer edge an IPv4 packet goes, and whether one
// is from the edge that it says, by address and port.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "net/address.h"

namespace dutperf::refdut {

// A basic mapping rule (RFC 7597 5); addresses without the bits behind their prefixes.
struct MapRule {
  net::IpAddress ipv6;
  uint8_t ipv6_bits = 0;
  net::IpAddress ipv4;
  uint8_t ipv4_bits = 0;
  uint8_t ea_bits = 0;
  uint8_t psid_offset = 6;

  // What does not fit together; empty: all does.
  const char* fault() const;
  bool operator==(const MapRule&) const = default;
};

// Of a border relay that translates (MAP-T, RFC 7599), and what stands for the IPv4 internet where
// its edges are: the default mapping rule's prefix.
struct MapTranslation {
  MapRule rule;
  net::IpAddress prefix;
  uint8_t prefix_bits = 64;  // or 96: where an IPv4 address stands in it (RFC 6052 2.2)

  bool operator==(const MapTranslation&) const = default;
};

class MapRelay {
 public:
  // REQUIRES: no fault.
  explicit MapRelay(const MapRule& rule);

  // The customer edge that has this address and port; none of the rule's.
  std::optional<net::IpAddress> edge_of(uint32_t ipv4, uint16_t port) const;

  // Whether the inner IPv4 packet is of the edge that sent the outer one. REQUIRES: both headers
  // and 4 bytes behind the inner one, `size` from there on.
  bool is_from(const uint8_t* outer_ip, const uint8_t* inner_ip, size_t size) const;
  // Where an IPv4 packet goes. Packets without ports, and pieces, go nowhere.
  std::optional<net::IpAddress> edge_for(const uint8_t* ip, size_t size) const;

 private:
  uint64_t prefix_ = 0;  // the upper half of all edges' addresses
  uint32_t ipv4_ = 0;
  uint32_t suffix_bits_;
  uint32_t psid_bits_;
  uint32_t psid_offset_;
  uint32_t ea_shift_;
};

}  // namespace dutperf::refdut
