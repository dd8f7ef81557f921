#include "net/vlan.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "net/classify.h"
#include "net/neighbour.h"

namespace dutperf::net {
namespace {

using Tags = std::vector<VlanTag>;

const VlanTags kOne{Tags{{0x8100, 10, 5}}};
const VlanTags kTwo{Tags{{0x88a8, 4094, 7}, {0x8100, 100, 0}}};

std::array<uint8_t, 30> counting_frame() {
  std::array<uint8_t, 30> frame;
  for (size_t i = 0; i < frame.size(); ++i) frame[i] = static_cast<uint8_t>(i);
  return frame;
}

TEST(VlanTags, StandBetweenMacAddressesAndEtherType) {
  auto frame = counting_frame();
  ASSERT_EQ(kTwo.put_in(frame.data(), 20), 28);
  const std::array<uint8_t, 30> expected = {0,  1,  2,    3,    4,    5,    6,    7,    8,    9,
                                            10, 11, 0x88, 0xa8, 0xef, 0xfe, 0x81, 0x00, 0x00, 100,
                                            12, 13, 14,   15,   16,   17,   18,   19,   28,   29};
  EXPECT_EQ(frame, expected);
  EXPECT_EQ(kTwo.take_out(frame.data(), 28), 20);
  EXPECT_TRUE(std::equal(frame.begin(), frame.begin() + 20, counting_frame().begin()));
}

TEST(VlanTags, OfNobodyChangeNothingAndStandInAll) {
  auto frame = counting_frame();
  EXPECT_EQ(VlanTags().put_in(frame.data(), 20), 20);
  EXPECT_EQ(VlanTags().take_out(frame.data(), 20), 20);
  EXPECT_EQ(frame, counting_frame());
  EXPECT_TRUE(VlanTags().stand_in(frame.data()));
}

TEST(VlanTags, OfARangeStandInFramesWithAnyIdOfIt) {
  for (const uint16_t last : std::initializer_list<uint16_t>{10, 11, 99, 4094}) {
    const VlanTags range(Tags{{0x88a8, 10, 5, last}, {0x8100, 100}});
    for (uint16_t id = 0; id < 4096; ++id) {
      auto frame = counting_frame();
      range.put_in(frame.data(), 20, id);
      ASSERT_EQ(VlanTags::id_in(frame.data()), id);
      ASSERT_EQ(range.stand_in(frame.data()), id >= 10 && id <= last) << id;
      frame[14] ^= 0xf0;  // the priority
      ASSERT_EQ(range.stand_in(frame.data()), id >= 10 && id <= last) << id;
      frame[13] ^= 1;
      ASSERT_FALSE(range.stand_in(frame.data()));
    }
    auto frame = counting_frame();
    range.put_in(frame.data(), 20);
    EXPECT_EQ(VlanTags::id_in(frame.data()), 10);
  }
}

// IEEE 802.3ac: a frame with one 802.1Q tag may be 1522 bytes long.
TEST(VlanTags, TakeOfTheMtuWhatIsMoreThanOne8021qTag) {
  EXPECT_EQ(VlanTags().bytes_of_mtu(), 0);
  EXPECT_EQ(kOne.bytes_of_mtu(), 0);
  EXPECT_EQ(VlanTags(Tags{{0x8100, 1}, {0x8100, 2}}).bytes_of_mtu(), 4);
  EXPECT_EQ(VlanTags(Tags{{0x88a8, 1}}).bytes_of_mtu(), 4);
  EXPECT_EQ(kTwo.bytes_of_mtu(), 8);
}

// The way of a question and its answer through a port with tags.
TEST(VlanTags, AreTakenOutOfQuestionsAndPutIntoAnswers) {
  for (const int version : {4, 6}) {
    const auto asker = *IpAddress::parse(version == 4 ? "198.18.0.1" : "2001:2::1");
    const auto asked = *IpAddress::parse(version == 4 ? "198.18.0.2" : "2001:2::2");
    const OwnAddresses own{{{2, 0, 0, 0, 0, 2}}, {{asked}}, kTwo};
    uint8_t frame[kTaggedNeighbourFrameBytes];
    size_t size = kTwo.put_in(frame, write_request(asker, {{2, 0, 0, 0, 0, 1}}, asked, frame));
    ASSERT_EQ(classify_behind(own.vlan, frame, size).kind, FrameKind::kNeighbour);
    ASSERT_EQ(classify_behind(kOne, frame, size).kind, FrameKind::kOtherVlan);
    size = own.vlan.take_out(frame, size);
    uint8_t reply[kTaggedNeighbourFrameBytes];
    size = own.vlan.put_in(reply, write_reply(frame, size, own, reply));
    ASSERT_LE(size, kTaggedNeighbourFrameBytes);
    ASSERT_TRUE(kTwo.stand_in(reply));
    const auto answer = parse_answer(reply, kTwo.take_out(reply, size));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->ip, asked);
    EXPECT_EQ(answer->mac, own.mac);
  }
}

}  // namespace
}  // namespace dutperf::net
