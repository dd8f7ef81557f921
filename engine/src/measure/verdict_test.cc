#include "measure/verdict.h"

#include <gtest/gtest.h>

#include <functional>

namespace dutperf::measure {
namespace {

constexpr uint64_t kDurationNs = 60'000'000'000;
constexpr uint64_t kLagLimitNs = 10'000'000;
constexpr uint64_t kTenPpmNs = 600'000;

// A bidirectional trial in which nothing is wrong.
TrialFacts good() {
  TrialFacts facts;
  facts.duration_ns = kDurationNs;
  facts.lag_limit_ns = kLagLimitNs;
  for (const char* name : {"forward", "reverse"}) {
    DirectionFacts direction;
    direction.name = name;
    direction.receiving_port = facts.directions.empty() ? 1 : 0;
    direction.intended = direction.sent = direction.received = 60'000;
    direction.sending_ns = kDurationNs - 1'000'000;
    direction.max_lag_ns = 20'000;
    facts.directions.push_back(direction);
  }
  facts.ports = {{"left"}, {"right"}};
  return facts;
}

std::vector<std::string> codes(const Verdict& verdict) {
  std::vector<std::string> result;
  for (const Reason& reason : verdict.reasons) result.push_back(reason.code);
  return result;
}

using Codes = std::vector<std::string>;

TEST(Judge, PassesATrialInWhichNothingIsWrong) {
  const Verdict verdict = judge(good());
  EXPECT_EQ(verdict.kind, VerdictKind::kPass);
  EXPECT_TRUE(verdict.reasons.empty());
}

struct Trouble {
  const char* code;
  VerdictKind kind;
  std::function<void(TrialFacts&)> happen;
};

void PrintTo(const Trouble& trouble, std::ostream* out) { *out << trouble.code; }

class JudgeOne : public ::testing::TestWithParam<Trouble> {};

TEST_P(JudgeOne, TroubleHasItsReason) {
  TrialFacts facts = good();
  GetParam().happen(facts);
  const Verdict verdict = judge(facts);
  EXPECT_EQ(verdict.kind, GetParam().kind);
  EXPECT_EQ(codes(verdict), Codes{GetParam().code});
  EXPECT_FALSE(verdict.reasons.at(0).message.empty());
}

const Trouble kTroubles[] = {
    {"frames_lost", VerdictKind::kFail, [](TrialFacts& f) { f.directions[1].received -= 1; }},
    {"frames_lost", VerdictKind::kFail, [](TrialFacts& f) { f.directions[0].received = 0; }},
    {"duplicates", VerdictKind::kFail, [](TrialFacts& f) { f.directions[0].duplicate = 1; }},
    {"frames_late", VerdictKind::kFail, [](TrialFacts& f) { f.directions[1].overdue = 1; }},
    {"clock_unstable", VerdictKind::kInvalid,
     [](TrialFacts& f) { f.directions[0].negative_delay = 1; }},
    {"corrupt_frames", VerdictKind::kFail, [](TrialFacts& f) { f.ports[1].corrupt = 1; }},
    {"nothing_sent", VerdictKind::kInvalid,
     [](TrialFacts& f) {
       f.directions[0].sent = f.directions[0].received = f.directions[0].sending_ns = 0;
     }},
    {"sender_behind", VerdictKind::kInvalid, [](TrialFacts& f) { f.directions[1].gave_up = true; }},
    {"held_back", VerdictKind::kInvalid,
     [](TrialFacts& f) {
       f.directions[1].gave_up = true;
       f.directions[1].max_lag_ns = f.directions[1].port_full_ns = 10 * kLagLimitNs;
     }},
    {"link_down", VerdictKind::kInvalid,
     [](TrialFacts& f) { f.ports[0].link_up_before = f.ports[0].link_up_after = false; }},
    {"link_changed", VerdictKind::kInvalid,
     [](TrialFacts& f) { f.ports[0].link_up_after = false; }},
    {"link_changed", VerdictKind::kInvalid,
     [](TrialFacts& f) { f.ports[0].link_up_before = false; }},
    {"link_changed", VerdictKind::kInvalid, [](TrialFacts& f) { f.ports[1].link_flapped = true; }},
    {"flow_control", VerdictKind::kInvalid,
     [](TrialFacts& f) { f.ports[1].flow_control_on = true; }},
    {"receiver_overflow", VerdictKind::kInvalid, [](TrialFacts& f) { f.ports[0].rx_missed = 1; }},
    {"receiver_overflow", VerdictKind::kInvalid, [](TrialFacts& f) { f.ports[0].rx_nombuf = 1; }},
    {"receiver_overflow", VerdictKind::kInvalid, [](TrialFacts& f) { f.ports[0].rx_errors = 1; }},
    {"transmit_errors", VerdictKind::kInvalid, [](TrialFacts& f) { f.ports[1].tx_errors = 1; }},
    {"neighbour_missing", VerdictKind::kInvalid,
     [](TrialFacts& f) { f.unresolved_neighbours = {"198.18.0.1 on port left"}; }},
    {"aborted", VerdictKind::kInvalid, [](TrialFacts& f) { f.aborted = true; }},
};

INSTANTIATE_TEST_SUITE_P(Every, JudgeOne, ::testing::ValuesIn(kTroubles));

TEST(Judge, AllowsTheSenderTenPpmAndTheLagLimit) {
  TrialFacts facts = good();
  facts.directions[0].sending_ns = kDurationNs + kTenPpmNs + kLagLimitNs;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
  facts.directions[0].sending_ns += 1;
  EXPECT_EQ(codes(judge(facts)), Codes{"sender_behind"});
}

TEST(Judge, TellsASenderThatWasHeldBackFromOneThatIsTooSlow) {
  TrialFacts facts = good();
  DirectionFacts& forward = facts.directions[0];
  forward.sending_ns = kDurationNs + 1'000'000'000;
  forward.port_full_ns = 499'999'999;
  EXPECT_EQ(codes(judge(facts)), Codes{"sender_behind"});
  forward.port_full_ns = 500'000'000;
  EXPECT_EQ(codes(judge(facts)), Codes{"held_back"});
  // One that gave up in mid-trial is judged by how far behind it was.
  forward.sending_ns = kDurationNs / 2;
  forward.gave_up = true;
  forward.max_lag_ns = 2'000'000'000;
  EXPECT_EQ(codes(judge(facts)), Codes{"sender_behind"});
  forward.port_full_ns = 1'000'000'000;
  EXPECT_EQ(codes(judge(facts)), Codes{"held_back"});
}

TEST(Judge, DoesNotLetTheTestersDropsHideMoreLossThanTheyExplain) {
  TrialFacts facts = good();
  DirectionFacts& forward = facts.directions[0];
  forward.received -= 100;
  facts.ports[1].rx_missed = 100;
  EXPECT_EQ(codes(judge(facts)), (Codes{"receiver_overflow", "frames_lost"}));
  forward.received -= 1;
  EXPECT_EQ(codes(judge(facts)), Codes{"frames_lost"});
  facts.loss_tolerance_ppb = 20'000;  // 1.2 of 60,000
  EXPECT_EQ(codes(judge(facts)), (Codes{"receiver_overflow", "frames_lost"}));
  // What was dropped on the way back explains nothing of the way there.
  facts.loss_tolerance_ppb = 0;
  facts.ports[1].rx_missed = 0;
  facts.ports[0].rx_missed = 1000;
  EXPECT_EQ(codes(judge(facts)), Codes{"frames_lost"});
}

TEST(Judge, LetsAFullPortPassThatCostNoTime) {
  TrialFacts facts = good();
  facts.directions[0].port_full_ns = kDurationNs / 2;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
}

TEST(Judge, ChargesTheDeviceWithAFullRingUnlessTheSenderCaughtUp) {
  TrialFacts facts = good();
  DirectionFacts& forward = facts.directions[0];
  forward.received -= 100;
  forward.ring_full = 100;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kFail);
  EXPECT_EQ(judge(facts).reasons.at(0).message,
            "forward: 100 of 60000 frames lost, 100 of them at the device's full ring");
  forward.ring_full_catching_up = 99;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kFail);
  forward.ring_full_catching_up = 100;
  EXPECT_EQ(codes(judge(facts)), (Codes{"sender_lag", "frames_lost"}));
  facts.loss_tolerance_ppb = 10'000'000;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
}

