#include "net/inspection.h"

#include <gtest/gtest.h>

#include <random>

#include "net/classify.h"
#include "net/testing/reference_frame.h"

namespace dutperf::net {
namespace {

using testing::Bytes;
using testing::kTag;
using testing::reference_frame;
using testing::sample_layout;
using testing::tagged_frame;
using testing::udp_offset;

Inspected inspected(const Bytes& frame, const Expected& expected) {
  Inspected found;
  inspect(frame.data(), expected, found);
  return found;
}

class Inspection : public ::testing::TestWithParam<int> {
 protected:
  FrameLayout layout(uint32_t size = 600) const {
    FrameLayout result = sample_layout(GetParam(), size);
    result.ttl = 9;
    result.dscp = 46;
    return result;
  }
};

TEST_P(Inspection, FindsNothingInAFrameAsItWasSent) {
  for (uint32_t size = minimum_frame_size(GetParam()); size < 1300; ++size) {
    const Inspected found = inspected(tagged_frame(layout(size), size), {9, 46});
    ASSERT_EQ(found, (Inspected{1, 0, 0, 0, 9, 9, std::nullopt})) << size;
  }
}

TEST_P(Inspection, FindsNothingBehindOtherHeaders) {
  FrameLayout headed = layout();
  headed.extra = GetParam() == 4
                     ? ipv4_options({{Ipv4Option::kRouterAlert, Ipv4Option::kNop}})
                     : ipv6_extensions({{Ipv6Extension::kRouting, Ipv6Extension::kFragment}});
  const Bytes frame = FrameTemplate(headed, kTag).bytes();
  EXPECT_EQ(inspected(frame, {9, 46}), (Inspected{1, 0, 0, 0, 9, 9, std::nullopt}));
}

TEST_P(Inspection, TellsAnotherTtlAndItsRange) {
  Inspected found;
  for (const uint8_t ttl : std::initializer_list<uint8_t>{9, 10, 8}) {
    FrameLayout sent = layout();
    sent.ttl = ttl;
    inspect(tagged_frame(sent).data(), {9, 46}, found);
  }
  EXPECT_EQ(found, (Inspected{3, 2, 0, 0, 8, 10, std::nullopt}));
}

TEST_P(Inspection, TakesEveryTtlWhereNoneIsExpected) {
  EXPECT_EQ(inspected(tagged_frame(layout()), {std::nullopt, 46}).ttl, 0U);
}

TEST_P(Inspection, TellsAnotherDscp) {
  for (uint8_t dscp = 0; dscp < 64; ++dscp) {
    FrameLayout sent = layout();
    sent.dscp = dscp;
    const Inspected found = inspected(tagged_frame(sent), {9, 46});
    EXPECT_EQ(found.dscp, dscp == 46 ? 0U : 1U);
    EXPECT_EQ(found.other_dscp, dscp == 46 ? std::nullopt : std::optional(dscp));
  }
}

TEST_P(Inspection, TakesCongestionMarksForNoDscp) {
  Bytes frame = tagged_frame(layout());
  const uint8_t marks = GetParam() == 4 ? 0x03 : 0x30;
  frame[15] = static_cast<uint8_t>(frame[15] | marks);
  EXPECT_EQ(inspected(frame, {9, 46}).dscp, 0U);
}

TEST_P(Inspection, TellsEveryChangedByteOfThePayloadAndNoOther) {
  const Bytes whole = tagged_frame(layout());
  const size_t payload = udp_offset(GetParam()) + sizeof(UdpHeader);
  const size_t tag = whole.size() - sizeof(WireTag);
  for (size_t i = payload - sizeof(UdpHeader); i < whole.size(); ++i) {
    const bool magic = i >= tag && i < tag + 4;
    if (magic) continue;
    Bytes frame = whole;
    frame[i] ^= 0x10;
    const bool is_payload_byte = i >= payload && i < tag;
    ASSERT_EQ(inspected(frame, {9, 46}).payload, is_payload_byte ? 1U : 0U) << i;
  }
}

TEST_P(Inspection, TellsWordsThatChangedPlacesThoughTheChecksumHolds) {
  Bytes frame = tagged_frame(layout());
  const size_t payload = udp_offset(GetParam()) + sizeof(UdpHeader);
  std::swap_ranges(&frame[payload], &frame[payload + 2], &frame[payload + 2]);
  ASSERT_TRUE(checksums_hold(frame.data(), classify(frame.data(), frame.size())));
  EXPECT_EQ(inspected(frame, {9, 46}).payload, 1U);
}

INSTANTIATE_TEST_SUITE_P(OfBothVersions, Inspection, ::testing::Values(4, 6));

TEST(Payload, IsTheCountingOneOfEveryLength) {
  for (size_t bytes = 0; bytes < 1500; ++bytes) {
    std::vector<uint8_t> slow(bytes);
    for (size_t i = 0; i < bytes; ++i) slow[i] = static_cast<uint8_t>(i);
    std::vector<uint8_t> fast(bytes);
    write_payload(fast.data(), bytes);
    ASSERT_EQ(fast, slow);
    ASSERT_TRUE(is_payload(slow.data(), bytes));
    if (bytes == 0) continue;
    slow[bytes - 1] ^= 1;
    ASSERT_FALSE(is_payload(slow.data(), bytes));
  }
}

}  // namespace
}  // namespace dutperf::net
