// The device's management: an SNMP agent (RFC 1157; version 2c asks the same way) for the variables
// of RFC 2544 C.2.4.3. What it tells is known: answer number n, from 1, says that the device has
// run for n seconds and that all counters are n. So is which queries it leaves unanswered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "behaviour.h"
#include "net/headers.h"
#include "net/neighbour.h"

namespace dutperf::refdut {

class Agent {
 public:
  static constexpr uint16_t kPort = 161;

  // What costs a forwarded frame little: whether a plain packet could be for the port.
  static bool may_be_query(const uint8_t* frame, size_t size) {
    constexpr size_t kIpv4 = sizeof(net::EthernetHeader) + sizeof(net::Ipv4Header);
    constexpr size_t kIpv6 = sizeof(net::EthernetHeader) + sizeof(net::Ipv6Header);
    if (size < kIpv4 + sizeof(net::UdpHeader)) return false;
    const bool is_ipv6 = frame[sizeof(net::EthernetHeader)] >> 4 == 6;
    const size_t udp = is_ipv6 ? kIpv6 : kIpv4;
    if (size < udp + sizeof(net::UdpHeader)) return false;
    return reinterpret_cast<const net::UdpHeader*>(frame + udp)->dst_port == kPort;
  }

  // From the next query on, which is the first.
  void behave(const AgentBehaviour& behaviour) {
    behaviour_ = behaviour;
    queries_ = 0;
  }

  // The frame that answers `frame`, without FCS; empty when it is to have no answer; none when that
  // is no query to one of `own` addresses, or not of the community "public".
  std::optional<std::vector<uint8_t>> answer(const uint8_t* frame, size_t size,
                                             const net::OwnAddresses& own);

  // How many queries it has had: {"answered": 2, "unanswered": 1}.
  Json report() const { return {{"answered", answers_}, {"unanswered", unanswered_}}; }

 private:
  std::optional<std::vector<uint8_t>> answer_to(std::span<const uint8_t> message);

  AgentBehaviour behaviour_;
  uint64_t queries_ = 0;  // since it was told how to behave
  uint32_t answers_ = 0;
  uint64_t unanswered_ = 0;
};

}  // namespace dutperf::refdut
