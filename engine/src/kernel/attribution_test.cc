#include "kernel/attribution.h"

#include <gtest/gtest.h>

namespace dutperf::kernel {
namespace {

constexpr Attachment kNicPacket{.is_virtual = false, .packet_socket = true};
constexpr Attachment kNicXdp{.is_virtual = false, .packet_socket = false};
constexpr Attachment kVethPacket{.is_virtual = true, .packet_socket = true};
constexpr Attachment kVethXdp{.is_virtual = true, .packet_socket = false};
constexpr Attachment kAll[] = {kNicPacket, kNicXdp, kVethPacket, kVethXdp};

TEST(Attribution, ChargesTheTesterWithWhatItsInterfaceHadNoRoomFor) {
  for (const auto member : {&InterfaceCounters::rx_missed, &InterfaceCounters::rx_fifo,
                            &InterfaceCounters::rx_over, &InterfaceCounters::rx_nohandler}) {
    for (const Attachment& attachment : kAll) {
      InterfaceCounters during;
      during.*member = 3;
      EXPECT_EQ(attribute(during, attachment, 0).receive, 3U);
      EXPECT_EQ(attribute(during, attachment, 0).damaged, 0U);
    }
  }
}

TEST(Attribution, NamesWhatCameInDamagedAndChargesNobody) {
  for (const auto member :
       {&InterfaceCounters::rx_crc, &InterfaceCounters::rx_frame, &InterfaceCounters::rx_length}) {
    InterfaceCounters during;
    during.*member = 3;
    EXPECT_EQ(attribute(during, kNicXdp, 0).receive, 0U);
    EXPECT_EQ(attribute(during, kNicXdp, 0).damaged, 3U);
  }
}

TEST(Attribution, ChargesWhatIsDroppedAtAVirtualInterfaceToTheDevice) {
  InterfaceCounters during;
  during.rx_dropped = 100;
  during.tx_dropped = 200;
  EXPECT_EQ(attribute(during, kVethPacket, 0).receive, 0U);
  EXPECT_EQ(attribute(during, kVethPacket, 0).send, 0U);
  EXPECT_EQ(attribute(during, kNicPacket, 0).receive, 100U);
  EXPECT_EQ(attribute(during, kNicPacket, 0).send, 200U);
}

TEST(Attribution, LeavesOutForeignFramesThatTheSocketHad) {
  InterfaceCounters during;
  during.rx_dropped = 5;
  EXPECT_EQ(attribute(during, kNicPacket, 3).receive, 2U);
  EXPECT_EQ(attribute(during, kNicPacket, 9).receive, 0U);
  // AF_XDP takes them before the kernel could count them.
  EXPECT_EQ(attribute(during, kNicXdp, 3).receive, 5U);
}

TEST(Attribution, CountsADropOnce) {
  InterfaceCounters during;
  during.rx_missed = 10;
  during.driver = {{"rx_missed_errors", 10}, {"rx_no_buffer_count", 2}};
  EXPECT_EQ(attribute(during, kNicPacket, 0).receive, 12U);
  during = {};
  during.driver = {{"rx_queue_0_drops", 10}};
  during.xdp_ring_full = 6;
  during.xdp_dropped = 3;
  during.xdp_fill_ring_empty = 3;
  EXPECT_EQ(attribute(during, kVethXdp, 0).receive, 1U);
}

TEST(Attribution, ChargesWhatNeverLeft) {
  InterfaceCounters during;
  during.tx_errors = 1;
  during.queue_dropped = 2;
  EXPECT_EQ(attribute(during, kVethPacket, 0).send, 3U);
}

TEST(Attribution, LeavesInputQueuesToADeviceOnTheSameMachine) {
  const std::vector<InputQueue> during = {{0, 10, 5}, {3, 1, 0}};
  EXPECT_EQ(own_input_queue_drops(during, false, 0), 11U);
  EXPECT_EQ(own_input_queue_drops(during, false, 4), 7U);
  EXPECT_EQ(own_input_queue_drops(during, false, 40), 0U);
  EXPECT_EQ(own_input_queue_drops(during, true, 0), 0U);
  EXPECT_EQ(own_input_queue_drops({}, false, 0), 0U);
}

}  // namespace
}  // namespace dutperf::kernel
