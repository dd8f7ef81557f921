// Where frames wait: buffers of the device's own, so that the ports never run out of theirs.
#pragma once

#include <cstdint>

#include "dpdk/mbuf.h"

struct rte_mempool;

namespace dutperf::refdut {

class HoldPool {
 public:
  // Throws dpdk::SetupError.
  HoldPool(uint32_t frames, uint32_t frame_bytes);
  ~HoldPool();
  HoldPool(const HoldPool&) = delete;
  HoldPool& operator=(const HoldPool&) = delete;

  static uint32_t memory_mb(uint32_t frames, uint32_t frame_bytes);

  // A buffer without content; null when all are taken.
  dpdk::Mbuf* blank();
  // A copy; `mbuf` is freed. Null when all buffers are taken.
  dpdk::Mbuf* keep(dpdk::Mbuf* mbuf);

 private:
  rte_mempool* pool_;
};

}  // namespace dutperf::refdut
