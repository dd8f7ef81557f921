// Whose a frame is follows from its number, by which queue it comes from the device. So the
// receiver that takes it from the port and finds that it is another share's hands over what is to
// be recorded of it: counts do not depend on how the device, or the NIC, spreads frames to queues.
//
// A ring from each share to each other one, for one direction.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dpdk/record_ring.h"

namespace dutperf::dataplane {

// A frame that was received, is whole, and has its place in the stream.
struct HandedOver {
  uint64_t number_and_queue;  // in its share; the queue by which it came, 16 bits
  uint64_t sent_ns;           // as stamped
  uint64_t drained_tsc;       // see Receiver: it came between these two
  uint64_t received_tsc;

  uint64_t number() const { return number_and_queue >> 16; }
  uint64_t queue() const { return number_and_queue & 0xffff; }
};

class HandOver {
 public:
  using Ring = dpdk::RecordRing<HandedOver>;
  // A receiver that is away for some milliseconds is waited for.
  static constexpr unsigned kRecords = 1 << 13;

  explicit HandOver(uint64_t shares) : shares_(shares), rings_(shares * shares) {
    for (uint64_t from = 0; from < shares; ++from) {
      for (uint64_t to = 0; to < shares; ++to) {
        if (from != to) rings_[from * shares + to] = std::make_unique<Ring>(kRecords);
      }
    }
  }

  uint64_t shares() const { return shares_; }
  // REQUIRES: two shares, not the same.
  Ring& ring(uint64_t from, uint64_t to) const { return *rings_[from * shares_ + to]; }

  // Before a trial.
  void clear() {
    for (const auto& ring : rings_) {
      if (ring) ring->clear();
    }
  }

 private:
  uint64_t shares_;
  std::vector<std::unique_ptr<Ring>> rings_;
};

}  // namespace dutperf::dataplane
