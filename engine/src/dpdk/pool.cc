#include "dpdk/pool.h"

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memory.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>

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

// What the pools below have taken of the memory for frames.
std::atomic<uint64_t> joined_bytes = 0;

void unmap(rte_mempool_memhdr* chunk, void* /*unused*/) {
  munmap(chunk->addr, chunk->len);
  joined_bytes -= chunk->len;
}

// Whole huge pages, where they do not take much more than what is needed: 64 streams have 64 pools.
size_t mapping_bytes(size_t needed) {
  constexpr size_t kPage = 4 << 10;
  constexpr size_t kHugePage = 2 << 20;
  const size_t whole = RTE_ALIGN_CEIL(needed, kHugePage);
  return whole - needed <= needed / 8 ? whole : RTE_ALIGN_CEIL(needed, kPage);
}

// Where no huge pages are reserved the kernel may still join the pages of a range that asks for it,
// but not those of DPDK's own memory, a shared file: tens of thousands of page faults when a port
// opens, and as many pages to give back when it closes.
int populate_joined_pages(rte_mempool* pool) {
  size_t chunk = 0;
  size_t align = 0;
  const ssize_t needed = rte_mempool_op_calc_mem_size_default(pool, pool->size, 0, &chunk, &align);
  if (needed < 0) return static_cast<int>(needed);
  const size_t bytes = mapping_bytes(static_cast<size_t>(needed));
  if (joined_bytes + bytes > rte_eal_get_physmem_size()) return -ENOMEM;
  void* const mapped =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return -ENOMEM;
  madvise(mapped, bytes, MADV_HUGEPAGE);
  joined_bytes += bytes;
  const int populated =
      rte_mempool_populate_virt(pool, static_cast<char*>(mapped), bytes, bytes, unmap, nullptr);
  if (populated > 0) return populated;
  munmap(mapped, bytes);
  joined_bytes -= bytes;
  return populated < 0 ? populated : -ENOMEM;
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
  const bool joined = contiguous && rte_eal_has_hugepages() == 0;
  const int populated = joined ? populate_joined_pages(pool) : rte_mempool_populate_default(pool);
  if (populated < 0) {
    rte_mempool_free(pool);
    refuse(name, buffers, frame_bytes, populated);
  }
  rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  return pool;
}

}  // namespace dutperf::dpdk
