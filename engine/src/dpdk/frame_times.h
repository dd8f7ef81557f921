// Times of frames by the clock of a NIC: when one came, and when one is to leave.
//
// DPDK keeps them in fields of a buffer that a port must be asked for: the time at which a frame
// came (RTE_ETH_RX_OFFLOAD_TIMESTAMP), and that at which it is to be sent
// (RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP), both in ticks of what rte_eth_read_clock reads.
#pragma once

#include <rte_mbuf_dyn.h>

#include <cstdint>
#include <optional>

#include "dpdk/mbuf.h"

namespace dutperf::dpdk {

// Where the time stands in a buffer, and the flag that says so.
struct TimeField {
  int offset = 0;
  uint64_t flag = 0;

  std::optional<uint64_t> ticks_in(const Mbuf* mbuf) const {
    if ((mbuf->ol_flags & flag) == 0) return std::nullopt;
    return *RTE_MBUF_DYNFIELD(mbuf, offset, const uint64_t*);
  }
  void put(Mbuf* mbuf, uint64_t ticks) const {
    *RTE_MBUF_DYNFIELD(mbuf, offset, uint64_t*) = ticks;
    mbuf->ol_flags |= flag;
  }
};

}  // namespace dutperf::dpdk
