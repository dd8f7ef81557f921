#include "rss.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>

#include "net/address.h"
#include "net/headers.h"

namespace dutperf::refdut {
namespace {

struct RssEnd {
  const char* address;
  uint16_t port;
};

using Bytes = std::vector<uint8_t>;

Bytes frame_of(const net::IpAddress& src, uint16_t src_port, const net::IpAddress& dst,
               uint16_t dst_port) {
  const bool v4 = src.version == 4;
  Bytes frame(sizeof(net::EthernetHeader), 0);
  frame.resize(frame.size() + (v4 ? 12 : 8), 0xff);
  for (const net::IpAddress* address : {&src, &dst}) {
    frame.insert(frame.end(), address->bytes.begin(), address->bytes.begin() + (v4 ? 4 : 16));
  }
  for (const uint16_t port : {src_port, dst_port}) {
    frame.push_back(static_cast<uint8_t>(port >> 8));
    frame.push_back(static_cast<uint8_t>(port));
  }
  return frame;
}

struct Published {
  RssEnd dst;
  RssEnd src;
  uint32_t of_addresses;
  uint32_t with_ports;
};

class PublishedHash : public ::testing::TestWithParam<Published> {};

TEST_P(PublishedHash, IsFound) {
  const Published& p = GetParam();
  const auto src = *net::IpAddress::parse(p.src.address);
  const auto dst = *net::IpAddress::parse(p.dst.address);
  const Bytes frame = frame_of(src, p.src.port, dst, p.dst.port);
  EXPECT_EQ(Rss(RssFields::kAddresses, 4).hash(frame.data(), src.version), p.of_addresses);
  EXPECT_EQ(Rss(RssFields::kAddressesAndPorts, 4).hash(frame.data(), src.version), p.with_ports);
}

// Microsoft's "Verifying the RSS hash calculation".
INSTANTIATE_TEST_SUITE_P(
    Suite, PublishedHash,
    ::testing::Values(
        Published{{"161.142.100.80", 1766}, {"66.9.149.187", 2794}, 0x323e8fc2, 0x51ccc178},
        Published{{"65.69.140.83", 4739}, {"199.92.111.2", 14230}, 0xd718262a, 0xc626b0ea},
        Published{{"12.22.207.184", 38024}, {"24.19.198.95", 12898}, 0xd2d0a5de, 0x5c2b394a},
        Published{{"209.142.163.6", 2217}, {"38.27.205.30", 48228}, 0x82989176, 0xafc7327f},
        Published{{"202.188.127.2", 1303}, {"153.39.163.191", 44251}, 0x5d1809c5, 0x10e828a2},
        Published{
            {"3ffe:2501:200:3::1", 1766}, {"3ffe:2501:200:1fff::7", 2794}, 0x2cc18cd5, 0x40207d3d},
        Published{
            {"ff02::1", 4739}, {"3ffe:501:8::260:97ff:fe40:efab", 14230}, 0x0f0c461c, 0xdde51bbf},
        Published{{"fe80::200:f8ff:fe21:67cf", 38024},
                  {"3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251},
                  0x4b61e985,
                  0x02d1feef}));

TEST(Rss, PortsSpreadOverAllQueuesOnlyIfTheyAreHashed) {
  constexpr uint32_t kQueues = 4;
  const auto src = *net::IpAddress::parse("198.18.0.2");
  const auto dst = *net::IpAddress::parse("198.19.0.2");
  const Rss blind(RssFields::kAddresses, kQueues);
  const Rss seeing(RssFields::kAddressesAndPorts, kQueues);
  std::set<uint32_t> one;
  std::map<uint32_t, int> all;
  std::mt19937 random(3);
  std::uniform_int_distribution<int> port(1024, 65535);
  constexpr int kFrames = 40'000;
  for (int i = 0; i < kFrames; ++i) {
    const Bytes frame = frame_of(src, static_cast<uint16_t>(port(random)), dst,
                                 static_cast<uint16_t>(port(random)));
    one.insert(blind.queue_of(frame.data(), 4));
    ++all[seeing.queue_of(frame.data(), 4)];
  }
  EXPECT_EQ(one.size(), 1U);
  ASSERT_EQ(all.size(), kQueues);
  for (const auto& [queue, frames] : all) {
    EXPECT_LT(queue, kQueues);
    EXPECT_NEAR(frames, kFrames / kQueues, 500);
  }
}

TEST(Rss, ThreeQueuesShareTheTableAsEvenlyAsTheyCan) {
  const Rss rss(RssFields::kAddressesAndPorts, 3);
  const auto src = *net::IpAddress::parse("2001:2::2");
  const auto dst = *net::IpAddress::parse("2001:2:0:8000::2");
  for (uint16_t port = 1024; port < 2048; ++port) {
    const Bytes frame = frame_of(src, port, dst, 53);
    const uint32_t entry = rss.hash(frame.data(), 6) % Rss::kTableEntries;
    EXPECT_EQ(rss.queue_of(frame.data(), 6), entry % 3);
  }
}

}  // namespace
}  // namespace dutperf::refdut
