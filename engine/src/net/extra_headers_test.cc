#include "net/extra_headers.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "net/classify.h"
#include "net/testing/reference_frame.h"

namespace dutperf::net {
namespace {

using testing::Bytes;
using testing::kTag;
using testing::reference_frame;
using testing::sample_layout;
using testing::tagged_payload;
using Extensions = std::vector<Ipv6Extension>;
using Options = std::vector<Ipv4Option>;

TEST(ExtraHeaders, OfTheChainOfRfc5180AreSpeltOutHere) {
  const ExtraHeaders chain = ipv6_extensions(Extensions{
      Ipv6Extension::kRouting, Ipv6Extension::kDestinationOptions, Ipv6Extension::kFragment});
  EXPECT_EQ(chain.first_protocol, 43);
  const Bytes expected = {60, 2, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0,  // routing: no segments left
                          0,  0, 0,   0, 0, 0, 0, 0, 0, 0, 0, 0,
                          44, 0, 1,   4, 0, 0, 0, 0,   // destination options: PadN
                          17, 0, 0,   0, 0, 0, 0, 1};  // fragment: offset 0, no more
  EXPECT_EQ(chain.bytes, expected);
}

TEST(ExtraHeaders, MayBeginWithHopByHopAndEndInAuthentication) {
  const ExtraHeaders chain =
      ipv6_extensions(Extensions{Ipv6Extension::kHopByHop, Ipv6Extension::kAuthentication});
  EXPECT_EQ(chain.first_protocol, 0);
  const Bytes expected = {51, 0, 1, 4, 0, 0, 0, 0,               // hop by hop: PadN
                          17, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1,   // 6 words, index 256, number 1
                          0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};  // integrity check value
  EXPECT_EQ(chain.bytes, expected);
}

// The checksum by hand: 2001 + 2 + 2 of the source, 2001 + 2 + 8000 + 2 of the destination, 8
// bytes, next header 135 = 0x87, the header's own 0x1100 + 0: 0xd199, and its complement 0x2e66.
TEST(ExtraHeaders, AMobilityHeadersChecksumIsOfTheAddressesToo) {
  FrameLayout layout = sample_layout(6, 400);
  layout.extra = ipv6_extensions(Extensions{Ipv6Extension::kHopByHop, Ipv6Extension::kMobility});
  EXPECT_EQ(layout.extra.mobility, std::vector<uint32_t>{8});
  const Bytes frame = FrameTemplate(layout, kTag).bytes();
  const Bytes expected = {135, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 0, 0x2e, 0x66, 0, 0};
  EXPECT_EQ(Bytes(frame.begin() + 54, frame.begin() + 70), expected);
}

TEST(ExtraHeaders, OfIpv4AreWholeWords) {
  const ExtraHeaders options = ipv4_options(Options{Ipv4Option::kRouterAlert, Ipv4Option::kNop});
  EXPECT_EQ(options.first_protocol, 17);
  EXPECT_EQ(options.bytes, (Bytes{0x94, 4, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(ipv6_extensions(Extensions{}), ExtraHeaders());
}

FrameLayout random_layout(int version, std::mt19937_64& random) {
  FrameLayout layout = sample_layout(version, 400);
  if (version == 4) {
    Options options(1 + random() % kMaxIpv4Options);
    for (Ipv4Option& option : options) option = static_cast<Ipv4Option>(random() % 2);
    layout.extra = ipv4_options(options);
  } else {
    Extensions extensions(1 + random() % 6);
    for (Ipv6Extension& extension : extensions) {
      extension = static_cast<Ipv6Extension>(random() % 6);
    }
    layout.extra = ipv6_extensions(extensions);
  }
  return layout;
}

class Behind : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ExtraHeaders, Behind, ::testing::Values(4, 6));

TEST_P(Behind, ThemATemplateIsTheFrameWrittenByteForByteAndIsKnownAgain) {
  std::mt19937_64 random(5180);
  for (int i = 0; i < 200; ++i) {
    const FrameLayout layout = random_layout(GetParam(), random);
    const Bytes expected = reference_frame(layout, tagged_payload(layout, kTag, 0, 0));
    ASSERT_EQ(FrameTemplate(layout, kTag).bytes(), expected);
    const Classified found = classify(expected.data(), expected.size());
    ASSERT_EQ(found.kind, FrameKind::kTest);
    ASSERT_EQ(found.ip_headers, (GetParam() == 4 ? 20 : 40) + layout.extra.bytes.size());
    ASSERT_EQ(found.ip_bytes, 382);
    ASSERT_TRUE(checksums_hold(expected.data(), found));
    ASSERT_EQ(damage_of(expected.data(), found, 381), Damage::kLength);
  }
}

// Each changed bit from the IP header's protected part on; IPv6 does not protect its headers.
TEST_P(Behind, ThemNoBitChangesUnseenThatAChecksumCovers) {
  std::mt19937_64 random(1071);
  const FrameLayout layout = random_layout(GetParam(), random);
  const Bytes frame = reference_frame(layout, tagged_payload(layout, kTag, 0, 0));
  const size_t udp = testing::udp_offset(GetParam()) + layout.extra.bytes.size();
  for (size_t bit = 8 * (GetParam() == 4 ? 14 : udp); bit < 8 * frame.size(); ++bit) {
    Bytes flipped = frame;
    flipped[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
    const Classified found = classify(flipped.data(), flipped.size());
    ASSERT_FALSE(found.kind == FrameKind::kTest && checksums_hold(flipped.data(), found)) << bit;
  }
}

// In a heap block of exactly its size, so that the sanitizer sees a read outside.
TEST_P(Behind, ThemNothingIsReadThatIsNotThere) {
  std::mt19937_64 random(42);
  for (int i = 0; i < 20'000; ++i) {
    const FrameLayout layout = random_layout(GetParam(), random);
    Bytes bytes = reference_frame(layout, tagged_payload(layout, kTag, 0, 0));
    for (uint64_t changes = random() % 4; changes > 0; --changes) {
      bytes[14 + random() % 120] = static_cast<uint8_t>(random());
    }
    const size_t size = random() % 2 == 0 ? bytes.size() : random() % bytes.size();
    const auto block = std::make_unique<uint8_t[]>(size);
    std::copy_n(bytes.begin(), size, block.get());
    const Classified found = classify(block.get(), size);
    if (found.kind != FrameKind::kTest) continue;
    checksums_hold(block.get(), found);
    ASSERT_LE(found.ip_headers + sizeof(UdpHeader) + sizeof(WireTag), found.ip_bytes);
  }
}

TEST(Fragments, AreToldFromAPacketThatIsWholeBehindAFragmentHeader) {
  FrameLayout layout = sample_layout(6, 400);
  layout.extra =
      ipv6_extensions(Extensions{Ipv6Extension::kDestinationOptions, Ipv6Extension::kFragment});
  Bytes frame = reference_frame(layout, tagged_payload(layout, kTag, 0, 0));
  const size_t fragment = 54 + 8;
  const auto kind = [&] { return classify(frame.data(), frame.size()).kind; };
  EXPECT_EQ(kind(), FrameKind::kTest);
  frame[fragment + 3] = 1;  // more fragments
  EXPECT_EQ(kind(), FrameKind::kFragment);
  frame[fragment + 3] = 8;  // offset 8
  EXPECT_EQ(kind(), FrameKind::kFragment);
  frame[fragment + 3] = 0;
  EXPECT_EQ(kind(), FrameKind::kTest);
}

}  // namespace
}  // namespace dutperf::net
