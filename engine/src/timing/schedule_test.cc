#include "timing/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace dutperf::timing {
namespace {

using Wide = unsigned __int128;

struct Pace {
  uint64_t tsc_hz;
  uint64_t rate_fps;
};

Schedule at(const Pace& pace, uint64_t start, bool between = false) {
  return {start, pace.tsc_hz, Load(pace.rate_fps, {}, between)};
}

void send(Schedule& schedule, uint64_t frames) {
  constexpr uint64_t kMost = UINT32_MAX;
  for (; frames > kMost; frames -= kMost) schedule.advance(static_cast<uint32_t>(kMost));
  schedule.advance(static_cast<uint32_t>(frames));
}

// A frame is due at the first whole tick that is not before start + k / rate.
uint64_t due_tick(uint64_t start, const Pace& load, uint64_t k) {
  const Wide ticks = Wide{k} * load.tsc_hz;
  return start + static_cast<uint64_t>((ticks + load.rate_fps - 1) / load.rate_fps);
}

class ScheduleAt : public ::testing::TestWithParam<Pace> {};

TEST_P(ScheduleAt, DoesNotDriftInAMillionFrames) {
  constexpr uint64_t kStart = 987'654'321'012'345;
  Schedule schedule = at(GetParam(), kStart);
  for (uint64_t k = 0; k < 1'000'000; ++k) {
    ASSERT_EQ(schedule.next_due_tsc(), due_tick(kStart, GetParam(), k)) << k;
    schedule.advance(1);
  }
}

TEST_P(ScheduleAt, IsShiftedAsIfItHadBegunLater) {
  Schedule shifted = at(GetParam(), 0, true);
  shifted.shift(77'000'111);
  Schedule later = at(GetParam(), 77'000'111, true);
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
    Schedule schedule = at(GetParam(), kStart);
    send(schedule, first);
    EXPECT_EQ(schedule.next_due_tsc(), due_tick(kStart, GetParam(), first)) << first;
  }
}

// As if it had a place of its own between the frames of the other direction.
TEST_P(ScheduleAt, LiesBetweenTheFramesOfAnother) {
  const Pace twice{GetParam().tsc_hz, 2 * GetParam().rate_fps};
  Schedule schedule = at(GetParam(), 5'000'000, true);
  for (uint64_t k = 0; k < 5000; ++k) {
    ASSERT_EQ(schedule.next_due_tsc(), due_tick(5'000'000, twice, 2 * k + 1)) << k;
    schedule.advance(1);
  }
}

