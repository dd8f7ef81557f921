#include "dpdk/floor.h"

#include "dpdk/pool.h"

namespace dutperf::dpdk {

Floor::Floor(const Port& port, bool contiguous)
    : queue_(port.tx()),
      pool_(create_pool(contiguous ? "floor_contiguous" : "floor", 8191, 2048, contiguous,
                        port.numa_node())) {}

Floor::~Floor() { rte_mempool_free(pool_); }

void Floor::send(uint64_t bursts) noexcept {
  constexpr unsigned kBurst = 32;
  Mbuf* mbufs[kBurst];
  for (uint64_t i = 0; i < bursts; ++i) {
    if (rte_pktmbuf_alloc_bulk(pool_, mbufs, kBurst) != 0) continue;
    for (unsigned k = 0; k < kBurst; ++k) {
      mbufs[k]->data_len = 60;
      mbufs[k]->pkt_len = 60;
    }
    const uint32_t sent = queue_.send(mbufs, kBurst);
    if (sent < kBurst) free_frames(mbufs + sent, kBurst - sent);
  }
}

}  // namespace dutperf::dpdk
