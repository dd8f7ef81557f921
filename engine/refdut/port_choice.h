// Which of a side's ports a packet leaves by: that with the address nearest to its destination.
//
// Of two addresses that one is nearer which has the destination's bit where the two first differ.
// So the longest common prefix wins, and bits in which the ports do not differ have no say: a
// destination may vary in them, be they before or behind those that tell the ports apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/address.h"

namespace dutperf::refdut {

class PortChoice {
 public:
  PortChoice() = default;
  // The ports' own addresses, by number; no address is on two ports.
  explicit PortChoice(std::span<const std::vector<net::IpAddress>> own);

  // The port's number; 0 where none has an address of that version.
  // REQUIRES: `ip` is a whole header of IPv4 or IPv6.
  uint8_t number_for(uint16_t ether_type, const uint8_t* ip) const;

 private:
  struct Key {
    uint64_t high = 0;
    uint64_t low = 0;  // of an IPv6 address
  };
  struct Candidate {
    Key address;
    uint8_t number;
  };
  static Key key_of(int version, const uint8_t* address);

  std::vector<Candidate> ipv4_;
  std::vector<Candidate> ipv6_;
};

}  // namespace dutperf::refdut
