#include "map_relay.h"

#include <gtest/gtest.h>

#include "net/testing/addresses.h"
#include "net/testing/reference_frame.h"

namespace dutperf::refdut {
namespace {

using net::testing::ip;

// RFC 7597 appendix A, example 1.
MapRule example_rule() { return {ip("2001:db8::"), 40, ip("192.0.2.0"), 24, 16, 6}; }

constexpr uint32_t kShared = 0xc0000212;  // 192.0.2.18

TEST(MapRelay, KnowsTheEdgeOfTheRfcsExample) {
  const MapRelay relay(example_rule());
  const auto edge = ip("2001:db8:12:3400:0:c000:212:34");
  constexpr uint16_t kPorts[] = {1232, 1235, 2256, 2259, 64720, 64723};
  for (const uint16_t port : kPorts) {
    EXPECT_EQ(relay.edge_of(kShared, port), edge) << port;
  }
  EXPECT_EQ(relay.edge_of(kShared, 1236), ip("2001:db8:12:3500:0:c000:212:35"));
}

TEST(MapRelay, KnowsNoEdgeOfOtherAddressesAndPortsOfNobody) {
  const MapRelay relay(example_rule());
  EXPECT_EQ(relay.edge_of(kShared, 1023), std::nullopt);
  EXPECT_EQ(relay.edge_of(0xc0000312, 1232), std::nullopt);
}

TEST(MapRelay, WithoutAnOffsetEachPortIsSomebodys) {
  MapRule rule = example_rule();
  rule.psid_offset = 0;
  EXPECT_EQ(MapRelay(rule).edge_of(kShared, 0x3400), ip("2001:db8:12:3400:0:c000:212:34"));
  EXPECT_EQ(MapRelay(rule).edge_of(kShared, 0), ip("2001:db8:12::c000:212:0"));
}

TEST(MapRelay, AnAddressNeedNotBeShared) {
  MapRule rule = example_rule();
  rule.ea_bits = 8;
  EXPECT_EQ(MapRelay(rule).edge_of(kShared, 1024), ip("2001:db8:12::c000:212:0"));
  rule.ipv4 = ip("192.0.2.18");
  rule.ipv4_bits = 32;
  rule.ea_bits = 0;
  EXPECT_EQ(MapRelay(rule).edge_of(kShared, 1024), ip("2001:db8::c000:212:0"));
}

TEST(MapRelay, SaysWhatDoesNotFit) {
  EXPECT_STREQ(example_rule().fault(), "");
  MapRule rule = example_rule();
  rule.ea_bits = 7;
  EXPECT_STREQ(rule.fault(), "ea_bits are fewer than the IPv4 suffix has");
  rule.ea_bits = 19;
  EXPECT_STREQ(rule.fault(), "psid_offset and the PSID are more bits than a port has");
  rule = example_rule();
  rule.ipv6_bits = 49;
  EXPECT_STREQ(rule.fault(), "ea_bits reach into the interface identifier");
}

TEST(MapRelay, ComparesAPacketsEdgeWithItsAddressAndPort) {
  const MapRelay relay(example_rule());
  net::FrameLayout layout = net::testing::sample_layout(4, 128);
  layout.src_ip = ip("192.0.2.18");
  layout.src_port = 1232;
  layout.dst_ip = ip("192.0.2.1");
  layout.dst_port = 2256;
  const net::testing::Bytes frame =
      net::testing::reference_frame(layout, net::testing::tagged_payload(layout, {1, 1, 0}, 0, 0));
  const uint8_t* const inner = frame.data() + 14;
  const size_t size = frame.size() - 14;
  net::Ipv6Header outer{};
  const auto from = [&](const char* address) {
    const net::IpAddress src = ip(address);
    std::copy(src.bytes.begin(), src.bytes.end(), outer.src);
    return relay.is_from(reinterpret_cast<const uint8_t*>(&outer), inner, size);
  };
  EXPECT_TRUE(from("2001:db8:12:3400:0:c000:212:34"));
  EXPECT_FALSE(from("2001:db8:12:3500:0:c000:212:35"));
  EXPECT_EQ(relay.edge_for(inner, size), ip("2001:db8:1:3400:0:c000:201:34"));
  for (size_t shorter = 0; shorter < 24; ++shorter) {
    EXPECT_EQ(relay.edge_for(inner, shorter), std::nullopt);
  }
  net::testing::Bytes other = frame;
  other[14 + 9] = 1;  // ICMP
  EXPECT_EQ(relay.edge_for(other.data() + 14, size), std::nullopt);
  other = frame;
  other[14 + 6] = 0x20;  // a piece
  EXPECT_EQ(relay.edge_for(other.data() + 14, size), std::nullopt);
}

}  // namespace
}  // namespace dutperf::refdut
