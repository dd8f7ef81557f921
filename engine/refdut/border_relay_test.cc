#include "border_relay.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "net/testing/addresses.h"
#include "net/testing/bindings.h"
#include "net/testing/reference_frame.h"

namespace dutperf::refdut {
namespace {

using net::testing::ip;

// RFC 7597 appendix A, example 1.
EdgeRule example_rule() { return {ip("2001:db8::"), 40, ip("192.0.2.0"), 24, 16, 6}; }

constexpr uint32_t kShared = 0xc0000212;  // 192.0.2.18

TEST(BorderRelay, KnowsTheEdgeOfTheRfcsExample) {
  const BorderRelay relay(example_rule());
  const auto edge = ip("2001:db8:12:3400:0:c000:212:34");
  constexpr uint16_t kPorts[] = {1232, 1235, 2256, 2259, 64720, 64723};
  for (const uint16_t port : kPorts) {
    EXPECT_EQ(relay.edge_of(kShared, port), edge) << port;
  }
  EXPECT_EQ(relay.edge_of(kShared, 1236), ip("2001:db8:12:3500:0:c000:212:35"));
}

TEST(BorderRelay, KnowsNoEdgeOfOtherAddressesAndPortsOfNobody) {
  const BorderRelay relay(example_rule());
  EXPECT_EQ(relay.edge_of(kShared, 1023), std::nullopt);
  EXPECT_EQ(relay.edge_of(0xc0000312, 1232), std::nullopt);
}

TEST(BorderRelay, WithoutAnOffsetEachPortIsSomebodys) {
  EdgeRule rule = example_rule();
  rule.psid_offset = 0;
  EXPECT_EQ(BorderRelay(rule).edge_of(kShared, 0x3400), ip("2001:db8:12:3400:0:c000:212:34"));
  EXPECT_EQ(BorderRelay(rule).edge_of(kShared, 0), ip("2001:db8:12::c000:212:0"));
}

TEST(BorderRelay, AnAddressNeedNotBeShared) {
  EdgeRule rule = example_rule();
  rule.ea_bits = 8;
  EXPECT_EQ(BorderRelay(rule).edge_of(kShared, 1024), ip("2001:db8:12::c000:212:0"));
  rule.ipv4 = ip("192.0.2.18");
  rule.ipv4_bits = 32;
  rule.ea_bits = 0;
  EXPECT_EQ(BorderRelay(rule).edge_of(kShared, 1024), ip("2001:db8::c000:212:0"));
}

// Each port's B4 is the row's; of other ports nobody is.
TEST(BorderRelay, OfATableHasTheB4sOfItsRows) {
  const auto rows = net::testing::random_bindings(4, 9);
  EdgeRule rule;
  rule.kind = EdgeRule::Kind::kTable;
  rule.table = std::make_shared<const net::BindingTable>(net::testing::rows_of(rows));
  const BorderRelay relay(rule);
  for (uint32_t port = 0; port < 65536; port += 7) {
    std::optional<net::IpAddress> expected;
    for (const auto& row : rows) {
      if (row.ipv4 == rows[0].ipv4 && row.has(port)) expected = row.b4;
    }
    ASSERT_EQ(relay.edge_of(rows[0].ipv4, static_cast<uint16_t>(port)), expected) << port;
  }
}

// An address, bit after bit.
net::IpAddress slow_address(const EdgeRule& rule, uint32_t ipv4, uint32_t psid) {
  net::IpAddress address = rule.ipv6;
  int at = rule.ipv6_bits;
  const auto append = [&](uint32_t value, int bits) {
    for (int bit = bits - 1; bit >= 0; --bit, ++at) {
      const bool is_set = (value >> bit & 1U) != 0;
      if (is_set) address.bytes[static_cast<size_t>(at) / 8] |= uint8_t(0x80U >> (at % 8));
    }
  };
  const int suffix_bits = 32 - rule.ipv4_bits;
  append(ipv4, suffix_bits);
  append(psid, rule.ea_bits - suffix_bits);
  return address;
}

// lw4o6: each B4 of a table whose rows are numbered, against the rows.
TEST(BorderRelay, KnowsEachB4OfANumberedTable) {
  const EdgeRule rules[] = {
      {ip("2001:db8::1"), 48, ip("192.0.2.0"), 24, 16, 0, EdgeRule::Kind::kBinding},  // a /64 each
      {ip("2001:db8::1000:0"), 112, ip("192.0.2.0"), 24, 16, 0, EdgeRule::Kind::kBinding},
      {ip("2001:db8::7"), 58, ip("192.0.2.0"), 28, 10, 4,
       EdgeRule::Kind::kBinding},  // across both halves
      {ip("2001:db8::"), 128, ip("192.0.2.1"), 32, 0, 0, EdgeRule::Kind::kBinding},
      {ip("::"), 0, ip("192.0.2.0"), 30, 2, 0, EdgeRule::Kind::kBinding},
  };
  for (const EdgeRule& rule : rules) {
    ASSERT_STREQ(rule.fault(), "");
    const BorderRelay relay(rule);
    const uint32_t ipv4 = 0xc0000200 + (rule.ipv4_bits == 32 ? 1 : 0);
    const int psid_bits = rule.ea_bits - (32 - rule.ipv4_bits);
    const int behind = 16 - rule.psid_offset - psid_bits;
    for (uint32_t more = 0; more < 1U << (32 - rule.ipv4_bits); ++more) {
      for (uint32_t psid = 0; psid < 1U << psid_bits; ++psid) {
        const uint32_t first = rule.psid_offset > 0 ? 1U << (16 - rule.psid_offset) : 0;
        const uint32_t least = first | psid << behind;
        const auto most = static_cast<uint16_t>(least | ((1U << behind) - 1));
        const auto edge = slow_address(rule, ipv4 + more, psid);
        ASSERT_EQ(relay.edge_of(ipv4 + more, static_cast<uint16_t>(least)), edge);
        ASSERT_EQ(relay.edge_of(ipv4 + more, most), edge);
      }
    }
    EXPECT_EQ(relay.edge_of(0xc0000300, 5000), std::nullopt);
  }
}

// 6rd: an edge of each of 2^16 IPv4 addresses, against its prefix made as text (RFC 5969 4).
TEST(BorderRelay, KnowsTheIpv4AddressInEachPrefixOfADomain) {
  const BorderRelay relay(
      {ip("2001:db8::"), 32, ip("10.1.0.0"), 16, 16, 0, EdgeRule::Kind::kSixRd});
  char text[64];
  for (uint32_t suffix = 0; suffix < 1U << 16; ++suffix) {
    std::snprintf(text, sizeof(text), "2001:db8:%x:7::9", suffix);
    const net::IpAddress host = ip(text);
    std::snprintf(text, sizeof(text), "10.1.%u.%u", suffix >> 8, suffix & 255);
    ASSERT_EQ(relay.edge_of(host.bytes.data()), ip(text));
  }
  EXPECT_EQ(relay.edge_of(ip("2001:db9:1::").bytes.data()), std::nullopt);
  const BorderRelay all({ip("::"), 0, ip("0.0.0.0"), 0, 32, 0, EdgeRule::Kind::kSixRd});
  EXPECT_EQ(all.edge_of(ip("c000:0212::1").bytes.data()), ip("192.0.2.18"));
  const BorderRelay one({ip("2001:db8::"), 64, ip("192.0.2.18"), 32, 0, 0, EdgeRule::Kind::kSixRd});
  EXPECT_EQ(one.edge_of(ip("2001:db8::5").bytes.data()), ip("192.0.2.18"));
}

TEST(BorderRelay, OfADomainComparesAPacketsPrefixWithItsTunnel) {
  const BorderRelay relay({ip("2001:db8::"), 32, ip("10.0.0.0"), 8, 24, 0, EdgeRule::Kind::kSixRd});
  net::FrameLayout layout = net::testing::sample_layout(6, 128);
  layout.src_ip = ip("2001:db8:102:300::1");
  layout.dst_ip = ip("2001:db8:102:400::1");
  const net::testing::Bytes frame =
      net::testing::reference_frame(layout, net::testing::tagged_payload(layout, {1, 1, 0}, 0, 0));
  const uint8_t* const inner = frame.data() + 14;
  net::Ipv4Header outer{};
  const auto from = [&](const char* address, size_t size) {
    std::copy_n(ip(address).bytes.begin(), 4, outer.src);
    return relay.sender_of(reinterpret_cast<const uint8_t*>(&outer), inner, size);
  };
  const size_t size = frame.size() - 14;
  EXPECT_EQ(from("10.1.2.3", size), Sender::kOwn);
  EXPECT_EQ(from("10.1.2.2", size), Sender::kAnother);
  EXPECT_EQ(from("11.1.2.3", size), Sender::kAnother);
  EXPECT_EQ(from("10.1.2.3", 39), Sender::kNobody);
  EXPECT_EQ(relay.edge_for(inner, size), ip("10.1.2.4"));
}

TEST(BorderRelay, SaysWhatDoesNotFit) {
  EXPECT_STREQ(example_rule().fault(), "");
  EdgeRule rule = example_rule();
  rule.ea_bits = 7;
  EXPECT_STREQ(rule.fault(), "ea_bits are fewer than the IPv4 suffix has");
  rule.ea_bits = 19;
  EXPECT_STREQ(rule.fault(), "psid_offset and the PSID are more bits than a port has");
  rule = example_rule();
  rule.ipv6_bits = 49;
  EXPECT_STREQ(rule.fault(), "ea_bits reach into the interface identifier");
}

TEST(BorderRelay, ComparesAPacketsEdgeWithItsAddressAndPort) {
  const BorderRelay relay(example_rule());
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
    return relay.sender_of(reinterpret_cast<const uint8_t*>(&outer), inner, size);
  };
  EXPECT_EQ(from("2001:db8:12:3400:0:c000:212:34"), Sender::kOwn);
  EXPECT_EQ(from("2001:db8:12:3500:0:c000:212:35"), Sender::kAnother);
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
