#include "control/load_messages.h"

#include <gtest/gtest.h>

#include <string>

#include "measure/testing/times.h"

namespace dutperf::control {
namespace {

using measure::testing::kMs;

dataplane::DirectionSpec direction_of(const Json& json, uint64_t duration_ns) {
  ObjectReader reader(json, "");
  dataplane::DirectionSpec direction;
  parse_load(reader, duration_ns, direction);
  reader.finish();
  return direction;
}

Json step(uint64_t rate_fps, uint64_t duration_ns) {
  return {{"rate_fps", rate_fps}, {"duration_ns", duration_ns}};
}

TEST(ParseLoad, CountsTheFramesOfTheSteps) {
  const Json load = {{"rate_fps", 1000}, {"steps", {step(1000, 10 * kMs), step(0, 5 * kMs)}}};
  EXPECT_EQ(direction_of(load, 33 * kMs).frames, 23U);
  EXPECT_EQ(direction_of(load, 28 * kMs).frames, 20U);
}

TEST(ParseLoad, HasOneFrameAtOnceIfNoStepHasOne) {
  const Json late = {{"rate_fps", 1000}, {"steps", {step(0, 50 * kMs), step(1000, 50 * kMs)}}};
  const Json never = {{"rate_fps", 3}, {"steps", {step(3, 50 * kMs), step(1, 50 * kMs)}}};
  for (const Json& load : {late, never}) {
    const dataplane::DirectionSpec direction = direction_of(load, 50 * kMs);
    EXPECT_EQ(direction.frames, 1U);
    EXPECT_EQ(direction.load().due_ns(0), 0U);
  }
}

TEST(ParseLoad, RefusesMoreStepsOrFramesThanItCanCount) {
  Json load = {{"rate_fps", 2}, {"steps", Json::array()}};
  for (int i = 0; i < 4096; ++i) load["steps"].push_back(step(2, kMs));
  EXPECT_NO_THROW(direction_of(load, kMs));
  load["steps"].push_back(step(2, kMs));
  EXPECT_THROW(direction_of(load, kMs), ProtocolError);
  const uint64_t most = 1'000'000'000'000;
  const Json many = {{"rate_fps", most}, {"steps", {step(most, 1ULL << 47)}}};
  EXPECT_THROW(direction_of(many, 1ULL << 47), ProtocolError);
}

// A frame each millisecond; every second one is of the background; a pause after 100.
dataplane::DirectionSpec mixed() {
  dataplane::DirectionSpec direction;
  direction.rate_fps = 1000;
  direction.steps = {{1000, 100 * kMs}, {0, 900 * kMs}};
  direction.mix = {1, 2};
  return direction;
}

TEST(Timed, KnowsWhenTheFramesOfALossWereDue) {
  const dataplane::DirectionSpec direction = mixed();
  const auto foreground = timed(direction, direction.load(), 0, {48, 3}, 100);
  ASSERT_TRUE(foreground);
  EXPECT_EQ(foreground->run, (measure::LossRun{48, 3}));
  EXPECT_EQ(foreground->begin_ns, 96 * kMs);
  EXPECT_EQ(foreground->last_ns, 1000 * kMs) << "after the pause";
  EXPECT_EQ(foreground->end_ns, 1002 * kMs);
  const auto background = timed(direction, direction.load(), 1, {48, 2}, 100);
  ASSERT_TRUE(background);
  EXPECT_EQ(background->begin_ns, 97 * kMs);
  EXPECT_EQ(background->last_ns, 99 * kMs);
  EXPECT_EQ(background->end_ns, 1001 * kMs);
}

TEST(Timed, HasNoEndIfNoneArrivedAfter) {
  const dataplane::DirectionSpec direction = mixed();
  const auto loss = timed(direction, direction.load(), 0, {10, 5}, 15);
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->end_ns, std::nullopt);
  EXPECT_EQ(to_json(loss), Json::parse(R"({"first": 10, "frames": 5, "begin_ns": 20000000,
                                           "last_ns": 28000000, "end_ns": null})"));
}

TEST(Timed, IsNothingWithoutALoss) {
  const dataplane::DirectionSpec direction = mixed();
  EXPECT_FALSE(timed(direction, direction.load(), 0, {}, 15));
  EXPECT_TRUE(to_json(timed(direction, direction.load(), 0, {}, 15)).is_null());
}

}  // namespace
}  // namespace dutperf::control
