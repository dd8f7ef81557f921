#include "measure/stall_meter.h"

#include <gtest/gtest.h>

#include <vector>

#include "measure/testing/times.h"

namespace dutperf::measure {
namespace {

using testing::kMs;
using testing::kUs;

constexpr uint64_t kPolledFps = 1'000'000;
constexpr uint64_t kStallNs = 100 * kUs;

// A sender of 1,000,000 frames a second that can send `most_fps`, in calls of up to 32 frames.
class Sender {
 public:
  explicit Sender(uint64_t most_fps, uint64_t every_other_ns = 0)
      : call_ns_(32'000'000'000 / most_fps), every_other_ns_(every_other_ns) {}

  void run(uint64_t until_ns) {
    while (now_ns_ < until_ns) {
      const uint64_t due = now_ns_ / kUs;
      if (due == sent_) {
        now_ns_ += kUs;
        continue;
      }
      const uint64_t lag_ns = now_ns_ - sent_ * kUs;
      if (meter.open() || lag_ns > kStallNs) meter.note(now_ns_, lag_ns, now_ns_ - last_ns_);
      last_ns_ = now_ns_;
      sent_ += std::min<uint64_t>(due - sent_, 32);
      now_ns_ += call_ns_;
      if (++calls_ % 2 == 0) now_ns_ += every_other_ns_;
    }
  }
  void away(uint64_t ns) { now_ns_ += ns; }
  std::vector<Stall> stalls() {
    std::vector<Stall> result;
    for (size_t i = 0; i < log.ended(); ++i) result.push_back(log.stall(i));
    return result;
  }
  std::optional<Stall> finish() { return meter.finish(now_ns_); }

  StallLog log;
  StallMeter meter{log, kPolledFps, kStallNs};

 private:
  const uint64_t call_ns_;
  const uint64_t every_other_ns_;
  uint64_t calls_ = 0;
  uint64_t now_ns_ = 0;
  uint64_t last_ns_ = 0;
  uint64_t sent_ = 0;
};

TEST(StallMeter, ASenderOnScheduleHasNone) {
  Sender sender(4'000'000);
  sender.run(100 * kMs);
  EXPECT_FALSE(sender.finish());
  EXPECT_TRUE(sender.stalls().empty());
}

// What was due in the pause leaves at once; what follows it late, but evenly, is no burst.
TEST(StallMeter, APauseIsMadeUpForByTheFramesOfItsTime) {
  for (const uint64_t most_fps : {1'100'000, 2'000'000, 8'000'000}) {
    Sender sender(most_fps);
    sender.run(50 * kMs);
    sender.away(4 * kMs);
    sender.run(200 * kMs);
    EXPECT_FALSE(sender.finish());
    ASSERT_EQ(sender.stalls().size(), 1U) << most_fps;
    const Stall stall = sender.stalls()[0];
    EXPECT_NEAR(static_cast<double>(stall.begin_ns), 50.0 * kMs, 40 * kUs);
    EXPECT_NEAR(static_cast<double>(stall.max_lag_ns), 4.0 * kMs, 40 * kUs);
    EXPECT_NEAR(static_cast<double>(stall.away_ns), 4.0 * kMs, 40 * kUs);
    EXPECT_NEAR(static_cast<double>(stall.frames), 4000, 64) << most_fps;
  }
}

TEST(StallMeter, PausesBeforeItCaughtUpAreOneStallOfAllTheirFrames) {
  Sender sender(1'200'000);
  for (int i = 0; i < 5; ++i) {
    sender.run((50 + 5 * i) * kMs);
    sender.away(2 * kMs);
  }
  sender.run(300 * kMs);
  ASSERT_EQ(sender.stalls().size(), 1U);
  EXPECT_NEAR(static_cast<double>(sender.stalls()[0].frames), 10'000, 5 * 64);
}

// The opposite of a pause: late all the time, and never a burst.
TEST(StallMeter, ASenderThatIsTooSlowSendsNoBurst) {
  Sender sender(900'000);
  sender.run(100 * kMs);
  const auto last = sender.finish();
  ASSERT_TRUE(last);
  EXPECT_GT(last->max_lag_ns, 9 * kMs);
  EXPECT_LE(last->frames, 100U) << "a stall of its own";
  ASSERT_EQ(sender.stalls().size(), 1U);
  EXPECT_EQ(sender.stalls()[0], *last);
}

// Its loop does something else every other time: lags rise and fall by less than a stall.
TEST(StallMeter, StepsOfABusyLoopAreNoBursts) {
  Sender sender(4'000'000, 48 * kUs);  // 64 frames in 64 us: just on schedule, once it is late
  sender.run(50 * kMs);
  sender.away(kMs);
  sender.run(200 * kMs);
  const auto last = sender.finish();
  ASSERT_TRUE(last);
  EXPECT_GE(last->max_lag_ns, kMs);
  EXPECT_LE(last->frames, 100U);
}

TEST(StallMeter, WhatEndsInAPauseHasTheFramesThatLeftAfterIt) {
  Sender sender(8'000'000);
  sender.run(50 * kMs);
  sender.away(4 * kMs);
  sender.run(54 * kMs + 200 * kUs);  // some 1,600 at eight times the rate
  const auto last = sender.finish();
  ASSERT_TRUE(last);
  EXPECT_NEAR(static_cast<double>(last->frames), 1400, 100);
  EXPECT_NEAR(static_cast<double>(last->away_ns), 4.0 * kMs, 40 * kUs);
}

}  // namespace
}  // namespace dutperf::measure
