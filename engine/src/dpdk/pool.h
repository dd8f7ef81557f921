// Packet buffer pools. Throws SetupError when the memory is not there.
#pragma once

#include <rte_mempool.h>

#include <cstdint>
#include <string>

namespace dutperf::dpdk {

// A pool of `buffers` packet buffers with room for `frame_bytes` (beside the headroom).
//
// `contiguous`: the buffers follow each other without gaps. By default DPDK leaves a gap where a
// buffer would cross a page, which only devices that read memory by bus address need. Without huge
// pages that is one buffer a page: the same bytes of all buffers then compete for the same few
// cache lines. And AF_XDP's driver counts on buffers without gaps: it registers their number times
// their size, and what lies beyond is lost in silence.
rte_mempool* create_pool(const std::string& name, uint32_t buffers, uint32_t frame_bytes,
                         bool contiguous, int numa_node);

}  // namespace dutperf::dpdk
