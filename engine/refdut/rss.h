// Receive side scaling: which of a NIC's receive queues takes a frame, and with it which CPU.
//
// The Toeplitz hash of the frame's addresses, or of addresses and ports, with the key that
// Microsoft published with its verification suite and many NICs are delivered with; the low seven
// bits choose an entry of a table of 128, which is filled with the queues in turn, as Linux's
// drivers fill it. All frames of a four-tuple go to one queue.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "behaviour.h"

namespace dutperf::refdut {

class Rss {
 public:
  static constexpr uint32_t kTableEntries = 128;

  Rss(RssFields fields, uint32_t queues);

  // REQUIRES: a whole IPv4 packet without options, or IPv6 one without extension headers, and UDP.
  uint32_t queue_of(const uint8_t* frame, int ip_version) const {
    return hash(frame, ip_version) % kTableEntries % queues_;
  }
  uint32_t hash(const uint8_t* frame, int ip_version) const;

 private:
  static constexpr size_t kMaxBytes = 2 * 16 + 2 * 2;
  using Contributions = std::array<uint32_t, 256>;

  uint32_t queues_;
  size_t port_bytes_;
  std::vector<Contributions> of_byte_;  // of each value of each byte of the input
};

}  // namespace dutperf::refdut
