#include "agent.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "net/classify.h"
#include "net/testing/reference_frame.h"
#include "net/udp.h"
#include "translation.h"

namespace dutperf::refdut {
namespace {

using net::IpAddress;
using net::Mac;
using Bytes = std::vector<uint8_t>;

const Mac kManager = *Mac::parse("02:00:00:00:00:01");
const net::OwnAddresses kAgent{
    *Mac::parse("02:00:00:00:01:01"),
    {{*IpAddress::parse("198.18.0.1")}, {*IpAddress::parse("2001:2::1")}},
    {}};

Bytes bytes_of(const std::string& digits) {
  Bytes result;
  for (size_t i = 0; i < digits.size(); i += 2) {
    result.push_back(static_cast<uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  }
  return result;
}

// As RFC 1157 4.1 has them, written by hand: version 0, community, request 0x1234, one variable.
Bytes query(const std::string& object, const std::string& community = "7075626c6963") {
  const auto wrap = [](const std::string& tag, const std::string& value) {
    constexpr char kDigits[] = "0123456789abcdef";
    const size_t size = value.size() / 2;
    return tag + kDigits[size >> 4] + kDigits[size & 15] + value;
  };
  const std::string variables = wrap("30", wrap("30", wrap("06", object) + "0500"));
  const std::string pdu = wrap("a0", "02021234020100020100" + variables);
  return bytes_of(wrap("30", "020100" + wrap("04", community) + pdu));
}

const std::string kUpTime = "2b06010201010300";
const std::string kInOctets = "2b060102010202010a01";

Bytes frame_of(const Bytes& message, int version, const char* to = nullptr, uint16_t port = 161) {
  const char* const own = version == 4 ? "198.18.0.1" : "2001:2::1";
  Flow flow{version, {}, {}, net::ip_header_bytes(version) + 8 + message.size()};
  flow.source.address = IpAddress::parse(version == 4 ? "198.18.0.2" : "2001:2::2")->bytes;
  flow.source.port = 40'000;
  flow.destination.address = IpAddress::parse(to != nullptr ? to : own)->bytes;
  flow.destination.port = port;
  Bytes frame(14 + flow.ip_bytes);
  std::memcpy(frame.data(), kAgent.mac.bytes.data(), 6);
  std::memcpy(frame.data() + 6, kManager.bytes.data(), 6);
  const Bytes type = version == 4 ? Bytes{8, 0} : Bytes{0x86, 0xdd};
  std::copy(type.begin(), type.end(), frame.begin() + 12);
  std::copy(message.begin(), message.end(), frame.end() - static_cast<long>(message.size()));
  write_headers(flow, 1, frame.data() + 14);
  return frame;
}

class AgentOf : public ::testing::TestWithParam<int> {
 protected:
  Bytes ask(const Bytes& message) {
    const Bytes frame = frame_of(message, GetParam());
    const Bytes reply = agent_.answer(frame.data(), frame.size(), kAgent).value_or(Bytes{});
    if (reply.empty()) return {};
    const auto packet = net::udp_packet_from(Agent::kPort, reply.data(), reply.size());
    return {packet.begin() + static_cast<long>(net::ip_header_bytes(GetParam()) + 8), packet.end()};
  }

  Agent agent_;
};

INSTANTIATE_TEST_SUITE_P(Versions, AgentOf, ::testing::Values(4, 6));

TEST_P(AgentOf, TellsHowManyItHasAnswered) {
  EXPECT_EQ(ask(query(kUpTime)), bytes_of("3028020100"
                                          "04067075626c6963"
                                          "a21b"
                                          "02021234"
                                          "020100"
                                          "020100"
                                          "300f"
                                          "300d"
                                          "06082b06010201010300"
                                          "430164"));
  EXPECT_EQ(ask(query(kInOctets)), bytes_of("302a020100"
                                            "04067075626c6963"
                                            "a21d"
                                            "02021234"
                                            "020100"
                                            "020100"
                                            "3011"
                                            "300f"
                                            "060a2b060102010202010a01"
                                            "410102"));
}

TEST_P(AgentOf, CountersStayPositive) {
  for (int i = 1; i < 128; ++i) ask(query(kInOctets));
  const Bytes answer = ask(query(kInOctets));
  EXPECT_EQ(Bytes(answer.end() - 4, answer.end()), (Bytes{0x41, 2, 0, 128}));
}

TEST_P(AgentOf, SaysThatThereIsNoSuchVariable) {
  EXPECT_EQ(ask(query("2b06010201010400")), bytes_of("3027020100"
                                                     "04067075626c6963"
                                                     "a21a"
                                                     "02021234"
                                                     "020102"
                                                     "020101"
                                                     "300e"
                                                     "300c"
                                                     "06082b06010201010400"
                                                     "0500"));
}

TEST_P(AgentOf, IsSilentToOthers) {
  EXPECT_TRUE(ask(query(kUpTime, "707269766174")).empty());
  Bytes set = query(kUpTime);
  set[13] = 0xa3;
  EXPECT_TRUE(ask(set).empty());
  const char* const beyond = GetParam() == 4 ? "198.19.0.1" : "2001:2:0:8000::1";
  const Bytes elsewhere = frame_of(query(kUpTime), GetParam(), beyond);
  EXPECT_EQ(agent_.answer(elsewhere.data(), elsewhere.size(), kAgent), std::nullopt);
  const Bytes other = frame_of(query(kUpTime), GetParam(), nullptr, 162);
  EXPECT_EQ(agent_.answer(other.data(), other.size(), kAgent), std::nullopt);
  EXPECT_EQ(agent_.report(), (Json{{"answered", 0}, {"unanswered", 0}}));
}

TEST_P(AgentOf, LeavesEveryThirdQueryUnansweredAndCountsIt) {
  agent_.behave({.unanswered_every = 3});
  const Bytes frame = frame_of(query(kUpTime), GetParam());
  for (int i = 1; i <= 10; ++i) {
    ask(query(kUpTime, "707269766174"));  // is no query
    const auto reply = agent_.answer(frame.data(), frame.size(), kAgent);
    ASSERT_TRUE(reply) << "it was for the agent, and goes no further";
    EXPECT_EQ(reply->empty(), i % 3 == 0) << i;
  }
  EXPECT_EQ(agent_.report(), (Json{{"answered", 7}, {"unanswered", 3}}));
  agent_.behave({.unanswered_every = 1});
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(ask(query(kUpTime)).empty());
  agent_.behave({});
  const Bytes eighth = ask(query(kInOctets));
  EXPECT_EQ(Bytes(eighth.end() - 3, eighth.end()), (Bytes{0x41, 1, 8}));
  EXPECT_EQ(agent_.report(), (Json{{"answered", 8}, {"unanswered", 8}}));
}

TEST_P(AgentOf, AnswersWithWholeFramesBack) {
  const Bytes frame = frame_of(query(kUpTime), GetParam());
  const Bytes reply = agent_.answer(frame.data(), frame.size(), kAgent).value_or(Bytes{});
  ASSERT_FALSE(reply.empty());
  EXPECT_EQ(Bytes(reply.begin(), reply.begin() + 6), Bytes(frame.begin() + 6, frame.begin() + 12));
  EXPECT_EQ(Bytes(reply.begin() + 6, reply.begin() + 12), Bytes(frame.begin(), frame.begin() + 6));
  const auto asked = read_flow(frame.data(), frame.size());
  const auto back = read_flow(reply.data(), reply.size());
  ASSERT_TRUE(asked && back);
  EXPECT_EQ(back->source, asked->destination);
  EXPECT_EQ(back->destination, asked->source);
  const auto headers = static_cast<uint16_t>(net::ip_header_bytes(GetParam()));
  EXPECT_TRUE(
      net::checksums_hold(reply.data(), {net::FrameKind::kTest, static_cast<uint8_t>(GetParam()),
                                         headers, static_cast<uint32_t>(back->ip_bytes), nullptr}));
}

TEST_P(AgentOf, ReadsNothingThatIsNotThere) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    Bytes message = query(kInOctets);
    for (int k = 0; k < 3; ++k) message[random() % message.size()] = static_cast<uint8_t>(random());
    message.resize(random() % (message.size() + 1));
    const Bytes frame = frame_of(message, GetParam());
    const auto reply = agent_.answer(frame.data(), frame.size(), kAgent);
    EXPECT_LE(reply.value_or(Bytes{}).size(), 200U);
  }
}

}  // namespace
}  // namespace dutperf::refdut
