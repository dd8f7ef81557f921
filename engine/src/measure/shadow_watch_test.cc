#include "measure/shadow_watch.h"

#include <gtest/gtest.h>

#include "measure/testing/times.h"

namespace dutperf::measure {
namespace {

using testing::kMs;
using testing::kUs;

constexpr uint64_t kRateFps = 100'000;
constexpr uint64_t kRoomFrames = 1000;  // 10 ms
constexpr uint64_t kNever = UINT64_MAX;

// A direction of 100,000 frames a second that arrive after `delay_ns`, polled without a break.
class Direction {
 public:
  explicit Direction(std::vector<const StallLog*> senders, uint64_t frames = kNever)
      : watch(std::move(senders), frames, kRateFps, 2 * kRoomFrames) {}

  // Frames sent from `now_ns` on up to `end_ns`; how many of them stood in a shadow.
  uint64_t run(uint64_t end_ns, uint64_t delay_ns) {
    uint64_t shaded = 0;
    for (; now_ns < end_ns; now_ns += 10 * kUs) shaded += receive(delay_ns, 0) ? 1 : 0;
    return shaded;
  }
  bool receive(uint64_t delay_ns, uint64_t waited_ns) {
    const uint64_t received_ns = now_ns + delay_ns;
    return watch.covers(received_ns - waited_ns, received_ns, now_ns, now_ns);
  }

  ShadowWatch watch;
  uint64_t now_ns = 0;
};

class Shadows : public ::testing::Test {
 protected:
  void stall(StallLog& log, uint64_t begin_ns, uint64_t lag_ns) {
    log.begin(begin_ns);
    Stall stall;
    stall.caught_up_ns = begin_ns + lag_ns;
    stall.max_lag_ns = lag_ns;
    stall.frames = lag_ns / (10 * kUs);
    log.end(stall);
  }

