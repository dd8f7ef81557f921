#include "alteration.h"

#include <gtest/gtest.h>

#include "net/inspection.h"
#include "net/testing/reference_frame.h"

namespace dutperf::refdut {
namespace {

using net::testing::Bytes;
using net::testing::kTag;

class AlterationOf : public ::testing::TestWithParam<int> {
 protected:
  net::FrameLayout layout(uint32_t size = 128) const {
    net::FrameLayout result = net::testing::sample_layout(GetParam(), size);
    result.ttl = 9;
    result.dscp = 10;
    return result;
  }

  // What is made of a frame with `layout`, whose checksums must hold as the slow twin says.
  static Bytes altered(const net::FrameLayout& layout, const Alteration& alteration,
                       uint8_t hops_taken = 1) {
    Bytes frame = net::testing::reference_frame(
        layout, net::testing::tagged_payload(layout, kTag, 0xa1b2c3, 5));
    const auto before = net::classify(frame.data(), frame.size());
    alter(alteration, hops_taken, frame.data(), before);
    EXPECT_TRUE(net::testing::reference_whole(frame, layout.ip_version, before.ip_bytes));
    return frame;
  }

  net::Inspected inspected(const Alteration& alteration, uint8_t hops_taken = 1) const {
    const Bytes frame = altered(layout(), alteration, hops_taken);
    net::Inspected found;
    net::inspect(frame.data(), {9, 10}, found);
    return found;
  }
};

TEST_P(AlterationOf, HopsIsTheFallInAll) {
  EXPECT_EQ(inspected({.hops = 0}).most_ttl, 10);
  EXPECT_EQ(inspected({.hops = 1}).most_ttl, 9);
  EXPECT_EQ(inspected({.hops = 3}).most_ttl, 7);
  EXPECT_EQ(inspected({.hops = 3}, 0).most_ttl, 6);
  EXPECT_EQ(inspected({.hops = 200}).most_ttl, 1);
}

TEST_P(AlterationOf, DscpLeavesAllElse) {
  for (uint8_t dscp = 0; dscp < 64; ++dscp) {
    net::FrameLayout expected = layout();
    expected.dscp = dscp;
    EXPECT_EQ(altered(layout(), {.dscp = dscp}), altered(expected, {}));
  }
}

TEST_P(AlterationOf, ThePayloadIsTwoWordsThatChangePlaces) {
  const net::Inspected found = inspected({.exchanges = true});
  EXPECT_EQ(found.payload, 1U);
  EXPECT_EQ(found.ttl + found.dscp, 0U);
}

TEST_P(AlterationOf, APayloadOfLessThanTwoWordsIsNone) {
  const uint32_t least = net::minimum_frame_size(GetParam());
  for (uint32_t more = 0; more < 4; ++more) {
    const net::FrameLayout small = layout(least + more);
    EXPECT_EQ(altered(small, {.exchanges = true}), altered(small, {}));
  }
}

INSTANTIATE_TEST_SUITE_P(BothVersions, AlterationOf, ::testing::Values(4, 6));

}  // namespace
}  // namespace dutperf::refdut
