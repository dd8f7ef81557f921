#include "measure/sequence_tracker.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "measure/testing/arrive.h"

namespace dutperf::measure {
namespace {

using Numbers = std::vector<uint64_t>;

std::vector<Arrival> arrivals_with(const Numbers& numbers) {
  std::vector<Arrival> arrivals;
  for (const uint64_t number : numbers) arrivals.push_back({number, 0});
  return arrivals;
}

// The twin: keeps every number it has seen.
struct SlowTracker {
  explicit SlowTracker(uint64_t of, uint64_t farther_than = 0, uint64_t in_turn = 1)
      : frames(of), distance(farther_than), paths(in_turn), seen(of) {}

  bool record(uint64_t sequence) {
    if (sequence >= frames) {
      ++impossible;
      return false;
    }
    if (seen[sequence]) {
      ++duplicate;
      return false;
    }
    seen[sequence] = true;
    ++received;
    uint64_t& highest = highest_of_path[sequence % paths];
    if (highest > sequence + distance) ++reordered;  // that one was here before
    highest = std::max(highest, sequence);
    return true;
  }

  std::map<uint64_t, uint64_t> loss_runs(uint64_t sent) const {
    std::map<uint64_t, uint64_t> runs;
    uint64_t run = 0;
    for (uint64_t i = 0; i <= sent; ++i) {
      if (i < sent && !seen[i]) {
        ++run;
      } else if (run > 0) {
        ++runs[std::exchange(run, 0)];
      }
    }
    return runs;
  }

  // The first of the longest ones, or the last one.
  LossRun loss(uint64_t sent, bool longest) const {
    LossRun found;
    LossRun run;
    for (uint64_t i = 0; i <= sent; ++i) {
      if (i < sent && !seen[i]) {
        run = {run.frames == 0 ? i : run.first, run.frames + 1};
        continue;
      }
      if (run.frames > (longest ? found.frames : 0)) found = run;
      run = {};
    }
    return found;
  }

