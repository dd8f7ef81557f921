#include "net/neighbour.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

#include "net/testing/reference_frame.h"

namespace dutperf::net {
namespace {

using testing::Bytes;
using testing::reference_sum;

const Mac kMac = *Mac::parse("02:00:00:00:00:01");
const Mac kDutMac = *Mac::parse("02:00:00:00:00:fe");
const IpAddress kIp4 = *IpAddress::parse("198.18.0.2");
const IpAddress kDutIp4 = *IpAddress::parse("198.18.0.1");
const IpAddress kIp6 = *IpAddress::parse("2001:2::2");
const IpAddress kDutIp6 = *IpAddress::parse("2001:2::1");

const OwnAddresses kOwn{kMac, {{kIp4, 1}, {kIp6, 1}}};
const OwnAddresses kDut{kDutMac, {{kDutIp4, 1}, {kDutIp6, 1}}};

// Bytes as another implementation (scapy) writes them.
const Bytes kArpRequest4 = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06,  // to all
    0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x01,                                      // request
    0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 198,  18,   0,    2,                             // sender
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 198,  18,   0,    1,                             // target
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,     // padding
    0,    0,    0,    0};
const Bytes kSolicitation = {0x33, 0x33, 0xff, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00,
                             0x00, 0x00, 0x01, 0x86, 0xdd, 0x60, 0x00, 0x00, 0x00,
                             0x00, 0x20, 0x3a, 0xff,  // 32 bytes of ICMPv6, hop limit 255
                             0x20, 0x01, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00,
                             0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff, 0x02,
                             0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                             0x01, 0xff, 0x00, 0x00, 0x01, 0x87, 0x00, 0x37, 0x94,
                             0x00, 0x00, 0x00, 0x00,  // solicitation, checksum
                             0x20, 0x01, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00,
                             0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x01, 0x01,
                             0x02, 0x00, 0x00, 0x00, 0x00, 0x01};  // source link-layer address
const Bytes kAdvertisement = {
    0x02, 0x00, 0x00, 0x00, 0x00, 0xfe, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x86, 0xdd, 0x60, 0x00,
    0x00, 0x00, 0x00, 0x20, 0x3a, 0xff,  //
    0x20, 0x01, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
    0x20, 0x01, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
    0x88, 0x00, 0xb3, 0x94, 0x60, 0x00, 0x00, 0x00,  // advertisement, solicited
                                                     // and override
    0x20, 0x01, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
    0x02, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01};  // target link-layer address
const Bytes kAnswerToNobody = {
    0x33, 0x33, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x86, 0xdd,
    0x60, 0x00, 0x00, 0x00, 0x00, 0x20, 0x3a, 0xff,  //
    0x20, 0x01, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x02, 0xff, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x01, 0x88, 0x00, 0x14, 0x95, 0x20, 0x00, 0x00, 0x00,  // override only
    0x20, 0x01, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x02, 0x02, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01};

constexpr size_t kIp6Source = 22;
constexpr size_t kWithoutOption = 78;

Bytes request(const IpAddress& own_ip, const Mac& own_mac, const IpAddress& target) {
  Bytes out(kNeighbourFrameBytes, 0xaa);
  out.resize(write_request(own_ip, own_mac, target, out.data()));
  return out;
}

// The first `size` bytes of `frame` in a heap block of their own, for the sanitizer.
std::unique_ptr<uint8_t[]> exact(const Bytes& frame, size_t size) {
  auto bytes = std::make_unique<uint8_t[]>(size);
  if (size > 0) std::memcpy(bytes.get(), frame.data(), size);
  return bytes;
}

Bytes reply(const Bytes& frame, const OwnAddresses& own, size_t size) {
  const auto bytes = exact(frame, size);
  Bytes out(kNeighbourFrameBytes, 0xaa);
  out.resize(write_reply(bytes.get(), size, own, out.data()));
  return out;
}
Bytes reply(const Bytes& frame, const OwnAddresses& own) { return reply(frame, own, frame.size()); }

std::optional<NeighbourAnswer> answer(const Bytes& frame, size_t size) {
  return parse_answer(exact(frame, size).get(), size);
}

Bytes with(Bytes frame, size_t offset, const Bytes& bytes) {
  std::copy(bytes.begin(), bytes.end(), frame.begin() + static_cast<ptrdiff_t>(offset));
  return frame;
}

Bytes slice(const Bytes& frame, size_t offset, size_t size) {
  const auto begin = frame.begin() + static_cast<ptrdiff_t>(offset);
  return {begin, begin + static_cast<ptrdiff_t>(size)};
}

// RFC 4443 2.3: addresses, length and protocol are covered too.
bool icmpv6_checksum_holds(const Bytes& frame) {
  Bytes covered = slice(frame, kIp6Source, frame.size() - kIp6Source);
  covered.insert(covered.end(), {0, static_cast<uint8_t>(frame.size() - 54), 0, 58});
  return reference_sum(covered) == 0xffff;
}

TEST(WriteRequest, IsTheArpRequestThatOthersWrite) {
  EXPECT_EQ(request(kIp4, kMac, kDutIp4), kArpRequest4);
}

TEST(WriteRequest, IsTheSolicitationThatOthersWrite) {
  EXPECT_EQ(request(kIp6, kMac, kDutIp6), kSolicitation);
}

TEST(WriteRequest, GoesToTheSolicitedNodeGroupOfTheTarget) {
  const Bytes frame = request(kIp6, kMac, *IpAddress::parse("2001:2::1234:56ab:cdef"));
  EXPECT_EQ(slice(frame, 0, 6), (Bytes{0x33, 0x33, 0xff, 0xab, 0xcd, 0xef}));
  EXPECT_EQ(slice(frame, 38, 16),
            (Bytes{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xab, 0xcd, 0xef}));
  EXPECT_TRUE(icmpv6_checksum_holds(frame));
}

TEST(WriteReply, AnswersABroadcastArpRequest) {
  const Bytes out = reply(request(kDutIp4, kDutMac, kIp4), kOwn);
  const Bytes expected = {0x02, 0x00, 0x00, 0x00, 0x00, 0xfe, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01,
                          0x08, 0x06, 0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x02,  // reply
                          0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 198,  18,   0,    2,    0x02, 0x00,
                          0x00, 0x00, 0x00, 0xfe, 198,  18,   0,    1};
  ASSERT_EQ(out.size(), 60U);
  EXPECT_EQ(slice(out, 0, 42), expected);
  EXPECT_EQ(slice(out, 42, 18), Bytes(18));  // padding leaks nothing
}

TEST(WriteReply, AnswersAUnicastArpRequest) {
  const Bytes broadcast = request(kDutIp4, kDutMac, kIp4);
  const Bytes unicast = with(broadcast, 0, {0x02, 0, 0, 0, 0, 0x01});
  EXPECT_EQ(reply(unicast, kOwn), reply(broadcast, kOwn));
}

TEST(WriteReply, AnswersAnArpProbeWithoutSenderAddress) {
  const Bytes probe = with(request(kDutIp4, kDutMac, kIp4), 28, {0, 0, 0, 0});
  EXPECT_EQ(slice(reply(probe, kOwn), 38, 4), (Bytes{0, 0, 0, 0}));
}

TEST(WriteReply, AnswersASolicitation) {
  EXPECT_EQ(reply(request(kDutIp6, kDutMac, kIp6), kOwn), kAdvertisement);
}

TEST(WriteReply, AnswersAUnicastSolicitation) {
  Bytes probe = with(request(kDutIp6, kDutMac, kIp6), 0, {0x02, 0, 0, 0, 0, 0x01});
  std::copy(kIp6.bytes.begin(), kIp6.bytes.end(), probe.begin() + 38);
  EXPECT_EQ(reply(probe, kOwn), kAdvertisement);
}

TEST(WriteReply, AnswersASolicitationWithoutOption) {
  EXPECT_EQ(reply(request(kDutIp6, kDutMac, kIp6), kOwn, kWithoutOption), kAdvertisement);
}

TEST(WriteReply, AnswersALinkLocalAskerAtItsAddress) {
  const IpAddress link_local = *IpAddress::parse("fe80::ff:fe00:fe");
  const Bytes out = reply(request(link_local, kDutMac, kIp6), kOwn);
  EXPECT_EQ(slice(out, 0, 6), slice(kAdvertisement, 0, 6));
  EXPECT_EQ(slice(out, 38, 16), Bytes(link_local.bytes.begin(), link_local.bytes.end()));
  EXPECT_EQ(slice(out, 58, 4), (Bytes{0x60, 0, 0, 0}));
  EXPECT_TRUE(icmpv6_checksum_holds(out));
}

TEST(WriteReply, DefendsItsAddressAgainstADuplicateAddressProbe) {
  const Bytes probe = request(*IpAddress::parse("::"), kDutMac, kIp6);
  EXPECT_EQ(reply(probe, kOwn), kAnswerToNobody);
}

TEST(WriteReply, IsSilentAboutOthersAddresses) {
  for (const char* other : {"198.18.0.3", "198.18.0.1", "0.0.0.0", "255.255.255.255"}) {
    EXPECT_TRUE(reply(request(kDutIp4, kDutMac, *IpAddress::parse(other)), kOwn).empty()) << other;
  }
  for (const char* other : {"2001:2::3", "2001:2:0:1::2", "fe80::2", "::"}) {
    EXPECT_TRUE(reply(request(kDutIp6, kDutMac, *IpAddress::parse(other)), kOwn).empty()) << other;
  }
  EXPECT_TRUE(reply(kArpRequest4, OwnAddresses{kMac, {}}).empty());
}

TEST(WriteReply, IsSilentToEverythingButQuestions) {
  const Bytes arp = request(kDutIp4, kDutMac, kIp4);
  EXPECT_TRUE(reply(reply(arp, kOwn), kOwn).empty());
  EXPECT_TRUE(reply(kAdvertisement, kOwn).empty());
  EXPECT_TRUE(reply(with(arp, 12, {0x08, 0x00}), kOwn).empty());  // another EtherType
  EXPECT_TRUE(reply(with(arp, 16, {0x86, 0xdd}), kOwn).empty());  // not about IPv4
  EXPECT_TRUE(reply(with(arp, 18, {0x08}), kOwn).empty());        // no 6-byte MACs
  EXPECT_TRUE(reply(with(arp, 20, {0x00, 0x08}), kOwn).empty());  // inverse ARP
}

TEST(WriteReply, IsSilentToASolicitationThatPassedARouter) {
  EXPECT_TRUE(reply(with(request(kDutIp6, kDutMac, kIp6), 21, {254}), kOwn).empty());
}

TEST(WriteReply, IsSilentToTruncatedQuestions) {
  const Bytes arp = request(kDutIp4, kDutMac, kIp4);
  for (size_t size = 0; size < arp.size(); ++size) {
    ASSERT_EQ(reply(arp, kOwn, size).empty(), size < 42) << size;
  }
  const Bytes solicitation = request(kDutIp6, kDutMac, kIp6);
  for (size_t size = 0; size < solicitation.size(); ++size) {
    ASSERT_EQ(reply(solicitation, kOwn, size).empty(), size < kWithoutOption) << size;
  }
}

TEST(ParseAnswer, TellsWhoAnsweredAnArpRequest) {
  const auto result = answer(reply(kArpRequest4, kDut), 60);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->ip, kDutIp4);
  EXPECT_EQ(result->mac, kDutMac);
}

