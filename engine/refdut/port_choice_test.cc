#include "port_choice.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

#include "net/headers.h"
#include "net/testing/addresses.h"

namespace dutperf::refdut {
namespace {

using net::IpAddress;
using net::testing::ip;
using Lists = std::vector<std::vector<IpAddress>>;

int number_for(const PortChoice& choice, const IpAddress& destination) {
  net::Ipv6Header header{};  // room for either
  auto* bytes = reinterpret_cast<uint8_t*>(&header);
  const bool is_ipv4 = destination.version == 4;
  std::copy_n(destination.bytes.begin(), destination.size(),
              is_ipv4 ? reinterpret_cast<net::Ipv4Header*>(bytes)->dst : header.dst);
  return choice.number_for(is_ipv4 ? net::kEtherTypeIpv4 : net::kEtherTypeIpv6, bytes);
}

TEST(PortChoice, IsThePortInWhoseNetworkTheDestinationIs) {
  const PortChoice choice(Lists{{ip("198.18.0.1"), ip("2001:2::1")},
                                {ip("198.18.1.1"), ip("2001:2:0:1::1")},
                                {ip("198.18.2.1"), ip("2001:2:0:2::1")}});
  for (const int last : {0, 1, 2, 254, 255}) {
    for (const int network : {0, 1, 2}) {
      const std::string ipv4 = "198.18." + std::to_string(network) + "." + std::to_string(last);
      EXPECT_EQ(number_for(choice, ip(ipv4.c_str())), network) << ipv4;
      const std::string ipv6 = "2001:2:0:" + std::to_string(network) + "::" + std::to_string(last);
      EXPECT_EQ(number_for(choice, ip(ipv6.c_str())), network) << ipv6;
    }
  }
}

// As those of RFC 2544's networks, which may be before or behind the bits that tell ports apart.
TEST(PortChoice, IsNotChangedByBitsInWhichThePortsDoNotDiffer) {
  const PortChoice choice(
      Lists{{ip("198.18.0.1"), ip("2001:2::1")}, {ip("198.18.64.1"), ip("2001:2:0:1::1")}});
  for (const char* text : {"198.18.0.2", "198.19.0.2", "198.18.63.2", "10.128.31.9", "2001:2::2",
                           "2001:2:0:ff00::2", "2001:4:0:8000::ffff"}) {
    EXPECT_EQ(number_for(choice, ip(text)), 0) << text;
  }
  for (const char* text : {"198.18.64.2", "198.19.64.2", "198.18.127.2", "10.128.95.9",
                           "2001:2:0:1::2", "2001:2:0:ff01::2", "2001:4:0:8001::ffff"}) {
    EXPECT_EQ(number_for(choice, ip(text)), 1) << text;
  }
}

TEST(PortChoice, IsTheFirstPortWhereNothingIsToBeChosen) {
  const PortChoice one(Lists{{ip("198.18.0.1")}});
  EXPECT_EQ(number_for(one, ip("10.0.0.1")), 0);
  const PortChoice ipv4_only(Lists{{ip("198.18.0.1")}, {ip("198.18.1.1")}});
  EXPECT_EQ(number_for(ipv4_only, ip("2001:2:0:1::2")), 0);
  const PortChoice half(Lists{{ip("198.18.0.1")}, {ip("198.18.1.1"), ip("2001:2::1")}});
  EXPECT_EQ(number_for(half, ip("2001:2:0:1::2")), 1) << "the only one with such an address";
}

// The slow twin: bit by bit, whoever differs first is out.
int slow_number_for(const Lists& own, const IpAddress& destination) {
  std::vector<std::pair<size_t, IpAddress>> left;
  for (size_t number = 0; number < own.size(); ++number) {
    for (const IpAddress& address : own[number]) {
      if (address.version == destination.version) left.emplace_back(number, address);
    }
  }
  const auto bit = [](const IpAddress& address, size_t i) {
    return address.bytes[i / 8] >> (7 - i % 8) & 1;
  };
  for (size_t i = 0; i < 8 * destination.size(); ++i) {
    decltype(left) same;
    for (const auto& candidate : left) {
      if (bit(candidate.second, i) == bit(destination, i)) same.push_back(candidate);
    }
    if (!same.empty()) left = same;
  }
  return left.empty() ? 0 : static_cast<int>(left.front().first);
}

TEST(PortChoice, IsWhatLookingBitByBitFinds) {
  std::mt19937_64 random(8);
  // Few ones: long common prefixes, too.
  const auto draw = [&](int version) {
    IpAddress address;
    address.version = version;
    for (size_t i = 0; i < address.size(); ++i) {
      address.bytes[i] = static_cast<uint8_t>(random() & random() & random());
    }
    return address;
  };
  std::bitset<4> chosen;
  for (int round = 0; round < 3000; ++round) {
    Lists own(1 + random() % 4);
    for (auto& addresses : own) {
      for (size_t i = 1 + random() % 3; i > 0; --i) addresses.push_back(draw(random() % 2 ? 4 : 6));
    }
    const PortChoice choice(own);
    for (const int version : {4, 6}) {
      const IpAddress destination = draw(version);
      const int number = number_for(choice, destination);
      ASSERT_EQ(number, slow_number_for(own, destination)) << destination.text();
      chosen.set(static_cast<size_t>(number));
    }
  }
  EXPECT_TRUE(chosen.all()) << "the test is about something";
}

}  // namespace
}  // namespace dutperf::refdut
