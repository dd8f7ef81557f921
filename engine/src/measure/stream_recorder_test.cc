#include "measure/stream_recorder.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

namespace dutperf::measure {
namespace {

// One frame's life: when it was sent, and when (and how often) it came.
struct Frame {
  uint64_t sequence;
  uint64_t sent_ns;
  uint64_t received_ns;
};

struct Events {
  std::vector<Frame> frames;  // in the order of arrival
  uint64_t sent = 0;
};

// `count` frames 1,000 ns apart; a tenth takes up to 1 ms longer and is overtaken, one in twenty is
// lost, one in thirty comes twice.
Events events_of(uint64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  Events events;
  events.sent = count;
  for (uint64_t i = 0; i < count; ++i) {
    if (random() % 20 == 0) continue;
    const uint64_t sent_ns = 1000 * i;
    uint64_t received_ns = sent_ns + 20'000 + random() % 3000;
    if (random() % 10 == 0) received_ns += random() % 1'000'000;
    events.frames.push_back({i, sent_ns, received_ns});
    if (random() % 30 == 0) events.frames.push_back({i, sent_ns, received_ns + 5000});
  }
  std::stable_sort(events.frames.begin(), events.frames.end(),
                   [](const Frame& a, const Frame& b) { return a.received_ns < b.received_ns; });
  return events;
}

// The twin: keeps the delay of every frame, and looks afterwards.
struct SlowRecorder {
  explicit SlowRecorder(const Events& events) {
    for (const Frame& frame : events.frames) {
      if (delay_ns.contains(frame.sequence)) continue;
      delay_ns[frame.sequence] =
          static_cast<int64_t>(frame.received_ns) - static_cast<int64_t>(frame.sent_ns);
      sent_ns[frame.sequence] = frame.sent_ns;
    }
  }