TEST(ParseAnswer, TellsWhoAnsweredASolicitation) {
  const auto result = answer(reply(kSolicitation, kDut), kNeighbourFrameBytes);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->ip, kDutIp6);
  EXPECT_EQ(result->mac, kDutMac);
}

TEST(ParseAnswer, PrefersTheAdvertisedMacToTheFramesSource) {
  const auto result = answer(with(kAdvertisement, 80, {0x02, 0, 0, 0, 0, 0x77}), 86);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->mac, *Mac::parse("02:00:00:00:00:77"));
}

TEST(ParseAnswer, TakesTheFramesSourceWithoutATargetAddressOption) {
  const Bytes other_mac = with(kAdvertisement, 80, {0x02, 0, 0, 0, 0, 0x77});
  const auto truncated = answer(other_mac, kWithoutOption);
  ASSERT_TRUE(truncated);
  EXPECT_EQ(truncated->mac, kMac);
  const auto other_option = answer(with(other_mac, 78, {0x0e}), 86);  // a nonce (RFC 3971)
  ASSERT_TRUE(other_option);
  EXPECT_EQ(other_option->mac, kMac);
  const auto padding = answer(with(other_mac, 18, {0, 24}), 86);
  ASSERT_TRUE(padding);
  EXPECT_EQ(padding->mac, kMac);
}

