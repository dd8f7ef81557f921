// The device as a router for its two neighbours: it answers ARP, neighbour discovery and SNMP for
// its own addresses, and forwards what is addressed to it by MAC with one hop less and new MACs.
//
// The one neighbour on each side is the tester: its MAC is that of the last frame from there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "agent.h"
#include "behaviour.h"
#include "net/neighbour.h"

namespace dutperf::refdut {

class Router {
 public:
  Router(const Routing& routing, const std::array<net::Mac, 2>& macs);

  // What to do with a frame that came in on `side`.
  enum class Verdict : uint8_t {
    kForward,  // to the other side; rewritten in place
    kReply,    // `reply` goes back to where the frame came from
    kDrop,
  };

  Verdict handle(size_t side, uint8_t* frame, size_t size);

  Agent& agent() { return agent_; }

  const uint8_t* reply() const { return reply_.data(); }
  size_t reply_bytes() const { return reply_bytes_; }

  // With more it does not answer.
  static constexpr size_t kMostReplyBytes = 512;

 private:
  // None when it is not for the agent.
  std::optional<Verdict> ask_agent(size_t side, const uint8_t* frame, size_t size);
  bool forward(size_t to, uint8_t* frame, size_t size) const;

  std::array<net::OwnAddresses, 2> own_;
  std::array<std::optional<net::Mac>, 2> neighbours_;
  Agent agent_;
  std::array<uint8_t, kMostReplyBytes> reply_{};
  size_t reply_bytes_ = 0;
};

// One hop less in an IPv4 or IPv6 packet, checksum corrected (RFC 1624); false when none is left.
bool take_hop(uint16_t ether_type, uint8_t* ip);

}  // namespace dutperf::refdut
