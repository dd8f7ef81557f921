#include "measure/verdict.h"

#include <gtest/gtest.h>

#include <functional>

namespace dutperf::measure {
namespace {

constexpr uint64_t kDurationNs = 60'000'000'000;

// A bidirectional trial in which nothing is wrong.
TrialFacts good() {
  TrialFacts facts;
  facts.duration_ns = kDurationNs;
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

// What the tester's own ports dropped may be a direction's, whichever of its ports it was; and of
// no direction that receives by others.
TEST(Judge, LooksAtAllPortsByWhichADirectionReceives) {
  for (size_t port = 0; port < 4; ++port) {
    TrialFacts facts = good();
    facts.ports = {{"left"}, {"left 2"}, {"right"}, {"right 2"}};
    facts.directions[0].receiving_port = 2;
    for (DirectionFacts& direction : facts.directions) direction.receiving_ports = 2;
    facts.directions[0].received -= 100;
    facts.ports[port].rx_missed = 100;
    const VerdictKind expected = port < 2 ? VerdictKind::kFail : VerdictKind::kInvalid;
    EXPECT_EQ(judge(facts).kind, expected) << port;
  }
}

// Somebody ended it, perhaps before its first frame: what was sent counts, as if it had been all.
TEST(Judge, TakesATrialThatWasStoppedForWhatItSent) {
  for (const uint64_t sent : {uint64_t{0}, uint64_t{10}}) {
    TrialFacts facts = good();
    facts.stopped = true;
    for (DirectionFacts& direction : facts.directions) {
      direction.sent = direction.received = sent;
      direction.sending_ns = sent == 0 ? 0 : 1'000'000;
    }
    EXPECT_EQ(codes(judge(facts)), Codes{}) << sent;
    facts.directions[1].received = 0;
    EXPECT_EQ(codes(judge(facts)), sent == 0 ? Codes{} : Codes{"frames_lost"});
    facts.stopped = false;
    EXPECT_EQ(judge(facts).kind, sent == 0 ? VerdictKind::kInvalid : VerdictKind::kFail);
  }
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
    {"duplicates", VerdictKind::kFail,
     [](TrialFacts& f) { f.directions[0].damaged[net::Damage::kChecksumWrong] = 1; }},
    {"nothing_sent", VerdictKind::kInvalid,
     [](TrialFacts& f) {
       f.directions[0].sent = f.directions[0].received = f.directions[0].sending_ns = 0;
     }},
    {"sender_behind", VerdictKind::kInvalid, [](TrialFacts& f) { f.directions[1].gave_up = true; }},
    {"sender_lag", VerdictKind::kInvalid,
     [](TrialFacts& f) {
       f.directions[1].sending_ns = kDurationNs + 30'000'000;
       f.directions[1].away_at_end_ns = 31'000'000;
       f.directions[1].lost_in_shadow = 1;
     }},
    {"held_back", VerdictKind::kInvalid,
     [](TrialFacts& f) {
       f.directions[1].gave_up = true;
       f.directions[1].max_lag_ns = f.directions[1].port_full_ns = 100'000'000;
     }},
    {"link_down", VerdictKind::kInvalid,
     [](TrialFacts& f) { f.ports[0].link_up_before = f.ports[0].link_up_after = false; }},
    {"link_changed", VerdictKind::kInvalid,
     [](TrialFacts& f) { f.ports[0].link_up_after = false; }},
    {"link_changed", VerdictKind::kInvalid,
     [](TrialFacts& f) { f.ports[0].link_up_before = false; }},
    {"link_changed", VerdictKind::kInvalid, [](TrialFacts& f) { f.ports[1].link_flapped = true; }},
    {"link_changed", VerdictKind::kInvalid,  // down before and after, and up in between
     [](TrialFacts& f) {
       f.ports[0].link_up_before = f.ports[0].link_up_after = false;
       f.ports[0].link_flapped = true;
     }},
    {"neighbour_changed", VerdictKind::kInvalid,
     [](TrialFacts& f) { f.ports[1].neighbour_conflicts = 1; }},
    {"flow_control", VerdictKind::kInvalid,
     [](TrialFacts& f) { f.ports[1].flow_control_on = true; }},
    {"flow_control", VerdictKind::kInvalid,  // one reason is enough
     [](TrialFacts& f) {
       f.ports[1].flow_control_on = true;
       f.ports[1].pauses_received = 1;
     }},
    {"receiver_overflow", VerdictKind::kInvalid, [](TrialFacts& f) { f.ports[0].rx_missed = 1; }},
    {"receiver_overflow", VerdictKind::kInvalid, [](TrialFacts& f) { f.ports[0].rx_nombuf = 1; }},
    {"receiver_overflow", VerdictKind::kInvalid,
     [](TrialFacts& f) { f.ports[0].not_taken_over = 1; }},
    {"transmit_errors", VerdictKind::kInvalid, [](TrialFacts& f) { f.ports[1].tx_errors = 1; }},
    {"neighbour_missing", VerdictKind::kInvalid,
     [](TrialFacts& f) { f.unresolved_neighbours = {"198.18.0.1 on port left"}; }},
    {"aborted", VerdictKind::kInvalid, [](TrialFacts& f) { f.aborted = true; }},
};

INSTANTIATE_TEST_SUITE_P(Every, JudgeOne, ::testing::ValuesIn(kTroubles));

// 10,000 frames planned for 10 ms and sent in 20 ms once passed, as did 1 s that took 1.01 s.
TEST(Judge, AllowsTheSenderAShareOfTheDurationAndAStepOfItsLoop) {
  struct Tolerance {
    uint64_t duration_ns;
    uint64_t tolerated_ns;
  };
  constexpr uint64_t kStepNs = 5'000;
  for (const Tolerance& one :
       {Tolerance{10'000'000, 10'000}, Tolerance{100'000'000, 100'000},
        Tolerance{600'000'000, 600'000}, Tolerance{1'000'000'000, 600'000},
        Tolerance{60'000'000'000, 600'000}, Tolerance{600'000'000'000, 6'000'000}}) {
    TrialFacts facts = good();
    facts.duration_ns = one.duration_ns;
    for (DirectionFacts& direction : facts.directions) direction.sending_ns = one.duration_ns;
    facts.directions[0].sending_ns += one.tolerated_ns + kStepNs;
    EXPECT_EQ(judge(facts).kind, VerdictKind::kPass) << one.duration_ns;
    facts.directions[0].sending_ns += 1;
    EXPECT_EQ(codes(judge(facts)), Codes{"sender_behind"}) << one.duration_ns;
  }
}

TEST(Judge, ExpectsNoFrameInAPauseAtTheEnd) {
  TrialFacts facts = good();
  facts.duration_ns = 1'000'000'000;
  facts.directions[0].idle_end_ns = 400'000'000;
  facts.directions[0].sending_ns = 600'000'000 + tolerated_ns(600'000'000);
  facts.directions[1].sending_ns = 1'000'000'000;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
  facts.directions[0].sending_ns += 1;
  EXPECT_EQ(codes(judge(facts)), Codes{"sender_behind"});
}

TEST(Judge, TellsASenderThatWasAwayAtTheEndFromOneThatIsTooSlow) {
  TrialFacts facts = good();
  DirectionFacts& forward = facts.directions[0];
  forward.sending_ns = kDurationNs + 30'000'000;
  forward.away_at_end_ns = 14'999'999;
  EXPECT_EQ(codes(judge(facts)), Codes{"sender_behind"});
  forward.away_at_end_ns = 15'000'000;
  EXPECT_EQ(codes(judge(facts)), Codes{"sender_lag"});
  // What it sent before its absence was lost all the same.
  forward.received -= 1;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kFail);
  forward.lost_in_shadow = 1;
  EXPECT_EQ(codes(judge(facts)), (Codes{"sender_lag", "frames_lost"}));
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

TEST(Judge, ADeviceThatPausesTheTesterAndLosesFramesAllTheSameLosesThem) {
  TrialFacts facts = good();
  facts.ports[0].pauses_received = 5;
  EXPECT_EQ(codes(judge(facts)), Codes{"held_back"});
  facts.directions[0].received -= 1;
  EXPECT_EQ(codes(judge(facts)), Codes{"frames_lost"});
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

// Drops at all places where the tester may have lost forward frames.
const std::function<void(TrialFacts&, uint64_t)> kOwnDrops[] = {
    [](TrialFacts& f, uint64_t drops) { f.ports[1].rx_nombuf = drops; },
    [](TrialFacts& f, uint64_t drops) { f.ports[1].interface_drops = drops; },
    [](TrialFacts& f, uint64_t drops) { f.ports[0].send_drops = drops; },
    [](TrialFacts& f, uint64_t drops) { f.input_queue_drops = drops; },
};

TEST(Judge, ExcusesADeviceForWhatTheTesterDroppedAnywhereAndNoMore) {
  for (const auto& drop : kOwnDrops) {
    TrialFacts facts = good();
    facts.directions[0].received -= 100;
    drop(facts, 100);
    EXPECT_EQ(judge(facts).kind, VerdictKind::kInvalid);
    drop(facts, 99);
    EXPECT_EQ(codes(judge(facts)), Codes{"frames_lost"});
    EXPECT_EQ(judge(facts).reasons.at(0).message,
              "forward: 100 of 60000 frames lost, of which the tester itself may have dropped 99");
  }
}

TEST(Judge, NamesTheSlowestOfSeveralShares) {
  TrialFacts facts = good();
  DirectionFacts& forward = facts.directions[0];
  forward.sent = forward.received = 59'000;
  forward.gave_up = true;
  const std::string one =
      "forward: the tester could not keep up with the intended load, 59000 of "
      "60000 frames in 59999.000 ms";
  EXPECT_EQ(judge(facts).reasons.at(0).message, one);
  forward.shares = 4;
  forward.slowest_share = 2;
  EXPECT_EQ(judge(facts).reasons.at(0).message, one + "; share 3 of 4 was the slowest");
  forward.away_at_end_ns = kDurationNs;
  EXPECT_EQ(judge(facts).reasons.at(0).code, "sender_lag");
  EXPECT_NE(judge(facts).reasons.at(0).message.find("share 3 of 4"), std::string::npos);
  forward.port_full_ns = kDurationNs;
  EXPECT_EQ(judge(facts).reasons.at(0).code, "held_back");
  EXPECT_NE(judge(facts).reasons.at(0).message.find("share 3 of 4"), std::string::npos);
}

TEST(Judge, AddsUpWhatTheTesterDroppedAtEachPlace) {
  TrialFacts facts = good();
  facts.directions[0].received -= 100;
  for (const auto& drop : kOwnDrops) drop(facts, 25);
  EXPECT_EQ(judge(facts).kind, VerdictKind::kInvalid);
  facts.directions[0].received -= 1;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kFail);
}

TEST(Judge, PassesALosslessTrialWhoseInterfaceDroppedFramesOfOthers) {
  TrialFacts facts = good();
  facts.ports[0].interface_drops = facts.ports[0].send_drops = facts.input_queue_drops = 7;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
  // So does one that lost no more than is tolerated.
  facts.directions[1].received -= 1;
  facts.loss_tolerance_ppb = 20'000;  // 1.2 of 60,000
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
}

TEST(Judge, NamesDamagedFramesAndChargesNoLessForThem) {
  TrialFacts facts = good();
  facts.ports[1].rx_errors = 1;
  facts.ports[1].damaged_on_wire = 1;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);  // they were not the test's
  facts.directions[0].received -= 1;
  EXPECT_EQ(codes(judge(facts)), Codes{"frames_lost"});
  EXPECT_EQ(judge(facts).reasons.at(0).message,
            "forward: 1 of 60000 frames lost; 2 came to port right damaged (checksum or length on "
            "the wire): by the device, the cable or the port");
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
  forward.lost_in_shadow = 99;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kFail);
  forward.lost_in_shadow = 100;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kInvalid);
  facts.loss_tolerance_ppb = 10'000'000;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
}

TEST(Judge, PassesALosslessTrialWithAStall) {
  TrialFacts facts = good();
  facts.directions[0].max_lag_ns = facts.directions[0].longest_stall_ns = 99'000'000;
  facts.directions[0].burst_shadow = true;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
}

// A 9.9 ms stall and 100 lost of the burst that followed was once the DUT's, as was the loss of one
// direction after a stall of the other's sender.
TEST(Judge, CannotTellWhoCostFramesThatWereAllLostInTheShadowOfAStall) {
  TrialFacts facts = good();
  DirectionFacts& reverse = facts.directions[1];
  reverse.received -= 100;
  reverse.lost_in_shadow = 99;
  reverse.burst_shadow = true;
  reverse.longest_stall_ns = 9'900'000;
  EXPECT_EQ(codes(judge(facts)), Codes{"frames_lost"});
  EXPECT_EQ(judge(facts).reasons.at(0).message,
            "reverse: 100 of 60000 frames lost, 1 not explained by tester stalls");
  reverse.lost_in_shadow = 100;
  EXPECT_EQ(codes(judge(facts)), (Codes{"sender_burst", "frames_lost"}));
  EXPECT_EQ(judge(facts).kind, VerdictKind::kInvalid);
  EXPECT_NE(judge(facts).reasons.at(0).message.find("9.900 ms"), std::string::npos);
  reverse.burst_shadow = false;
  EXPECT_EQ(codes(judge(facts)), (Codes{"receiver_lag", "frames_lost"}));
}

TEST(Judge, LooksAtLateFramesInTheShadowAsAtLostOnes) {
  TrialFacts facts = good();
  DirectionFacts& forward = facts.directions[0];
  forward.received -= 1;
  forward.overdue = 3;
  forward.burst_shadow = true;
  forward.lost_in_shadow = 1;
  forward.overdue_in_shadow = 2;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kFail);
  forward.overdue_in_shadow = 3;
  EXPECT_EQ(codes(judge(facts)), (Codes{"sender_burst", "frames_lost", "frames_late"}));
  // What a tolerance covers is no reason to repeat the trial.
  facts.loss_tolerance_ppb = 1'000'000;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
}

// The tester's own drops and its stalls never excuse the same frame twice.
TEST(Judge, ExcusesNoMoreThanStallsAndDropsTogetherExplain) {
  TrialFacts facts = good();
  DirectionFacts& forward = facts.directions[0];
  forward.received -= 10;
  forward.burst_shadow = true;
  forward.lost_in_shadow = 4;
  facts.ports[1].rx_missed = 5;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kFail);
  facts.ports[1].rx_missed = 6;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kInvalid);
}