TEST(ParseAnswer, FindsNothingInQuestionsAndOtherFrames) {
  EXPECT_FALSE(answer(kArpRequest4, kArpRequest4.size()));
  EXPECT_FALSE(answer(kSolicitation, kSolicitation.size()));
  EXPECT_FALSE(answer(with(kAdvertisement, 21, {254}), 86));  // passed a router
  EXPECT_FALSE(answer(with(kAdvertisement, 20, {17}), 86));   // UDP
}

TEST(ParseAnswer, FindsNothingInTruncatedAnswers) {
  const Bytes arp = reply(kArpRequest4, kDut);
  for (size_t size = 0; size <= arp.size(); ++size) {
    ASSERT_EQ(answer(arp, size).has_value(), size >= 42) << size;
  }
  for (size_t size = 0; size <= kAdvertisement.size(); ++size) {
    ASSERT_EQ(answer(kAdvertisement, size).has_value(), size >= kWithoutOption) << size;
  }
}

TEST(ParseClaim, TellsWhoAsksAndWhoAnswers) {
  const std::pair<Bytes, IpAddress> asked[] = {{kArpRequest4, kIp4}, {kSolicitation, kIp6}};
  for (const auto& [question, ip] : asked) {
    const auto claim = parse_claim(question.data(), question.size());
    ASSERT_TRUE(claim);
    EXPECT_EQ(claim->ip, ip);
    EXPECT_EQ(claim->mac, kMac);
    uint8_t reply[kNeighbourFrameBytes];
    const size_t size = write_reply(question.data(), question.size(), kDut, reply);
    const auto answer = parse_claim(reply, size);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->mac, kDutMac);
    EXPECT_FALSE(parse_claim(question.data(), 20));
  }
}

