#include "fate.h"

#include <gtest/gtest.h>

#include <map>

#include "vary/testing/statistics.h"

namespace dutperf::refdut {
namespace {

constexpr Facts kForeground{0, false, 0, 0};
constexpr Facts kBackground{1, true, 0, 0};

Choice every(uint64_t k) { return {Choice::Kind::kEvery, k}; }
Choice at_random(uint64_t threshold) { return {Choice::Kind::kRandom, 1, threshold}; }
Rule drop(Choice choice) { return {.choice = choice, .action = {Action::Kind::kDrop}}; }
Rule act(Action::Kind kind, Choice choice = {}) { return {.choice = choice, .action = {kind}}; }
Rule delay(uint64_t from, uint64_t to) {
  Rule rule = act(Action::Kind::kDelay);
  rule.action.delay_from_ns = from;
  rule.action.delay_to_ns = to;
  return rule;
}

bool is_dropped(const Fate& fate) { return fate.dropped_by != Fate::kNone; }

// Which of `frames` frames are dropped.
std::vector<bool> dropped(Rules& rules, size_t frames, const Facts& facts = kForeground) {
  std::vector<bool> result(frames);
  for (size_t i = 0; i < frames; ++i) result[i] = is_dropped(rules.decide(facts));
  return result;
}

TEST(Fate, IsTheKthTwiceTheKthAndSoOn) {
  for (const uint64_t k : {1U, 2U, 3U, 7U, 1000U}) {
    Rules rules({drop(every(k))}, 1, kForward);
    for (uint64_t number = 1; number <= 3000; ++number) {
      ASSERT_EQ(is_dropped(rules.decide(kForeground)), number % k == 0) << k << ", " << number;
    }
    EXPECT_EQ(rules.counts()[0].reached, 3000U);
    EXPECT_EQ(rules.counts()[0].chosen, 3000 / k);
  }
}

TEST(Fate, OfADroppedFrameIsDecidedAndNoLaterRuleCountsIt) {
  Rules rules({drop(every(2)), act(Action::Kind::kDuplicate, every(3))}, 1, kForward);
  for (int i = 0; i < 600; ++i) {
    const Fate fate = rules.decide(kForeground);
    if (is_dropped(fate)) {
      ASSERT_EQ(fate.copies, 0U);
    }
  }
  EXPECT_EQ(rules.counts()[1].reached, 300U);
  EXPECT_EQ(rules.counts()[1].chosen, 100U);
}

TEST(Fate, ConcernsOnlyFramesThatMatch) {
  Rule background = drop(every(2));
  background.match.kind = Match::Kind::kBackground;
  Rule stream_7 = drop({});
  stream_7.match = {Match::Kind::kStream, 7};
  Rules rules({background, stream_7}, 1, kForward);
  for (int i = 1; i <= 10; ++i) {
    ASSERT_FALSE(is_dropped(rules.decide(kForeground)));
    ASSERT_EQ(is_dropped(rules.decide(kBackground)), i % 2 == 0);
    ASSERT_EQ(rules.decide({7, false, 0, 0}).dropped_by, 1U);
  }
  EXPECT_EQ(rules.counts()[0].reached, 10U);
}

TEST(Fate, OfOtherPacketsIsTheirRulesAlone) {
  Rule others = drop(every(2));
  others.match.kind = Match::Kind::kOther;
  Rules rules({others, drop(every(3)), others}, 1, kForward);
  for (int i = 1; i <= 30; ++i) {
    ASSERT_EQ(is_dropped(rules.decide(kForeground)), i % 3 == 0);
    const Fate fate = rules.decide(Facts::of_other(0));
    ASSERT_EQ(fate.dropped_by, i % 2 == 0 ? 0 : i % 4 == 3 ? 2 : Fate::kNone);
  }
  EXPECT_EQ(rules.counts()[0].reached, 30U);
  EXPECT_EQ(rules.counts()[2].reached, 15U);
}

TEST(Fate, OfOtherPacketsIsInAWindowSinceConfiguredWhateverItSays) {
  for (const bool since_configured : {false, true}) {
    Rule others = drop({});
    others.match.kind = Match::Kind::kOther;
    others.when = {100, 200, since_configured};
    Rules rules({others}, 1, kForward);
    EXPECT_FALSE(is_dropped(rules.decide(Facts::of_other(99))));
    EXPECT_TRUE(is_dropped(rules.decide(Facts::of_other(100))));
    EXPECT_FALSE(is_dropped(rules.decide(Facts::of_other(200))));
  }
}

TEST(Fate, IsForFramesInTheWindowOnly) {
  Rule trial = drop({});
  trial.when = {100, 200, false};
  Rule configured = drop({});
  configured.when = {100, 200, true};
  for (const uint64_t ns : {0U, 99U, 100U, 199U, 200U, 1000U}) {
    const bool inside = ns >= 100 && ns < 200;
    Rules by_trial({trial}, 1, kForward);
    EXPECT_EQ(is_dropped(by_trial.decide({0, false, ns, 5000})), inside);
    Rules by_configuration({configured}, 1, kForward);
    EXPECT_EQ(is_dropped(by_configuration.decide({0, false, 5000, ns})), inside);
  }
}

TEST(Fate, IsTheSameForTheSameSeedTrialDirectionAndRule) {
  const std::vector<Rule> chance = {drop(at_random(1ULL << 63))};
  Rules rules(chance, 1, kForward);
  rules.restart(5);
  const auto first = dropped(rules, 200);
  rules.restart(5);
  EXPECT_EQ(dropped(rules, 200), first) << "counts start again with the trial";
  rules.restart(6);
  EXPECT_NE(dropped(rules, 200), first) << "another trial";
  const auto fresh = [&](uint64_t seed, Direction direction) {
    Rules other(chance, seed, direction);
    other.restart(5);
    return dropped(other, 200);
  };
  EXPECT_EQ(fresh(1, kForward), first);
  EXPECT_NE(fresh(2, kForward), first) << "another seed";
  EXPECT_NE(fresh(1, kReverse), first) << "another direction";
  Rules second({act(Action::Kind::kDuplicate), chance[0]}, 1, kForward);
  second.restart(5);
  EXPECT_NE(dropped(second, 200), first) << "another rule";
}

TEST(Fate, OfAShareOfTheFramesIsThatShare) {
  constexpr uint64_t kFrames = 1'000'000;
  for (const double probability : {0.0001, 0.01, 0.5, 0.9}) {
    Rules rules({drop(at_random(static_cast<uint64_t>(probability * 0x1p64)))}, 3, kForward);
    for (uint64_t i = 0; i < kFrames; ++i) rules.decide(kForeground);
    const double expected = probability * kFrames;
    const double deviation = std::sqrt(expected * (1 - probability));
    EXPECT_NEAR(static_cast<double>(rules.counts()[0].chosen), expected, 5 * deviation);
  }
}

TEST(Fate, OfUniformDelayHasEachValueOfTheRangeAlike) {
  constexpr uint64_t kFrom = 1'000'000;
  Rules rules({delay(kFrom, kFrom + 9)}, 1, kForward);
  vary::testing::Counts counts(10);
  for (int i = 0; i < 100'000; ++i) ++counts.at(rules.decide(kForeground).delay_ns - kFrom);
  EXPECT_TRUE(vary::testing::is_uniform(counts));
}

TEST(Fate, SumsDelaysAndCopiesAndKeepsTheFirstDisplacement) {
  Rules rules(
      {delay(5, 5), act(Action::Kind::kReorder), delay(7, 7), act(Action::Kind::kReorder),
       act(Action::Kind::kDuplicate), act(Action::Kind::kDuplicate), act(Action::Kind::kCorrupt)},
      1, kForward);
  const Fate fate = rules.decide(kForeground);
  EXPECT_EQ(fate.delay_ns, 12U);
  EXPECT_EQ(fate.copies, 2U);
  EXPECT_EQ(fate.displaced_by, 1U);
  EXPECT_TRUE(fate.corrupted);
}

// A delay of one frame in two must not depend on which one was chosen.
TEST(Fate, IsDrawnApartFromWhomItMeets) {
  Rule rule = delay(0, 1);
  rule.choice = at_random(1ULL << 63);
  Rules rules({rule}, 1, kForward);
  vary::testing::Counts counts(2);
  uint64_t chosen = 0;
  for (int i = 0; i < 100'000; ++i) {
    const Fate fate = rules.decide(kForeground);
    if (rules.counts()[0].chosen == chosen) continue;
    chosen = rules.counts()[0].chosen;
    ++counts[fate.delay_ns];
  }
  EXPECT_TRUE(vary::testing::is_uniform(counts));
}

}  // namespace
}  // namespace dutperf::refdut