  uint64_t frames;
  uint64_t distance;
  uint64_t paths;
  std::vector<bool> seen;
  uint64_t received = 0;
  std::map<uint64_t, uint64_t> highest_of_path = {};
  uint64_t duplicate = 0;
  uint64_t reordered = 0;
  uint64_t impossible = 0;
};

// Loses one frame in eight and now and then many in a row, repeats one in ten, swaps neighbours up
// to 40 apart, and mixes in numbers that were never sent.
Numbers numbers_of(uint64_t frames, std::mt19937_64& random) {
  Numbers numbers;
  for (uint64_t sequence = 0; sequence < frames; ++sequence) {
    if (random() % 400 == 0) sequence += random() % 300;
    if (random() % 8 == 0 || sequence >= frames) continue;
    numbers.push_back(sequence);
    if (random() % 10 == 0) numbers.push_back(sequence);
    if (random() % 100 == 0) numbers.push_back(frames + random() % 1000);
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (random() % 5 == 0) {
      std::swap(numbers[i], numbers[std::min<size_t>(i + random() % 40, numbers.size() - 1)]);
    }
  }
  return numbers;
}

// Long stretches in order, with a disturbance now and then.
Numbers orderly_numbers_of(uint64_t frames, std::mt19937_64& random) {
  Numbers numbers;
  for (uint64_t sequence = 0; sequence < frames; ++sequence) {
    if (random() % 300 == 0) continue;
    numbers.push_back(sequence);
    if (random() % 300 == 0) numbers.push_back(random() % frames);
  }
  return numbers;
}

std::map<uint64_t, uint64_t> runs_of(const SequenceTracker& tracker) {
  std::map<uint64_t, uint64_t> runs;
  for (const auto& bucket : tracker.loss_runs().buckets()) runs[bucket.lowest] += bucket.count;
  return runs;
}

// Feeds both in bursts of random length; the tracker must let the same frames through.
void expect_same(SequenceTracker& tracker, SlowTracker& slow, const Numbers& numbers,
                 std::mt19937_64& random) {
  for (size_t next = 0; next < numbers.size();) {
    const size_t count = std::min<size_t>(1 + random() % 100, numbers.size() - next);
    const Numbers burst(numbers.begin() + static_cast<ptrdiff_t>(next),
                        numbers.begin() + static_cast<ptrdiff_t>(next + count));
    next += count;
    Numbers expected;
    for (const uint64_t number : burst) {
      if (slow.record(number)) expected.push_back(number);
    }
    std::vector<Arrival> arrivals = arrivals_with(burst);
    const uint32_t first = tracker.record(arrivals.data(), static_cast<uint32_t>(count));
    ASSERT_EQ(first, expected.size());
    for (uint32_t i = 0; i < first; ++i) ASSERT_EQ(arrivals[i].sequence, expected[i]);
  }
  tracker.finish(slow.frames);
  EXPECT_EQ(tracker.received(), slow.received);
  EXPECT_EQ(tracker.duplicate(), slow.duplicate);
  EXPECT_EQ(tracker.reordered(), slow.reordered);
  EXPECT_EQ(tracker.impossible(), slow.impossible);
  EXPECT_EQ(tracker.unplaced(), 0U);
  EXPECT_EQ(runs_of(tracker), slow.loss_runs(slow.frames));
  EXPECT_EQ(tracker.longest_loss(), slow.loss(slow.frames, true));
  EXPECT_EQ(tracker.last_loss(), slow.loss(slow.frames, false));
}

void record(SequenceTracker& tracker, const Numbers& numbers) {
  for (const uint64_t number : numbers) testing::arrive(tracker, number);
}

SequenceTracker tracker_of(uint64_t frames, uint64_t max_bytes = UINT64_MAX) {
  SequenceTracker tracker;
  tracker.reset(frames, max_bytes);
  return tracker;
}

TEST(SequenceTracker, AgreesWithASetUnderLossDuplicationAndReordering) {
  std::mt19937_64 random(2889);
  for (const uint64_t frames : {1, 2, 63, 64, 65, 1000, 10'000}) {
    SequenceTracker tracker = tracker_of(frames);
    SlowTracker slow(frames);
    expect_same(tracker, slow, numbers_of(frames, random), random);
  }
}

TEST(SequenceTracker, AgreesWithASetWhenMostFramesAreInOrder) {
  std::mt19937_64 random(4737);
  for (const uint64_t frames : {1, 64, 65, 5000, 50'000}) {
    SequenceTracker tracker = tracker_of(frames);
    SlowTracker slow(frames);
    expect_same(tracker, slow, orderly_numbers_of(frames, random), random);
  }
}

TEST(SequenceTracker, CallsOnlyFramesReorderedThatAreFartherBackThanAskedFor) {
  std::mt19937_64 random(31);
  for (const uint64_t distance : {0, 1, 5, 39, 1000}) {
    SequenceTracker tracker;
    tracker.reset(20'000, UINT64_MAX, distance);
    SlowTracker slow(20'000, distance);
    expect_same(tracker, slow, numbers_of(20'000, random), random);
  }
}

TEST(SequenceTracker, TellsTheOrderOfEachPathApart) {
  std::mt19937_64 random(16);
  for (const uint64_t paths : {2, 3, 4, 16}) {
    SequenceTracker tracker;
    tracker.reset(20'000, UINT64_MAX, 0, paths);
    SlowTracker slow(20'000, 0, paths);
    expect_same(tracker, slow, orderly_numbers_of(20'000, random), random);
  }
  // Two ports, looked at one after the other: no frame has overtaken another of its path.
  SequenceTracker tracker;
  tracker.reset(6, UINT64_MAX, 0, 2);
  record(tracker, {0, 2, 4, 1, 3, 5});
  EXPECT_EQ(tracker.reordered(), 0U);
  tracker.reset(6);
  record(tracker, {0, 2, 4, 1, 3, 5});
  EXPECT_EQ(tracker.reordered(), 2U);
}

TEST(SequenceTracker, ForgetsEarlierTrialsOfAnyLength) {
  std::mt19937_64 random(26);
  SequenceTracker tracker;
  for (const uint64_t frames : {5000, 100, 64, 20'000, 1, 0, 700}) {
    tracker.reset(frames);
    EXPECT_EQ(tracker.received() + tracker.duplicate() + tracker.reordered(), 0U);
    SlowTracker slow(frames);
    expect_same(tracker, slow, numbers_of(frames, random), random);
  }
}

TEST(SequenceTracker, ForgetsATrialThatWasNotFinished) {
  SequenceTracker tracker = tracker_of(100'000, 128);
  record(tracker, {0, 5000, 1, 100'000});  // a run under way, one unplaced, one impossible
  tracker.reset(10);
  EXPECT_EQ(tracker.unplaced() + tracker.impossible(), 0U);
  record(tracker, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  tracker.finish(10);
  EXPECT_EQ(runs_of(tracker), (std::map<uint64_t, uint64_t>{{1, 1}}));
}

TEST(SequenceTracker, DoesNotCallAGapReordering) {
  SequenceTracker tracker = tracker_of(10);
  record(tracker, {0, 5, 9});
  EXPECT_EQ(tracker.reordered(), 0U);
}

TEST(SequenceTracker, IsNotFooledByAsManyDuplicatesAsLosses) {
  SequenceTracker tracker = tracker_of(4);
  record(tracker, {0, 1, 1, 2});
  EXPECT_EQ(tracker.received(), 3U);
  EXPECT_EQ(tracker.duplicate(), 1U);
}

TEST(SequenceTracker, RefusesNumbersThatWereNotSent) {
  SequenceTracker tracker = tracker_of(65);
  record(tracker, {64, 65, 127, 128, UINT64_MAX});
  EXPECT_EQ(tracker.received(), 1U);
  EXPECT_EQ(tracker.impossible(), 4U);
}

TEST(SequenceTracker, RefusesTheEndOfARowThatWasNotSent) {
  SequenceTracker tracker = tracker_of(65);
  std::vector<Arrival> arrivals = arrivals_with({63, 64, 65});
  EXPECT_EQ(tracker.record(arrivals.data(), 3), 2U);
  EXPECT_EQ(tracker.received(), 2U);
  EXPECT_EQ(tracker.impossible(), 1U);
}

TEST(SequenceTracker, CountsFramesThatNeverLeftAsNoLoss) {
  SequenceTracker tracker = tracker_of(1000);
  record(tracker, {0, 1, 2});
  tracker.finish(5);
  EXPECT_EQ(runs_of(tracker), (std::map<uint64_t, uint64_t>{{2, 1}}));
}

TEST(SequenceTracker, TellsWhereTheLongestLossIsAndTheLastOne) {
  SequenceTracker tracker = tracker_of(1000);
  for (uint64_t i = 0; i < 1000; ++i) {
    const bool lost = (i >= 60 && i < 70) || (i >= 190 && i < 200) || i >= 995;
    if (!lost) record(tracker, {i});
  }
  tracker.finish(998);
  EXPECT_EQ(tracker.longest_loss(), (LossRun{60, 10})) << "the first of two";
  EXPECT_EQ(tracker.last_loss(), (LossRun{995, 3})) << "to the last one sent";
  tracker.reset(10);
  tracker.finish(0);
  EXPECT_EQ(tracker.longest_loss(), LossRun{});
  EXPECT_EQ(tracker.last_loss(), LossRun{});
}

TEST(SequenceTracker, TellsOneLongLossFromManyShortOnes) {
  SequenceTracker tracker = tracker_of(1000);
  for (uint64_t i = 0; i < 1000; ++i) {
    const bool lost = (i >= 100 && i < 300) || i % 500 == 7;
    if (!lost) record(tracker, {i});
  }
  tracker.finish(1000);
  EXPECT_EQ(runs_of(tracker), (std::map<uint64_t, uint64_t>{{1, 2}, {200, 1}}));
}

Numbers row(uint64_t first, uint64_t count) {
  Numbers numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

// Rows are the usual case: of every length, from every place in a word, and beyond the end.
TEST(SequenceTracker, AgreesWithASetOverRowsOfEveryLengthAndPlace) {
  for (const uint64_t max_bytes : {UINT64_MAX, uint64_t{128}}) {
    for (uint64_t first = 0; first < 64; ++first) {
      for (uint64_t count = 1; count <= 130; ++count) {
        const uint64_t frames = max_bytes == UINT64_MAX ? 400 : 2000;
        SequenceTracker tracker = tracker_of(frames, max_bytes);
        SlowTracker slow(frames);
        for (const uint64_t begin : {first, first + count, first + 2 * count + 3, frames - count,
                                     frames - count / 2, first}) {
          const Numbers numbers = row(begin, count);
          uint32_t expected = 0;
          for (const uint64_t number : numbers) expected += slow.record(number) ? 1 : 0;
          std::vector<Arrival> arrivals = arrivals_with(numbers);
          const auto size = static_cast<uint32_t>(count);
          // What the window has left behind is nobody's duplicate any more.
          if (begin == first && max_bytes != UINT64_MAX && slow.duplicate > 0) continue;
          ASSERT_EQ(tracker.record(arrivals.data(), size), expected);
        }
        tracker.finish(frames);
        ASSERT_EQ(tracker.received(), slow.received);
        ASSERT_EQ(tracker.impossible(), slow.impossible);
        ASSERT_EQ(runs_of(tracker), slow.loss_runs(frames)) << first << ' ' << count;
        ASSERT_EQ(tracker.longest_loss(), slow.loss(frames, true)) << first << ' ' << count;
        ASSERT_EQ(tracker.last_loss(), slow.loss(frames, false)) << first << ' ' << count;
      }
    }
  }
}

// A run of lost frames that ends with a word, then a word without loss, then another run.
TEST(SequenceTracker, TellsRunsApartThatAWholeWordIsBetween) {
  SequenceTracker tracker = tracker_of(320);
  for (const uint64_t begin : {uint64_t{0}, uint64_t{64}}) {
    std::vector<Arrival> arrivals = arrivals_with(row(begin, begin == 0 ? 60 : 64));
    tracker.record(arrivals.data(), static_cast<uint32_t>(arrivals.size()));
  }
  tracker.finish(200);
  EXPECT_EQ(runs_of(tracker), (std::map<uint64_t, uint64_t>{{4, 1}, {72, 1}}));
}

TEST(SequenceTracker, TakesOneBitAFrame) {
  EXPECT_EQ(SequenceTracker::bytes_for(0), 0U);
  EXPECT_EQ(SequenceTracker::bytes_for(1), 8U);
  EXPECT_EQ(SequenceTracker::bytes_for(64), 8U);
  EXPECT_EQ(SequenceTracker::bytes_for(65), 16U);
  EXPECT_EQ(SequenceTracker::bytes_for(1ULL << 40), 1ULL << 37);
}

// --- the window: 128 bytes are 1024 frames

TEST(SequenceTrackerWindow, IsUsedOnlyWhenTheFramesNeedMoreMemory) {
  EXPECT_EQ(tracker_of(1024, 128).window_frames(), 0U);
  EXPECT_EQ(tracker_of(1025, 128).window_frames(), 1024U);
  EXPECT_EQ(tracker_of(1025, 129).window_frames(), 1024U);
  EXPECT_EQ(tracker_of(100'000, 255).window_frames(), 1024U) << "not more memory than allowed";
  EXPECT_EQ(tracker_of(1025, 1).window_frames(), 64U);
}

TEST(SequenceTrackerWindow, AgreesWithASetWhileNothingIsFartherBackThanItself) {
  std::mt19937_64 random(711);
  for (const uint64_t frames : {1025, 5000, 100'000}) {
    SequenceTracker tracker = tracker_of(frames, 128);
    SlowTracker slow(frames);
    expect_same(tracker, slow, numbers_of(frames, random), random);
  }
}

TEST(SequenceTrackerWindow, CountsWhatComesFromBeyondItAsUnplaced) {
  SequenceTracker tracker = tracker_of(100'000, 128);
  record(tracker, {0, 5000, 1, 4000, 4999, 4999});
  EXPECT_EQ(tracker.received(), 3U);
  EXPECT_EQ(tracker.unplaced(), 2U);
  EXPECT_EQ(tracker.duplicate(), 1U);
  tracker.finish(5001);
  EXPECT_EQ(runs_of(tracker), (std::map<uint64_t, uint64_t>{{4998, 1}})) << "1 .. 4998";
}

TEST(SequenceTrackerWindow, CountsLossesItSlidOverAtOnce) {
  SequenceTracker tracker = tracker_of(1'000'000, 128);
  record(tracker, {0, 999'999});
  tracker.finish(1'000'000);
  EXPECT_EQ(tracker.received(), 2U);
  EXPECT_EQ(tracker.loss_runs().count(), 1U);
  EXPECT_EQ(tracker.loss_runs().max(), 999'998U);
}

TEST(SequenceTracker, CountsTheMissingOfAnyPart) {
  std::mt19937_64 random(3);
  constexpr uint64_t kFrames = 400;
  SequenceTracker tracker;
  tracker.reset(kFrames);
  std::vector<bool> arrived(kFrames);
  for (uint64_t i = 0; i < kFrames; ++i) {
    if (random() % 4 == 0) continue;
    Arrival arrival{i, 0};
    tracker.record(&arrival, 1);
    arrived[i] = true;
  }
  for (uint64_t begin = 0; begin <= kFrames; begin += 1 + random() % 7) {
    uint64_t missing = 0;
    for (uint64_t end = begin; end <= kFrames; ++end) {
      EXPECT_EQ(tracker.missing_among(begin, end), missing) << begin << " " << end;
      if (end < kFrames) missing += arrived[end] ? 0 : 1;
    }
  }
}

}  // namespace
}  // namespace dutperf::measure
