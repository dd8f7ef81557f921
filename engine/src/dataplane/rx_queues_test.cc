// Several receive queues of a port, with a vector driver of the test's.
#include <gtest/gtest.h>

#include <algorithm>

#include "dataplane/receiver.h"
#include "dataplane/trial_run.h"
#include "dpdk/port.h"
#include "dpdk/testing/memory.h"

namespace dutperf::dataplane {
namespace {

struct VectorQueue {
  rte_mempool* pool;
  uint32_t waiting;
};

// Takes eight at once, or none, as the drivers of Intel's NICs by AVX2.
uint16_t receive_in_eights(void* queue, rte_mbuf** mbufs, uint16_t limit) {
  auto& own = *static_cast<VectorQueue*>(queue);
  const uint32_t count = std::min<uint32_t>(limit / 8 * 8, own.waiting);
  if (rte_pktmbuf_alloc_bulk(own.pool, mbufs, count) != 0) return 0;
  for (uint32_t i = 0; i < count; ++i) {
    std::fill_n(dpdk::frame_of(mbufs[i]), 60, uint8_t{0});  // foreign
    dpdk::set_size(mbufs[i], 60);
  }
  own.waiting -= count;
  return static_cast<uint16_t>(count);
}

dpdk::PortOptions options() {
  dpdk::PortOptions found;
  found.name = "queues";
  found.rx_descriptors = found.tx_descriptors = 1024;
  return found;
}

TEST(RxQueues, NoneStarvesWhateverAnotherHolds) {
  dpdk::testing::memory();
  const dpdk::Port port(options(), nullptr);
  SideResources side({&port}, 1518);
  rte_mempool* const pool = rte_pktmbuf_pool_create("queues", 1023, 0, 0, 2048, SOCKET_ID_ANY);
  VectorQueue flooded{pool, 1'000'000};
  VectorQueue quiet{pool, 100};
  struct rte_eth_fp_ops& driver = ::rte_eth_fp_ops[port.rx().port];
  const struct rte_eth_fp_ops before = driver;
  void* queues[] = {&flooded, &quiet};
  driver.rx_pkt_burst = receive_in_eights;
  driver.rxq.data = queues;
  std::vector<ReceivingPort> receiving = side.receiving({});
  receiving[0].queues.end = 2;
  const timing::TscClock clock(1'000'000'000);
  const TrialSpec spec;
  Receiver receiver(spec, Side::kRight, {}, receiving, side.recorders(0), side.hand_over(1), clock,
                    {});
  receiver.start(0);
  receiver.step();
  EXPECT_EQ(quiet.waiting, 0U);
  receiver.step();
  EXPECT_EQ(receiver.arrivals(0).foreign, 100 + 1'000'000 - flooded.waiting);
  driver = before;
  rte_mempool_free(pool);
}

}  // namespace
}  // namespace dutperf::dataplane
