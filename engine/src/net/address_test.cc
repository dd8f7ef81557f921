#include "net/address.h"

#include <gtest/gtest.h>

#include <random>

namespace dutperf::net {
namespace {

TEST(Mac, IsReadAndWrittenInLowerCaseWithColons) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 1000; ++i) {
    Mac mac;
    for (uint8_t& byte : mac.bytes) byte = static_cast<uint8_t>(random());
    ASSERT_EQ(Mac::parse(mac.text()), mac) << mac.text();
  }
  EXPECT_EQ(Mac::parse("02:00:00:0a:bc:ff"), (Mac{{2, 0, 0, 0x0a, 0xbc, 0xff}}));
  EXPECT_EQ(kBroadcastMac.text(), "ff:ff:ff:ff:ff:ff");
}

class NoMac : public ::testing::TestWithParam<const char*> {};

TEST_P(NoMac, IsRefused) { EXPECT_EQ(Mac::parse(GetParam()), std::nullopt); }

INSTANTIATE_TEST_SUITE_P(Texts, NoMac,
                         ::testing::Values("", "02:00:00:00:00", "02:00:00:00:00:01 ",
                                           "02:00:00:00:00:0", "02-00-00-00-00-01",
                                           "02:00:00:00:00:0g", "02:00:00:00:00:AB",
                                           " 2:00:00:00:00:01", "+2:00:00:00:00:01",
                                           "-2:00:00:00:00:01", "0x:00:00:00:00:01",
                                           "02:00:00:00:00:01:02", "2:000:00:00:00:01",
                                           "02:00:00:00:00.01", "0200:00:00:00:0001"));

TEST(IpAddress, IsReadAndWrittenInItsShortestForm) {
  for (const char* text :
       {"0.0.0.0", "198.18.0.1", "255.255.255.255", "::", "2001:2::2", "2001:2:0:8000::2",
        "fe80::1", "64:ff9b::c613:2", "ff02::1:ff00:1", "1:2:3:4:5:6:7:8"}) {
    const auto address = IpAddress::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->text(), text);
    EXPECT_EQ(IpAddress::from_bytes(address->version, address->bytes.data()), *address);
  }
}

TEST(IpAddress, ReadsLongerForms) {
  EXPECT_EQ(IpAddress::parse("2001:0002:0000::0002"), IpAddress::parse("2001:2::2"));
  EXPECT_EQ(IpAddress::parse("64:ff9b::198.19.0.2"), IpAddress::parse("64:ff9b::c613:2"));
  EXPECT_EQ(IpAddress::parse("FE80::A"), IpAddress::parse("fe80::a"));
}

TEST(IpAddress, KnowsItsVersionAndSize) {
  EXPECT_EQ(IpAddress::parse("198.18.0.1")->version, 4);
  EXPECT_EQ(IpAddress::parse("198.18.0.1")->size(), 4U);
  EXPECT_EQ(IpAddress::parse("::1")->version, 6);
  EXPECT_EQ(IpAddress::parse("::1")->size(), 16U);
  EXPECT_NE(IpAddress::parse("0.0.0.0"), IpAddress::parse("::"));
}

class NoAddress : public ::testing::TestWithParam<std::string> {};

TEST_P(NoAddress, IsRefused) { EXPECT_EQ(IpAddress::parse(GetParam()), std::nullopt); }

INSTANTIATE_TEST_SUITE_P(Texts, NoAddress,
                         ::testing::Values("", "198.18.0", "198.18.0.256", "198.18.0.1.",
                                           " 198.18.0.1", "198.18.0.1/24", "198.018.0.1", "dut",
                                           "3323068417", "2001:2:::1", "2001:2", "1:2:3:4:5:6:7",
                                           "::12345", "fe80::1%eth0", "[::1]",
                                           std::string("198.18.0.1\0x", 12)));

IpAddress ip(const std::string& text) { return *IpAddress::parse(text); }

TEST(AddressRange, HoldsItsFirstAndTheOnesThatFollow) {
  const AddressRange range{ip("198.18.0.2"), 3};
  EXPECT_FALSE(range.contains(ip("198.18.0.1")));
  for (const char* inside : {"198.18.0.2", "198.18.0.3", "198.18.0.4"}) {
    EXPECT_TRUE(range.contains(ip(inside))) << inside;
  }
  EXPECT_FALSE(range.contains(ip("198.18.0.5")));
  EXPECT_FALSE(range.contains(ip("::198.18.0.2")));
}

TEST(AddressRange, MakesStepsOfPowersOfTwo) {
  const AddressRange networks{ip("198.18.0.2"), 256, 8};
  EXPECT_TRUE(networks.contains(ip("198.18.0.2")));
  EXPECT_TRUE(networks.contains(ip("198.18.255.2")));
  EXPECT_FALSE(networks.contains(ip("198.19.0.2")));
  EXPECT_FALSE(networks.contains(ip("198.18.7.3")));
  EXPECT_FALSE(networks.contains(ip("198.18.7.1")));
  EXPECT_FALSE(networks.contains(ip("198.17.255.2")));
  const AddressRange far{ip("2001:2::2"), 65536, 112};
  EXPECT_TRUE(far.contains(ip("2002:2::2")));
  EXPECT_FALSE(far.contains(ip("2002:2::3")));
}

TEST(AddressRange, HoldsExactlyTheAddressesThatItsDefinitionLists) {
  std::mt19937_64 random(18);
  for (int i = 0; i < 200; ++i) {
    AddressRange range{ip("2001:2::"), static_cast<uint32_t>(1 + random() % 40),
                       static_cast<uint32_t>(random() % 121)};
    range.first.bytes[15] = static_cast<uint8_t>(random());
    for (int k = -3; k < 45; ++k) {
      for (const int beside : {-1, 0, 1}) {
        IpAddress address = range.first;  // first + k * 2^shift + beside, byte after byte
        unsigned __int128 add = (static_cast<unsigned __int128>(k) << range.shift) +
                                static_cast<unsigned __int128>(beside);
        unsigned carry = 0;
        for (size_t byte = 16; byte-- > 0; add >>= 8) {
          const unsigned sum = address.bytes[byte] + static_cast<unsigned>(add & 0xff) + carry;
          address.bytes[byte] = static_cast<uint8_t>(sum);
          carry = sum >> 8;
        }
        const bool listed = range.shift == 0
                                ? k + beside >= 0 && k + beside < static_cast<int>(range.count)
                                : beside == 0 && k >= 0 && k < static_cast<int>(range.count);
        // Where shifts push k out at the top, different k are the same address.
        if (range.shift > 120) continue;
        ASSERT_EQ(range.contains(address), listed) << k << " " << beside << " " << range.shift;
      }
    }
  }
}

}  // namespace
}  // namespace dutperf::net