  std::vector<int64_t> variations() const {
    std::vector<int64_t> result;
    for (const auto& [sequence, delay] : delay_ns) {
      const auto before = delay_ns.find(sequence - 1);
      if (sequence > 0 && before != delay_ns.end()) result.push_back(delay - before->second);
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  std::map<uint64_t, int64_t> delay_ns;
  std::map<uint64_t, uint64_t> sent_ns;
};

// Frames that arrive at the same time come in one burst.
void feed(StreamRecorder& recorder, const Events& events) {
  std::vector<Arrival> burst;
  for (size_t i = 0; i < events.frames.size(); ++i) {
    const Frame& frame = events.frames[i];
    burst.push_back({frame.sequence, frame.sent_ns});
    const bool last =
        i + 1 == events.frames.size() || events.frames[i + 1].received_ns != frame.received_ns;
    if (last || burst.size() == StreamRecorder::kMaxArrivals) {
      recorder.record(burst.data(), static_cast<uint32_t>(burst.size()), frame.received_ns);
      burst.clear();
    }
  }
  recorder.finish(events.sent);
}

RecordSpec everything(uint64_t frames) {
  RecordSpec spec;
  spec.timeouts_ns = {21'000, 100'000, 500'000, 2'000'000};
  spec.ipdv = true;
  spec.series_interval_ns = 100'000;
  spec.series_intervals = frames / 100 + 1;
  return spec;
}

class RecordedStream : public ::testing::TestWithParam<uint64_t> {
 protected:
  RecordedStream() { feed(recorder_, events_); }

  static StreamRecorder prepared(uint64_t frames) {
    StreamRecorder recorder;
    recorder.reset(everything(frames), frames, {frames / 2, frames - frames / 2, 100});
    return recorder;
  }

  static constexpr uint64_t kFrames = 20'000;
  Events events_ = events_of(kFrames, GetParam());
  SlowRecorder slow_{events_};
  StreamRecorder recorder_ = prepared(kFrames);
};

TEST_P(RecordedStream, HasEachDelayOnce) {
  const Histogram& delays = recorder_.delays().histogram();
  EXPECT_EQ(delays.count(), slow_.delay_ns.size());
  Histogram expected(kDelayBits);
  for (const auto& [sequence, delay] : slow_.delay_ns) {
    expected.record(static_cast<uint64_t>(delay));
  }
  EXPECT_EQ(delays.min(), expected.min());
  EXPECT_EQ(delays.max(), expected.max());
  const auto buckets = delays.buckets();
  const auto expected_buckets = expected.buckets();
  ASSERT_EQ(buckets.size(), expected_buckets.size());
  for (size_t i = 0; i < buckets.size(); ++i) {
    EXPECT_EQ(buckets[i].lowest, expected_buckets[i].lowest);
    EXPECT_EQ(buckets[i].count, expected_buckets[i].count);
  }
}

TEST_P(RecordedStream, CountsWhatIsSlowerThanEachTimeoutExactly) {
  const std::vector<uint64_t> timeouts_ns = everything(kFrames).timeouts_ns;
  for (size_t i = 0; i < timeouts_ns.size(); ++i) {
    const auto slower = std::count_if(
        slow_.delay_ns.begin(), slow_.delay_ns.end(),
        [&](const auto& entry) { return entry.second > static_cast<int64_t>(timeouts_ns[i]); });
    EXPECT_EQ(recorder_.delays().slower_than(timeouts_ns[i]), static_cast<uint64_t>(slower));
  }
}

TEST_P(RecordedStream, HasTheVariationOfEachPairInSendOrder) {
  ASSERT_NE(recorder_.variation(), nullptr);
  const Histogram& shorter = recorder_.variation()->shorter();
  const Histogram& longer = recorder_.variation()->longer();
  const std::vector<int64_t> expected = slow_.variations();
  const auto below =
      std::count_if(expected.begin(), expected.end(), [](int64_t v) { return v < 0; });
  EXPECT_EQ(shorter.count(), static_cast<uint64_t>(below));
  EXPECT_EQ(longer.count(), expected.size() - static_cast<size_t>(below));
  EXPECT_EQ(-static_cast<int64_t>(shorter.max()), expected.front());
  EXPECT_EQ(static_cast<int64_t>(longer.max()), expected.back());
}

TEST_P(RecordedStream, KeepsTheExactDelayOfEachTaggedFrame) {
  const std::vector<uint64_t>& tags = recorder_.tags()->delays_ns();
  ASSERT_EQ(tags.size(), 100U);
  std::set<uint64_t> tagged;
  for (uint64_t tag = 0; tag < tags.size(); ++tag) {
    const uint64_t sequence = kFrames / 2 + tag * (kFrames / 2) / 100;
    tagged.insert(sequence);
    const auto delay = slow_.delay_ns.find(sequence);
    EXPECT_EQ(tags[tag], delay == slow_.delay_ns.end() ? TagDelays::kLost
                                                       : static_cast<uint64_t>(delay->second));
  }
  EXPECT_EQ(tagged.size(), 100U);
}

TEST_P(RecordedStream, CountsArrivalsByTheTimeOfSending) {
  const std::vector<uint64_t> received = recorder_.received_by_time().counts();
  std::vector<uint64_t> expected(received.size());
  for (const auto& [sequence, sent_ns] : slow_.sent_ns) ++expected[sent_ns / 100'000];
  EXPECT_EQ(received, expected);
  EXPECT_EQ(std::accumulate(received.begin(), received.end(), uint64_t{0}),
            recorder_.tracker().received());
}

TEST_P(RecordedStream, SumsTheIntervalsThatHaveEnded) {
  const TimeSeries& series = recorder_.received_by_time();
  const std::vector<uint64_t> counts = series.counts();
  uint64_t sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    EXPECT_EQ(series.sum_before(i * 100'000), sum);
    EXPECT_EQ(series.sum_before(i * 100'000 + 99'999), sum);
    if (i + 1 < counts.size()) sum += counts[i];
  }
  EXPECT_EQ(series.sum_before(UINT64_MAX), sum) << "the last one does not end";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RecordedStream, ::testing::Values(1, 2, 3, 4, 5));

TEST(StreamRecorder, CountsAFrameThatArrivesBeforeItLeftAndGivesItNoDelay) {
  StreamRecorder recorder;
  recorder.reset(everything(10), 10, {0, 10, 10});
  Arrival burst[] = {{0, 5000}, {1, 5001}, {2, 4000}};
  recorder.record(burst, 3, 5000);
  EXPECT_EQ(recorder.tracker().received(), 3U);
  EXPECT_EQ(recorder.delays().negative(), 1U);
  EXPECT_EQ(recorder.delays().histogram().count(), 2U);
  EXPECT_EQ(recorder.tags()->delays_ns()[0], 0U);
  EXPECT_EQ(recorder.tags()->delays_ns()[1], TagDelays::kLost);
  EXPECT_EQ(recorder.tags()->delays_ns()[2], 1000U);
  EXPECT_EQ(recorder.variation()->shorter().count() + recorder.variation()->longer().count(), 0U);
}

TEST(StreamRecorder, PutsStampsFromBeyondTheTrialIntoTheLastInterval) {
  RecordSpec spec;
  spec.series_interval_ns = 1000;
  spec.series_intervals = 3;
  StreamRecorder recorder;
  recorder.reset(spec, 10, {});
  Arrival burst[] = {{0, 999}, {1, 1000}, {2, 3500}, {3, UINT64_MAX >> 16}, {4, 0}};
  recorder.record(burst, 5, UINT64_MAX >> 8);
  EXPECT_EQ(recorder.received_by_time().counts(), (std::vector<uint64_t>{2, 1, 2}));
}

TEST(StreamRecorder, CountsCorruptAndImpossibleFramesTogether) {
  StreamRecorder recorder;
  recorder.reset({}, 10, {});
  recorder.record_corrupt();
  Arrival burst[] = {{10, 0}};
  recorder.record(burst, 1, 100);
  EXPECT_EQ(recorder.corrupt(), 2U);
  EXPECT_EQ(recorder.tracker().received(), 0U);
}

TEST(StreamRecorder, ForgetsTheTrialBefore) {
  StreamRecorder recorder;
  recorder.reset(everything(20'000), 20'000, {0, 20'000, 50});
  feed(recorder, events_of(20'000, 9));
  recorder.record_corrupt();
  RecordSpec spec;
  spec.timeouts_ns = everything(100).timeouts_ns;
  recorder.reset(spec, 100, {});
  EXPECT_EQ(recorder.delays().histogram().count(), 0U);
  EXPECT_EQ(recorder.delays().slower_than(spec.timeouts_ns[0]), 0U);
  EXPECT_EQ(recorder.variation(), nullptr);
  EXPECT_EQ(recorder.tags(), nullptr);
  EXPECT_EQ(recorder.received_by_time().counts(), std::vector<uint64_t>{0});
  EXPECT_EQ(recorder.corrupt(), 0U);
  EXPECT_EQ(recorder.tracker().loss_runs().count(), 0U);
}

TEST(StreamRecorder, KnowsNothingOfTagsThatWereNotSent) {
  for (const uint64_t sent : {0U, 4U, 5U, 6U, 7U, 10U}) {
    StreamRecorder recorder;
    recorder.reset({}, 10, {4, 6, 3});  // frames 4, 6 and 8
    recorder.finish(sent);
    const size_t tags = (sent > 4 ? 1 : 0) + (sent > 6 ? 1 : 0) + (sent > 8 ? 1 : 0);
    EXPECT_EQ(recorder.tags()->delays_ns(), std::vector<uint64_t>(tags, TagDelays::kLost)) << sent;
  }
}

// 60 s at 14.88 Mfps, foreground and background: a bitmap of 107 MiB, and under 64 MiB beside it.
TEST(StreamRecorder, TakesLittleBesideOneBitAFrame) {
  constexpr uint64_t kMinute = 60 * 14'880'952ULL;
  RecordSpec spec;
  spec.ipdv = true;
  uint64_t bytes = 0;
  for (const uint64_t frames : {kMinute / 10 * 9, kMinute / 10}) {
    bytes += StreamRecorder::bytes_for(spec, frames);
  }
  EXPECT_EQ(SequenceTracker::bytes_for(kMinute) >> 20, 106U);
  EXPECT_LT(bytes - SequenceTracker::bytes_for(kMinute), 64ULL << 20);
  spec.tracking_bytes = 16 << 20;
  EXPECT_LT(StreamRecorder::bytes_for(spec, 1ULL << 40), 64ULL << 20) << "whatever its length";
}

// A frame that is overtaken by a million others still finds its neighbours; one more does not.
TEST(DelayVariation, FindsPairsAsFarApartAsItsRingIsLong) {
  constexpr uint64_t kRing = DelayVariation::kMaxRing;
  for (const uint64_t late : {uint64_t{5}, kRing - 2, kRing + 5}) {
    DelayVariation variation;
    variation.reset(4 * kRing);
    const auto record = [&](uint64_t sequence, uint64_t delay_ns) {
      const Arrival arrival{sequence, 0};
      variation.record(&arrival, &delay_ns, 1);
    };
    for (uint64_t i = 0; i <= 10 + late; ++i) {
      if (i != 10) record(i, 100);
    }
    const uint64_t pairs = variation.longer().count();
    record(10, 5000);
    const bool found = late < kRing;
    EXPECT_EQ(variation.longer().count() - pairs, found ? 1U : 0U) << "10 after 9";
    EXPECT_EQ(variation.shorter().count(), found ? 1U : 0U) << "11 after 10";
  }
}

TEST(TagSpread, SpreadsTagsEvenlyAndFindsThem) {
  std::mt19937_64 random(8219);
  for (int round = 0; round < 200; ++round) {
    TagSpread spread;
    spread.first = random() % 1000;
    spread.span = 1 + random() % 5000;
    spread.count = 1 + random() % spread.span;
    std::map<uint64_t, uint64_t> tag_of;
    for (uint64_t tag = 0; tag < spread.count; ++tag) tag_of[spread.sequence_of(tag)] = tag;
    ASSERT_EQ(tag_of.size(), spread.count) << "each tag is a frame of its own";
    EXPECT_EQ(tag_of.begin()->first, spread.first);
    EXPECT_LT(tag_of.rbegin()->first, spread.first + spread.span);
    for (uint64_t sequence = 0; sequence < spread.first + spread.span + 10; ++sequence) {
      const auto next = tag_of.lower_bound(sequence);
      ASSERT_EQ(spread.tag_from(sequence), next == tag_of.end() ? spread.count : next->second);
    }
  }
}

}  // namespace
}  // namespace dutperf::measure