TEST(Contradicts, WhatIsKnownOfNeighboursAndOfOneself) {
  const Mac other = *Mac::parse("02:00:00:00:00:99");
  const NeighbourAnswer known[] = {{kDutIp4, kDutMac}, {kDutIp6, kDutMac}};
  EXPECT_FALSE(contradicts({kDutIp4, kDutMac}, kOwn, known));
  EXPECT_TRUE(contradicts({kDutIp4, other}, kOwn, known));
  EXPECT_TRUE(contradicts({kDutIp6, other}, kOwn, known));
  EXPECT_FALSE(contradicts({kIp4, kMac}, kOwn, known));
  EXPECT_TRUE(contradicts({kIp4, other}, kOwn, known));
  // Of strangers nothing is known, nor of one who asks whether an address is free.
  EXPECT_FALSE(contradicts({*IpAddress::parse("198.18.0.77"), other}, kOwn, known));
  EXPECT_FALSE(contradicts({*IpAddress::parse("0.0.0.0"), other}, kOwn, known));
}

TEST(Neighbours, SurviveGarbage) {
  std::mt19937_64 random(826);
  uint64_t replies = 0;
  for (int i = 0; i < 100'000; ++i) {
    Bytes frame =
        random() % 2 == 0 ? request(kDutIp4, kDutMac, kIp4) : request(kDutIp6, kDutMac, kIp6);
    for (uint64_t changes = random() % 4; changes > 0; --changes) {
      frame[random() % frame.size()] = static_cast<uint8_t>(random());
    }
    const size_t size = random() % (frame.size() + 1);
    replies += reply(frame, kOwn, size).empty() ? 0 : 1;
    answer(frame, size);
  }
  EXPECT_GT(replies, 1000U);  // else this test looks at nothing
}

