#include "net/dns.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace dutperf::net {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr DnsZone kZone{
    .trial = 0xbeef, .aaaa_percent = 20, .prefix = {0x20, 1, 0, 2, 0, 0, 0x64, 0x64, 0, 0, 0, 0}};

Bytes query(uint32_t number, uint16_t type = 28) {
  Bytes message(kDnsQueryBytes);
  write_dns_query(message.data(), {kZone.trial, number, dns_id(number)});
  message[kDnsQueryBytes - 3] = static_cast<uint8_t>(type);
  return message;
}

Bytes answer(uint32_t number, uint16_t type, const DnsZone& zone = kZone) {
  Bytes message = query(number, type);
  message.resize(kDnsQueryBytes + kMostDnsAnswerBytes);
  message.resize(write_dns_answer(message.data(), *dns_question_in(query(number, type)), zone));
  return message;
}

DnsReply reply(const Bytes& message, const DnsZone& zone = kZone) {
  const auto question = dns_question_in(message);
  const auto query = question ? zone.query_of(*question) : std::nullopt;
  return query ? dns_reply(message, *question, *query, zone) : DnsReply::kMalformed;
}

// An answer of a DNS64 server: the client's question, and an AAAA of whatever name.
Bytes synthesized(uint32_t number, std::array<uint8_t, 16> address) {
  Bytes message = query(number);
  message[2] = 0x81;
  message[3] = 0x80;
  message[7] = 1;
  const Bytes head = {0xc0, 12, 0, 28, 0, 1, 0, 0, 1, 0, 0, 16};
  message.insert(message.end(), head.begin(), head.end());
  message.insert(message.end(), address.begin(), address.end());
  return message;
}

TEST(DnsQuery, SaysItsNumber) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 1000; ++i) {
    const auto number = static_cast<uint32_t>(random());
    const Bytes message = query(number);
    char name[32];
    std::snprintf(name, sizeof(name),
                  "\x0d%04x-%08x\x07"
                  "dutperf\x04"
                  "test",
                  kZone.trial, number);
    EXPECT_EQ(std::string(message.begin() + 12, message.end() - 5), name);
    const auto question = dns_question_in(message);
    ASSERT_TRUE(question);
    EXPECT_EQ(question->number, number);
    EXPECT_EQ(question->trial, kZone.trial);
    EXPECT_EQ(question->type, 28);
    EXPECT_EQ(question->id, dns_id(number));
  }
}

TEST(DnsQuery, OfAnyCaseIsTheSame) {
  Bytes message = query(0xabcdef01);
  for (size_t at = 13; at < message.size() - 4; ++at) {
    if (message[at] >= 'a' && message[at] <= 'z') message[at] -= 32;
  }
  EXPECT_EQ(dns_question_in(message)->number, 0xabcdef01);
}

TEST(DnsQuery, OfAnotherNameIsNone) {
  for (size_t at = 4; at < kDnsQueryBytes; ++at) {
    if (at >= 6 && at < 12) continue;                                    // other sections
    if (at == kDnsQueryBytes - 4 || at == kDnsQueryBytes - 3) continue;  // type
    Bytes message = query(7);
    message[at] ^= 0x80;
    EXPECT_FALSE(dns_question_in(message)) << at;
  }
  Bytes message = query(7);
  message.pop_back();
  EXPECT_FALSE(dns_question_in(message));
}

TEST(DnsZone, OfEachHundredNamesSoManyHaveAnAaaa) {
  for (const uint32_t percent : {0U, 1U, 20U, 33U, 100U}) {
    const DnsZone zone{.aaaa_percent = percent};
    uint32_t have = 0;
    for (uint32_t number = 0; number < 100'000; ++number) {
      have += zone.has_aaaa(number) ? 1 : 0;
      if (number % 100 != 99) continue;
      EXPECT_EQ(have, (number / 100 + 1) * percent);
    }
  }
}

