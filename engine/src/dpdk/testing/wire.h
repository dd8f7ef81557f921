// The far ends of ring ports, for tests that are the wire and the NICs; and the fields of times.
#pragma once

#include <gtest/gtest.h>
#include <rte_ring.h>

#include "dpdk/frame_times.h"
#include "dpdk/mbuf.h"

namespace dutperf::dpdk::testing {

// What a port sent.
inline uint32_t take_from(rte_ring* ring, Mbuf** mbufs, uint32_t limit) {
  return rte_ring_sc_dequeue_burst(ring, reinterpret_cast<void**>(mbufs), limit, nullptr);
}
inline bool is_empty(const rte_ring* ring) { return rte_ring_empty(ring) != 0; }
// What a port is to receive; false: there is no room.
inline bool put_into(rte_ring* ring, Mbuf* mbuf) { return rte_ring_sp_enqueue(ring, mbuf) == 0; }

inline TimeField came_field() {
  TimeField field;
  EXPECT_EQ(rte_mbuf_dyn_rx_timestamp_register(&field.offset, &field.flag), 0);
  return field;
}
inline TimeField due_field() {
  TimeField field;
  EXPECT_EQ(rte_mbuf_dyn_tx_timestamp_register(&field.offset, &field.flag), 0);
  return field;
}

}  // namespace dutperf::dpdk::testing
