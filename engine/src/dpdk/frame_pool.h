// Prefilled transmit buffers.
//
// Every buffer of the pool holds the same frame template, written once; per frame only varying
// bytes change. A buffer comes out of the pool only after the port has freed it, so a frame that
// may still be queued is never rewritten. Buffers that were queued while the template changed carry
// an old generation and are rewritten when they come back (see `get`).
//
// Thread safety: `refresh` and `get` are for the one worker that sends from the pool.
#pragma once

#include <rte_branch_prediction.h>
#include <rte_mempool.h>

#include <cstdint>
#include <string>
#include <vector>

#include "dpdk/mbuf.h"

namespace dutperf::dpdk {

class FramePool {
 public:
  // Throws SetupError when the memory is not there.
  FramePool(const std::string& name, uint32_t frames, uint32_t max_frame_bytes, bool contiguous,
            int numa_node);
  ~FramePool();
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  // From now on buffers hold `bytes`, which leave by port `number` of the side. Rewrites those that
  // are free now; does nothing when nothing has changed. REQUIRES: bytes.size() <= max_frame_bytes.
  void refresh(const std::vector<uint8_t>& bytes, uint16_t number = 0);

  // All or nothing: `count` buffers that hold the template (possibly patched by an earlier use).
  bool get(Mbuf** mbufs, uint32_t count) {
    if (unlikely(rte_mempool_get_bulk(pool_, reinterpret_cast<void**>(mbufs), count) != 0)) {
      return false;
    }
    for (uint32_t i = 0; some_are_stale_ && i < count; ++i) {
      if (unlikely(generation_of(mbufs[i]) != generation_)) write_template(mbufs[i]);
    }
    return true;
  }

 private:
  // The packet type is a receive field; on our own transmit-only pool it is free for use.
  static uint32_t& generation_of(Mbuf* mbuf) { return mbuf->packet_type; }
  void write_template(Mbuf* mbuf);

  rte_mempool* pool_;
  uint32_t frames_;
  uint32_t generation_ = 0;
  bool some_are_stale_ = false;  // buffers that were queued at the last refresh
  std::vector<uint8_t> template_;
  uint16_t number_ = 0;
};

}  // namespace dutperf::dpdk