TEST(Judge, PassesALosslessTrialWithALagSpike) {
  TrialFacts facts = good();
  facts.directions[0].max_lag_ns = 100 * kLagLimitNs;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
}

TEST(Judge, CannotTellWhoCausedLossAfterALagSpike) {
  TrialFacts facts = good();
  facts.directions[0].received -= 1;
  facts.directions[0].late_departures = 1;
  facts.directions[0].max_lag_ns = kLagLimitNs;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kFail);
  facts.directions[0].max_lag_ns += 1;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kInvalid);
  EXPECT_EQ(codes(judge(facts)), (Codes{"sender_lag", "frames_lost"}));
}

TEST(Judge, BlamesOneDirectionsLagNotForTheOthersLoss) {
  TrialFacts facts = good();
  facts.directions[0].max_lag_ns = 2 * kLagLimitNs;
  facts.directions[1].received -= 1;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kFail);
}

TEST(Judge, ToleratesLostAndLateFramesTogetherUpToTheDisclosedShare) {
  TrialFacts facts = good();
  facts.loss_tolerance_ppb = 100'000;  // 0.01 %: 6 of 60,000
  facts.directions[0].received -= 4;
  facts.directions[0].overdue = 2;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
  facts.directions[0].overdue = 3;
  EXPECT_EQ(codes(judge(facts)), (Codes{"frames_lost", "frames_late"}));
  facts.loss_tolerance_ppb = 999'999'999;
  facts.directions[0].duplicate = 1;
  EXPECT_EQ(codes(judge(facts)), Codes{"duplicates"}) << "never tolerated";
}

