#include "timing/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

namespace dutperf::timing {
namespace {

using Wide = unsigned __int128;

struct Load {
  uint64_t tsc_hz;
  uint64_t rate_fps;
};

// The schedule may be early by the rounding of its fixed point, which shows in whole ticks only
// where a frame is due exactly on a tick; it is never late.
::testing::AssertionResult is_due(uint64_t actual, uint64_t start, const Load& load, uint64_t k) {
  const Wide ticks = Wide{k} * load.tsc_hz;
  const uint64_t exact = start + static_cast<uint64_t>(ticks / load.rate_fps);
  const bool on_a_tick = ticks % load.rate_fps == 0;
  if (actual == exact || (on_a_tick && k > 0 && actual + 1 == exact)) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << "frame " << k << " is due at " << actual << ", not " << exact;
}

class ScheduleAt : public ::testing::TestWithParam<Load> {};

TEST_P(ScheduleAt, DoesNotDriftInAMillionFrames) {
  constexpr uint64_t kStart = 987'654'321'012'345;
  Schedule schedule(kStart, GetParam().tsc_hz, GetParam().rate_fps);
  for (uint64_t k = 0; k < 1'000'000; ++k) {
    ASSERT_TRUE(is_due(schedule.next_due_tsc(), kStart, GetParam(), k));
    schedule.advance(1);
  }
}

TEST_P(ScheduleAt, IsExactFarOut) {
  constexpr uint64_t kStart = 1'234'567;
  for (const uint64_t first : {(1ULL << 32) - 1, 1ULL << 32, 4'320'000'000ULL, (1ULL << 40) - 1}) {
    if (Wide{first} * GetParam().tsc_hz / GetParam().rate_fps > Wide{1} << 62) continue;
    const Schedule schedule(kStart, GetParam().tsc_hz, GetParam().rate_fps, first);
    EXPECT_TRUE(is_due(schedule.next_due_tsc(), kStart, GetParam(), first));
  }
}

TEST_P(ScheduleAt, IsTheSameWhenSharedByAnyNumberOfSenders) {
  constexpr uint64_t kStart = 5'000'000;
  for (uint64_t senders = 1; senders <= 7; ++senders) {
    std::vector<Schedule> shares;
    for (uint64_t i = 0; i < senders; ++i) {
      shares.emplace_back(kStart, GetParam().tsc_hz, GetParam().rate_fps, i, senders);
    }
    Schedule whole(kStart, GetParam().tsc_hz, GetParam().rate_fps);
    for (uint64_t k = 0; k < 5000; ++k) {
      Schedule& share = shares[k % senders];
      ASSERT_EQ(share.next_due_tsc(), whole.next_due_tsc()) << senders << " senders, frame " << k;
      share.advance(1);
      whole.advance(1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OddRates, ScheduleAt,
                         ::testing::Values(Load{2'499'998'123, 1}, Load{2'499'998'123, 7},
                                           Load{3'000'000'000, 3}, Load{2'499'998'123, 1'488'095},
                                           Load{2'100'000'000, 14'880'952},
                                           Load{3'700'000'001, 999'999'937},
                                           Load{24'000'000, 148'809'523},
                                           Load{1'000'000'000, 1'000'000'000'000}));

TEST(DueCount, CountsTheFramesUpToNowAndNotMoreThanTheLimit) {
  Schedule schedule(1000, 1'000'000, 10'000);  // every 100 ticks
  EXPECT_EQ(schedule.due_count(999, 32), 0U);
  EXPECT_EQ(schedule.due_count(1000, 32), 1U);
  EXPECT_EQ(schedule.due_count(1099, 32), 1U);
  EXPECT_EQ(schedule.due_count(1101, 32), 2U);
  EXPECT_EQ(schedule.due_count(1101, 1), 1U);
  EXPECT_EQ(schedule.due_count(1101, 0), 0U);
  EXPECT_EQ(schedule.due_count(UINT64_MAX, 64), 64U);
}

TEST(DueCount, AgreesWithLookingAtOneFrameAfterTheOther) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t start = random() % 1'000'000;
    const uint64_t rate_fps = 1 + random() % 50'000'000;
    const Schedule schedule(start, 2'499'998'123, rate_fps, random() % 1000);
    const uint64_t now = schedule.next_due_tsc() + random() % 20'000;
    const auto limit = static_cast<uint32_t>(random() % 65);
    Schedule slow = schedule;
    uint32_t expected = 0;
    while (expected < limit && slow.next_due_tsc() <= now) {
      slow.advance(1);
      ++expected;
    }
    ASSERT_EQ(schedule.due_count(now, limit), expected);
  }
}

TEST(DueCount, LeavesTheScheduleAsItWas) {
  const Schedule schedule(1000, 1'000'000, 10'000);
  schedule.due_count(5000, 32);
  EXPECT_EQ(schedule.next_due_tsc(), 1000U);
}

TEST(FramesIn, RoundsToTheNearestFrameAndSendsAtLeastOne) {
  EXPECT_EQ(frames_in(1000, 1'000'000'000), 1000U);
  EXPECT_EQ(frames_in(3, 500'000'000), 2U);  // 1.5
  EXPECT_EQ(frames_in(3, 499'999'999), 1U);  // 1.499999997
  EXPECT_EQ(frames_in(1, 1'000'000), 1U);    // 0.001
  EXPECT_EQ(frames_in(7, 1'000'000'001), 7U);
}

TEST(FramesIn, DoesNotWrapAt32Or64Bits) {
  EXPECT_EQ(frames_in(1'200'000, 3600 * 1'000'000'000ULL), 4'320'000'000U);
  EXPECT_EQ(
      frames_in(148'809'523, 1ULL << 47),
      static_cast<uint64_t>((Wide{148'809'523} * (1ULL << 47) + 500'000'000) / 1'000'000'000));
  EXPECT_EQ(frames_in(1'000'000'000'000, 1ULL << 47), 140'737'488'355'328'000U);
}

}  // namespace
}  // namespace dutperf::timing
