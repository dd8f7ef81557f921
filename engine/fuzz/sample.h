// Who the tester is in this folder: the addresses it answers for, the trial and stream it expects.
#pragma once

#include "net/neighbour.h"

namespace dutperf::fuzz {

inline constexpr uint16_t kTrial = 7;
inline constexpr uint8_t kStream = 1;

inline net::OwnAddresses own_addresses() {
  const auto range = [](const char* first, uint32_t count, uint32_t shift) {
    return net::AddressRange{*net::IpAddress::parse(first), count, shift};
  };
  return {*net::Mac::parse("02:00:00:00:00:fe"),
          {range("198.19.0.2", 1, 0), range("198.19.1.0", 100, 0), range("198.19.0.1", 256, 8),
           range("2001:2:0:8000::2", 1, 0), range("2001:2:0:8001::1", 16, 64)}};
}

}  // namespace dutperf::fuzz
