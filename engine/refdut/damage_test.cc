#include "damage.h"

#include <gtest/gtest.h>

#include "net/testing/reference_frame.h"
#include "vary/draw.h"

namespace dutperf::refdut {
namespace {

using net::testing::Bytes;
using net::testing::kTag;
using net::testing::reference_frame;
using net::testing::tagged_payload;

Bytes test_frame(int version, uint32_t size) {
  const net::FrameLayout layout = net::testing::sample_layout(version, size);
  return reference_frame(layout, tagged_payload(layout, kTag, 0xa1b2c3d4e5, 0x1122334455));
}

struct Damaged {
  int version;
  uint32_t size;
};

class DamageTo : public ::testing::TestWithParam<Damaged> {};

TEST_P(DamageTo, ThePayloadIsOneBitThatChecksumsTellAndNoneOfTheIdentity) {
  const Bytes whole = test_frame(GetParam().version, GetParam().size);
  const size_t payload = net::testing::udp_offset(GetParam().version) + sizeof(net::UdpHeader);
  const size_t tag = whole.size() - sizeof(net::WireTag);
  std::vector<uint64_t> flips(whole.size());
  for (uint64_t n = 0; n < 20'000; ++n) {
    Bytes frame = whole;
    const auto before = net::classify(frame.data(), frame.size());
    ASSERT_EQ(inflict(Damage::kPayload, vary::draw(1, n), frame.data(), frame.size(), before),
              frame.size());
    const auto classified = net::classify(frame.data(), frame.size());
    ASSERT_EQ(classified.kind, net::FrameKind::kTest);
    ASSERT_EQ(classified.tag->trial, kTag.trial);
    ASSERT_EQ(classified.tag->stream, kTag.stream);
    ASSERT_EQ(classified.tag->sequence(), 0xa1b2c3d4e5U);
    ASSERT_FALSE(net::checksums_hold(frame.data(), classified));
    int bits = 0;
    for (size_t i = 0; i < frame.size(); ++i) {
      const int changed = std::popcount(static_cast<unsigned>(frame[i] ^ whole[i]));
      bits += changed;
      flips[i] += static_cast<uint64_t>(changed);
    }
    ASSERT_EQ(bits, 1);
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    const bool may_flip = i >= payload && (i < tag || i >= whole.size() - 6);
    ASSERT_EQ(flips[i] > 0, may_flip) << i;
  }
}

TEST_P(DamageTo, TheChecksumIsWrongAndNotAbsent) {
  Bytes frame = test_frame(GetParam().version, GetParam().size);
  const auto classified = net::classify(frame.data(), frame.size());
  inflict(Damage::kChecksum, 0, frame.data(), frame.size(), classified);
  EXPECT_FALSE(net::checksums_hold(frame.data(), classified));
}

TEST_P(DamageTo, TheChecksumTakesItAwayAndThatIsDamageInIpv6) {
  Bytes frame = test_frame(GetParam().version, GetParam().size);
  const auto classified = net::classify(frame.data(), frame.size());
  EXPECT_EQ(does_damage(Damage::kChecksumZero, frame.data(), classified), GetParam().version == 6);
  inflict(Damage::kChecksumZero, 0, frame.data(), frame.size(), classified);
  EXPECT_EQ(net::checksums_hold(frame.data(), classified), GetParam().version == 4);
  if (GetParam().version == 4) return;
  EXPECT_EQ(net::damage_of(frame.data(), classified, classified.ip_bytes),
            net::Damage::kChecksumZero);
}

// A segment of TCP has no length of its own, and a checksum of 0 may be right.
TEST_P(DamageTo, ASegmentIsThatOfItsOwnHeaders) {
  net::FrameLayout layout = net::testing::sample_layout(GetParam().version, 200);
  layout.tcp = net::SegmentLayout{.step = net::Step::kAck, .is_data = true};
  const Bytes whole = net::testing::data_of(layout, kTag);
  const auto classified = net::classify(whole.data(), whole.size());
  ASSERT_EQ(classified.kind, net::FrameKind::kTest);
  ASSERT_TRUE(net::checksums_hold(whole.data(), classified));
  for (const Damage damage : {Damage::kPayload, Damage::kChecksum, Damage::kNumber}) {
    Bytes frame = whole;
    ASSERT_TRUE(does_damage(damage, frame.data(), classified));
    for (uint64_t draw = 0; draw < 200; ++draw) {
      frame = whole;
      inflict(damage, vary::draw(1, draw), frame.data(), frame.size(), classified);
      const size_t headers = net::payload_offset(frame.data(), classified);
      const size_t checksum = net::testing::udp_offset(GetParam().version) + 16;
      for (size_t i = 0; i < headers; ++i) {
        if (i / 2 == checksum / 2) continue;
        ASSERT_EQ(frame[i], whole[i]) << i;
      }
      ASSERT_EQ(net::checksums_hold(frame.data(), classified), damage == Damage::kNumber);
    }
  }
  EXPECT_FALSE(does_damage(Damage::kLength, whole.data(), classified));
  EXPECT_FALSE(does_damage(Damage::kChecksumZero, whole.data(), classified));
}

TEST_P(DamageTo, TheNumberLeavesTheFrameWhole) {
  Bytes frame = test_frame(GetParam().version, GetParam().size);
  const auto classified = net::classify(frame.data(), frame.size());
  inflict(Damage::kNumber, 0, frame.data(), frame.size(), classified);
  EXPECT_TRUE(net::checksums_hold(frame.data(), classified));
  EXPECT_EQ(classified.tag->sequence(), 0xa1b2c3d4e5U | 1ULL << 47);
}

TEST_P(DamageTo, TheUdpLengthIsFoundAsSuch) {
  Bytes frame = test_frame(GetParam().version, GetParam().size);
  const auto classified = net::classify(frame.data(), frame.size());
  inflict(Damage::kLength, 0, frame.data(), frame.size(), classified);
  EXPECT_FALSE(net::checksums_hold(frame.data(), classified));
  EXPECT_EQ(net::damage_of(frame.data(), classified, classified.ip_bytes), net::Damage::kLength);
}

TEST_P(DamageTo, TheEndLeavesTheIdentityThere) {
  Bytes frame = test_frame(GetParam().version, GetParam().size);
  const auto classified = net::classify(frame.data(), frame.size());
  const size_t size = inflict(Damage::kTruncation, 0, frame.data(), frame.size(), classified);
  EXPECT_EQ(size, frame.size() - 1);
  const auto cut = net::classify(frame.data(), size);
  EXPECT_EQ(cut.kind, net::FrameKind::kTruncated);
  ASSERT_NE(cut.tag, nullptr);
  EXPECT_EQ(cut.tag->sequence(), 0xa1b2c3d4e5U);
}

INSTANTIATE_TEST_SUITE_P(Frames, DamageTo,
                         ::testing::Values(Damaged{4, 64}, Damaged{4, 65}, Damaged{4, 128},
                                           Damaged{6, 84}, Damaged{6, 127}));

TEST(Damage, NeverMakesAChecksumOf0) {
  Bytes frame = test_frame(4, 64);
  const auto classified = net::classify(frame.data(), frame.size());
  auto* udp = reinterpret_cast<net::UdpHeader*>(frame.data() + net::testing::udp_offset(4));
  udp->checksum = 1;
  inflict(Damage::kChecksum, 0, frame.data(), frame.size(), classified);
  EXPECT_NE(udp->checksum, 0);
  EXPECT_NE(udp->checksum, 1);
}

}  // namespace
}  // namespace dutperf::refdut
