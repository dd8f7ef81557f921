#include "net/tcp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "net/frame.h"
#include "net/http.h"
#include "net/testing/reference_frame.h"

namespace dutperf::net {
namespace {

// A SYN as it leaves, with its checksum.
std::vector<uint8_t> syn_of(int version) {
  return testing::segment_of(testing::sample_layout(version, 84),
                             {.numbers = SequenceNumbers(7), .mss = 1400});
}

// Words one by one, as RFC 1071 has it.
bool holds_by_words(const std::vector<uint8_t>& frame, const Segment& segment) {
  const uint8_t* const ip = frame.data() + sizeof(EthernetHeader);
  const size_t bytes = segment.ip_bytes - segment.ip_headers;
  uint32_t sum = kProtocolTcp + static_cast<uint32_t>(bytes);
  const auto add = [&](const uint8_t* from, size_t count) {
    for (size_t i = 0; i < count; ++i) sum += i % 2 == 0 ? from[i] << 8U : from[i];
  };
  const bool v4 = segment.ip_version == 4;
  add(ip + (v4 ? offsetof(Ipv4Header, src) : offsetof(Ipv6Header, src)), v4 ? 8 : 32);
  add(ip + segment.ip_headers, bytes);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

TEST(SequenceNumbers, EachConnectionIsFoundAgain) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const SequenceNumbers numbers(random());
    for (const uint64_t connection :
         {uint64_t{0}, uint64_t{1}, random() & 0xffffffff, uint64_t{0xffffffff}}) {
      EXPECT_EQ(numbers.connection_of(numbers.of(connection)), connection);
    }
  }
}

TEST(SequenceNumbers, AnswersDiffer) {
  std::vector<uint32_t> answers;
  for (uint32_t number = 0; number < 100'000; ++number) {
    answers.push_back(SequenceNumbers::answer_to(number));
  }
  std::ranges::sort(answers);
  EXPECT_EQ(std::ranges::adjacent_find(answers), answers.end());
}

TEST(TcpStamp, CountsUnitsOf64NsAndRoundsItsEnd) {
  EXPECT_EQ(ns_since(tcp_stamp(1000 * 64), 1500 * 64 + 63), 500 * 64);
  EXPECT_EQ(ns_since(tcp_stamp(1500 * 64), 1000 * 64), -500 * 64);
  const uint64_t late_ns = (uint64_t{1} << 38) + 64 * 5;  // its stamp has begun again
  EXPECT_EQ(ns_since(tcp_stamp(late_ns - 64 * 100), late_ns), 6400);
}

class TcpOfEachVersion : public ::testing::TestWithParam<int> {};

TEST_P(TcpOfEachVersion, ASynIsReadAsItWasWritten) {
  const std::vector<uint8_t> frame = syn_of(GetParam());
  const auto segment = segment_in(frame.data(), frame.size());
  ASSERT_TRUE(segment);
  EXPECT_EQ(segment->flags, kTcpSyn);
  EXPECT_EQ(segment->tcp_headers, kSynBytes);
  EXPECT_EQ(segment->payload_bytes(), 0U);
  EXPECT_TRUE(segment->has_timestamps);
  EXPECT_TRUE(checksums_hold(frame.data(), *segment));
  EXPECT_TRUE(holds_by_words(frame, *segment));
}

TEST_P(TcpOfEachVersion, AnAnswerGoesBackWithEndsSwappedAndEchoesTheStamp) {
  for (const size_t payload_bytes : {0U, 1U, 51U, 700U}) {
    std::vector<uint8_t> frame = syn_of(GetParam());
    const std::vector<uint8_t> before = frame;
    const auto segment = segment_in(frame.data(), frame.size());
    frame.resize(2048);
    std::vector<uint8_t> payload(payload_bytes);
    for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<uint8_t>(3 * i + 1);
    const Answer answer{.flags = kTcpSyn | kTcpAck,
                        .sequence = 0xfffffffe,
                        .acknowledgment = 5,
                        .mss = 1300,
                        .stamp = 77,
                        .payload = payload};
    frame.resize(write_answer(frame.data(), frame.data(), *segment, answer));
    const auto back = segment_in(frame.data(), frame.size());
    ASSERT_TRUE(back);
    EXPECT_TRUE(checksums_hold(frame.data(), *back));
    EXPECT_TRUE(holds_by_words(frame, *back));
    EXPECT_EQ(back->flags, answer.flags);
    EXPECT_EQ(back->sequence, answer.sequence);
    EXPECT_EQ(back->acknowledgment, answer.acknowledgment);
    EXPECT_EQ(back->stamp, 77U);
    EXPECT_EQ(back->echo, segment->stamp);
    ASSERT_EQ(back->payload_bytes(), payload.size());
    const uint8_t* const text =
        frame.data() + sizeof(EthernetHeader) + back->ip_headers + back->tcp_headers;
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(), text));
    EXPECT_EQ(std::memcmp(frame.data(), before.data() + 6, 6), 0);
    EXPECT_EQ(std::memcmp(frame.data() + 6, before.data(), 6), 0);
    const size_t ports = sizeof(EthernetHeader) + back->ip_headers;
    EXPECT_EQ(std::memcmp(&frame[ports], &before[ports + 2], 2), 0);
    EXPECT_EQ(std::memcmp(&frame[ports + 2], &before[ports], 2), 0);
    // Answered once more it is as at first.
    frame.resize(2048);
    frame.resize(write_answer(frame.data(), frame.data(), *back, {.flags = kTcpAck}));
    const size_t ends = GetParam() == 4 ? offsetof(Ipv4Header, src) : offsetof(Ipv6Header, src);
    const size_t bytes = GetParam() == 4 ? 8 : 32;
    EXPECT_EQ(std::memcmp(&frame[sizeof(EthernetHeader) + ends],
                          &before[sizeof(EthernetHeader) + ends], bytes),
              0);
  }
}