TEST(Judge, KeepsTheToleranceExactForLongTrials) {
  TrialFacts facts = good();
  facts.loss_tolerance_ppb = 1;
  facts.directions[0].intended = facts.directions[0].sent = 1ULL << 40;
  facts.directions[0].received = facts.directions[0].sent - 1099;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
  facts.directions[0].received -= 1;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kFail);
}

// A tenth was sent; 6 of the 60,000 planned frames may be lost, not 6 of 6000.
TEST(Judge, MeasuresAStoppedTrialByItsPlan) {
  TrialFacts facts = good();
  facts.loss_tolerance_ppb = 100'000;
  facts.ended_early = true;
  for (DirectionFacts& direction : facts.directions) direction.sent = direction.received = 6000;
  facts.directions[1].received -= 6;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kInvalid);
  EXPECT_EQ(codes(judge(facts)), Codes{"stopped_in_error"});
  EXPECT_FALSE(judge(facts).reasons.at(0).hint.empty());
  facts.directions[1].received -= 1;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kFail);
  EXPECT_EQ(judge(facts).reasons.at(0).message, "reverse: 7 of 6000 frames lost");
}

TEST(Judge, FailsAStoppedTrialForWhateverFailsAWholeOne) {
  TrialFacts facts = good();
  facts.ended_early = true;
  facts.directions[0].duplicate = 1;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kFail);
  EXPECT_EQ(codes(judge(facts)), Codes{"duplicates"});
}

TEST(Judge, SaysThatAStoppedTrialWasAbortedAfterwards) {
  TrialFacts facts = good();
  facts.ended_early = facts.aborted = true;
  EXPECT_EQ(codes(judge(facts)), Codes{"aborted"});
}

