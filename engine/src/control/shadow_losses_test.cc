#include "control/shadow_losses.h"

#include <gtest/gtest.h>

#include "measure/testing/times.h"

namespace dutperf::control {
namespace {

using measure::Shadow;
using measure::testing::kMs;

constexpr uint64_t kFrames = 1000;

Shadow shadow(uint64_t begin_ms, uint64_t end_ms, uint64_t frames) {
  return {begin_ms * kMs, end_ms * kMs, true, true, frames};
}

// A frame each millisecond; frame k is due at k ms.
dataplane::DirectionSpec direction() {
  dataplane::DirectionSpec result;
  result.rate_fps = 1000;
  result.frames = kFrames;
  result.streams.resize(1);
  return result;
}

// Frames `first` to `last` are missing.
class LostInShadow : public ::testing::Test {
 protected:
  void lose(uint64_t first, uint64_t last, uint64_t window_bytes = UINT64_MAX) {
    tracker_.reset(kFrames, window_bytes);
    for (uint64_t i = 0; i < kFrames; ++i) {
      measure::Arrival arrival{};
      arrival.sequence = i;
      if (i < first || i > last) tracker_.record(&arrival, 1);
    }
    sent_ = kFrames;
  }

  uint64_t lost(std::vector<Shadow>& shadows) const {
    return lost_in_shadow(direction_, 0, {}, shadows, tracker_, sent_);
  }
  uint64_t lost(const Shadow& shadow) const {
    std::vector<Shadow> shadows = {shadow};
    return lost(shadows);
  }

  dataplane::DirectionSpec direction_ = direction();
  measure::SequenceTracker tracker_;
  uint64_t sent_ = kFrames;
};

TEST_F(LostInShadow, CountsWhatIsMissingUnderIt) {
  lose(200, 299);
  EXPECT_EQ(lost(shadow(100, 400, 500)), 100U);
  EXPECT_EQ(lost(shadow(400, 500, 500)), 0U);
  EXPECT_EQ(lost(shadow(900, UINT64_MAX / kMs, 500)), 0U);
}

TEST_F(LostInShadow, TakesAFrameMoreAtEachEnd) {
  lose(200, 299);
  EXPECT_EQ(lost(shadow(250, 260, 500)), 12U);  // 249 to 260
  EXPECT_EQ(lost(shadow(0, 200, 500)), 1U);
  EXPECT_EQ(lost(shadow(300, 400, 500)), 1U);
}

TEST_F(LostInShadow, ExcusesNoMoreThanTheShadowCanHaveCost) {
  lose(200, 299);
  std::vector<Shadow> shadows = {shadow(100, 400, 30), shadow(500, 600, 30)};
  EXPECT_EQ(lost(shadows), 30U);
  EXPECT_EQ(shadows[0].frames, 0U);  // nothing is left for the next stream
  EXPECT_EQ(shadows[1].frames, 30U);
  EXPECT_EQ(lost(shadows), 0U);
}

TEST_F(LostInShadow, ExcusesAllWhenNobodyKnowsWhatItCanHaveCost) {
  lose(200, 299);
  std::vector<Shadow> shadows = {shadow(100, 400, UINT64_MAX)};
  EXPECT_EQ(lost(shadows), 100U);
  EXPECT_EQ(shadows[0].frames, UINT64_MAX);
}

TEST_F(LostInShadow, LooksWhereTheStepsOfTheLoadHaveTheFrames) {
  // 100 frames in 100 ms, none in as long, then one every 2 ms.
  direction_.steps = {{1000, 100 * kMs}, {0, 100 * kMs}, {500, 1800 * kMs}};
  lose(100, 149);  // due from 200 to 298 ms
  EXPECT_EQ(lost(shadow(200, 300, 500)), 50U);
  EXPECT_EQ(lost(shadow(120, 180, 500)), 1U) << "a frame more at each end";
  EXPECT_EQ(lost(shadow(220, 240, 500)), 12U);
  EXPECT_EQ(lost(shadow(310, 400, 500)), 0U);
}

TEST_F(LostInShadow, ExcusesNothingWithoutABurst) {
  lose(200, 299);
  Shadow calm = shadow(100, 400, 500);
  calm.may_lose = false;
  EXPECT_EQ(lost(calm), 0U);
}

TEST_F(LostInShadow, EndsWithTheLastFrameThatLeft) {
  lose(200, 999);
  sent_ = 250;
  EXPECT_EQ(lost(shadow(100, 900, 500)), 50U);
}

TEST_F(LostInShadow, TakesTheMostThatCanBeWithAWindow) {
  lose(200, 299, 8);
  ASSERT_NE(tracker_.window_frames(), 0U);
  EXPECT_EQ(lost(shadow(400, 450, 500)), 52U);    // 399 to 450, though all of these arrived
  EXPECT_EQ(lost(shadow(400, 800, 5000)), 100U);  // no more were lost at all
}

DirectionResult in_shadow(uint64_t frames, uint64_t burst, const std::vector<uint64_t>& lost) {
  DirectionResult result{};
  result.shadows = {{shadow(100, 200, frames)}};
  if (burst > 0) result.stalls = {{100 * kMs, 110 * kMs, 10 * kMs, 10 * kMs, burst}};
  for (const uint64_t count : lost) {
    StreamResult stream;
    stream.lost_in_shadow = count;
    result.streams.push_back(stream);
  }
  return result;
}

TEST(ShareBursts, LeavesWhatTheBurstsCanHaveCost) {
  std::vector<DirectionResult> directions = {in_shadow(10, 10, {2, 3}), in_shadow(10, 0, {5})};
  share_bursts(directions);
  EXPECT_EQ(directions[0].streams[0].lost_in_shadow, 2U);
  EXPECT_EQ(directions[0].streams[1].lost_in_shadow, 3U);
  EXPECT_EQ(directions[1].streams[0].lost_in_shadow, 5U);
}

TEST(ShareBursts, ExcusesEachDirectionItsShareOfABurst) {
  std::vector<DirectionResult> directions = {in_shadow(10, 10, {2, 8}), in_shadow(10, 0, {10})};
  share_bursts(directions);
  EXPECT_EQ(directions[0].streams[0].lost_in_shadow, 1U);
  EXPECT_EQ(directions[0].streams[1].lost_in_shadow, 4U);
  EXPECT_EQ(directions[1].streams[0].lost_in_shadow, 5U);
}

}  // namespace
}  // namespace dutperf::control