TEST(Judge, ToleratesLostAndLateFramesTogetherUpToTheDisclosedShare) {
  TrialFacts facts = good();
  facts.loss_tolerance_ppb = 100'000;  // 0.01 %: 6 of 60,000
  facts.directions[0].received -= 4;
  facts.directions[0].overdue = 2;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
  facts.directions[0].held_frames = 2;  // whoever was late, it is tolerated
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
  facts.directions[0].overdue = 3;
  EXPECT_EQ(codes(judge(facts)), (Codes{"frames_lost", "frames_late"}));
}

TEST(Judge, ToleratesAsManyCopiesAsLostFrames) {
  TrialFacts facts = good();
  facts.loss_tolerance_ppb = 100'000;
  facts.directions[0].duplicate = 6;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
  facts.directions[0].damaged[net::Damage::kChecksumWrong] = 1;
  EXPECT_EQ(codes(judge(facts)), (Codes{"duplicates", "duplicates"})) << "whole or not";
  facts.directions[0].damaged = {};
  facts.directions[0].duplicate = 7;
  EXPECT_EQ(codes(judge(facts)), Codes{"duplicates"});
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
    facts.ports[0].cut_short = 1;
    trouble.happen(facts);
    EXPECT_EQ(judge(facts).kind, VerdictKind::kInvalid) << trouble.code;
  }
}

