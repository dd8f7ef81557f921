#include "hold_pool.h"

#include <cstring>

#include "dpdk/pool.h"

namespace dutperf::refdut {

HoldPool::HoldPool(uint32_t frames, uint32_t frame_bytes)
    : pool_(dpdk::create_pool("held", frames, frame_bytes, true, SOCKET_ID_ANY)) {}

HoldPool::~HoldPool() { rte_mempool_free(pool_); }

uint32_t HoldPool::memory_mb(uint32_t frames, uint32_t frame_bytes) {
  constexpr uint32_t kPerBuffer = sizeof(dpdk::Mbuf) + RTE_PKTMBUF_HEADROOM + 128;
  return static_cast<uint32_t>((uint64_t{frames} * (frame_bytes + kPerBuffer)) >> 20) + 1;
}

dpdk::Mbuf* HoldPool::blank() { return rte_pktmbuf_alloc(pool_); }

dpdk::Mbuf* HoldPool::keep(dpdk::Mbuf* mbuf) {
  dpdk::Mbuf* copy = blank();
  if (copy != nullptr) {
    std::memcpy(dpdk::frame_of(copy), dpdk::frame_of(mbuf), dpdk::size_of(mbuf));
    dpdk::set_size(copy, dpdk::size_of(mbuf));
  }
  dpdk::free_frame(mbuf);
  return copy;
}

}  // namespace dutperf::refdut
