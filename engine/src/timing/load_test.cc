#include "timing/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "timing/clock.h"
#include "timing/schedule.h"

namespace dutperf::timing {
namespace {

using Wide = unsigned __int128;

TEST(LoadOfARate, HasRateTimesDurationFramesToTheNearestOne) {
  EXPECT_EQ(Load(1000).frames_in(1'000'000'000), 1000U);
  EXPECT_EQ(Load(3).frames_in(500'000'000), 2U);  // 1.5
  EXPECT_EQ(Load(3).frames_in(499'999'999), 1U);  // 1.499999997
  EXPECT_EQ(Load(1).frames_in(1'000'000), 0U);    // 0.001
  EXPECT_EQ(Load(7).frames_in(1'000'000'001), 7U);
}

TEST(LoadOfARate, DoesNotWrapAt32Or64Bits) {
  EXPECT_EQ(Load(1'200'000).frames_in(3600 * 1'000'000'000ULL), 4'320'000'000U);
  EXPECT_EQ(
      Load(148'809'523).frames_in(1ULL << 47),
      static_cast<uint64_t>((Wide{148'809'523} * (1ULL << 47) + 500'000'000) / 1'000'000'000));
  EXPECT_EQ(Load(1'000'000'000'000).frames_in(1ULL << 47), 140'737'488'355'328'000U);
}

TEST(LoadOfARate, IsDueOnceInAnInterval) {
  EXPECT_EQ(Load(3).due_ns(0), 0U);
  EXPECT_EQ(Load(3).due_ns(1), 333'333'334U);
  EXPECT_EQ(Load(3).due_ns(3), 1'000'000'000U);
  EXPECT_EQ(Load(3, {}, true).due_ns(0), 166'666'667U);
  EXPECT_EQ(Load(1'000'000).due_ns(1ULL << 40), (1ULL << 40) * 1000);
  EXPECT_EQ(Load(3).step_end_ns(1000), UINT64_MAX);
}

// The model's frames() must give the same: see test_rate_steps.py.
TEST(LoadOfSteps, HasTheFramesThatThePlanExpects) {
  const Load load(1000, {{1000, 7'400'000}, {0, 3'000'000}, {3, 500'000'000}});
  EXPECT_EQ(load.frames_in(0), 0U);
  EXPECT_EQ(load.frames_in(5'499'999), 5U);
  EXPECT_EQ(load.frames_in(10'400'000), 7U);
  EXPECT_EQ(load.frames_in(510'400'000), 9U);
  EXPECT_EQ(load.frames_in(1'234'567'890), 26U);
}

TEST(LoadOfSteps, CountsWithoutWrapping) {
  const uint64_t long_ns = 1ULL << 47;
  EXPECT_EQ(Load(1'000'000'000'000, std::vector<RateStep>(4096, {1'000'000'000'000, long_ns}))
                .frames_in(long_ns),
            140'737'488'355'328'000U);
  EXPECT_EQ(Load(1'000'000'000'000, {{1'000'000'000'000, 1}}).frames_in(long_ns), long_ns * 1000);
}

std::vector<RateStep> random_steps(std::mt19937_64& random) {
  std::vector<RateStep> steps(1 + random() % 5);
  for (RateStep& step : steps) {
    step = {random() % 3 == 0 ? 0 : random() % 2'000'000, 1 + random() % 3'000'000};
  }
  steps[random() % steps.size()] = {1'000'000, 1'000 + random() % 1'000'000};
  return steps;
}

// Step after step until the trial is over.
uint64_t frames_one_step_at_a_time(const std::vector<RateStep>& steps, uint64_t ns) {
  uint64_t frames = 0;
  for (size_t i = 0; ns > 0; ++i) {
    const RateStep& step = steps[i % steps.size()];
    const uint64_t cut_ns = std::min(step.duration_ns, ns);
    frames += (step.rate_fps * cut_ns + kNsPerSecond / 2) / kNsPerSecond;
    ns -= cut_ns;
  }
  return frames;
}

TEST(LoadOfSteps, HasTheFramesOfItsStepsAndOfTheCutOne) {
  std::mt19937_64 random(9004);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::vector<RateStep> steps = random_steps(random);
    const uint64_t ns = random() % 50'000'000;
    ASSERT_EQ(Load(1, steps).frames_in(ns), frames_one_step_at_a_time(steps, ns)) << trial;
  }
}

// Ticks are nanoseconds here.
TEST(LoadOfSteps, IsDueWhenItsScheduleHasIt) {
  std::mt19937_64 random(26);
  for (int trial = 0; trial < 200; ++trial) {
    const Load load(1, random_steps(random), trial % 2 == 1);
    Schedule schedule(0, kNsPerSecond, load);
    for (uint64_t frame = 0; frame < 3000; ++frame) {
      ASSERT_EQ(load.due_ns(frame), schedule.next_due_tsc()) << trial << ", frame " << frame;
      ASSERT_GE(load.step_end_ns(frame), load.due_ns(frame));
      schedule.advance(1);
    }
  }
}

TEST(LoadOfSteps, HasEachFrameAmongThoseOfTheTimeUpToIt) {
  std::mt19937_64 random(5180);
  for (int trial = 0; trial < 200; ++trial) {
    const Load load(1, random_steps(random), trial % 2 == 1);
    for (uint64_t frame = 0; frame < 500; ++frame) {
      const uint64_t before = load.frames_in(load.due_ns(frame));
      ASSERT_GE(before + 1, frame) << trial;  // to the nearest frame
      ASSERT_LE(before, frame + 1) << trial;
    }
  }
}

TEST(LoadOfSteps, EndsAStepWhereThePauseBegins) {
  const Load load(1000, {{0, 5'000'000}, {1000, 10'000'000}, {0, 5'000'000}});
  EXPECT_EQ(load.due_ns(0), 5'000'000U);
  EXPECT_EQ(load.step_end_ns(0), 15'000'000U);
  EXPECT_EQ(load.step_end_ns(9), 15'000'000U);
  EXPECT_EQ(load.step_end_ns(10), 35'000'000U) << "begun again";
}

}  // namespace
}  // namespace dutperf::timing
