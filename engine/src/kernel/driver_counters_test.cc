#include "kernel/driver_counters.h"

#include <gtest/gtest.h>

#include <vector>

namespace dutperf::kernel {
namespace {

class IsDrop : public ::testing::TestWithParam<const char*> {};
class IsPause : public ::testing::TestWithParam<const char*> {};
class IsNoPause : public ::testing::TestWithParam<const char*> {};
class IsNoDrop : public ::testing::TestWithParam<const char*> {};

TEST_P(IsDrop, Counts) { EXPECT_TRUE(is_receive_drop(GetParam())); }
TEST_P(IsPause, Counts) { EXPECT_TRUE(is_pause_counter(GetParam())); }
TEST_P(IsNoPause, Counts) { EXPECT_FALSE(is_pause_counter(GetParam())); }
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

// By DPDK's drivers and by the kernel's.
INSTANTIATE_TEST_SUITE_P(Each, IsPause,
                         ::testing::Values("rx_xon_packets", "tx_xoff_packets",  // ixgbe, i40e, ice
                                           "rx_priority3_xoff_packets", "rx_flow_control_xoff",
                                           "port.link_xon_rx", "rx_pause_frames",
                                           "rx_pfc_frames",                        // bnxt
                                           "rx_pause_ctrl_phy", "tx_prio7_pause",  // mlx5
                                           "mac.RxPauseMacCtrlFrames", "tx_pause"));

INSTANTIATE_TEST_SUITE_P(Each, IsNoPause,
                         ::testing::Values("rx_global_pause_duration", "tx_prio0_pause_transition",
                                           "tx_priority0_xon_to_xoff_packets",
                                           "tx_pause_storm_warning_events", "rx_good_packets",
                                           "rx_missed_errors", ""));

TEST(PauseFrames, ThatCameInAreCountedOnce) {
  EXPECT_EQ(pause_frames_received({}), 0U);
  EXPECT_EQ(pause_frames_received({{"tx_xoff_packets", 9}}), 0U);
  EXPECT_EQ(pause_frames_received({{"rx_global_pause", 7},
                                   {"rx_pause_ctrl_phy", 8},
                                   {"rx_prio0_pause", 0},
                                   {"tx_pause_ctrl_phy", 9}}),
            8U);
  EXPECT_EQ(pause_frames_received({{"tx_xon_pause_sent", 3}, {"xoff_pause_rcvd", 2}}), 2U);
}

TEST(ReceiveDrops, AreThoseOfADriversCountersThatAreSo) {
  // As the kernel gives them: fields of 32 bytes, the longest name without an end.
  std::string names;
  for (const char* name : {"rx_packets", "rx_missed_errors", "rx_dropped_for_want_of_a_buffer"}) {
    std::string field = name;
    field.resize(32);
    names += field;
  }
  names += "rx_dropped_with_a_name_of_32_let";
  names += "rx_pause_frames";
  names.resize(names.size() + 17);
  const std::vector<uint64_t> values = {1, 2, uint64_t{1} << 40, 4, 5};
  const DriverCounters found = select_counters(names, values);
  EXPECT_EQ(found.drops,
            (std::map<std::string, uint64_t>{{"rx_missed_errors", 2},
                                             {"rx_dropped_for_want_of_a_buffer", uint64_t{1} << 40},
                                             {"rx_dropped_with_a_name_of_32_let", 4}}));
  EXPECT_EQ(found.pauses, (std::map<std::string, uint64_t>{{"rx_pause_frames", 5}}));
  EXPECT_EQ(select_counters({}, values), DriverCounters{});
  EXPECT_EQ(select_counters(names, {}), DriverCounters{});
}

TEST(ReceiveDrops, AreNoneOfAnInterfaceWithoutADriversCounters) {
  EXPECT_EQ(read_driver("lo"), DriverCounters{});
  EXPECT_EQ(read_driver("no such interface"), DriverCounters{});
}

}  // namespace
}  // namespace dutperf::kernel