TEST(Judge, DoesNotLetOneDirectionsToleranceCoverTheOther) {
  TrialFacts facts = good();
  facts.loss_tolerance_ppb = 100'000;
  facts.directions[1].received -= 7;
  EXPECT_EQ(codes(judge(facts)), Codes{"frames_lost"});
}

TEST(Judge, CannotTellWhoWasLateWhenTheTesterHeldAsManyFrames) {
  TrialFacts facts = good();
  facts.frame_timeout_ns = 10'000'000;
  facts.directions[0].overdue = 5;
  facts.directions[0].held_frames = 4;
  EXPECT_EQ(codes(judge(facts)), Codes{"frames_late"});
  facts.directions[0].held_frames = 5;
  EXPECT_EQ(codes(judge(facts)), (Codes{"receiver_lag", "frames_late"}));
  EXPECT_EQ(judge(facts).kind, VerdictKind::kInvalid);
  facts.directions[0].overdue = 0;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
}

TEST(Judge, CallsATrialInvalidEvenIfItAlsoFailed) {
  for (const Trouble& trouble : kTroubles) {
    if (trouble.kind != VerdictKind::kInvalid) continue;
    TrialFacts facts = good();
    facts.directions[1].received -= 1;
    facts.directions[1].duplicate = 1;
    facts.ports[0].corrupt = 1;
    trouble.happen(facts);
    EXPECT_EQ(judge(facts).kind, VerdictKind::kInvalid) << trouble.code;
  }
}

TEST(Judge, DoesNotBlameSenderOrDeviceForATrialCutShort) {
  TrialFacts facts = good();
  facts.aborted = true;
  facts.directions[0].sent = facts.directions[0].received = 0;
  facts.directions[1].received -= 5;
  EXPECT_EQ(codes(judge(facts)), Codes{"aborted"});
  facts.aborted = false;
  facts.unresolved_neighbours = {"198.18.0.1 on port left", "198.19.0.1 on port right"};
  EXPECT_EQ(codes(judge(facts)), (Codes{"neighbour_missing", "neighbour_missing"}));
}

TEST(Judge, FailsADeviceThatLostMoreThanAllLateFrames) {
  TrialFacts facts = good();
  facts.directions[0].max_lag_ns = 2 * kLagLimitNs;
  facts.directions[0].late_departures = 40;
  facts.directions[0].received -= 40;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kInvalid);
  facts.directions[0].received -= 1;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kFail);
}

TEST(Judge, NamesDirectionsPortsFramesAndMilliseconds) {
  TrialFacts facts = good();
  facts.directions[1].received -= 17;
  facts.directions[1].late_departures = 100;
  facts.directions[1].max_lag_ns = 12'345'678;
  facts.ports[0].rx_missed = 30;
  const Verdict verdict = judge(facts);
  ASSERT_EQ(codes(verdict), (Codes{"sender_lag", "receiver_overflow", "frames_lost"}));
  EXPECT_NE(verdict.reasons[0].message.find("reverse"), std::string::npos);
  EXPECT_NE(verdict.reasons[0].message.find("12.345 ms"), std::string::npos);
  EXPECT_NE(verdict.reasons[0].message.find("limit 10.000 ms"), std::string::npos);
  EXPECT_NE(verdict.reasons[1].message.find("port left"), std::string::npos);
  EXPECT_EQ(verdict.reasons[2].message, "reverse: 17 of 60000 frames lost");
}

TEST(Judge, SaysWhatToDoAboutEveryInvalidTrial) {
  for (const Trouble& trouble : kTroubles) {
    if (trouble.kind != VerdictKind::kInvalid || trouble.code == Codes{"aborted"}[0]) continue;
    TrialFacts facts = good();
    trouble.happen(facts);
    EXPECT_FALSE(judge(facts).reasons.at(0).hint.empty()) << trouble.code;
  }
}

}  // namespace
}  // namespace dutperf::measure
