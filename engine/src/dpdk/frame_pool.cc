#include "dpdk/frame_pool.h"

#include <cstring>

#include "dpdk/pool.h"

namespace dutperf::dpdk {
FramePool::FramePool(const std::string& name, uint32_t frames, uint32_t max_frame_bytes,
                     bool contiguous, int numa_node)
    : pool_(create_pool(name, frames, max_frame_bytes, contiguous, numa_node)), frames_(frames) {}

FramePool::~FramePool() { rte_mempool_free(pool_); }

void FramePool::refresh(const std::vector<uint8_t>& bytes, uint16_t number) {
  if (bytes == template_ && number == number_) return;
  template_ = bytes;
  number_ = number;
  ++generation_;
  std::vector<Mbuf*> free;
  free.reserve(frames_);
  Mbuf* mbuf = nullptr;
  while (rte_mempool_get(pool_, reinterpret_cast<void**>(&mbuf)) == 0) {
    write_template(mbuf);
    free.push_back(mbuf);
  }
  some_are_stale_ = free.size() < frames_;
  if (!free.empty()) {
    rte_mempool_put_bulk(pool_, reinterpret_cast<void**>(free.data()),
                         static_cast<unsigned>(free.size()));
  }
}

void FramePool::write_template(Mbuf* mbuf) {
  rte_pktmbuf_reset(mbuf);
  std::memcpy(frame_of(mbuf), template_.data(), template_.size());
  set_size(mbuf, template_.size());
  set_leaves_by(mbuf, number_);
  generation_of(mbuf) = generation_;
}

}  // namespace dutperf::dpdk
