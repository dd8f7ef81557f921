// What a device may do to a test frame without damaging it: all checksums hold afterwards. Only who
// looks at the frame wholly notices (net/inspection.h).
#pragma once

#include <cstdint>
#include <optional>

#include "net/classify.h"

namespace dutperf::refdut {

struct Alteration {
  std::optional<uint8_t> hops;  // by how much TTL or hop limit falls in all, down to 1 at the least
  std::optional<uint8_t> dscp;
  bool exchanges = false;  // the payload's first two words; the UDP checksum is that of their sum

  bool any() const { return hops || dscp || exchanges; }
};

// `hops_taken`: by how much it has fallen already. REQUIRES: `classified` came from
// classify(frame, ...) with kind kTest, and the checksums hold.
void alter(const Alteration& alteration, uint8_t hops_taken, uint8_t* frame,
           const net::Classified& classified);

}  // namespace dutperf::refdut