TEST_P(TcpOfEachVersion, WithoutTimestampsThereAreNoneInTheAnswer) {
  std::vector<uint8_t> frame = syn_of(GetParam());
  auto segment = segment_in(frame.data(), frame.size());
  segment->has_timestamps = false;
  frame.resize(2048, 0xee);
  frame.resize(write_answer(frame.data(), frame.data(), *segment, {.flags = kTcpAck}));
  const auto back = segment_in(frame.data(), frame.size());
  ASSERT_TRUE(back);
  EXPECT_EQ(back->tcp_headers, sizeof(TcpHeader));
  EXPECT_FALSE(back->has_timestamps);
  EXPECT_EQ(frame.size(), std::max<size_t>(kMinFrameBytes, 14U + back->ip_bytes));
  for (size_t i = 14U + back->ip_bytes; i < frame.size(); ++i) EXPECT_EQ(frame[i], 0);
}

TEST_P(TcpOfEachVersion, EachByteCountsInAChecksumOrIsNoneOfTheSegment) {
  const std::vector<uint8_t> whole = syn_of(GetParam());
  for (size_t at = sizeof(EthernetHeader); at < whole.size(); ++at) {
    std::vector<uint8_t> frame = whole;
    frame[at] ^= 0x41;
    const auto segment = segment_in(frame.data(), frame.size());
    if (!segment) continue;
    // Of IPv6's header the checksum covers lengths, protocol and addresses.
    const size_t in_ip = at - sizeof(EthernetHeader);
    const bool uncovered = GetParam() == 6 && (in_ip < 4 || in_ip == 7);
    EXPECT_EQ(checksums_hold(frame.data(), *segment), uncovered) << at;
  }
}

TEST_P(TcpOfEachVersion, WhatEndsTooEarlyIsNoSegment) {
  const std::vector<uint8_t> whole = syn_of(GetParam());
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<uint8_t> frame(whole.begin(), whole.begin() + static_cast<long>(size));
    EXPECT_FALSE(segment_in(frame.data(), frame.size())) << size;
  }
}

// Whatever stands where options are: nothing is read beyond them.
TEST_P(TcpOfEachVersion, AnyTcpOptionsAreReadToTheirEnd) {
  std::mt19937 random(3);
  const std::vector<uint8_t> whole = syn_of(GetParam());
  const size_t options = whole.size() - sizeof(SynOptions);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<uint8_t> frame = whole;
    for (size_t at = options; at < frame.size(); ++at) {
      frame[at] = static_cast<uint8_t>(random() % 4 == 0 ? random() : random() % 12);
    }
    segment_in(frame.data(), frame.size());
  }
}

TEST_P(TcpOfEachVersion, TimestampsAreFoundWhereverTheyStand) {
  std::vector<uint8_t> frame = syn_of(GetParam());
  uint8_t* const options = frame.data() + frame.size() - sizeof(SynOptions);
  const uint8_t moved[sizeof(SynOptions)] = {1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 2, 4, 5, 0xb4, 0};
  std::memcpy(options, moved, sizeof(moved));
  const auto segment = segment_in(frame.data(), frame.size());
  ASSERT_TRUE(segment && segment->has_timestamps);
  EXPECT_EQ(segment->stamp, 9U);
  EXPECT_EQ(segment->echo, 8U);
}

INSTANTIATE_TEST_SUITE_P(Tcp, TcpOfEachVersion, ::testing::Values(4, 6));

// Beside the text that printf makes of a number, whatever its digits.
TEST(HttpRequest, NamesItsNumber) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t number = random() >> (i % 64);
    std::array<uint8_t, kHttpRequestBytes> request;
    write_http_request(request.data(), number);
    std::array<char, 64> expected;
    std::snprintf(expected.data(), expected.size(),
                  "GET /%016" PRIx64 " HTTP/1.1\r\nHost: dutperf\r\n\r\n", number);
    ASSERT_EQ(std::string(request.begin(), request.end()), expected.data());
    ASSERT_EQ(number_in_http_request(request), number);
    const size_t at = random() % request.size();
    const auto other = static_cast<uint8_t>(random());
    constexpr std::string_view kDigits = "0123456789abcdef";
    const bool is_digit =
        at >= 5 && at < 21 && kDigits.find(static_cast<char>(other)) != std::string_view::npos;
    if (request[at] == other || is_digit) continue;
    request[at] = other;
    ASSERT_EQ(number_in_http_request(request), std::nullopt) << at << " " << int{other};
  }
}

}  // namespace
}  // namespace dutperf::net