TEST(OwnAddresses, ContainTheBordersOfARangeAndNotMore) {
  for (const char* first : {"198.18.0.0", "2001:2::", "2001:2::1:0"}) {
    const OwnAddresses own{kMac, {{*IpAddress::parse(first), 65536}}};
    IpAddress address = *IpAddress::parse(first);
    const size_t last = address.size() - 1;
    EXPECT_TRUE(own.contains(address));
    address.bytes[last] = address.bytes[last - 1] = 0xff;
    EXPECT_TRUE(own.contains(address));
    address.bytes[last - 2] ^= 1;
    EXPECT_FALSE(own.contains(address));
    address.bytes[last - 2] ^= 1;
    address.bytes[0] ^= 1;
    EXPECT_FALSE(own.contains(address));
  }
}

TEST(OwnAddresses, ContainWhatCountingFromTheFirstReaches) {
  const AddressRange range{*IpAddress::parse("198.18.255.250"), 300};
  for (uint32_t i = 0; i < 1000; ++i) {
    const uint32_t low = 0xc612fffa - 300 + i;  // from 300 below the first
    const uint8_t bytes[4] = {static_cast<uint8_t>(low >> 24), static_cast<uint8_t>(low >> 16),
                              static_cast<uint8_t>(low >> 8), static_cast<uint8_t>(low)};
    ASSERT_EQ(range.contains(IpAddress::from_bytes(4, bytes)), i >= 300 && i < 600) << i;
  }
}

TEST(OwnAddresses, CarryIntoTheUpperBits) {
  const AddressRange range{*IpAddress::parse("2001:2::ffff:ffff"), 65536};
  EXPECT_TRUE(range.contains(*IpAddress::parse("2001:2::ffff:ffff")));
  EXPECT_TRUE(range.contains(*IpAddress::parse("2001:2::1:0:0")));
  EXPECT_TRUE(range.contains(*IpAddress::parse("2001:2::1:0:fffe")));
  EXPECT_FALSE(range.contains(*IpAddress::parse("2001:2::1:0:ffff")));
  EXPECT_FALSE(range.contains(*IpAddress::parse("2001:2::ffff:fffe")));
  EXPECT_FALSE(range.contains(*IpAddress::parse("2001:2::")));
}

TEST(OwnAddresses, EndAtTheHighestAddress) {
  const AddressRange range{*IpAddress::parse("255.255.255.255"), 2};
  EXPECT_TRUE(range.contains(*IpAddress::parse("255.255.255.255")));
  EXPECT_FALSE(range.contains(*IpAddress::parse("0.0.0.0")));
}

TEST(OwnAddresses, DoNotMixVersions) {
  const AddressRange zero{*IpAddress::parse("0.0.0.0"), 1};
  EXPECT_TRUE(zero.contains(*IpAddress::parse("0.0.0.0")));
  EXPECT_FALSE(zero.contains(*IpAddress::parse("::")));
}

}  // namespace
}  // namespace dutperf::net
