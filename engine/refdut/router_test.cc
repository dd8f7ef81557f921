#include "router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "net/classify.h"
#include "net/testing/reference_frame.h"
#include "testing/tester.h"

namespace dutperf::refdut {
namespace {

using net::IpAddress;
using net::Mac;
using net::testing::Bytes;
using net::testing::reference_frame;
using net::testing::reference_sum;
using net::testing::tagged_payload;
using testing::kOwn;
using testing::kTester;
using Verdict = Router::Verdict;

const Routing kRoutesOfBoth{
    true,
    {{*IpAddress::parse("198.18.0.1"), *IpAddress::parse("2001:2::1")},
     {*IpAddress::parse("198.19.0.1"), *IpAddress::parse("2001:2:0:8000::1")}}};

// From the tester to the router, on the left.
Bytes frame_living(int version, uint8_t ttl) {
  net::FrameLayout layout = net::testing::sample_layout(version, 128);
  layout.src_mac = kTester[0];
  layout.dst_mac = kOwn[0];
  layout.ttl = ttl;
  return reference_frame(layout, tagged_payload(layout, {1, 0, 0}, 5, 6));
}

// Makes the tester known on `side`: it asks for the router's address there.
Verdict ask(Router& router, size_t side, const char* own, const char* target) {
  Bytes frame(net::kNeighbourFrameBytes);
  frame.resize(net::write_request(*IpAddress::parse(own), kTester[side], *IpAddress::parse(target),
                                  frame.data()));
  return router.handle(side, frame.data(), frame.size());
}

class Routed : public ::testing::TestWithParam<int> {
 protected:
  Router router_{kRoutesOfBoth, kOwn};
};

INSTANTIATE_TEST_SUITE_P(Versions, Routed, ::testing::Values(4, 6));

TEST_P(Routed, FramesHaveOneHopLessAndNewMacsAndNothingElseChanges) {
  ask(router_, 1, "198.19.0.2", "198.19.0.1");
  for (int ttl = 2; ttl <= 255; ++ttl) {
    Bytes frame = frame_living(GetParam(), static_cast<uint8_t>(ttl));
    ASSERT_EQ(router_.handle(0, frame.data(), frame.size()), Verdict::kForward);
    net::FrameLayout layout = net::testing::sample_layout(GetParam(), 128);
    layout.src_mac = kOwn[1];
    layout.dst_mac = kTester[1];
    layout.ttl = static_cast<uint8_t>(ttl - 1);
    ASSERT_EQ(frame, reference_frame(layout, tagged_payload(layout, {1, 0, 0}, 5, 6))) << ttl;
  }
}

TEST_P(Routed, FramesWithoutAHopLeftAreDropped) {
  ask(router_, 1, "198.19.0.2", "198.19.0.1");
  for (const uint8_t ttl : {uint8_t{0}, uint8_t{1}}) {
    Bytes frame = frame_living(GetParam(), ttl);
    EXPECT_EQ(router_.handle(0, frame.data(), frame.size()), Verdict::kDrop);
  }
}

TEST_P(Routed, FramesForAnUnknownNeighbourAreDropped) {
  Bytes frame = frame_living(GetParam(), 10);
  EXPECT_EQ(router_.handle(0, frame.data(), frame.size()), Verdict::kDrop);
  ask(router_, 1, "198.19.0.2", "198.19.0.1");
  EXPECT_EQ(router_.handle(0, frame.data(), frame.size()), Verdict::kForward);
}

TEST_P(Routed, FramesForAnotherMacAreDropped) {
  ask(router_, 1, "198.19.0.2", "198.19.0.1");
  Bytes frame = frame_living(GetParam(), 10);
  frame[5] ^= 1;
  EXPECT_EQ(router_.handle(0, frame.data(), frame.size()), Verdict::kDrop);
}

// A group's MAC address stays; nobody has to be known beyond.
TEST_P(Routed, FramesForAGroupAreForwarded) {
  const bool ipv4 = GetParam() == 4;
  Bytes frame = frame_living(GetParam(), 10);
  const Bytes mac = ipv4 ? Bytes{0x01, 0x00, 0x5e, 0x7f, 0, 1} : Bytes{0x33, 0x33, 0, 0, 0, 1};
  std::copy(mac.begin(), mac.end(), frame.begin());
  const size_t to = ipv4 ? 14 + 16 : 14 + 24;
  const Bytes before = frame;
  EXPECT_EQ(router_.handle(0, frame.data(), frame.size()), Verdict::kDrop) << "no group";
  frame = before;
  frame[to] = ipv4 ? 239 : 0xff;
  frame[to + 1] = ipv4 ? 255 : 0x15;
  EXPECT_EQ(router_.handle(0, frame.data(), frame.size()), Verdict::kForward);
  EXPECT_TRUE(std::equal(mac.begin(), mac.end(), frame.begin()));
  EXPECT_TRUE(std::equal(kOwn[1].bytes.begin(), kOwn[1].bytes.end(), frame.begin() + 6));
  frame = before;
  const Bytes on_the_link = ipv4 ? Bytes{224, 0, 0, 22} : Bytes{0xff, 0x02, 0, 0};
  std::copy(on_the_link.begin(), on_the_link.end(), frame.begin() + static_cast<ptrdiff_t>(to));
  EXPECT_EQ(router_.handle(0, frame.data(), frame.size()), Verdict::kDrop) << "stays on its link";
}

TEST(Router, KeepsIpv4ChecksumsValidForAllHeaders) {
  Bytes header = {0x45, 0, 0, 60, 0, 0, 0, 0, 0, 17, 0, 0, 198, 18, 0, 2, 198, 19, 0, 2};
  for (unsigned id = 0; id < 0x10000; id += 7) {
    for (const unsigned ttl : {2U, 64U, 255U}) {
      header[4] = static_cast<uint8_t>(id >> 8);
      header[5] = static_cast<uint8_t>(id);
      header[8] = static_cast<uint8_t>(ttl);
      header[10] = header[11] = 0;
      const auto checksum = static_cast<uint16_t>(~reference_sum(header));
      header[10] = static_cast<uint8_t>(checksum >> 8);
      header[11] = static_cast<uint8_t>(checksum);
      ASSERT_TRUE(take_hop(net::kEtherTypeIpv4, header.data()));
      ASSERT_EQ(header[8], ttl - 1);
      ASSERT_EQ(reference_sum(header), 0xffff);
    }
  }
}

TEST(Router, AnswersForItsOwnAddressesOnTheirSideOnly) {
  Router router(kRoutesOfBoth, kOwn);
  EXPECT_EQ(ask(router, 0, "198.18.0.2", "198.18.0.1"), Verdict::kReply);
  const auto arp = net::parse_answer(router.reply(), router.reply_bytes());
  ASSERT_TRUE(arp.has_value());
  EXPECT_EQ(arp->mac, kOwn[0]);
  EXPECT_EQ(arp->ip, IpAddress::parse("198.18.0.1"));
  EXPECT_EQ(ask(router, 1, "2001:2:0:8000::2", "2001:2:0:8000::1"), Verdict::kReply);
  const auto advertisement = net::parse_answer(router.reply(), router.reply_bytes());
  ASSERT_TRUE(advertisement.has_value());
  EXPECT_EQ(advertisement->mac, kOwn[1]);
  EXPECT_EQ(ask(router, 0, "198.18.0.2", "198.19.0.1"), Verdict::kDrop);
  EXPECT_EQ(ask(router, 0, "198.18.0.2", "198.18.0.99"), Verdict::kDrop);
}

TEST(Router, DropsWhatIsTooShortOrNoIp) {
  Router router(kRoutesOfBoth, kOwn);
  ask(router, 1, "198.19.0.2", "198.19.0.1");
  for (const int version : {4, 6}) {
    const Bytes frame = frame_living(version, 10);
    const size_t headers = net::testing::udp_offset(version);
    for (size_t size = 0; size < headers; ++size) {
      Bytes cut(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(size));
      ASSERT_EQ(router.handle(0, cut.data(), size), Verdict::kDrop) << size;
    }
  }
  Bytes other = frame_living(4, 10);
  other[12] = 0x88;
  EXPECT_EQ(router.handle(0, other.data(), other.size()), Verdict::kDrop);
}

}  // namespace
}  // namespace dutperf::refdut
