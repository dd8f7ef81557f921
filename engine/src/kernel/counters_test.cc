#include "kernel/counters.h"

#include <gtest/gtest.h>

namespace dutperf::kernel {
namespace {

// As /proc/net/softnet_stat of Linux 6.18 looks; the third CPU is off, so the fourth is 3.
constexpr const char* kSoftnet =
    "002c93e1 00000000 000000a7 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
    "00000000 00000000 00000000 00000000 00000000\n"
    "0aa21d22 00012f00 00000bf1 00000000 00000000 00000000 00000000 00000000 00000000 0133ab0e "
    "00000000 00000000 00000001 00000000 00000000\n"
    "00000010 fffffffe 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
    "00000000 00000000 00000003 00000000 00000000\n";

TEST(InputQueues, AreReadFromWhatTheKernelShows) {
  EXPECT_EQ(parse_input_queues(kSoftnet),
            (std::vector<InputQueue>{{0, 0, 0xa7}, {1, 0x12f00, 0xbf1}, {3, 0xfffffffe, 0}}));
}

TEST(InputQueues, AreNumberedByTheirLinesWhereAnOldKernelNamesNoCpu) {
  EXPECT_EQ(parse_input_queues("00000001 00000002 00000003\n00000004 00000005 00000006\n"),
            (std::vector<InputQueue>{{0, 2, 3}, {1, 5, 6}}));
}

TEST(InputQueues, AreNoneInAnythingElse) {
  EXPECT_TRUE(parse_input_queues("").empty());
  EXPECT_TRUE(parse_input_queues("Inter-|   Receive\n 12\n").empty());
}

TEST(InputQueues, OfThisMachineAreThere) { EXPECT_FALSE(input_queues().empty()); }

TEST(InputQueues, TellWhatRoseAlsoPastTheEndOfTheirCounters) {
  const std::vector<InputQueue> before = parse_input_queues(kSoftnet);
  EXPECT_TRUE(rise(before, before).empty());
  std::vector<InputQueue> after = before;
  after[0].time_squeeze += 1;
  after[2].dropped += 5;
  EXPECT_EQ(after[2].dropped, 3U);
  EXPECT_EQ(rise(before, after), (std::vector<InputQueue>{{0, 0, 1}, {3, 5, 0}}));
  // A CPU that came in between has no earlier count.
  after.push_back({7, 100, 100});
  EXPECT_EQ(rise(before, after).size(), 2U);
}

TEST(InterfaceCounters, TellWhatRose) {
  InterfaceCounters before;
  before.rx_missed = 10;
  before.queue_dropped = 0xffffffff;
  before.driver = {{"rx_missed", 7}};
  InterfaceCounters after = before;
  after.rx_missed = 15;
  after.rx_crc = 1;
  after.queue_dropped = 1;
  after.driver = {{"rx_missed", 9}, {"rx_new", 3}};
  const InterfaceCounters during = rise(before, after);
  EXPECT_EQ(during.rx_missed, 5U);
  EXPECT_EQ(during.rx_crc, 1U);
  EXPECT_EQ(during.queue_dropped, 2U);
  EXPECT_EQ(during.driver, (std::map<std::string, uint64_t>{{"rx_missed", 2}, {"rx_new", 3}}));
}

TEST(InterfaceCounters, OfADriverThatBeganAnewHaveNotRisen) {
  InterfaceCounters before, after;
  before.rx_missed = 10;
  after.rx_missed = 9;
  EXPECT_EQ(rise(before, after).rx_missed, 0U);
}

}  // namespace
}  // namespace dutperf::kernel
