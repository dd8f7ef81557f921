#include "control/trial_facts.h"

#include <gtest/gtest.h>

#include "dataplane/receiver.h"
#include "dataplane/sender.h"
#include "measure/testing/times.h"

namespace dutperf::control {
namespace {

using dataplane::Side;
using measure::Histogram;
using measure::testing::kMs;

// A direction's result on histograms of its own.
struct Direction {
  Histogram lag_ns{dataplane::kLagBits};
  Histogram send_call_ns{dataplane::kCallBits};
  Histogram receive_gap_ns{dataplane::kGapBits};
  DirectionResult result{};

  explicit Direction(Side from) {
    result.from = from;
    result.lag_ns = &lag_ns;
    result.send_call_ns = &send_call_ns;
    result.receive_gap_ns = &receive_gap_ns;
  }
  Direction(const Direction&) = delete;
  Direction& operator=(const Direction&) = delete;
};

TEST(TrialFacts, AddUpTheStreams) {
  Direction direction(Side::kRight);
  StreamResult stream;
  stream.intended = 100;
  stream.sent = 90;
  stream.received = 80;
  stream.duplicate = 1;
  stream.late = 2;
  stream.lost_in_shadow = 3;
  stream.late_in_shadow = 4;
  stream.negative_delays = 5;
  stream.damaged[net::Damage::kTruncated] = 6;
  direction.result.streams = {stream, stream};
  const measure::DirectionFacts facts = facts_of(direction.result, true, {}, 1);
  EXPECT_EQ(facts.name, "reverse");
  EXPECT_EQ(facts.receiving_port, 0U);
  EXPECT_EQ(facts.intended, 200U);
  EXPECT_EQ(facts.sent, 180U);
  EXPECT_EQ(facts.received, 160U);
  EXPECT_EQ(facts.duplicate, 2U);
  EXPECT_EQ(facts.overdue, 4U);
  EXPECT_EQ(facts.lost_in_shadow, 6U);
  EXPECT_EQ(facts.overdue_in_shadow, 8U);
  EXPECT_EQ(facts.negative_delay, 10U);
  EXPECT_EQ(facts.damaged.total(), 12U);
  EXPECT_EQ(facts.max_lag_ns, 0U);  // of no frame
  EXPECT_TRUE(facts.gave_up);
}

TEST(TrialFacts, CountFramesThatTheTesterHeldForHalfTheTimeout) {
  Direction direction(Side::kLeft);
  direction.send_call_ns.record(4 * kMs, 3);
  direction.send_call_ns.record(6 * kMs, 5);
  direction.receive_gap_ns.record(7 * kMs, 11);
  dataplane::TrialSpec spec;
  EXPECT_EQ(facts_of(direction.result, false, spec, 1).held_frames, 0U);
  spec.frame_timeout_ns = 10 * kMs;
  EXPECT_EQ(facts_of(direction.result, false, spec, 1).held_frames, 16U);
}

TEST(TrialFacts, KnowWhenALoadEndsBeforeTheTrial) {
  Direction direction(Side::kLeft);
  dataplane::TrialSpec spec;
  spec.duration_ns = 1000 * kMs;
  EXPECT_EQ(facts_of(direction.result, false, spec, 1).idle_end_ns, 0U) << "nothing is sent";
  dataplane::DirectionSpec& load = spec.from[0];
  load.streams.resize(1);
  load.rate_fps = 1000;
  load.frames = 1000;
  EXPECT_EQ(facts_of(direction.result, false, spec, 1).idle_end_ns, 0U);
  load.steps = {{1000, 300 * kMs}, {0, 200 * kMs}};
  load.frames = 600;
  EXPECT_EQ(facts_of(direction.result, false, spec, 1).idle_end_ns, 200 * kMs);
  spec.duration_ns = 700 * kMs;  // cut in the second step
  load.frames = 500;
  EXPECT_EQ(facts_of(direction.result, false, spec, 1).idle_end_ns, 0U);
}

TEST(TrialFacts, BlameAnySendersStallForBurstsAndTheReceiverForTheRest) {
  Direction forward(Side::kLeft);
  Direction reverse(Side::kRight);
  forward.result.stalls = {{0, 0, 20 * kMs, 0, 0}, {0, 0, 10 * kMs, 0, 0}};
  forward.receive_gap_ns.record(1 * kMs);
  reverse.receive_gap_ns.record(2 * kMs);
  reverse.result.shadows = {{{0, 0, false, false, 0}, {0, 0, true, false, 0}}};
  measure::TrialFacts facts;
  facts.directions = {facts_of(forward.result, false, {}, 1),
                      facts_of(reverse.result, false, {}, 1)};
  add_longest_stalls({forward.result, reverse.result}, facts);
  EXPECT_FALSE(facts.directions[0].burst_shadow);
  EXPECT_EQ(facts.directions[0].longest_stall_ns, 1 * kMs);
  EXPECT_TRUE(facts.directions[1].burst_shadow);
  EXPECT_EQ(facts.directions[1].longest_stall_ns, 20 * kMs);
}

}  // namespace
}  // namespace dutperf::control