TEST(Judge, CountsADamagedFrameOnceAsLost) {
  TrialFacts facts = good();
  facts.loss_tolerance_ppb = 100'000;  // 6 of 60,000
  DirectionFacts& forward = facts.directions[0];
  forward.received -= 6;
  forward.damaged[net::Damage::kChecksumZero] = 6;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
  forward.received -= 1;
  EXPECT_EQ(codes(judge(facts)), Codes{"frames_lost"});
  EXPECT_EQ(judge(facts).reasons.at(0).message,
            "forward: 7 of 60000 frames lost, 6 of them damaged: 6 without a UDP checksum");
}

TEST(Judge, TellsHowLostFramesWereDamaged) {
  TrialFacts facts = good();
  DirectionFacts& reverse = facts.directions[1];
  reverse.received -= 20;
  reverse.ring_full = 2;
  reverse.damaged[net::Damage::kChecksumZero] = 1;
  reverse.damaged[net::Damage::kChecksumWrong] = 2;
  reverse.damaged[net::Damage::kLength] = 3;
  reverse.damaged[net::Damage::kTruncated] = 4;
  reverse.damaged[net::Damage::kNeverSent] = 5;
  EXPECT_EQ(judge(facts).reasons.at(0).message,
            "reverse: 20 of 60000 frames lost, 2 of them at the device's full ring, 15 of them "
            "damaged: 1 without a UDP checksum, 2 with a wrong checksum, 3 of wrong length, 4 "
            "truncated, 5 with a number never sent");
}

