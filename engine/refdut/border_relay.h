// The border relay of MAP-E (RFC 7597), 6rd (RFC 5969) and lw4o6, whose name is lwAFTR (RFC 7596):
// to which customer edge a packet goes, and whether one is from the edge that it says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "net/address.h"
#include "net/binding_table.h"

namespace dutperf::refdut {

// In an edge's IPv6 address a number of `ea_bits` bits, IPv4 suffix and PSID, stands behind the
// first `ipv6_bits`. Addresses have zeros where others have what differs.
struct EdgeRule {
  enum class Kind : uint8_t {
    kMap,      // a basic mapping rule (RFC 7597 5): the interface identifier has both, too
    kBinding,  // a binding table whose B4s are numbered (RFC 7596)
    kTable,    // a binding table of any B4s: nothing of the rest
    kSixRd,    // a domain of 6rd (RFC 5969 4): the IPv6 packets are inside; no PSID
  };
  net::IpAddress ipv6;
  uint8_t ipv6_bits = 0;
  net::IpAddress ipv4;
  uint8_t ipv4_bits = 0;
  uint8_t ea_bits = 0;
  uint8_t psid_offset = 6;
  Kind kind = Kind::kMap;
  std::shared_ptr<const net::BindingTable> table;  // of kTable

  // What does not fit together; empty: all does.
  const char* fault() const;
  bool operator==(const EdgeRule&) const = default;
};

// Of a border relay that translates (MAP-T, RFC 7599), and what stands for the IPv4 internet where
// its edges are: the default mapping rule's prefix.
struct MapTranslation {
  EdgeRule rule;
  net::IpAddress prefix;
  uint8_t prefix_bits = 64;  // or 96: where an IPv4 address stands in it (RFC 6052 2.2)

  bool operator==(const MapTranslation&) const = default;
};

// Whose a packet is that comes in a tunnel.
enum class Sender : uint8_t { kOwn, kNobody, kAnother };

class BorderRelay {
 public:
  // REQUIRES: no fault.
  explicit BorderRelay(const EdgeRule& rule);
  ~BorderRelay();  // not inline: in an optional GCC 14 warns of the table of a relay never made

  // The customer edge that has this address and port; none of the rule's.
  std::optional<net::IpAddress> edge_of(uint32_t ipv4, uint16_t port) const;

  // The edge whose prefix such an address of 16 bytes has; none of the domain's. 6rd only.
  std::optional<net::IpAddress> edge_of(const uint8_t* ipv6) const;

  // Whether the inner packet, of `size` bytes, is of the edge that sent the outer one.
  // REQUIRES: the outer header is there.
  Sender sender_of(const uint8_t* outer_ip, const uint8_t* inner_ip, size_t size) const;
  // Where a packet goes. Of 6rd any of IPv6 may; of IPv4 those without ports, and pieces, go
  // nowhere.
  std::optional<net::IpAddress> edge_for(const uint8_t* ip, size_t size) const;

 private:
  std::optional<net::IpAddress> edge_at(const uint8_t* ip, size_t size, bool by_source) const;

  unsigned __int128 common_ = 0;  // to all edges' addresses
  uint32_t ipv4_ = 0;
  uint32_t suffix_bits_;
  uint32_t psid_bits_;
  uint32_t psid_offset_;
  uint32_t ea_shift_;
  uint32_t ipv6_bits_;
  EdgeRule::Kind kind_;
  std::shared_ptr<const net::BindingTable> table_;
};

}  // namespace dutperf::refdut
