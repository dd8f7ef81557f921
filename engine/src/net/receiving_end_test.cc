#include "net/receiving_end.h"

#include <gtest/gtest.h>

#include <random>

#include "net/encapsulation.h"
#include "net/testing/addresses.h"
#include "net/testing/reference_frame.h"

namespace dutperf::net {
namespace {

using testing::ip;
using testing::reference_frame;
using testing::sample_layout;
using testing::tagged_frame;

// The rule and the edge of RFC 7597 appendix A, example 1: port 1232 is of PSID 0x34.
FrameLayout to_edge(int version) {
  FrameLayout layout = sample_layout(version, 200);
  layout.dst_ip = ip(version == 4 ? "192.0.2.18" : "2001:db8:12:3400:0:c000:212:34");
  layout.dst_port = 1232;
  return layout;
}

const ReceivedEnd kOuterOfEdge{
    ip("2001:db8:0:0:0:c000:200:0"),
    true,
    {{40, 8, false, 24}, {48, 8, true, 6}, {104, 8, false, 24}, {120, 8, true, 6}}};
const ReceivedEnd kEdge{
    ip("2001:db8:0:0:0:c000:200:0"),
    false,
    {{40, 8, false, 40}, {48, 8, true, 6}, {104, 8, false, 40}, {120, 8, true, 6}}};

TEST(ReceivingEnd, OfATranslatedFrameIsThatOfItsPort) {
  const ReceivingEnd end(kEdge, 0);
  FrameLayout layout = to_edge(6);
  EXPECT_TRUE(end.holds(tagged_frame(layout).data()));
  layout.dst_port = 1232 + 3;  // the last of the same PSID
  EXPECT_TRUE(end.holds(tagged_frame(layout).data()));
  layout.dst_port = 1232 + 4;
  EXPECT_FALSE(end.holds(tagged_frame(layout).data()));
}

TEST(ReceivingEnd, EachBitOfItsAddressCounts) {
  const ReceivingEnd end(kEdge, 0);
  const FrameLayout layout = to_edge(6);
  for (uint32_t bit = 0; bit < 128; ++bit) {
    FrameLayout other = layout;
    other.dst_ip.bytes[bit / 8] ^= static_cast<uint8_t>(0x80U >> (bit % 8));
    EXPECT_FALSE(end.holds(tagged_frame(other).data())) << bit;
  }
}

// Of a suffix that is itself any value will do, if both its places have it.
TEST(ReceivingEnd, MayBeAnotherEdgeWhereItFollowsItself) {
  const ReceivingEnd end(kEdge, 0);
  FrameLayout layout = to_edge(6);
  layout.dst_ip = ip("2001:db8:13:3400:0:c000:213:34");
  EXPECT_TRUE(end.holds(tagged_frame(layout).data()));
}

// 6rd: the domain 2001:db8::/32 of 10.0.0.0/8 (RFC 5969 4).
TEST(ReceivingEnd, OfATunnelOverIpv4IsThatOfThePacketsPrefix) {
  const ReceivedEnd of_domain{ip("10.0.0.0"), true, {{104, 24, false, 32}}};
  TunnelEnds ends;
  ends.kind = Tunnel::kIp;
  ends.local = ip("10.0.0.1");
  ends.remote = ip("10.1.2.3");
  const ReceivingEnd end(of_domain, sizeof(Ipv4Header));
  FrameLayout layout = sample_layout(6, 200);
  layout.outer = Encapsulation(ends);
  layout.dst_ip = ip("2001:db8:102:300::1");
  const auto holds = [&] { return end.holds(tagged_frame(layout).data() + sizeof(Ipv4Header)); };
  EXPECT_TRUE(holds());
  for (uint32_t bit = 0; bit < 32; ++bit) {
    TunnelEnds other = ends;
    other.remote.bytes[bit / 8] ^= static_cast<uint8_t>(0x80U >> (bit % 8));
    layout.outer = Encapsulation(other);
    EXPECT_FALSE(holds()) << bit;
  }
  layout.outer = Encapsulation(ends);
  layout.dst_ip = ip("2001:db8:102:400::1");
  EXPECT_FALSE(holds());
}

TEST(ReceivingEnd, OfATunnelIsThatOfThePacketInIt) {
  TunnelEnds ends;
  ends.kind = Tunnel::kIp;
  ends.local = ip("2001:db8:ffff::1");
  ends.remote = ip("2001:db8:12:3400:0:c000:212:34");
  const ReceivingEnd end(kOuterOfEdge, sizeof(Ipv6Header));
  FrameLayout layout = to_edge(4);
  layout.outer = Encapsulation(ends);
  const auto holds = [&] { return end.holds(tagged_frame(layout).data() + sizeof(Ipv6Header)); };
  EXPECT_TRUE(holds());
  layout.dst_ip = ip("192.0.2.19");
  EXPECT_FALSE(holds());
  layout.dst_ip = ip("192.0.2.18");
  layout.dst_port = 1232 + 4;
  EXPECT_FALSE(holds());
}

// Bit by bit, as slowly as it can be said.
bool slowly(const ReceivedEnd& end, const IpAddress& found, uint16_t port) {
  const auto bit_of = [](const IpAddress& address, uint32_t bit) {
    return (address.bytes[bit / 8] >> (7 - bit % 8) & 1) != 0;
  };
  for (uint32_t bit = 0; bit < 128; ++bit) {
    bool expected = bit_of(end.address, bit);
    for (const FollowingBits& each : end.follows) {
      if (bit < each.offset || bit >= uint32_t{each.offset} + each.width) continue;
      const uint32_t of = each.of_offset + bit - each.offset;
      expected = each.of_port ? (port >> (15 - of) & 1) != 0 : bit_of(found, of);
    }
    if (bit_of(found, bit) != expected) return false;
  }
  return true;
}

TEST(ReceivingEnd, AgreesWithItsSlowTwin) {
  std::mt19937 random(7);
  const auto below = [&](uint32_t end) { return static_cast<uint32_t>(random() % end); };
  uint32_t held = 0;
  for (int round = 0; round < 2000; ++round) {
    ReceivedEnd end{ip("2001:db8::1"), false, {}};
    for (uint32_t at = below(40); at < 120; at += 1 + below(40)) {
      FollowingBits bits;
      bits.of_port = below(2) == 1;
      const uint32_t most = std::min<uint32_t>(bits.of_port ? 16 : 32, 128 - at);
      bits.offset = static_cast<uint8_t>(at);
      bits.width = static_cast<uint8_t>(1 + below(most));
      const uint32_t room = (bits.of_port ? 16U : 128U) - bits.width;
      bits.of_offset = static_cast<uint8_t>(below(room + 1));
      end.follows.push_back(bits);
      at += bits.width;
    }
    // A fitting address, by going on until nothing changes, and now and then one bit off.
    FrameLayout layout = to_edge(6);
    layout.dst_ip = end.address;
    layout.dst_port = static_cast<uint16_t>(random());
    for (int again = 0; again < 40; ++again) {
      for (const FollowingBits& each : end.follows) {
        for (uint32_t i = 0; i < each.width; ++i) {
          const uint32_t of = each.of_offset + i;
          const bool set = each.of_port ? (layout.dst_port >> (15 - of) & 1) != 0
                                        : (layout.dst_ip.bytes[of / 8] >> (7 - of % 8) & 1) != 0;
          const uint32_t to = each.offset + i;
          const auto mask = static_cast<uint8_t>(0x80U >> (to % 8));
          uint8_t& byte = layout.dst_ip.bytes[to / 8];
          byte = static_cast<uint8_t>(set ? byte | mask : byte & ~mask);
        }
      }
    }
    if (below(3) == 0) layout.dst_ip.bytes[below(16)] ^= static_cast<uint8_t>(1U << below(8));
    const bool expected = slowly(end, layout.dst_ip, layout.dst_port);
    held += expected;
    ASSERT_EQ(ReceivingEnd(end, 0).holds(tagged_frame(layout).data()), expected) << round;
  }
  EXPECT_GT(held, 300);
  EXPECT_LT(held, 1900);
}

}  // namespace
}  // namespace dutperf::net
