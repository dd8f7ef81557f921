#include "timing/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace dutperf::timing {
namespace {

using Wide = unsigned __int128;

struct Load {
  uint64_t tsc_hz;
  uint64_t rate_fps;
};

// A frame is due at the first whole tick that is not before start + k / rate.
uint64_t due_tick(uint64_t start, const Load& load, uint64_t k) {
  const Wide ticks = Wide{k} * load.tsc_hz;
  return start + static_cast<uint64_t>((ticks + load.rate_fps - 1) / load.rate_fps);
}

class ScheduleAt : public ::testing::TestWithParam<Load> {};

TEST_P(ScheduleAt, DoesNotDriftInAMillionFrames) {
  constexpr uint64_t kStart = 987'654'321'012'345;
  Schedule schedule(kStart, GetParam().tsc_hz, GetParam().rate_fps);
  for (uint64_t k = 0; k < 1'000'000; ++k) {
    ASSERT_EQ(schedule.next_due_tsc(), due_tick(kStart, GetParam(), k)) << k;
    schedule.advance(1);
  }
}

TEST_P(ScheduleAt, IsShiftedAsIfItHadBegunLater) {
  Schedule shifted(0, GetParam().tsc_hz, GetParam().rate_fps, 1, 2);
  shifted.shift(77'000'111);
  Schedule later(77'000'111, GetParam().tsc_hz, GetParam().rate_fps, 1, 2);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(shifted.next_due_tsc(), later.next_due_tsc());
    shifted.advance(1);
    later.advance(1);
  }
}

TEST_P(ScheduleAt, IsExactFarOut) {
  constexpr uint64_t kStart = 1'234'567;
  for (const uint64_t first : {(1ULL << 32) - 1, 1ULL << 32, 4'320'000'000ULL, (1ULL << 40) - 1}) {
    if (Wide{first} * GetParam().tsc_hz / GetParam().rate_fps > Wide{1} << 62) continue;
    const Schedule schedule(kStart, GetParam().tsc_hz, GetParam().rate_fps, first);
    EXPECT_EQ(schedule.next_due_tsc(), due_tick(kStart, GetParam(), first)) << first;
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

// Frames of a schedule from 0 that are due at tick `now`, by exact arithmetic: all k with
// k * hz / rate <= now.
uint64_t due_by_arithmetic(uint64_t now, const Load& load) {
  return static_cast<uint64_t>(Wide{now} * load.rate_fps / load.tsc_hz) + 1;
}

TEST_P(ScheduleAt, NeverCountsAFrameTooManyAndNoneATickTooLate) {
  std::mt19937_64 random(GetParam().rate_fps);
  const Load& load = GetParam();
  const uint64_t burst_ticks = 1 + static_cast<uint64_t>(Wide{64} * load.tsc_hz / load.rate_fps);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t sent = random() % 1'000'000;
    Schedule schedule(0, load.tsc_hz, load.rate_fps);
    schedule.advance(static_cast<uint32_t>(sent));
    const uint64_t now = due_tick(0, load, sent) + random() % (2 * burst_ticks);
    const auto limit = static_cast<uint32_t>(1 + random() % 64);
    const uint64_t due = schedule.due_count(now, limit);
    const uint64_t most = due_by_arithmetic(now, load) - sent;
    const uint64_t by_the_last_tick = now == 0 ? 0 : due_by_arithmetic(now - 1, load);
    const uint64_t least = by_the_last_tick - std::min(sent, by_the_last_tick);
    ASSERT_LE(due, std::min<uint64_t>(most, limit)) << sent << " sent, tick " << now;
    ASSERT_GE(due, 1U) << "its own frame is due";
    // Several frames a tick are counted as one a tick: no clock of ours is that slow.
    if (load.rate_fps >= load.tsc_hz) continue;
    ASSERT_GE(due, std::min<uint64_t>(least, limit)) << sent << " sent, tick " << now;
  }
}

TEST_P(ScheduleAt, CountsNothingBeforeTheFrameIsDue) {
  for (uint64_t sent = 1; sent < 1000; ++sent) {
    const uint64_t due = due_tick(1'000'000, GetParam(), sent);
    Schedule schedule(1'000'000, GetParam().tsc_hz, GetParam().rate_fps);
    schedule.advance(static_cast<uint32_t>(sent));
    ASSERT_EQ(schedule.due_count(due - 1, 64), 0U);
    ASSERT_GE(schedule.due_count(due, 64), 1U);
  }
}

TEST_P(ScheduleAt, SendsEveryFrameOfATrialOnceWhenLookedAtAtAnyTimes) {
  std::mt19937_64 random(GetParam().tsc_hz);
  const Load& load = GetParam();
  Schedule schedule(0, load.tsc_hz, load.rate_fps);
  const uint64_t interval = 1 + load.tsc_hz / load.rate_fps;
  uint64_t sent = 0;
  for (uint64_t now = 0; sent < 100'000; now += random() % (3 * interval)) {
    const uint32_t due = schedule.due_count(now, 64);
    schedule.advance(due);
    sent += due;
    ASSERT_LE(sent, due_by_arithmetic(now, load));
    ASSERT_EQ(schedule.next_due_tsc(), due_tick(0, load, sent));
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
