// ARP (RFC 826) and IPv6 neighbour discovery (RFC 4861) for the tester's own addresses: frames in,
// frames out, no state but the addresses. Both asking and answering. VLAN tags are taken out
// before and put in afterwards (see vlan.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "net/address.h"
#include "net/vlan.h"

namespace dutperf::net {

// Room that `write_reply` and `write_request` may use: a neighbour message in Ethernet and IPv6.
inline constexpr size_t kNeighbourFrameBytes = 86;
// With room for VLAN tags.
inline constexpr size_t kTaggedNeighbourFrameBytes = kNeighbourFrameBytes + VlanTags::kMaxBytes;

// The addresses a port answers for, with its MAC, and the VLAN tags that its frames carry both
// ways.
struct OwnAddresses {
  Mac mac;
  std::vector<AddressRange> ranges;
  VlanTags vlan;

  bool contains(const IpAddress& address) const;
};

// Who said "I have this address".
struct NeighbourAnswer {
  IpAddress ip;
  Mac mac;
};

// Writes the reply to an ARP request or neighbour solicitation for one of `own`; returns its size
// without FCS, or 0 when `frame` asks for nothing of ours. `out` has kNeighbourFrameBytes.
size_t write_reply(const uint8_t* frame, size_t size, const OwnAddresses& own, uint8_t* out);

// Writes the question for `target`, asked from `own_ip`; it is also RFC 2544 C.2.4.1's learning
// frame, as the asked device learns the asker. Returns the size without FCS.
size_t write_request(const IpAddress& own_ip, const Mac& own_mac, const IpAddress& target,
                     uint8_t* out);

// The answer in an ARP reply or neighbour advertisement, if `frame` is one.
std::optional<NeighbourAnswer> parse_answer(const uint8_t* frame, size_t size);

// What a frame's sender says of itself: an answer, or who asks.
std::optional<NeighbourAnswer> parse_claim(const uint8_t* frame, size_t size);

// Whether a claim cannot be true beside what is known: a neighbour has another MAC now, or somebody
// else has an address of ours.
bool contradicts(const NeighbourAnswer& claim, const OwnAddresses& own,
                 std::span<const NeighbourAnswer> neighbours);

}  // namespace dutperf::net
