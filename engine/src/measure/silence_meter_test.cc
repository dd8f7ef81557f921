#include "measure/silence_meter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace dutperf::measure {
namespace {

TEST(SilenceMeter, TellsTheFirstOfTheLongestTimesBetweenArrivals) {
  SilenceMeter meter(100);
  for (const uint64_t now : {110, 120, 170, 180, 230, 240}) meter.hear(now);
  EXPECT_EQ(meter.longest(235), (Silence{120, 170}));
}

TEST(SilenceMeter, BeginsWhenTheFirstFrameIsDue) {
  SilenceMeter meter(1000);
  meter.hear(5000);
  meter.hear(6000);
  EXPECT_EQ(meter.longest(6000), (Silence{1000, 5000}));
}

TEST(SilenceMeter, IsSilentToTheEndWithoutAnyArrival) {
  EXPECT_EQ(SilenceMeter(1000).longest(9000), (Silence{1000, std::nullopt}));
  EXPECT_EQ(SilenceMeter(1000).longest(1000), (Silence{1000, std::nullopt})) << "one frame";
}

TEST(SilenceMeter, TellsTheEndWhenNothingCameAfterThoughMuchWasDue) {
  SilenceMeter meter(0);
  for (const uint64_t now : {10, 20, 130, 140}) meter.hear(now);
  EXPECT_EQ(meter.longest(250), (Silence{20, 130})) << "no longer than the one before";
  EXPECT_EQ(meter.longest(251), (Silence{140, std::nullopt}));
}

TEST(SilenceMeter, DoesNotTakeTheWaitAfterTheLastFrameForSilence) {
  SilenceMeter meter(0);
  for (const uint64_t now : {10, 20, 30}) meter.hear(now);
  EXPECT_EQ(meter.longest(25), (Silence{0, 10}));
}

TEST(SilenceMeter, BearsAnArrivalBeforeTheFrameWasDue) {
  SilenceMeter meter(1000);  // the CPUs' clocks disagree
  meter.hear(990);
  meter.hear(1010);
  EXPECT_EQ(meter.longest(1005), (Silence{990, 1010}));
}

// Looking at all times, one after the other.
TEST(SilenceMeter, AgreesWithALookAtAllArrivals) {
  std::mt19937_64 random(6201);
  for (int trial = 0; trial < 1000; ++trial) {
    const uint64_t first_due = random() % 50;
    std::vector<uint64_t> times = {first_due};
    SilenceMeter meter(first_due);
    for (uint64_t left = random() % 20; left > 0; --left) {
      times.push_back(times.back() + random() % 100);
      meter.hear(times.back());
    }
    const uint64_t last_due = first_due + random() % 1000;
    Silence expected{first_due, std::nullopt};
    uint64_t longest = 0;
    for (size_t i = 1; i < times.size(); ++i) {
      if (i > 1 && times[i] - times[i - 1] <= longest) continue;
      longest = times[i] - times[i - 1];
      expected = {times[i - 1], times[i]};
    }
    if (times.size() > 1 && last_due > times.back() + longest) {
      expected = {times.back(), std::nullopt};
    }
    ASSERT_EQ(meter.longest(last_due), expected) << trial;
  }
}

// Frames come by one of several at a time: as if one had heard them all.
TEST(SilenceMeter, IsAskedOfSeveralAsOfOne) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 1000; ++round) {
    const size_t count = 2 + random() % 4;
    std::vector<std::unique_ptr<SilenceMeter>> meters;
    for (size_t i = 0; i < count; ++i) meters.push_back(std::make_unique<SilenceMeter>(100));
    std::vector<const SilenceMeter*> others;
    for (size_t i = 0; i < count; ++i) {
      std::vector<const SilenceMeter*> beside;
      for (size_t k = 0; k < count; ++k) {
        if (k != i) beside.push_back(meters[k].get());
      }
      meters[i]->listen_with(beside);
      if (i > 0) others.push_back(meters[i].get());
    }
    SilenceMeter alone(100);
    uint64_t now_ns = 100;
    for (uint64_t i = random() % 40; i > 0; --i) {
      now_ns += random() % 3 == 0 ? random() % 1000 : random() % 10;
      meters[random() % count]->hear(now_ns);
      alone.hear(now_ns);
    }
    const uint64_t last_due_ns = now_ns + random() % 2000;
    ASSERT_EQ(meters[0]->longest_of(others, last_due_ns), alone.longest(last_due_ns)) << round;
  }
}

}  // namespace
}  // namespace dutperf::measure
