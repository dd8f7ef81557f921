#include "net/mpls.h"

#include <gtest/gtest.h>

#include "net/classify.h"
#include "net/neighbour.h"
#include "net/testing/reference_frame.h"

namespace dutperf::net {
namespace {

using testing::Bytes;
using testing::kTag;
using testing::reference_frame;
using testing::sample_layout;
using testing::tagged_frame;
using testing::tagged_payload;

using Labels = std::vector<MplsLabel>;
using Tags = std::vector<VlanTag>;

const std::vector<Labels> kStacks = {
    {},
    {{16}},
    {{17}},
    {{1048575}},
    {{16}, {17}},
    {{17}, {16}},
    {{16}, {17}, {18}},
    {{16}, {17}, {19}},
};
const std::vector<Tags> kTagLists = {{}, {{0x8100, 10}}, {{0x88a8, 10}, {0x8100, 100}}};

FrameLayout layout_of(int version, const Tags& tags, const Labels& labels) {
  FrameLayout layout = sample_layout(version, 128);
  layout.vlan = VlanTags(tags);
  layout.labels = LabelStack(labels);
  return layout;
}

class Mpls : public ::testing::TestWithParam<int> {};

TEST_P(Mpls, FramesAreThoseOfTheSlowTwin) {
  for (const Tags& tags : kTagLists) {
    for (Labels labels : kStacks) {
      for (MplsLabel& label : labels) label.tc = 5;
      if (!labels.empty()) labels[0].ttl = 255;
      const FrameLayout layout = layout_of(GetParam(), tags, labels);
      const FrameTemplate made(layout, kTag);
      ASSERT_EQ(made.bytes().size(), 124 + 4 * (tags.size() + labels.size()));
      ASSERT_EQ(made.bytes(), reference_frame(layout, tagged_payload(layout, kTag, 0, 0)));
      ASSERT_EQ(made.ip_offset(), 14 + 4 * (tags.size() + labels.size()));
    }
  }
}

// What a port expects, against what a frame carries: all labels must be the same, and no more.
TEST_P(Mpls, AFrameIsKnownByTheLabelsOfItsPort) {
  for (const Tags& tags : kTagLists) {
    for (const Labels& carried : kStacks) {
      const FrameLayout layout = layout_of(GetParam(), tags, carried);
      for (const Labels& expected : kStacks) {
        if (expected.empty()) continue;
        Bytes frame = tagged_frame(layout);
        const LabelStack stack(expected);
        const Classified found = classify_labelled(layout.vlan, stack, frame.data(), frame.size());
        ASSERT_EQ(found.kind, carried == expected ? FrameKind::kTest : FrameKind::kOtherVlan);
        if (carried != expected) continue;
        ASSERT_EQ(found.ip_version, GetParam());
        ASSERT_EQ(found.ip_bytes, 110);
        ASSERT_EQ(found.tag->sequence(), 5);
        ASSERT_TRUE(checksums_hold(frame.data() + layout.vlan.bytes() + stack.bytes(), found));
      }
    }
  }
}

TEST_P(Mpls, AFrameWithLabelsIsNoneOfAPortWithout) {
  for (const Tags& tags : kTagLists) {
    const FrameLayout layout = layout_of(GetParam(), tags, {{16}});
    const Bytes frame = tagged_frame(layout);
    EXPECT_EQ(classify_behind(layout.vlan, frame.data(), frame.size()).kind, FrameKind::kOtherVlan);
  }
}

TEST_P(Mpls, TrafficClassAndTtlAreTheDevicesToChange) {
  const FrameLayout layout = layout_of(GetParam(), {}, {{16, 7, 63}, {17, 1, 2}});
  Bytes frame = tagged_frame(layout);
  const LabelStack others(Labels{{16}, {17}});
  EXPECT_EQ(classify_labelled({}, others, frame.data(), frame.size()).kind, FrameKind::kTest);
}

TEST_P(Mpls, AFrameThatIsTooShortIsNoTestFrame) {
  const FrameLayout layout = layout_of(GetParam(), {}, {{16}, {17}});
  const Bytes whole = tagged_frame(layout);
  for (size_t size = 34; size < whole.size(); ++size) {
    Bytes frame(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    ASSERT_NE(classify_labelled({}, layout.labels, frame.data(), size).kind, FrameKind::kTest);
  }
}

INSTANTIATE_TEST_SUITE_P(OfBothVersions, Mpls, ::testing::Values(4, 6));

TEST(MplsPort, NeighboursAskWithoutLabels) {
  for (const Tags& tags : kTagLists) {
    const VlanTags vlan(tags);
    uint8_t frame[kTaggedNeighbourFrameBytes] = {};
    const size_t size = vlan.put_in(frame, write_request(*IpAddress::parse("198.18.0.1"), Mac{},
                                                         *IpAddress::parse("198.18.0.2"), frame));
    const LabelStack labels(Labels{{16}});
    EXPECT_EQ(classify_labelled(vlan, labels, frame, size).kind, FrameKind::kNeighbour);
  }
}

}  // namespace
}  // namespace dutperf::net
