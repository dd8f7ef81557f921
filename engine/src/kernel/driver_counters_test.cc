#include "kernel/driver_counters.h"

#include <gtest/gtest.h>

#include <vector>

namespace dutperf::kernel {
namespace {

class IsDrop : public ::testing::TestWithParam<const char*> {};
class IsNoDrop : public ::testing::TestWithParam<const char*> {};

TEST_P(IsDrop, Counts) { EXPECT_TRUE(is_receive_drop(GetParam())); }
TEST_P(IsNoDrop, Counts) { EXPECT_FALSE(is_receive_drop(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Each, IsDrop,
                         ::testing::Values("rx_missed_errors", "rx_no_buffer_count",  // e1000e
                                           "rx_fifo_errors", "rx_no_dma_resources",   // ixgbe
                                           "port.rx_dropped", "rx-3.rx_alloc_fail",   // i40e, ice
                                           "rx_out_of_buffer", "rx_discards_phy",     // mlx5
                                           "rx0_xdp_drops", "rx_queue_0_drops",      // virtio, veth
                                           "[0]: rx_discards", "rx_buff_alloc_err",  // bnxt, mlx5
                                           "RxMissed", "rx_overruns", "xdp_drop"));

INSTANTIATE_TEST_SUITE_P(Each, IsNoDrop,
                         ::testing::Values("tx_dropped", "tx_fifo_errors", "rx0_xdp_tx_drops",
                                           "rx_packets", "rx_crc_errors", "rx_length_errors",
                                           "rx_align_errors", "rx_steer_missed_packets",
                                           "rx_oversize_pkts_sw_drop", "fdir_miss",
                                           "rx_hwtstamp_cleared", "rx_otherhost_dropped",
                                           "rx_flow_control_xoff", "dropped_smbus", ""));

TEST(ReceiveDrops, AreThoseOfADriversCountersThatAreSo) {
  // As the kernel gives them: fields of 32 bytes, the longest name without an end.
  std::string names;
  for (const char* name : {"rx_packets", "rx_missed_errors", "rx_dropped_for_want_of_a_buffer"}) {
    std::string field = name;
    field.resize(32);
    names += field;
  }
  names += "rx_dropped_with_a_name_of_32_let";
  const std::vector<uint64_t> values = {1, 2, uint64_t{1} << 40, 4};
  EXPECT_EQ(receive_drops(names, values),
            (std::map<std::string, uint64_t>{{"rx_missed_errors", 2},
                                             {"rx_dropped_for_want_of_a_buffer", uint64_t{1} << 40},
                                             {"rx_dropped_with_a_name_of_32_let", 4}}));
  EXPECT_TRUE(receive_drops({}, values).empty());
  EXPECT_TRUE(receive_drops(names, {}).empty());
}

TEST(ReceiveDrops, AreNoneOfAnInterfaceWithoutADriversCounters) {
  EXPECT_TRUE(read_driver("lo").empty());
  EXPECT_TRUE(read_driver("no such interface").empty());
}

}  // namespace
}  // namespace dutperf::kernel