TEST(Judge, TakesFramesCutTooShortForLostOnesOnly) {
  TrialFacts facts = good();
  facts.ports[1].cut_short = 3;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass) << "nobody's";
  facts.directions[0].received -= 2;
  EXPECT_EQ(judge(facts).reasons.at(0).message,
            "forward: 2 of 60000 frames lost, 2 of them damaged: 2 truncated");
  facts.directions[0].damaged[net::Damage::kChecksumWrong] = 1;
  EXPECT_EQ(judge(facts).reasons.at(0).message,
            "forward: 2 of 60000 frames lost, 2 of them damaged: 1 with a wrong checksum, 1 "
            "truncated");
}

TEST(Judge, TakesDamagedFramesBeyondTheLostOnesForCopies) {
  TrialFacts facts = good();
  facts.loss_tolerance_ppb = 50'000;  // 3 of 60,000
  facts.directions[0].received -= 2;
  facts.directions[0].damaged[net::Damage::kChecksumWrong] = 5;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kPass);
  facts.loss_tolerance_ppb = 0;
  facts.directions[0].received += 2;
  facts.directions[0].damaged[net::Damage::kChecksumWrong] = 1;
  EXPECT_EQ(codes(judge(facts)), Codes{"duplicates"});
  EXPECT_EQ(judge(facts).reasons.at(0).message,
            "forward: 1 more frames arrived damaged than were lost: 1 with a wrong checksum");
}

