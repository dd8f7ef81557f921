#include "dpdk/frame_pool.h"

#include <rte_errno.h>

#include <cstring>

#include "dpdk/error.h"

namespace dutperf::dpdk {
namespace {

constexpr unsigned kCacheFrames = 256;

}  // namespace

FramePool::FramePool(const std::string& name, uint32_t frames, uint32_t max_frame_bytes,
                     int numa_node)
    : pool_(rte_pktmbuf_pool_create(name.c_str(), frames, kCacheFrames, 0,
                                    static_cast<uint16_t>(max_frame_bytes + RTE_PKTMBUF_HEADROOM),
                                    numa_node)),
      frames_(frames) {
  if (pool_ == nullptr) {
    throw SetupError(
        "no memory for " + std::to_string(frames) + " transmit buffers: " + rte_strerror(rte_errno),
        "raise memory_mb in the testbed");
  }
}

FramePool::~FramePool() { rte_mempool_free(pool_); }

void FramePool::refresh(const std::vector<uint8_t>& bytes) {
  if (bytes == template_) return;
  template_ = bytes;
  ++generation_;
  std::vector<Mbuf*> free;
  free.reserve(frames_);
  Mbuf* mbuf = nullptr;
  while (rte_mempool_get(pool_, reinterpret_cast<void**>(&mbuf)) == 0) {
    write_template(mbuf);
    free.push_back(mbuf);
  }
  if (!free.empty()) {
    rte_mempool_put_bulk(pool_, reinterpret_cast<void**>(free.data()),
                         static_cast<unsigned>(free.size()));
  }
}

void FramePool::write_template(Mbuf* mbuf) {
  rte_pktmbuf_reset(mbuf);
  std::memcpy(frame_of(mbuf), template_.data(), template_.size());
  set_size(mbuf, template_.size());
  generation_of(mbuf) = generation_;
}

}  // namespace dutperf::dpdk