INSTANTIATE_TEST_SUITE_P(OddRates, ScheduleAt,
                         ::testing::Values(Pace{2'499'998'123, 1}, Pace{2'499'998'123, 7},
                                           Pace{3'000'000'000, 3}, Pace{2'499'998'123, 1'488'095},
                                           Pace{2'100'000'000, 14'880'952},
                                           Pace{3'700'000'001, 999'999'937},
                                           Pace{24'000'000, 148'809'523},
                                           Pace{1'000'000'000, 1'000'000'000'000}));

TEST(DueCount, CountsTheFramesUpToNowAndNotMoreThanTheLimit) {
  Schedule schedule = at({1'000'000, 10'000}, 1000);  // every 100 ticks
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
uint64_t due_by_arithmetic(uint64_t now, const Pace& load) {
  return static_cast<uint64_t>(Wide{now} * load.rate_fps / load.tsc_hz) + 1;
}

TEST_P(ScheduleAt, NeverCountsAFrameTooManyAndNoneATickTooLate) {
  std::mt19937_64 random(GetParam().rate_fps);
  const Pace& load = GetParam();
  const uint64_t burst_ticks = 1 + static_cast<uint64_t>(Wide{64} * load.tsc_hz / load.rate_fps);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t sent = random() % 1'000'000;
    Schedule schedule = at(load, 0);
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
    Schedule schedule = at(GetParam(), 1'000'000);
    schedule.advance(static_cast<uint32_t>(sent));
    ASSERT_EQ(schedule.due_count(due - 1, 64), 0U);
    ASSERT_GE(schedule.due_count(due, 64), 1U);
  }
}

TEST_P(ScheduleAt, SendsEveryFrameOfATrialOnceWhenLookedAtAtAnyTimes) {
  std::mt19937_64 random(GetParam().tsc_hz);
  const Pace& load = GetParam();
  Schedule schedule = at(load, 0);
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
  const Schedule schedule = at({1'000'000, 10'000}, 1000);
  schedule.due_count(5000, 32);
  EXPECT_EQ(schedule.next_due_tsc(), 1000U);
}

// --- steps

// A step whose frames are due, as the definition has it: one after the other, by exact arithmetic.
struct Due {
  uint64_t tick;
  uint64_t step;  // counted through all periods
};

class SlowSchedule {
 public:
  SlowSchedule(uint64_t tsc_hz, std::vector<RateStep> steps, bool between, uint64_t frames)
      : tsc_hz_(tsc_hz), between_(between) {
    uint64_t begin_ns = 0;
    for (uint64_t step = 0; due_.size() < frames; ++step) {
      const RateStep& of = steps[step % steps.size()];
      const double exact = static_cast<double>(of.rate_fps) * static_cast<double>(of.duration_ns);
      const auto count = static_cast<uint64_t>(exact / 1e9 + 0.5);
      for (uint64_t j = 0; j < count; ++j) due_.push_back({tick(begin_ns, of.rate_fps, j), step});
      begin_ns += of.duration_ns;
    }
  }

  const Due& operator[](uint64_t frame) const { return due_[frame]; }
  // From frame `sent` on, of its step: those due at `now`.
  uint64_t count(uint64_t sent, uint64_t now) const {
    uint64_t end = sent;
    while (end < due_.size() && due_[end].step == due_[sent].step && due_[end].tick <= now) ++end;
    return end - sent;
  }

 private:
  // begin + j / rate, or half an interval later, rounded up.
  uint64_t tick(uint64_t begin_ns, uint64_t rate_fps, uint64_t j) const {
    const Wide halves = 2 * Wide{j} + (between_ ? 1 : 0);
    const Wide scaled = tsc_hz_ * (Wide{begin_ns} * 2 * rate_fps + halves * kNsPerSecond);
    const Wide by = Wide{2} * rate_fps * kNsPerSecond;
    return static_cast<uint64_t>((scaled + by - 1) / by);
  }

  uint64_t tsc_hz_;
  bool between_;
  std::vector<Due> due_;
};

// Some of them are pauses, some too short for a frame; any may be the first or the last.
std::vector<RateStep> steps_of(std::mt19937_64& random) {
  std::vector<RateStep> steps(1 + random() % 6);
  for (RateStep& step : steps) {
    if (random() % 4 != 0) step.rate_fps = 1 + random() % (1ULL << (1 + random() % 24));
    const uint64_t usual_ns = 40 * kNsPerSecond / std::max<uint64_t>(step.rate_fps, 1'000);
    step.duration_ns = 1 + random() % (random() % 4 == 0 ? usual_ns / 40 : usual_ns);
  }
  steps[random() % steps.size()] = {1000 + random() % 10'000, 1'000'000 + random() % 20'000'000};
  return steps;
}

TEST(ScheduleOfSteps, AgreesWithAListOfAllFramesAtAnyTimesAndLimits) {
  std::mt19937_64 random(2544);
  constexpr uint64_t kFrames = 2000;
  for (int trial = 0; trial < 300; ++trial) {
    const uint64_t hz = trial % 3 == 0   ? 2'499'998'123
                        : trial % 3 == 1 ? 1'000'000'000
                                         : 24'000'000;
    const std::vector<RateStep> steps = steps_of(random);
    const bool between = trial % 2 == 1;
    const SlowSchedule slow(hz, steps, between, kFrames + 64);
    Schedule schedule(0, hz, Load(1, steps, between));
    uint64_t now = 0;
    for (uint64_t sent = 0; sent < kFrames;) {
      ASSERT_EQ(schedule.next_due_tsc(), slow[sent].tick) << trial << ", frame " << sent;
      const uint64_t too_soon = slow[sent].tick - std::min<uint64_t>(slow[sent].tick, 1);
      ASSERT_EQ(schedule.due_count(too_soon, 64), too_soon == slow[sent].tick ? 1U : 0U);
      // As a sender looks at it: often, and now and then late.
      const uint64_t wait = slow[sent + random() % 40].tick - slow[sent].tick;
      now = std::max(now, slow[sent].tick + (random() % 2 == 0 ? 0 : random() % (wait + 2)));
      const auto limit = static_cast<uint32_t>(1 + random() % 64);
      const uint32_t due = schedule.due_count(now, limit);
      ASSERT_LE(due, std::min<uint64_t>(slow.count(sent, now), limit)) << trial << ", " << sent;
      // The last one may be missing for a tick.
      const uint64_t least = now == 0 ? 1 : std::max<uint64_t>(slow.count(sent, now - 1), 1);
      ASSERT_GE(due, std::min<uint64_t>(least, limit)) << trial << ", " << sent;
      // The port may take less.
      const auto taken = static_cast<uint32_t>(1 + random() % due);
      schedule.advance(taken);
      sent += taken;
    }
  }
}

TEST(ScheduleOfSteps, NeverCountsAcrossTheEndOfAStep) {
  // 3 frames, a pause, 2 frames of another rate.
  const Load load(1'000'000, {{1'000'000, 3000}, {0, 5000}, {500'000, 4000}});
  Schedule schedule(0, 1'000'000'000, load);
  EXPECT_EQ(schedule.due_count(1'000'000, 64), 3U);
  schedule.advance(3);
  EXPECT_EQ(schedule.next_due_tsc(), 8000U);
  EXPECT_EQ(schedule.due_count(7999, 64), 0U);
  EXPECT_EQ(schedule.due_count(1'000'000, 64), 2U);
  schedule.advance(2);
  EXPECT_EQ(schedule.next_due_tsc(), 12'000U) << "begun again";
}

TEST(ScheduleOfSteps, DoesNotDriftInAMillionPeriods) {
  const std::vector<RateStep> steps = {
      {0, 7}, {999'983, 1501}, {0, 4999}};  // 2 frames... and pauses
  for (const uint64_t hz : {2'499'998'123, 3'700'000'001}) {
    Schedule schedule(0, hz, Load(999'983, steps));
    for (uint64_t period = 0; period < 1'000'000; ++period) {
      const Wide begin = Wide{hz} * (period * 6507 + 7);
      ASSERT_EQ(schedule.next_due_tsc(),
                static_cast<uint64_t>((begin + kNsPerSecond - 1) / kNsPerSecond))
          << period;
      schedule.advance(2);
    }
  }
}

TEST(ScheduleOfSteps, IsExactAfterTheMostFramesThatATrialMayHave) {
  // A second of 2^30 frames, and three quarters of one without.
  constexpr uint64_t kRate = 1ULL << 30;
  constexpr uint64_t kHz = 2'499'998'123;
  Schedule schedule(99, kHz, Load(kRate, {{kRate, kNsPerSecond}, {0, 750'000'000}}));
  for (int period = 0; period < 1024; ++period) send(schedule, kRate);
  const Wide begin = Wide{kHz} * 1024 * 1'750'000'000;
  EXPECT_EQ(schedule.next_due_tsc(),
            99 + static_cast<uint64_t>((begin + kNsPerSecond - 1) / kNsPerSecond));
}

TEST(ScheduleOfSteps, OfOneStepIsThatOfTheRateUntilItEnds) {
  Schedule constant(5, 2'499'998'123, Load(14'880'952));
  Schedule step(5, 2'499'998'123, Load(14'880'952, {{14'880'952, kNsPerSecond}}));
  for (uint64_t k = 0; k < 14'880'952; k += 64) {
    ASSERT_EQ(step.next_due_tsc(), constant.next_due_tsc());
    if (k + 64 >= 14'880'952) break;
    step.advance(64);
    constant.advance(64);
  }
}

// All shares together send what the whole sends, each frame when it is due there.
TEST(ScheduleOfAShare, HasEachFrameWhenItIsDueInTheWhole) {
  constexpr uint64_t kHz = 2'445'395'000;
  std::mt19937_64 random(47);
  for (int round = 0; round < 200; ++round) {
    std::vector<RateStep> steps;
    for (uint64_t i = random() % 4; i > 0; --i) {
      steps.push_back({random() % 5 == 0 ? 0 : 1 + random() % 2'000'000, 1 + random() % 20'000});
    }
    steps.push_back({1'000'000, 1 + random() % 20'000});
    const Load load(3'000'017, random() % 2 == 0 ? std::vector<RateStep>{} : steps,
                    random() % 2 == 0);
    if (Load::frames_of(load.steps().back()) == 0) continue;
    const uint64_t shares = 1 + random() % 9;
    Schedule whole(777, kHz, load);
    std::vector<Schedule> parts;
    for (uint64_t i = 0; i < shares; ++i) parts.emplace_back(777, kHz, load, i, shares);
    for (uint64_t frame = 0; frame < 500; ++frame) {
      Schedule& part = parts[frame % shares];
      ASSERT_EQ(part.next_due_tsc(), whole.next_due_tsc()) << frame << " of " << shares;
      ASSERT_GE(part.due_count(part.next_due_tsc(), 32), 1U);
      ASSERT_EQ(part.due_count(part.next_due_tsc() - 1, 32), 0U);
      part.advance(1);
      whole.advance(1);
    }
  }
}

}  // namespace
}  // namespace dutperf::timing