TEST(Judge, DoesNotExplainDamageByTheTestersDrops) {
  TrialFacts facts = good();
  facts.directions[0].received -= 100;
  facts.ports[1].rx_missed = 100;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kInvalid);
  facts.directions[0].damaged[net::Damage::kChecksumZero] = 1;
  EXPECT_EQ(codes(judge(facts)), Codes{"frames_lost"});
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

TEST(Judge, DoesNotBlameADeviceForWhatAShareHadNoRoomFor) {
  TrialFacts facts = good();
  facts.directions[0].received -= 3;
  facts.ports[1].not_taken_over = 3;
  const Verdict verdict = judge(facts);
  ASSERT_EQ(codes(verdict), (Codes{"receiver_overflow", "frames_lost"}));
  EXPECT_EQ(verdict.kind, VerdictKind::kInvalid);
  EXPECT_NE(verdict.reasons[0].message.find("between its workers 3)"), std::string::npos);
  facts.directions[0].received -= 1;
  EXPECT_EQ(judge(facts).kind, VerdictKind::kFail);
}

TEST(Judge, TakesOnlyWhatADns64ServerAskedForAndAnsweredRightly) {
  const auto judged = [](const ResolutionFacts& resolution) {
    TrialFacts facts = good();
    facts.resolution = resolution;
    return judge(facts);
  };
  EXPECT_EQ(judged({}).kind, VerdictKind::kPass);
  EXPECT_EQ(codes(judged({.not_sent = 1})), Codes{"answers_not_sent"});
  EXPECT_EQ(codes(judged({.refused = 1})), Codes{"queries_refused"});
  EXPECT_EQ(codes(judged({.wrong = 1})), Codes{"answers_wrong"});
  EXPECT_EQ(judged({.wrong = 1}).kind, VerdictKind::kFail);
  const Verdict cached = judged({.unasked = 1});
  EXPECT_EQ(cached.kind, VerdictKind::kInvalid);
  EXPECT_NE(cached.reasons.at(0).hint.find("another seed"), std::string::npos);
}

TEST(Judge, NamesDirectionsPortsFramesAndMilliseconds) {
  TrialFacts facts = good();
  facts.directions[1].received -= 17;
  facts.directions[1].lost_in_shadow = 17;
  facts.directions[1].burst_shadow = true;
  facts.directions[1].longest_stall_ns = 12'345'678;
  facts.ports[0].rx_missed = 30;
  const Verdict verdict = judge(facts);
  ASSERT_EQ(codes(verdict), (Codes{"sender_burst", "receiver_overflow", "frames_lost"}));
  EXPECT_NE(verdict.reasons[0].message.find("reverse"), std::string::npos);
  EXPECT_NE(verdict.reasons[0].message.find("12.345 ms"), std::string::npos);
  EXPECT_NE(verdict.reasons[1].message.find("port left"), std::string::npos);
  EXPECT_EQ(verdict.reasons[2].message,
            "reverse: 17 of 60000 frames lost, 0 not explained by tester stalls, of which the "
            "tester itself may have dropped 17");
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
