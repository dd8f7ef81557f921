#include "witness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "net/classify.h"
#include "net/testing/reference_frame.h"

namespace dutperf::refdut {
namespace {

using net::testing::Bytes;

Bytes frame(int version, uint32_t size, uint64_t sequence) {
  return net::testing::tagged_frame(net::testing::sample_layout(version, size), sequence);
}

TEST(Witness, ReadsWhatTheTestersCodeReads) {
  std::mt19937_64 random(3);
  for (const int version : {4, 6}) {
    for (uint32_t size = 84; size <= 1518; size += 71) {
      const uint64_t sequence = random() >> 16;
      const Bytes bytes = frame(version, size, sequence);
      const auto plain = read_plainly(bytes.data(), bytes.size());
      ASSERT_TRUE(plain) << version << ", " << size;
      EXPECT_TRUE(plain->sums_hold);
      EXPECT_EQ(plain->trial, net::testing::kTag.trial);
      EXPECT_EQ(plain->stream, net::testing::kTag.stream);
      EXPECT_EQ(plain->sequence, sequence);
    }
  }
}

TEST(Witness, SeesEachBitThatIsNotAsItWasSent) {
  for (const int version : {4, 6}) {
    const Bytes whole = frame(version, 128, 9);
    const size_t udp = net::testing::udp_offset(version);
    for (size_t bit = 8 * udp; bit < 8 * whole.size(); ++bit) {
      const size_t byte = bit / 8;
      if (byte == udp + 4 || byte == udp + 5) continue;  // the length: another packet, or none
      Bytes bytes = whole;
      bytes[byte] = static_cast<uint8_t>(bytes[byte] ^ (1U << bit % 8));
      const auto plain = read_plainly(bytes.data(), bytes.size());
      ASSERT_TRUE(plain);
      EXPECT_FALSE(plain->sums_hold) << version << ", bit " << bit;
    }
  }
}

TEST(Witness, ReadsNothingBehindTheEnd) {
  std::mt19937_64 random(4);
  for (const int version : {4, 6}) {
    const Bytes whole = frame(version, 128, 9);
    for (size_t size = 0; size < whole.size(); ++size) {
      Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_FALSE(read_plainly(cut.data(), cut.size())) << size;
      std::ranges::generate(cut, [&] { return static_cast<uint8_t>(random()); });
      std::copy_n(whole.begin(), std::min<size_t>(size, 21), cut.begin());
      read_plainly(cut.data(), cut.size());  // with ASan
    }
  }
}

TEST(Witness, LooksAtOneInSoManyFrames) {
  PlainReadings readings;
  Bytes bytes = frame(4, 128, 9);
  const auto look = [&](uint64_t sequence) {
    readings.look(bytes.data(), bytes.size(), net::testing::kTag.trial, net::testing::kTag.stream,
                  sequence);
  };
  for (uint64_t i = 0; i < 2 * PlainReadings::kEvery; ++i) look(9);
  EXPECT_EQ(
      readings.to_json(),
      control::Json::parse(R"({"read": 2, "unreadable": 0, "wrong_sums": 0, "other_tags": 0})"));
  look(10);  // the tester's code took it for another one
  readings.came = 0;
  bytes.back() ^= 1;
  look(9);
  readings.came = 0;
  bytes[12] = 0x88;
  look(9);
  EXPECT_EQ(
      readings.to_json(),
      control::Json::parse(R"({"read": 4, "unreadable": 1, "wrong_sums": 1, "other_tags": 1})"));
}

TEST(Witness, AddsTimesExactly) {
  WitnessedTimes times;
  for (const uint64_t ns : {500U, 200U, 900U}) times.add(ns);
  EXPECT_EQ(
      times.to_json(),
      control::Json::parse(R"({"frames": 3, "sum_ns": 1600, "least_ns": 200, "most_ns": 900})"));
}

TEST(Witness, HasAClockThatGoesOn) {
  const uint64_t before = monotonic_raw_ns();
  EXPECT_GE(monotonic_raw_ns(), before);
  EXPECT_GT(before, 0U);
}

}  // namespace
}  // namespace dutperf::refdut