  StallLog forward_;
  StallLog reverse_;
  Direction direction_{{&forward_, &reverse_}};
};

TEST(StallNs, Is64FramesWithinBounds) {
  EXPECT_EQ(stall_ns_at(0), kMs);
  EXPECT_EQ(stall_ns_at(64'000), kMs);
  EXPECT_EQ(stall_ns_at(128'000), 500 * kUs);
  EXPECT_EQ(stall_ns_at(640'000), 100 * kUs);
  EXPECT_EQ(stall_ns_at(14'880'952), 100 * kUs);
}

TEST_F(Shadows, AreNotCastWithoutAStall) {
  EXPECT_EQ(direction_.run(500 * kMs, 20 * kUs), 0U);
  direction_.watch.finish();
  EXPECT_TRUE(direction_.watch.shadows().empty());
}

TEST_F(Shadows, BeginWithTheStallAndEndWhenDelaysAreBack) {
  direction_.run(100 * kMs, 20 * kUs);
  stall(reverse_, 100 * kMs, 9 * kMs);  // of the other direction: they may share a CPU
  EXPECT_GT(direction_.run(150 * kMs, 5 * kMs), 0U);
  EXPECT_GT(direction_.run(160 * kMs, 20 * kUs), 0U) << "not a whole slot yet";
  EXPECT_EQ(direction_.run(200 * kMs, 20 * kUs), 0U);
  direction_.watch.finish();
  ASSERT_EQ(direction_.watch.shadows().size(), 1U);
  const Shadow shadow = direction_.watch.shadows()[0];
  EXPECT_EQ(shadow.begin_ns, 100 * kMs);
  EXPECT_GE(shadow.end_ns, 150 * kMs);
  EXPECT_LE(shadow.end_ns, 150 * kMs + 3 * DelayLevel::kSlotNs);
  EXPECT_TRUE(shadow.of_sender);
  EXPECT_TRUE(shadow.may_lose);
}

TEST_F(Shadows, DoNotEndBeforeTheSenderHasCaughtUp) {
  direction_.run(100 * kMs, 20 * kUs);
  forward_.begin(100 * kMs);
  const uint64_t before = direction_.now_ns;
  EXPECT_EQ(direction_.run(140 * kMs, 20 * kUs), (140 * kMs - before) / (10 * kUs));
  Stall stall;
  stall.caught_up_ns = 141 * kMs;
  stall.max_lag_ns = 2 * kMs;
  forward_.end(stall);
  direction_.run(160 * kMs, 20 * kUs);
  direction_.watch.finish();
  ASSERT_EQ(direction_.watch.shadows().size(), 1U);
  EXPECT_GT(direction_.watch.shadows()[0].end_ns, 141 * kMs);
  EXPECT_LT(direction_.watch.shadows()[0].end_ns, 145 * kMs);
}

// At or above its capacity a device never drains the burst.
TEST_F(Shadows, EndAtTheLatestFiftyTimesTheLagLater) {
  direction_.run(100 * kMs, 20 * kUs);
  stall(forward_, 100 * kMs, 3 * kMs);
  direction_.run(1000 * kMs, 5 * kMs);
  direction_.watch.finish();
  ASSERT_EQ(direction_.watch.shadows().size(), 1U);
  EXPECT_EQ(direction_.watch.shadows()[0], (Shadow{100 * kMs, 253 * kMs, true, true, 300}));
}

TEST_F(Shadows, OfAStallRightAtTheBeginHaveNothingToCompareWith) {
  stall(forward_, 0, 2 * kMs);
  direction_.run(500 * kMs, 20 * kUs);
  direction_.watch.finish();
  ASSERT_EQ(direction_.watch.shadows().size(), 1U);
  EXPECT_EQ(direction_.watch.shadows()[0], (Shadow{0, 102 * kMs, true, true, 200}));
}

// Each stall is excused by what was before it: a full queue is no excuse for the next one.
TEST_F(Shadows, OfALaterStallAreMeasuredByTheQueueThatItMet) {
  direction_.run(100 * kMs, 20 * kUs);
  for (uint64_t at = 100; at < 900; at += 100) {
    stall(forward_, at * kMs, 3 * kMs);
    direction_.run((at + 100) * kMs, 5 * kMs);
  }
  direction_.watch.finish();
  ASSERT_GT(direction_.watch.shadows().size(), 5U);
  uint64_t covered = 0;
  for (const Shadow& shadow : direction_.watch.shadows())
    covered += shadow.end_ns - shadow.begin_ns;
  EXPECT_LT(covered, 250 * kMs);
}

TEST_F(Shadows, OverlapAndAreOne) {
  direction_.run(100 * kMs, 20 * kUs);
  stall(forward_, 100 * kMs, 3 * kMs);
  stall(reverse_, 101 * kMs, 9 * kMs);
  direction_.run(130 * kMs, 3 * kMs);
  direction_.run(200 * kMs, 20 * kUs);
  direction_.watch.finish();
  ASSERT_EQ(direction_.watch.shadows().size(), 1U);
  EXPECT_EQ(direction_.watch.shadows()[0].begin_ns, 100 * kMs);
  EXPECT_EQ(direction_.watch.shadows()[0].frames, 1200U) << "what both bursts can have cost";
}

TEST_F(Shadows, LieOverWhatNeverArrived) {
  direction_.run(100 * kMs, 20 * kUs);
  stall(forward_, 100 * kMs, 3 * kMs);
  direction_.watch.finish();
  ASSERT_EQ(direction_.watch.shadows().size(), 1U);
  EXPECT_EQ(direction_.watch.shadows()[0], (Shadow{100 * kMs, 253 * kMs, true, true, 300}));
}

TEST_F(Shadows, OfASenderThatNeverCaughtUpLastToTheEnd) {
  direction_.run(100 * kMs, 20 * kUs);
  forward_.begin(100 * kMs);
  direction_.run(200 * kMs, 20 * kUs);
  direction_.watch.finish();
  ASSERT_EQ(direction_.watch.shadows().size(), 1U);
  EXPECT_EQ(direction_.watch.shadows()[0], (Shadow{100 * kMs, kNever, true, true, kNever}));
}

TEST_F(Shadows, OfAReceiverLieOnTheFramesThatWaitedForIt) {
  direction_.run(100 * kMs, 20 * kUs);
  EXPECT_FALSE(direction_.receive(20 * kUs, 640 * kUs - 1));
  EXPECT_TRUE(direction_.receive(3 * kMs, 3 * kMs));
  direction_.run(200 * kMs, 20 * kUs);
  EXPECT_TRUE(direction_.receive(12 * kMs, 12 * kMs));
  direction_.run(300 * kMs, 20 * kUs);
  direction_.watch.finish();
  ASSERT_EQ(direction_.watch.shadows().size(), 2U);
  const Shadow& first = direction_.watch.shadows()[0];
  EXPECT_LE(first.begin_ns, 100 * kMs + 20 * kUs);
  EXPECT_LT(first.end_ns, 106 * kMs);
  EXPECT_FALSE(first.of_sender);
  EXPECT_FALSE(first.may_lose) << "its ring had room";
  EXPECT_EQ(first.frames, 0U);
  EXPECT_TRUE(direction_.watch.shadows()[1].may_lose);
  EXPECT_EQ(direction_.watch.shadows()[1].frames, 1201U);
}

// A burst of a few frames fits into the ring, however long the device takes to let them go.
TEST_F(Shadows, OfAReceiverCostNoMoreThanThereAre) {
  for (const uint64_t frames : {kRoomFrames - 1, kRoomFrames}) {
    Direction burst({nullptr, nullptr}, frames);
    EXPECT_TRUE(burst.receive(100 * kMs, 100 * kMs));
    burst.watch.finish();
    ASSERT_EQ(burst.watch.shadows().size(), 1U);
    const Shadow& shadow = burst.watch.shadows()[0];
    EXPECT_EQ(shadow.may_lose, frames == kRoomFrames);
    EXPECT_EQ(shadow.frames, shadow.may_lose ? frames + 1 : 0);
  }
}

// A receiver in overload drains nothing for long: each call meets what waits already, and a few
// more.
TEST_F(Shadows, OfAReceiverCountWhatWaitsOnce) {
  direction_.run(100 * kMs, 20 * kUs);
  for (uint64_t ms = 10; ms <= 50; ++ms) {
    direction_.now_ns = (100 + ms) * kMs;
    EXPECT_TRUE(direction_.receive(0, ms * kMs));
  }
  direction_.watch.finish();
  ASSERT_EQ(direction_.watch.shadows().size(), 1U);
  EXPECT_EQ(direction_.watch.shadows()[0].frames, 5001U);
}

TEST_F(Shadows, AreKeptWhenThereAreTooManyToTell) {
  direction_.run(100 * kMs, 20 * kUs);
  for (uint64_t i = 0; i < StallLog::kMaxStalls + 10; ++i) {
    stall(forward_, direction_.now_ns, kMs);
    direction_.run(direction_.now_ns + 10 * kMs, 20 * kUs);
  }
  EXPECT_EQ(forward_.begun(), StallLog::kMaxStalls);
  EXPECT_EQ(forward_.ended(), StallLog::kMaxStalls - 1);
  forward_.finish();
  direction_.watch.finish();
  EXPECT_EQ(direction_.watch.shadows().size(), ShadowWatch::kMaxShadows);
  EXPECT_EQ(direction_.watch.shadows().back().frames, 11 * 100U) << "what it tells of all of them";
  EXPECT_GE(direction_.watch.shadows().back().end_ns, direction_.now_ns);
}

TEST_F(Shadows, OfMoreStallsAtOnceThanCanBeFollowedEndNoSooner) {
  direction_.run(100 * kMs, 20 * kUs);
  for (uint64_t i = 0; i < 40; ++i) stall(forward_, 100 * kMs + i * kUs, 3 * kMs);
  direction_.run(400 * kMs, 5 * kMs);
  direction_.watch.finish();
  ASSERT_EQ(direction_.watch.shadows().size(), 1U);
  EXPECT_GE(direction_.watch.shadows()[0].end_ns, 253 * kMs);
  EXPECT_EQ(direction_.watch.shadows()[0].frames, 40 * 300U) << "no more is excused for that";
}

// Shadows that are asked for twice are the same.
TEST_F(Shadows, AreFinishedOnce) {
  direction_.run(100 * kMs, 20 * kUs);
  stall(forward_, 100 * kMs, 3 * kMs);
  direction_.run(400 * kMs, 20 * kUs);
  direction_.watch.finish();
  const std::vector<Shadow> once = direction_.watch.shadows();
  direction_.watch.finish();
  EXPECT_EQ(direction_.watch.shadows(), once);
}

TEST(FramesInAll, CountABurstOnceThoughItIsInTheShadowsOfBothDirections) {
  const Shadow burst{0, 10, true, true, 300};
  const Shadow both{20, 30, true, true, 200 + 50};  // a burst of 200, and a receiver's ring
  EXPECT_EQ(frames_in_all({{burst}, {burst}}, 300), 300U);
  EXPECT_EQ(frames_in_all({{burst, both}, {burst, {20, 30, true, true, 200}}}, 500), 550U);
  EXPECT_EQ(frames_in_all({{burst}}, 300), 300U);
  EXPECT_EQ(frames_in_all({{burst}, {}}, 300), 300U) << "one direction";
  EXPECT_EQ(frames_in_all({{}, {}}, 0), 0U);
  EXPECT_EQ(frames_in_all({{burst}, {{0, 10, true, true, kNever}}}, 300), kNever);
}

TEST(StallLog, EndsTheLastOfAFullLogWithTheTrial) {
  StallLog log;
  for (uint64_t i = 0; i < StallLog::kMaxStalls + 2; ++i) {
    log.begin(i);
    log.end({0, 10 + i, 2, 1, 5});
  }
  EXPECT_EQ(log.ended(), StallLog::kMaxStalls - 1);
  log.finish();
  ASSERT_EQ(log.ended(), StallLog::kMaxStalls);
  EXPECT_EQ(log.stall(StallLog::kMaxStalls - 1),
            (Stall{StallLog::kMaxStalls - 1, StallLog::kMaxStalls + 11, 2, 1, 15}));
}

TEST(StallLog, KeepsWhatEndedAndOneThatHasNot) {
  StallLog log;
  log.end({});
  EXPECT_EQ(log.ended(), 0U);
  log.begin(5);
  log.begin(6);
  EXPECT_EQ(log.begun(), 1U);
  EXPECT_EQ(log.begin_ns(0), 5U);
  EXPECT_EQ(log.ended(), 0U);
  log.end({0, 9, 4, 3, 7});
  ASSERT_EQ(log.ended(), 1U);
  EXPECT_EQ(log.stall(0), (Stall{5, 9, 4, 3, 7}));
}

TEST(Together, PutsShadowsThatOverlapIntoOne) {
  const Shadow one{100, 200, true, true, 5};
  const Shadow other{150, 300, false, false, 0};
  const Shadow apart{400, 500, false, true, 7};
  const Shadow endless{450, UINT64_MAX, false, false, UINT64_MAX};
  EXPECT_EQ(together({{one, apart}, {other}}),
            (std::vector<Shadow>{{100, 300, true, true, 5}, apart}));
  EXPECT_EQ(together({{apart}, {endless}}),
            (std::vector<Shadow>{{400, UINT64_MAX, false, true, UINT64_MAX}}));
  EXPECT_TRUE(together({{}, {}}).empty());
}

}  // namespace
}  // namespace dutperf::measure
