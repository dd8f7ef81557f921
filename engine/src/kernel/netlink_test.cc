#include "kernel/netlink.h"

#include <gtest/gtest.h>
#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <string>
#include <vector>

namespace dutperf::kernel {
namespace {

using Buffer = std::vector<uint8_t>;

template <typename T>
Buffer bytes_of(const T& value) {
  const auto* first = reinterpret_cast<const uint8_t*>(&value);
  return {first, first + sizeof(value)};
}

Buffer joined(std::initializer_list<Buffer> parts) {
  Buffer result;
  for (const Buffer& part : parts) result.insert(result.end(), part.begin(), part.end());
  return result;
}

Buffer attribute(uint16_t type, const Buffer& content) {
  const rtattr header{static_cast<uint16_t>(sizeof(rtattr) + content.size()), type};
  Buffer result = joined({bytes_of(header), content});
  result.resize((result.size() + 3) / 4 * 4);
  return result;
}

Buffer message(uint16_t type, const Buffer& content) {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<uint32_t>(sizeof(header) + content.size());
  header.nlmsg_type = type;
  return joined({bytes_of(header), content});
}

const Buffer kName = attribute(IFLA_IFNAME, {'e', 't', 'h', '1', 0});  // no multiple of 4
const Buffer kAcknowledgement = message(NLMSG_ERROR, Buffer(20));

Buffer link_answer(const Buffer& stats) {
  return joined({message(RTM_NEWLINK, joined({Buffer(sizeof(ifinfomsg)), kName,
                                              attribute(IFLA_STATS64, stats)})),
                 kAcknowledgement});
}

TEST(Netlink, TellsEachCounterOfAnInterface) {
  rtnl_link_stats64 stats{};
  stats.rx_packets = 1000;
  stats.rx_missed_errors = uint64_t{1} << 33;
  stats.rx_fifo_errors = 2;
  stats.rx_over_errors = 3;
  stats.rx_nohandler = 4;
  stats.rx_dropped = 5;
  stats.rx_crc_errors = 6;
  stats.rx_frame_errors = 7;
  stats.rx_length_errors = 8;
  stats.tx_errors = 9;
  stats.tx_dropped = 10;
  InterfaceCounters found;
  ASSERT_TRUE(parse_link(link_answer(bytes_of(stats)), found));
  EXPECT_EQ(found.rx_missed, uint64_t{1} << 33);
  EXPECT_EQ(found.rx_fifo, 2U);
  EXPECT_EQ(found.rx_over, 3U);
  EXPECT_EQ(found.rx_nohandler, 4U);
  EXPECT_EQ(found.rx_dropped, 5U);
  EXPECT_EQ(found.rx_crc, 6U);
  EXPECT_EQ(found.rx_frame, 7U);
  EXPECT_EQ(found.rx_length, 8U);
  EXPECT_EQ(found.tx_errors, 9U);
  EXPECT_EQ(found.tx_dropped, 10U);
}

TEST(Netlink, UnderstandsKernelsWithMoreOrFewerCounters) {
  rtnl_link_stats64 stats{};
  stats.rx_missed_errors = 11;
  stats.rx_nohandler = 12;
  Buffer longer = bytes_of(stats);
  longer.resize(longer.size() + 16, 0xff);
  InterfaceCounters found;
  ASSERT_TRUE(parse_link(link_answer(longer), found));
  EXPECT_EQ(found.rx_nohandler, 12U);
  Buffer shorter = bytes_of(stats);
  shorter.resize(offsetof(rtnl_link_stats64, rx_nohandler));
  ASSERT_TRUE(parse_link(link_answer(shorter), found));
  EXPECT_EQ(found.rx_missed, 11U);
  EXPECT_EQ(found.rx_nohandler, 0U);
}

TEST(Netlink, FindsNothingInARefusalOrARuin) {
  InterfaceCounters found;
  EXPECT_FALSE(parse_link(kAcknowledgement, found));
  EXPECT_FALSE(parse_link({}, found));
  Buffer whole = link_answer(bytes_of(rtnl_link_stats64{}));
  for (size_t size = 0; size < whole.size() - kAcknowledgement.size(); ++size) {
    EXPECT_FALSE(parse_link({whole.data(), size}, found)) << size;
  }
  // Lengths of nothing must not be read for ever.
  for (size_t at = 0; at + 4 <= whole.size(); at += 4) {
    Buffer ruin = whole;
    std::fill_n(ruin.begin() + static_cast<ptrdiff_t>(at), 4, uint8_t{0});
    parse_link(ruin, found);
  }
}

TEST(Netlink, TellsWhatTheRootDisciplineDropped) {
  const gnet_stats_queue queue{.qlen = 1, .backlog = 64, .drops = 77, .requeues = 5};
  const Buffer stats = attribute(TCA_STATS2, joined({attribute(TCA_STATS_BASIC, Buffer(16)),
                                                     attribute(TCA_STATS_QUEUE, bytes_of(queue))}));
  const Buffer kind = attribute(TCA_KIND, {'p', 'f', 'i', 'f', 'o', 0});
  const Buffer answer = joined(
      {message(RTM_NEWQDISC, joined({Buffer(sizeof(tcmsg)), kind, stats})), kAcknowledgement});
  EXPECT_EQ(parse_queue_drops(answer), 77U);
  EXPECT_EQ(parse_queue_drops(kAcknowledgement), std::nullopt);
}

TEST(Netlink, AnswersForAnInterfaceThatEveryMachineHas) {
  InterfaceCounters found;
  EXPECT_TRUE(read_interface(if_nametoindex("lo"), found));
  EXPECT_EQ(found.rx_crc, 0U);
  EXPECT_FALSE(read_interface(0x7fffffff, found));
}

}  // namespace
}  // namespace dutperf::kernel
