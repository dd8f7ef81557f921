#include "dns64_server.h"

#include <gtest/gtest.h>

#include <random>

#include "device.h"
#include "net/dns.h"
#include "net/testing/addresses.h"
#include "net/testing/reference_frame.h"
#include "testing/fake_io.h"
#include "testing/tester.h"

namespace dutperf::refdut {
namespace {

using net::testing::Bytes;
using net::testing::ip;
using testing::FakeIo;
using testing::kOwn;
using testing::kTester;

constexpr uint16_t kClientPort = 4000;
constexpr net::DnsZone kZone{
    .trial = 0xbeef, .aaaa_percent = 50, .prefix = {0, 0x64, 0xff, 0x9b}, .cached = {}};

struct Ends {
  const char* source;
  uint16_t source_port;
  const char* destination;
  uint16_t destination_port;
};
constexpr Ends kQuery = {"2001:2::2", kClientPort, "2001:2::1", net::kDnsPort};

Bytes datagram(size_t side, const Ends& ends, const Bytes& message) {
  net::FrameLayout layout = net::testing::sample_layout(ip(ends.source).version, 128);
  layout.src_ip = ip(ends.source);
  layout.dst_ip = ip(ends.destination);
  layout.src_port = ends.source_port;
  layout.dst_port = ends.destination_port;
  layout.src_mac = kTester[side];
  layout.dst_mac = kOwn[side];
  return net::testing::reference_frame(layout, message);
}

Bytes query(uint32_t number) {
  Bytes message(net::kDnsQueryBytes);
  net::write_dns_query(message.data(), {kZone.trial, number, net::dns_id(number)});
  return message;
}

Bytes message_in(const Bytes& frame) {
  const auto found = net::datagram_in(frame.data(), frame.size());
  EXPECT_TRUE(found);
  if (!found) return {};
  EXPECT_TRUE(net::testing::reference_whole(frame, found->ip_version, found->ip_bytes));
  const auto payload = found->payload(frame.data());
  return {payload.begin(), payload.end()};
}

net::DnsReply told(const Bytes& message, uint32_t number) {
  const auto question = net::dns_question_in(message);
  if (!question) return net::DnsReply::kMalformed;
  return net::dns_reply(message, *question, number, kZone);
}

// The device as a server, with a client on its left and the authority on its right.
class TheServer : public ::testing::Test {
 protected:
  void configure(const std::string& more = "") {
    device_.configure(
        parse_behaviour(Json::parse(R"({"routing": {"left": ["2001:2::1"], "right": ["198.19.0.1"]},
                        "dns64": {"authority": "198.19.0.2")" +
                                    more + "}}")));
    meet(0, "2001:2::2", "2001:2::1");
    meet(1, "198.19.0.2", "198.19.0.1");
  }

  void meet(size_t side, const char* own, const char* device) {
    Bytes request(net::kNeighbourFrameBytes);
    request.resize(net::write_request(ip(own), kTester[side], ip(device), request.data()));
    io_.arriving[side].push_back(request);
    device_.step();
    device_.step();  // a reply may leave one look later
    forget();
  }

  void forget() {
    for (auto& left : io_.left) left.clear();
  }

  // What leaves on that side when this comes.
  std::vector<Bytes> leaving(size_t side, size_t in, const Bytes& frame) {
    forget();
    io_.arriving[in].push_back(frame);
    device_.step();
    device_.step();
    std::vector<Bytes> found;
    for (const auto& departure : io_.left[side]) found.push_back(departure.bytes);
    return found;
  }

  // The authority's answer to what it is asked by `frame`.
  static Bytes answer(const Bytes& frame) {
    Bytes message = message_in(frame);
    const auto question = net::dns_question_in(message);
    EXPECT_TRUE(question);
    message.resize(net::kDnsQueryBytes + net::kMostDnsAnswerBytes);
    message.resize(net::write_dns_answer(message.data(), *question, kZone));
    const auto asked = net::datagram_in(frame.data(), frame.size());
    return datagram(1, {"198.19.0.2", net::kDnsPort, "198.19.0.1", asked->src_port}, message);
  }

