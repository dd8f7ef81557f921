// What DPDK itself needs to send a frame: allocate, hand over, free. Nothing is written. The bench
// compares every mode of ours to it, in the same run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dpdk/port.h"

namespace dutperf::dpdk {

class Floor {
 public:
  // Throws SetupError.
  // `contiguous` as in create_pool; false is what DPDK's own rte_pktmbuf_pool_create makes.
  Floor(const Port& port, bool contiguous);
  ~Floor();
  Floor(const Floor&) = delete;
  Floor& operator=(const Floor&) = delete;

  // Allocates and sends `bursts` bursts of 32 frames.
  void send(uint64_t bursts) noexcept;

 private:
  TxQueue queue_;
  rte_mempool* pool_;
};

}  // namespace dutperf::dpdk
