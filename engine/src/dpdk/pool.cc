#include "dpdk/pool.h"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>

#include <algorithm>

#include "dpdk/error.h"

namespace dutperf::dpdk {
namespace {

// Free buffers that a thread keeps to itself. A small share of the pool: what the receiving thread
// of a ring port keeps is missing to the sender.
unsigned cache_size(uint32_t buffers) { return std::min(256U, buffers / 8); }

[[noreturn]] void refuse(const std::string& name, uint32_t buffers, uint32_t frame_bytes,
                         int error) {
  throw SetupError("no memory for " + name + " buffers, " +
                       std::to_string((uint64_t{buffers} * frame_bytes) >> 20) +
                       " MiB: " + rte_strerror(error < 0 ? -error : error),
                   "raise memory_mb in the testbed, or lower the port's mtu");
}

}  // namespace

rte_mempool* create_pool(const std::string& name, uint32_t buffers, uint32_t frame_bytes,
                         bool contiguous, int numa_node) {
  const uint32_t room = frame_bytes + RTE_PKTMBUF_HEADROOM;
  rte_mempool* pool = rte_mempool_create_empty(
      name.c_str(), buffers, static_cast<unsigned>(sizeof(rte_mbuf)) + room, cache_size(buffers),
      sizeof(rte_pktmbuf_pool_private), numa_node, contiguous ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0);
  if (pool == nullptr) refuse(name, buffers, frame_bytes, rte_errno);
  rte_pktmbuf_pool_private layout{};
  layout.mbuf_data_room_size = static_cast<uint16_t>(room);
  rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), nullptr);
  rte_pktmbuf_pool_init(pool, &layout);
  const int populated = rte_mempool_populate_default(pool);
  if (populated < 0) {
    rte_mempool_free(pool);
    refuse(name, buffers, frame_bytes, populated);
  }
  rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  return pool;
}

}  // namespace dutperf::dpdk
