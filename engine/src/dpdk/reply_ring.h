// Hands frames that no schedule knows from thread to thread. To the worker that sends on a port:
// replies to neighbours from the worker that receives on it, announcements from the control thread.
// To the control thread: what no worker has a use for. One consumer, no lock; what does not fit is
// dropped (who asked asks again).
#pragma once

#include <rte_ring.h>

#include <cstdint>
#include <string>

#include "dpdk/error.h"
#include "dpdk/mbuf.h"

namespace dutperf::dpdk {

class ReplyRing {
 public:
  explicit ReplyRing(const std::string& name, unsigned frames = 1024)
      : ring_(rte_ring_create(name.c_str(), frames, SOCKET_ID_ANY, RING_F_SC_DEQ)) {
    if (ring_ == nullptr) throw SetupError("no memory for " + name, "raise memory_mb");
  }
  ~ReplyRing() { rte_ring_free(ring_); }
  ReplyRing(const ReplyRing&) = delete;
  ReplyRing& operator=(const ReplyRing&) = delete;

  // Takes ownership when it returns true.
  bool put(Mbuf* reply) { return rte_ring_mp_enqueue(ring_, reply) == 0; }

  uint32_t take(Mbuf** replies, uint32_t limit) {
    if (rte_ring_empty(ring_) != 0) [[likely]]
      return 0;  // senders ask at each step
    return rte_ring_sc_dequeue_burst(ring_, reinterpret_cast<void**>(replies), limit, nullptr);
  }

  // Drops what nobody has taken.
  void clear() {
    Mbuf* replies[32];
    while (const uint32_t count = take(replies, 32)) free_frames(replies, count);
  }

 private:
  rte_ring* ring_;
};

}  // namespace dutperf::dpdk