  // What the client is told in the end; `asked`: how many questions the authority got.
  std::optional<Bytes> resolve(uint32_t number, int& asked) {
    asked = 0;
    auto onward = leaving(1, 0, datagram(0, kQuery, query(number)));
    std::vector<Bytes> back;
    for (const auto& departure : io_.left[0]) back.push_back(departure.bytes);
    while (back.empty() && onward.size() == 1) {
      ++asked;
      back = leaving(0, 1, answer(onward[0]));
      onward.clear();
      for (const auto& departure : io_.left[1]) onward.push_back(departure.bytes);
    }
    if (back.size() != 1) return std::nullopt;
    const auto found = net::datagram_in(back[0].data(), back[0].size());
    EXPECT_EQ(found->dst_port, kClientPort);
    return message_in(back[0]);
  }

  net::DnsReply reply(uint32_t number) {
    int asked = 0;
    const auto message = resolve(number, asked);
    return message ? told(*message, number) : net::DnsReply::kMalformed;
  }

  uint64_t count(const char* key) { return device_.report()["dns64"][key]; }

  FakeIo io_;
  Device<FakeIo> device_{io_, kOwn, 1000};
};

TEST_F(TheServer, AnswersByTheNamesOwnAddressOrByOneOfItsA) {
  configure();
  for (uint32_t number = 0; number < 100; ++number) {
    int asked = 0;
    const auto message = resolve(number, asked);
    ASSERT_TRUE(message) << number;
    EXPECT_EQ(told(*message, number), net::DnsReply::kValid) << number;
    EXPECT_EQ(asked, kZone.has_aaaa(number) ? 1 : 2) << number;
  }
  EXPECT_EQ(count("queries"), 100U);
  EXPECT_EQ(count("asked_aaaa"), 100U);
  EXPECT_EQ(count("asked_a"), 50U);
  EXPECT_EQ(count("own"), 50U);
  EXPECT_EQ(count("synthesised"), 50U);
  EXPECT_EQ(count("unasked") + count("forgotten") + count("not_understood"), 0U);
}

TEST_F(TheServer, DoesOtherwiseAsOftenAsItIsTold) {
  configure(R"(, "refuse_every": 10, "wrong_every": 9, "empty_every": 45)");
  std::map<net::DnsReply, int> replies;
  for (uint32_t number = 0; number < 100; ++number) ++replies[reply(number)];
  EXPECT_EQ(replies[net::DnsReply::kRefused], 10);
  EXPECT_EQ(replies[net::DnsReply::kEmpty], 2);
  EXPECT_EQ(replies[net::DnsReply::kWrongAddress], 8);  // of ten two are empty
  EXPECT_EQ(replies[net::DnsReply::kValid], 80);
  EXPECT_EQ(count("refused"), 10U);
}

TEST_F(TheServer, PutsAnIpv4AddressBehindTheBitsOfItsPrefix) {
  configure(R"(, "prefix": "2001:db8:122:344::/64")");
  int asked = 0;
  const auto message = resolve(4, asked);
  ASSERT_TRUE(message);
  net::DnsZone zone = kZone;
  zone.prefix = {0x20, 0x01, 0x0d, 0xb8, 0x01, 0x22, 0x03, 0x44};
  zone.prefix_bits = 64;
  const auto question = net::dns_question_in(*message);
  EXPECT_EQ(net::dns_reply(*message, *question, 4, zone), net::DnsReply::kValid);
  EXPECT_EQ(told(*message, 4), net::DnsReply::kWrongAddress);
}

TEST_F(TheServer, RemembersWhereItIsToldTo) {
  configure(R"(, "caches": true)");
  int asked = 0;
  for (const int expected : {2, 0, 0}) {
    const auto message = resolve(4, asked);
    ASSERT_TRUE(message);
    EXPECT_EQ(told(*message, 4), net::DnsReply::kValid);
    EXPECT_EQ(asked, expected);
  }
  EXPECT_EQ(count("from_cache"), 2U);
  configure();
  resolve(4, asked);
  resolve(4, asked);
  EXPECT_EQ(asked, 2);
}

TEST_F(TheServer, AnswersAQueryForAnAByIt) {
  configure();
  Bytes asked = query(4);
  asked[net::kDnsQueryBytes - 3] = 1;
  const auto onward = leaving(1, 0, datagram(0, kQuery, asked));
  ASSERT_EQ(onward.size(), 1U);
  const auto back = leaving(0, 1, answer(onward[0]));
  ASSERT_EQ(back.size(), 1U);
  net::DnsZone zone = kZone;
  zone.record = net::DnsType::kA;
  const Bytes message = message_in(back[0]);
  const auto question = net::dns_question_in(message);
  ASSERT_TRUE(question);
  EXPECT_EQ(net::dns_reply(message, *question, 4, zone), net::DnsReply::kValid);
  EXPECT_EQ(count("asked_a"), 1U);
  EXPECT_EQ(count("asked_aaaa"), 0U);
  EXPECT_EQ(count("own"), 1U);
}

TEST_F(TheServer, LeavesAloneWhatIsNotForIt) {
  configure();
  EXPECT_EQ(leaving(1, 0, datagram(0, {"2001:2::2", 4000, "2001:2::1", 54}, query(1))).size(), 1U);
  const Ends past = {"2001:2::2", 4000, "2001:2:0:8000::2", net::kDnsPort};
  EXPECT_EQ(message_in(leaving(1, 0, datagram(0, past, query(1))).at(0)), query(1));
  EXPECT_EQ(count("queries"), 0U);
}

TEST_F(TheServer, TakesNoAnswerThatNobodyAskedFor) {
  configure();
  const auto asked = leaving(1, 0, datagram(0, kQuery, query(4)));
  ASSERT_EQ(asked.size(), 1U);
  const Bytes good = answer(asked[0]);
  Bytes damaged = good;
  damaged.back() ^= 1;
  EXPECT_TRUE(leaving(0, 1, damaged).empty());
  const auto port = net::datagram_in(asked[0].data(), asked[0].size())->src_port;
  const Ends other = {"198.19.0.3", net::kDnsPort, "198.19.0.1", port};
  EXPECT_TRUE(leaving(0, 1, datagram(1, other, message_in(good))).empty());
  Bytes id = message_in(good);
  id[1] ^= 1;
  const Ends ends = {"198.19.0.2", net::kDnsPort, "198.19.0.1", port};
  EXPECT_TRUE(leaving(0, 1, datagram(1, ends, id)).empty());
  EXPECT_EQ(count("unasked"), 3U);
  const auto more = leaving(1, 1, good);
  ASSERT_EQ(more.size(), 1U);
  EXPECT_EQ(leaving(0, 1, answer(more[0])).size(), 1U);
  EXPECT_TRUE(leaving(0, 1, answer(more[0])).empty());  // twice
  EXPECT_EQ(count("unasked"), 4U);
}

TEST_F(TheServer, DoesNotUnderstandWhatIsNoQueryForAnAaaa) {
  configure();
  Bytes text = query(1);
  text[net::kDnsQueryBytes - 3] = 16;
  Bytes response = query(1);
  response[2] |= 0x80;
  Bytes two = query(1);
  two[5] = 2;
  Bytes endless = query(1);
  endless[sizeof(net::DnsHeader)] = 0x3f;
  const Bytes none(3);
  for (const Bytes& message : {text, response, two, endless, none}) {
    EXPECT_TRUE(leaving(1, 0, datagram(0, kQuery, message)).empty());
  }
  EXPECT_EQ(count("not_understood"), 5U);
}

TEST_F(TheServer, OutlivesWhateverComes) {
  configure(R"(, "caches": true)");
  std::mt19937_64 random(7);
  const Bytes asked = datagram(0, kQuery, query(4));
  const auto onward = leaving(1, 0, asked);
  ASSERT_EQ(onward.size(), 1U);
  const std::array<Bytes, 2> whole = {asked, answer(onward[0])};
  for (int i = 0; i < 20'000; ++i) {
    const size_t side = random() % 2;
    Bytes frame = whole[side];
    for (uint64_t n = random() % 4; n > 0; --n) {
      frame[14 + random() % (frame.size() - 14)] = static_cast<uint8_t>(random());
    }
    if (random() % 8 == 0) frame.resize(14 + random() % (frame.size() - 14));
    leaving(0, side, frame);
  }
  int questions = 0;
  EXPECT_TRUE(resolve(4, questions));
}

TEST(Dns64Behaviour, IsReadStrictly) {
  const auto parse = [](const std::string& dns64) {
    return parse_behaviour(Json::parse(R"({"routing": {"left": ["2001:2::1"],
                                                       "right": ["198.19.0.1"]}, "dns64": )" +
                                       dns64 + "}"));
  };
  EXPECT_TRUE(parse(R"({"authority": "198.19.0.2"})").dns64);
  for (const char* wrong :
       {R"({})", R"({"authority": "x"})", R"({"authority": "198.19.0.2", "prefix": "::/72"})",
        R"({"authority": "198.19.0.2", "refuse_every": 0})",
        R"({"authority": "198.19.0.2", "clients": "top"})", R"("on")"}) {
    EXPECT_THROW(parse(wrong), control::ProtocolError) << wrong;
  }
}

}  // namespace
}  // namespace dutperf::refdut
