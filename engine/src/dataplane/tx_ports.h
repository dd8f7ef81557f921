// The transmit queues of a side's ports, as one. One port, the common case, is decided once a
// burst; of several each frame says itself by which it leaves (dpdk/mbuf.h).
//
// `Queue` is a port's transmit queue; tests have one of their own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "dpdk/mbuf.h"
#include "vary/lanes.h"

namespace dutperf::dataplane {

template <typename Queue = dpdk::TxQueue>
class TxPorts {
 public:
  // By their numbers; at least one.
  explicit TxPorts(std::vector<Queue> queues) : queues_(std::move(queues)), first_(queues_[0]) {}

  // Hands up to `count` frames to the ports, which then own them; returns how many they took. Those
  // that they did not take are the last ones of `mbufs` then, and of one port still in order.
  // REQUIRES: count <= vary::kMaxBurst.
  uint32_t send(dpdk::Mbuf** mbufs, uint32_t count) const noexcept {
    return queues_.size() == 1 ? first_.send(mbufs, count) : send_by_several(mbufs, count);
  }

  // Whether the last `send` found a port without room, though it took frames.
  bool had_no_room() const noexcept {
    if (queues_.size() == 1) return first_.had_no_room();
    bool result = false;
    for (const Queue& queue : queues_) result |= queue.had_no_room();
    return result;
  }

  // What the ports do with frames for which there is no room: all of them the same.
  dpdk::WhenFull when_full() const { return first_.when_full; }

 private:
  [[gnu::noinline]] uint32_t send_by_several(dpdk::Mbuf** mbufs, uint32_t count) const noexcept {
    std::array<dpdk::Mbuf*, vary::kMaxBurst> left;
    uint32_t left_count = 0;
    for (size_t number = 0; number < queues_.size(); ++number) {
      std::array<dpdk::Mbuf*, vary::kMaxBurst> own;
      uint32_t own_count = 0;
      for (uint32_t i = 0; i < count; ++i) {
        if (dpdk::leaves_by(mbufs[i]) == number) own[own_count++] = mbufs[i];
      }
      if (own_count == 0) continue;
      const uint32_t taken = queues_[number].send(own.data(), own_count);
      for (uint32_t i = taken; i < own_count; ++i) left[left_count++] = own[i];
    }
    std::copy_n(left.begin(), left_count, mbufs + (count - left_count));
    return count - left_count;
  }

  std::vector<Queue> queues_;
  Queue first_;
};

}  // namespace dutperf::dataplane
