// The device as a router for its two neighbours: it answers ARP, neighbour discovery and SNMP for
// its own addresses, and forwards what is addressed to it by MAC with one hop less and new MACs.
//
// The one neighbour at each port is the tester: its MAC is that of the last frame from there. Of
// several ports on the other side a packet's destination chooses (port_choice.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "agent.h"
#include "behaviour.h"
#include "nat_settings.h"
#include "net/neighbour.h"
#include "port_choice.h"
#include "ports.h"
#include "translation.h"

namespace dutperf::refdut {

class Router {
 public:
  // `macs`: of its ports, as many as have addresses.
  Router(const Routing& routing, std::span<const net::Mac> macs);

  // What to do with a frame that came in by `port`; ports by port_index().
  enum class Verdict : uint8_t {
    kForward,  // to the other side, by port `leaves_by`; rewritten in place
    kReply,    // `reply` goes back to where the frame came from
    kDrop,
  };

  Verdict handle(size_t port, uint8_t* frame, size_t size);

  // Makes `reply` the one to whose packet, in `frame`, a gateway makes no connection; false: there
  // is none. REQUIRES: the frame came in by `port`, and was to be forwarded.
  bool refuse(size_t port, Refusal refusal, const Flow& flow, const uint8_t* frame);

  // The port's number on its side.
  uint8_t leaves_by() const { return leaves_by_; }

  Agent& agent() { return agent_; }

  const uint8_t* reply() const { return reply_.data(); }
  size_t reply_bytes() const { return reply_bytes_; }

  // With more it does not answer.
  static constexpr size_t kMostReplyBytes = 512;

 private:
  // None when it is not for the agent.
  std::optional<Verdict> ask_agent(size_t port, const uint8_t* frame, size_t size);
  bool forward(size_t side, uint8_t* frame, size_t size);

  std::array<net::OwnAddresses, 2 * kMostPairs> own_;
  std::array<std::optional<net::Mac>, 2 * kMostPairs> neighbours_;
  bool several_;                       // ports on each side
  std::array<PortChoice, 2> choices_;  // by the side where frames leave
  uint8_t leaves_by_ = 0;
  Agent agent_;
  std::array<uint8_t, kMostReplyBytes> reply_{};
  size_t reply_bytes_ = 0;
};

// One hop less in an IPv4 or IPv6 packet, checksum corrected (RFC 1624); false when none is left.
bool take_hop(uint16_t ether_type, uint8_t* ip);

}  // namespace dutperf::refdut