// A slow twin of what asked_by and query_of say: all queries of a trial, written down.
TEST(DnsZone, TellsEachQueryByItsNameAndId) {
  for (const uint32_t percent : {0U, 1U, 20U, 50U, 99U, 100U}) {
    const DnsZone zone{.trial = 1, .cached = {.trial = 2, .names = 300, .percent = percent}};
    std::map<std::tuple<uint16_t, uint32_t, uint16_t>, uint32_t> all;
    uint32_t next_cached = 0;
    for (uint32_t query = 0; query < 20'000; ++query) {
      const DnsName name = zone.asked_by(query);
      EXPECT_TRUE(all.emplace(std::tuple(name.trial, name.number, name.id), query).second);
      if (zone.is_cached(query)) ++next_cached;
      if (query % 100 != 99) continue;
      EXPECT_EQ(next_cached, (query / 100 + 1) * percent);
    }
    for (uint16_t trial = 0; trial < 4; ++trial) {
      for (uint32_t number = 0; number < 400; ++number) {
        for (uint16_t id = 0; id < 80; ++id) {
          const auto known = all.find({trial, number, trial == 1 ? dns_id(number) : id});
          auto found =
              zone.query_of({.id = id, .flags = 0, .trial = trial, .number = number, .type = 28});
          if (found && *found >= 20'000) found.reset();
          EXPECT_EQ(found.has_value(), known != all.end()) << trial << " " << number << " " << id;
          EXPECT_EQ(found.value_or(0), known == all.end() ? 0 : known->second);
        }
      }
    }
  }
}

TEST(DnsZone, BothSharesAreOrthogonal) {
  for (const uint32_t percent : {20U, 40U, 80U}) {
    const DnsZone zone{
        .trial = 1, .aaaa_percent = 20, .cached = {.trial = 2, .names = 300, .percent = percent}};
    uint32_t both = 0;
    for (uint32_t query = 0; query < 10'000; ++query) {
      const bool has_aaaa = zone.has_aaaa(zone.asked_by(query).number);
      both += zone.is_cached(query) && has_aaaa ? 1 : 0;
    }
    EXPECT_EQ(both, 10'000 * percent / 100 * 20 / 100);
  }
}

TEST(DnsReply, OfACachedNameHasTheIdOfItsTime) {
  const DnsZone zone{.trial = 1, .cached = {.trial = 2, .names = 300, .percent = 100}};
  Bytes message = query(7);
  write_dns_query(message.data(), zone.asked_by(607));
  const auto question = dns_question_in(message);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->trial, 2);
  EXPECT_EQ(question->number, 7U);
  EXPECT_EQ(question->id, 2);
  EXPECT_EQ(zone.query_of(*question), 607U);
}

TEST(DnsReply, OfAnAIsValidByTheNamesOwnAlone) {
  DnsZone zone = kZone;
  zone.record = DnsType::kA;
  EXPECT_EQ(reply(answer(7, 1), zone), DnsReply::kValid);
  EXPECT_EQ(reply(answer(7, 1)), DnsReply::kMalformed);
  EXPECT_EQ(reply(answer(4, 28), zone), DnsReply::kMalformed);
  Bytes wrong = answer(7, 1);
  wrong.back() ^= 1;
  EXPECT_EQ(reply(wrong, zone), DnsReply::kWrongAddress);
  Bytes none = query(7, 1);
  none[2] = 0x81;
  EXPECT_EQ(reply(none, zone), DnsReply::kEmpty);
}

// RFC 6052 2.4.
TEST(DnsZone, PutsAnIpv4AddressBehindAPrefixAsTheRfcsExamplesDo) {
  const std::array<uint8_t, 4> ipv4 = {192, 0, 2, 33};
  const std::tuple<const char*, uint8_t, const char*> examples[] = {
      {"2001:db8::", 32, "2001:db8:c000:221::"},
      {"2001:db8:100::", 40, "2001:db8:1c0:2:21::"},
      {"2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"},
      {"2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"},
      {"2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100::"},
      {"2001:db8:122:344::", 96, "2001:db8:122:344::192.0.2.33"}};
  for (const auto& [prefix, bits, expected] : examples) {
    std::array<uint8_t, 12> first{};
    const IpAddress whole = *IpAddress::parse(prefix);
    std::copy_n(whole.bytes.begin(), first.size(), first.begin());
    EXPECT_EQ(ipv4_behind(first, bits, ipv4), IpAddress::parse(expected)->bytes) << prefix;
  }
}

TEST(DnsAnswer, IsOneRecordOrTheZones) {
  for (uint32_t number = 0; number < 100; ++number) {
    const Bytes a = answer(number, 1);
    EXPECT_EQ(a.size(), kDnsQueryBytes + 16);
    EXPECT_EQ(Bytes(a.end() - 4, a.end()), (Bytes{10, 0, 0, static_cast<uint8_t>(number)}));
    const Bytes aaaa = answer(number, 28);
    const bool has = kZone.has_aaaa(number);
    EXPECT_EQ(aaaa.size(), kDnsQueryBytes + (has ? 28 : 36));
    EXPECT_EQ(aaaa[7], has ? 1 : 0);
    EXPECT_EQ(aaaa[9], has ? 0 : 1);
    EXPECT_EQ(reply(aaaa), has ? DnsReply::kValid : DnsReply::kEmpty);
  }
}

TEST(DnsReply, IsValidOfTheNamesOwnAddressOnly) {
  EXPECT_EQ(reply(synthesized(8, kZone.aaaa_of(8))), DnsReply::kValid);
  EXPECT_EQ(reply(synthesized(8, kZone.aaaa_of(9))), DnsReply::kWrongAddress);
  // One that has an AAAA is not made another.
  ASSERT_TRUE(kZone.has_aaaa(4));
  const DnsZone none{.trial = kZone.trial, .prefix = kZone.prefix};
  EXPECT_EQ(reply(synthesized(4, kZone.aaaa_of(4))), DnsReply::kValid);
  EXPECT_EQ(reply(synthesized(4, none.aaaa_of(4))), DnsReply::kWrongAddress);
}

TEST(DnsReply, SaysWhatIsWrong) {
  const Bytes good = synthesized(8, kZone.aaaa_of(8));
  const auto changed = [&](size_t at, uint8_t value) {
    Bytes message = good;
    message[at] = value;
    return reply(message);
  };
  EXPECT_EQ(changed(3, 0x82), DnsReply::kRefused);
  EXPECT_EQ(changed(2, 0x83), DnsReply::kTruncated);
  EXPECT_EQ(changed(2, 0x01), DnsReply::kMalformed);  // a query
  EXPECT_EQ(changed(1, 99), DnsReply::kMalformed);    // another id
  EXPECT_EQ(changed(7, 0), DnsReply::kEmpty);
  EXPECT_EQ(changed(7, 2), DnsReply::kMalformed);  // there is one
  EXPECT_EQ(changed(kDnsQueryBytes + 3, 1), DnsReply::kEmpty);
  EXPECT_EQ(changed(kDnsQueryBytes + 11, 15), DnsReply::kMalformed);
  Bytes twice = good;
  twice.insert(twice.end(), good.begin() + kDnsQueryBytes, good.end());
  twice[7] = 2;
  EXPECT_EQ(reply(twice), DnsReply::kWrongAddress);
  for (size_t size = kDnsQueryBytes; size < good.size(); ++size) {
    EXPECT_EQ(reply(Bytes(good.begin(), good.begin() + static_cast<long>(size))),
              DnsReply::kMalformed);
  }
}

// Whatever stands there, nothing behind its end is read (under the sanitizers).
TEST(DnsReply, OfRandomBytesIsRead) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 20'000; ++i) {
    Bytes message = synthesized(static_cast<uint32_t>(i), kZone.aaaa_of(static_cast<uint32_t>(i)));
    message.resize(kDnsQueryBytes + random() % 60);
    for (size_t at = kDnsQueryBytes; at < message.size(); ++at) {
      if (random() % 3 == 0) message[at] = static_cast<uint8_t>(random());
    }
    message[7] = static_cast<uint8_t>(random() % 4);
    reply(message);
  }
}

}  // namespace
}  // namespace dutperf::net
