#include "net/binding_table.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "net/byte_order.h"
#include "net/encapsulation.h"
#include "net/receiving_end.h"
#include "net/testing/bindings.h"
#include "net/testing/reference_frame.h"

namespace dutperf::net {
namespace {

using testing::BindingRow;
using testing::ip;
using testing::random_bindings;
using testing::rows_of;

constexpr uint32_t kShared = 0xc0000212;  // 192.0.2.18
const IpAddress kB4 = ip("2001:db8::1");

BindingTable::Address words_of(const IpAddress& address) {
  const auto* const bytes = address.bytes.data();
  return {*reinterpret_cast<const Be64*>(bytes), *reinterpret_cast<const Be64*>(bytes + 8)};
}

const BindingRow* slowly(const std::vector<BindingRow>& rows, uint32_t ipv4, uint32_t port) {
  for (const BindingRow& row : rows) {
    if (row.ipv4 == ipv4 && row.has(port)) return &row;
  }
  return nullptr;
}

TEST(BindingTable, FindsTheB4OfEachPortAsItsRowsSay) {
  for (const uint32_t offset : {0U, 4U, 6U, 13U, 15U}) {
    const std::vector<BindingRow> rows = random_bindings(offset, 7 + offset);
    const BindingTable table(rows_of(rows));
    EXPECT_EQ(table.size(), rows.size());
    uint32_t nobodys = 0;
    for (uint32_t address = 0; address < 20; ++address) {
      const uint32_t ipv4 = 0xc0000200U + address * 7919U;
      for (uint32_t port = 0; port < 65536; port += 3) {
        const BindingRow* const expected = slowly(rows, ipv4, port);
        const auto* const found = table.find(ipv4, static_cast<uint16_t>(port));
        ASSERT_EQ(found != nullptr, expected != nullptr) << offset << ' ' << port;
        if (expected != nullptr) {
          ASSERT_EQ(*found, words_of(expected->b4)) << port;
        } else {
          ++nobodys;
        }
      }
    }
    EXPECT_GT(nobodys, 0U);
    EXPECT_EQ(table.find(kShared ^ 0x01000000, 5000), nullptr);
  }
}

TEST(BindingTable, OfWholeAddressesAndOfSinglePorts) {
  const BindingTable whole(rows_of({{kB4, kShared, 0, 0, 0}}));
  constexpr uint16_t kPorts[] = {0, 1023, 1024, 65535};
  for (const uint16_t port : kPorts) EXPECT_NE(whole.find(kShared, port), nullptr);
  EXPECT_EQ(whole.senders()[0].first_port, 1024);
  EXPECT_EQ(whole.senders()[0].last_step, 65535 - 1024);
  EXPECT_FALSE(whole.can_be_spoofed());
  const BindingTable single(rows_of({{kB4, kShared, 65535, 16, 0}}));
  EXPECT_NE(single.find(kShared, 65535), nullptr);
  EXPECT_EQ(single.find(kShared, 65534), nullptr);
  EXPECT_EQ(single.senders()[0].last_step, 0);
}

TEST(BindingTable, SendsFromNoPortBelow1024) {
  // 64 ports each: PSID 15 is the last one below 1024. 2,048 each: of PSID 0 a half is.
  const BindingTable table(
      rows_of({{kB4, kShared, 15, 10, 0}, {kB4, kShared, 16, 10, 0}, {kB4, kShared + 1, 0, 5, 0}}));
  ASSERT_EQ(table.senders().size(), 2U);
  EXPECT_EQ(table.senders()[0].first_port, 1024);
  EXPECT_EQ(table.senders()[0].last_step, 63);
  EXPECT_EQ(table.senders()[1].first_port, 1024);
  EXPECT_EQ(table.senders()[1].last_step, 1023);
  EXPECT_NE(table.find(kShared, 1000), nullptr) << "what arrives there is its";
}

TEST(BindingTable, KnowsOfEachRowOneWithAnotherB4) {
  std::vector<BindingRow> rows;
  const char* const b4s[] = {"::a", "::b", "::b", "::a", "::a"};
  for (uint32_t i = 0; i < 5; ++i) rows.push_back({ip(b4s[i]), kShared, 1 + i, 3, 0});
  const BindingTable table(rows_of(rows));
  const uint32_t expected[] = {1, 3, 3, 1, 1};
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(table.senders()[i].other, expected[i]) << i;
  EXPECT_TRUE(table.can_be_spoofed());
}

TEST(BindingTable, RefusesRowsThatDoNotFitTogether) {
  const BindingRow first{kB4, kShared, 5, 8, 4};
  const auto refusal = [&](const BindingRow& second) {
    try {
      BindingTable(rows_of({first, second}));
      return std::string();
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
  };
  const IpAddress other = ip("2001:db8::2");
  EXPECT_EQ(refusal({other, kShared, 6, 8, 4}), "");
  EXPECT_EQ(refusal({kB4, kShared, 6, 8, 4}), "") << "a B4 may have several";
  EXPECT_EQ(refusal({other, kShared + 1, 5, 8, 4}), "");
  const std::string taken = "row 1 has ports of its address that another has";
  EXPECT_EQ(refusal({other, kShared, 5, 8, 4}), taken);
  EXPECT_EQ(refusal({other, kShared, 10, 9, 4}), taken) << "within the first one's";
  EXPECT_EQ(refusal({other, kShared, 0, 5, 4}), "row 0 has ports of its address that another has");
  EXPECT_EQ(refusal({other, kShared, 6, 8, 6}), "row 1 has another psid_offset than the first one");
  EXPECT_EQ(refusal({other, kShared, 256, 8, 4}), "row 1 has a PSID that is longer than it says");
  const std::string bits = "row 1 has more bits before and in its PSID than a port";
  EXPECT_EQ(refusal({other, kShared, 0, 13, 4}), bits);
  EXPECT_EQ(refusal({other, kShared, 0, 0, 16}), bits);
  EXPECT_THROW(BindingTable(""), std::invalid_argument);
  EXPECT_THROW(BindingTable(std::string(25, '\0')), std::invalid_argument);
  EXPECT_THROW(BindingTable(rows_of({{kB4, kShared, 0, 10, 0}})), std::invalid_argument)
      << "nobody may send";
}

// Frames to B4s in a tunnel, each bit of whose outer destination counts.
TEST(BindingTable, SaysWhoseAFrameIs) {
  const std::vector<BindingRow> rows = random_bindings(0, 3);
  const BindingTable table(rows_of(rows));
  const ReceivingEnd end({ip("::"), true, {}, &table}, sizeof(Ipv6Header));
  TunnelEnds ends;
  ends.kind = Tunnel::kIp;
  ends.local = ip("2001:2::1");
  FrameLayout layout = testing::sample_layout(4, 200);
  std::vector<std::vector<uint8_t>> frames;
  std::vector<const uint8_t*> places;
  uint64_t expected = 0;
  for (size_t i = 0; i < 64; ++i) {
    const BindingRow& row = rows[i];
    layout.dst_ip = {4, {}};
    *reinterpret_cast<Be32*>(layout.dst_ip.bytes.data()) = row.ipv4;
    layout.dst_port = static_cast<uint16_t>(row.psid << (16 - row.length) | i % 4);
    ends.remote = row.b4;
    const size_t wrong_bit = 3 * i;
    if (i % 3 == 0 && wrong_bit < 128) {
      ends.remote.bytes[wrong_bit / 8] ^= static_cast<uint8_t>(0x80U >> (wrong_bit % 8));
    } else {
      expected |= 1ULL << i;
    }
    layout.outer = Encapsulation(ends);
    frames.push_back(testing::tagged_frame(layout));
  }
  for (const auto& frame : frames) places.push_back(frame.data() + sizeof(Ipv6Header));
  EXPECT_EQ(end.which_hold(places.data(), 64), expected);
  EXPECT_NE(expected, 0U);
}

// Whatever tunnel they are in: no row has the address, or the port; or they are of IPv6.
TEST(BindingTable, HasNoB4ForWhatIsInNoRow) {
  const BindingTable table(rows_of({{kB4, kShared, 5, 8, 4}}));
  const ReceivingEnd end({ip("::"), true, {}, &table}, sizeof(Ipv6Header));
  TunnelEnds ends;
  ends.kind = Tunnel::kIp;
  ends.local = ip("2001:2::1");
  const auto is_right = [&](FrameLayout layout, const IpAddress& b4) {
    ends.remote = b4;
    layout.outer = Encapsulation(ends);
    const std::vector<uint8_t> frame = testing::tagged_frame(layout);
    return end.holds(frame.data() + sizeof(Ipv6Header));
  };
  FrameLayout right = testing::sample_layout(4, 200);
  right.dst_ip = ip("192.0.2.18");
  right.dst_port = 0x1050;
  EXPECT_TRUE(is_right(right, kB4));
  FrameLayout wrong = right;
  wrong.dst_ip = ip("192.0.2.19");
  for (const char* const b4 : {"2001:db8::1", "::"}) EXPECT_FALSE(is_right(wrong, ip(b4)));
  constexpr uint16_t kPorts[] = {0x0050, 0x1040, 0x1060, 0};
  for (const uint16_t port : kPorts) {
    wrong = right;
    wrong.dst_port = port;
    for (const char* const b4 : {"2001:db8::1", "::"}) EXPECT_FALSE(is_right(wrong, ip(b4)));
  }
  wrong = testing::sample_layout(6, 200);
  wrong.dst_port = right.dst_port;
  constexpr uint8_t kDscps[] = {0, 20, 63};  // stands where IPv4 has its header's length
  for (const uint8_t dscp : kDscps) {
    wrong.dscp = dscp;
    EXPECT_FALSE(is_right(wrong, kB4)) << int{dscp};
  }
}

}  // namespace
}  // namespace dutperf::net
