#include "measure/sequence_tracker.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace dutperf::measure {
namespace {

using Arrivals = std::vector<uint64_t>;

// The twin: keeps every number it has seen.
struct SlowTracker {
  bool record(uint64_t sequence) {
    if (sequence >= frames) return false;
    if (!seen.insert(sequence).second) {
      ++duplicate;
    } else if (sequence != *seen.rbegin()) {
      ++reordered;  // a higher number was here before
    }
    return true;
  }

  uint64_t frames;
  std::set<uint64_t> seen = {};
  uint64_t duplicate = 0;
  uint64_t reordered = 0;
};

// Loses one frame in eight, repeats one in ten, swaps neighbours up to 40 apart, and mixes in
// numbers that were never sent.
Arrivals arrivals_of(uint64_t frames, std::mt19937_64& random) {
  Arrivals arrivals;
  for (uint64_t sequence = 0; sequence < frames; ++sequence) {
    if (random() % 8 == 0) continue;
    arrivals.push_back(sequence);
    if (random() % 10 == 0) arrivals.push_back(sequence);
    if (random() % 100 == 0) arrivals.push_back(frames + random() % 1000);
  }
  for (size_t i = 0; i < arrivals.size(); ++i) {
    if (random() % 5 == 0) {
      std::swap(arrivals[i], arrivals[std::min<size_t>(i + random() % 40, arrivals.size() - 1)]);
    }
  }
  return arrivals;
}

void expect_same(SequenceTracker& tracker, uint64_t frames, const Arrivals& arrivals) {
  SlowTracker slow{frames};
  for (const uint64_t sequence : arrivals) {
    ASSERT_EQ(tracker.record(sequence), slow.record(sequence)) << sequence;
  }
  EXPECT_EQ(tracker.received(), slow.seen.size());
  EXPECT_EQ(tracker.duplicate(), slow.duplicate);
  EXPECT_EQ(tracker.reordered(), slow.reordered);
}

SequenceTracker tracker_of(uint64_t frames) {
  SequenceTracker tracker;
  tracker.reset(frames);
  return tracker;
}

TEST(SequenceTracker, AgreesWithASetUnderLossDuplicationAndReordering) {
  std::mt19937_64 random(2889);
  for (const uint64_t frames : {1, 2, 63, 64, 65, 1000, 10'000}) {
    SequenceTracker tracker = tracker_of(frames);
    expect_same(tracker, frames, arrivals_of(frames, random));
  }
}

TEST(SequenceTracker, ForgetsEarlierTrialsOfAnyLength) {
  std::mt19937_64 random(26);
  SequenceTracker tracker;
  for (const uint64_t frames : {5000, 100, 64, 20'000, 1, 0, 700}) {
    tracker.reset(frames);
    EXPECT_EQ(tracker.received() + tracker.duplicate() + tracker.reordered(), 0U);
    expect_same(tracker, frames, arrivals_of(frames, random));
  }
}

TEST(SequenceTracker, CountsALosslessOrderedTrialAsSuch) {
  SequenceTracker tracker = tracker_of(1000);
  for (uint64_t sequence = 0; sequence < 1000; ++sequence) tracker.record(sequence);
  EXPECT_EQ(tracker.received(), 1000U);
  EXPECT_EQ(tracker.duplicate(), 0U);
  EXPECT_EQ(tracker.reordered(), 0U);
}

TEST(SequenceTracker, DoesNotCallAGapReordering) {
  SequenceTracker tracker = tracker_of(10);
  for (const uint64_t sequence : {0, 5, 9}) tracker.record(sequence);
  EXPECT_EQ(tracker.reordered(), 0U);
}

TEST(SequenceTracker, IsNotFooledByAsManyDuplicatesAsLosses) {
  SequenceTracker tracker = tracker_of(4);
  for (const uint64_t sequence : {0, 1, 1, 2}) tracker.record(sequence);
  EXPECT_EQ(tracker.received(), 3U);
  EXPECT_EQ(tracker.duplicate(), 1U);
}

TEST(SequenceTracker, RefusesNumbersThatWereNotSent) {
  SequenceTracker tracker = tracker_of(65);
  EXPECT_TRUE(tracker.record(64));
  for (const uint64_t sequence : {uint64_t{65}, uint64_t{127}, uint64_t{128}, UINT64_MAX}) {
    EXPECT_FALSE(tracker.record(sequence)) << sequence;
  }
  EXPECT_EQ(tracker.received(), 1U);
}

TEST(SequenceTracker, TakesOneBitAFrame) {
  EXPECT_EQ(SequenceTracker::bytes_for(0), 0U);
  EXPECT_EQ(SequenceTracker::bytes_for(1), 8U);
  EXPECT_EQ(SequenceTracker::bytes_for(64), 8U);
  EXPECT_EQ(SequenceTracker::bytes_for(65), 16U);
  EXPECT_EQ(SequenceTracker::bytes_for(1ULL << 40), 1ULL << 37);
}

}  // namespace
}  // namespace dutperf::measure
