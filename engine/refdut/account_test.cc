#include "account.h"

#include <gtest/gtest.h>

#include <random>

#include "measure/testing/arrive.h"
#include "trial_book.h"

namespace dutperf::refdut {
namespace {

DirectionAccount::Departure departure(uint64_t sequence, uint8_t stream = 0) {
  DirectionAccount::Departure result;
  result.sequence = sequence;
  result.stream = stream;
  return result;
}

// A tester's tracker is the twin: what it calls reordered and duplicate.
TEST(Account, CallsOutOfOrderWhatATesterDoes) {
  constexpr uint64_t kFrames = 5000;
  std::mt19937_64 random(5);
  DirectionAccount account;
  measure::SequenceTracker trackers[2];
  for (auto& tracker : trackers) tracker.reset(kFrames);
  std::vector<std::pair<uint64_t, uint8_t>> order;
  for (uint64_t i = 0; i < kFrames; ++i) {
    for (const bool second : {false, true}) order.emplace_back(i, second);
  }
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    if (random() % 3 == 0)
      std::swap(order[i], order[i + 1 + random() % 5 % (order.size() - i - 1)]);
  }
  for (const auto& [sequence, stream] : order) {
    auto leaving = departure(sequence, stream);
    leaving.background = stream == 1;
    account.leave(leaving);
    measure::testing::arrive(trackers[stream], sequence);
    if (random() % 4 != 0) continue;
    leaving.copy = true;
    account.leave(leaving);
    measure::testing::arrive(trackers[stream], sequence);
  }
  for (const bool background : {false, true}) {
    EXPECT_GT(trackers[background].reordered(), 100U);
    EXPECT_EQ(account.of(background).out_of_order, trackers[background].reordered());
    EXPECT_EQ(account.of(background).copies_left, trackers[background].duplicate());
    EXPECT_EQ(account.of(background).left, trackers[background].received());
  }
}

TEST(Account, LeavesCorruptedFramesOutOfTheOrder) {
  DirectionAccount account;
  auto corrupted = departure(9);
  corrupted.corrupted = true;
  corrupted.damage = Damage::kChecksum;
  account.leave(corrupted);
  account.leave(departure(3));
  EXPECT_EQ(account.of(false).out_of_order, 0U);
  EXPECT_EQ(account.of(false).corrupted_left[1], 1U);
  EXPECT_EQ(account.of(false).left, 2U);
}

TEST(Account, TellsWhichFramesWereLostInARowAndWhy) {
  DirectionAccount account;
  for (const uint64_t sequence : {5U, 6U, 7U}) {
    account.lose(false, 0, sequence, 100 * sequence, LossCause::kQueue);
  }
  account.lose(false, 0, 8, 800, LossCause::kRule);
  account.lose(true, 1, 9, 900, LossCause::kRule);
  const Json losses = account.to_json()["losses"];
  ASSERT_EQ(losses.size(), 3U);
  EXPECT_EQ(losses[0], Json::parse(R"({"stream": 0, "cause": "queue", "first": 5, "count": 3,
                                       "from_ns": 500, "to_ns": 700})"));
  EXPECT_EQ(losses[1]["cause"], "rule");
  EXPECT_EQ(losses[2]["stream"], 1);
  EXPECT_EQ(account.of(false).dropped_by_queue, 3U);
  EXPECT_EQ(account.of(true).dropped_by_rule, 1U);
}

TEST(Account, CountsTheLossesThatItDoesNotList) {
  DirectionAccount account;
  for (uint64_t i = 0; i < DirectionAccount::kMaxLossRuns + 5; ++i) {
    account.lose(false, 0, 2 * i, i, LossCause::kRule);
  }
  const Json json = account.to_json();
  EXPECT_EQ(json["losses"].size(), DirectionAccount::kMaxLossRuns);
  EXPECT_EQ(json["loss_runs_left_out"], 5);
  EXPECT_EQ(json["foreground"]["dropped_by_rule"], DirectionAccount::kMaxLossRuns + 5);
}

TEST(Account, KeepsResidenceTimesOfOriginals) {
  DirectionAccount account;
  auto leaving = departure(0);
  leaving.residence_ns = 1000;
  leaving.late_ns = 10;
  account.leave(leaving);
  leaving.copy = true;
  account.leave(leaving);
  const Json json = account.to_json();
  EXPECT_EQ(json["foreground"]["residence_ns"],
            Json::parse(R"({"count": 1, "min": 1000, "max": 1000, "sum": 1000,
                            "buckets": [[1000, 1000, 1]]})"));
  EXPECT_EQ(json["own_error_ns"]["max"], 10);
  EXPECT_EQ(json["background"]["residence_ns"]["min"], nullptr);
}

uint64_t run_of(TrialBook& book, Direction direction, uint16_t trial, uint64_t sequence,
                uint8_t port = 0) {
  const TestFrame frame{trial, 0, false, sequence};
  TrialAccount& account = book.of_frame(direction, port, frame, 10);
  account.directions[direction].see(port, frame);
  return account.run;
}

TEST(TrialBook, BeginsWithEachTrialIdAndWithFrame0Again) {
  TrialBook book;
  EXPECT_EQ(book.current(), nullptr);
  EXPECT_EQ(run_of(book, kForward, 5, 0), 1U);
  EXPECT_EQ(run_of(book, kReverse, 5, 0), 1U) << "both directions are one trial";
  EXPECT_EQ(run_of(book, kForward, 5, 1), 1U);
  EXPECT_EQ(run_of(book, kForward, 6, 3), 2U);
  EXPECT_EQ(run_of(book, kReverse, 5, 2), 1U) << "it waited while the trial ended";
  EXPECT_EQ(run_of(book, kReverse, 6, 0), 2U);
  EXPECT_EQ(run_of(book, kReverse, 5, 0), 3U) << "the id is used again";
  EXPECT_EQ(run_of(book, kForward, 5, 0), 3U);
  EXPECT_EQ(run_of(book, kForward, 5, 0), 4U);
}

// Of two ports that are looked at one after the other, the second may have the earlier frame.
TEST(TrialBook, BeginsWithTheFirstFrameOfAnyOfSeveralPorts) {
  TrialBook book(2);
  EXPECT_EQ(run_of(book, kForward, 5, 1, 1), 1U);
  EXPECT_EQ(run_of(book, kForward, 5, 0, 0), 1U);
  EXPECT_EQ(run_of(book, kForward, 5, 2, 0), 1U);
  EXPECT_EQ(run_of(book, kForward, 5, 2, 0), 1U) << "that is a duplicate";
  EXPECT_EQ(run_of(book, kForward, 5, 1, 1), 2U) << "the id is used again";
  EXPECT_EQ(run_of(book, kForward, 5, 0, 0), 2U);
  EXPECT_EQ(run_of(book, kForward, 6, 0, 0), 3U);
  EXPECT_EQ(run_of(book, kForward, 5, 9, 1), 2U) << "it waited at its port while the trial ended";
  EXPECT_EQ(run_of(book, kForward, 6, 1, 1), 3U);
}

TEST(Account, KeepsTheOrderOfEachWay) {
  DirectionAccount account;
  for (const auto& [sequence, in, out] : {std::tuple<uint64_t, uint8_t, uint8_t>{5, 0, 0},
                                          {2, 0, 1},
                                          {3, 0, 1},
                                          {4, 0, 0},
                                          {1, 0, 1},
                                          {0, 1, 1},
                                          {0, 1, 0}}) {
    auto leaving = departure(sequence);
    leaving.in = in;
    leaving.out = out;
    account.leave(leaving);
  }
  EXPECT_EQ(account.of(false).out_of_order, 2U);
}

TEST(TrialBook, ForgetsTheOldestAndStartsCleanAccounts) {
  TrialBook book;
  for (uint16_t trial = 1; trial <= 30; ++trial) {
    book.prepare_next();
    ASSERT_EQ(run_of(book, kForward, trial, 0), trial);
    ASSERT_EQ(book.current()->directions[kForward].of(false).seen, 1U);
    ASSERT_EQ(book.find(trial), book.current());
    const uint64_t oldest = trial > TrialBook::kKept ? trial - TrialBook::kKept + 1 : 1;
    ASSERT_NE(book.find(oldest), nullptr);
    ASSERT_EQ(book.find(oldest - 1), nullptr);
  }
  const Json all = book.to_json({});
  ASSERT_EQ(all.size(), TrialBook::kKept);
  EXPECT_EQ(all.front()["trial_id"], 23);
  EXPECT_EQ(all.back()["trial_id"], 30);
  EXPECT_EQ(book.to_json({.trial = 25}).size(), 1U);
  EXPECT_EQ(book.to_json({.trial = 1}).size(), 0U);
}

}  // namespace
}  // namespace dutperf::refdut
