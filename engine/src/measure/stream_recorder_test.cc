#include "measure/stream_recorder.h"

#include <gtest/gtest.h>

#include <array>
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
    recorder.reset(everything(frames), frames, tagged_of(frames));
    return recorder;
  }

  // A hundred of the second half, with gaps of all lengths; one follows the other.
  static std::vector<uint64_t> tagged_of(uint64_t frames) {
    std::mt19937_64 random(GetParam());
    std::set<uint64_t> tagged = {frames / 2, frames / 2 + 1, frames - 1};
    while (tagged.size() < 100) tagged.insert(frames / 2 + random() % (frames / 2));
    return {tagged.begin(), tagged.end()};
  }

  static constexpr uint64_t kFrames = 20'000;
  Events events_ = events_of(kFrames, GetParam());
  SlowRecorder slow_{events_};
  StreamRecorder recorder_ = prepared(kFrames);
};

TEST_P(RecordedStream, HasEachDelayOnce) {
  const AroundOrigin delays = recorder_.delays().around_origin();
  EXPECT_EQ(delays.count(), slow_.delay_ns.size());
  int64_t least = INT64_MAX;
  int64_t most = 0;
  for (const auto& [sequence, delay] : slow_.delay_ns) {
    least = std::min(least, delay);
    most = std::max(most, delay);
  }
  const uint64_t lowest = delays.below.count() > 0 ? delays.origin - delays.below.max()
                                                   : delays.origin + delays.above.min();
  EXPECT_EQ(lowest, static_cast<uint64_t>(least));
  EXPECT_EQ(delays.origin + delays.above.max(), static_cast<uint64_t>(most));
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
  const std::vector<uint64_t> tagged = tagged_of(kFrames);
  for (size_t tag = 0; tag < tags.size(); ++tag) {
    const auto delay = slow_.delay_ns.find(tagged[tag]);
    EXPECT_EQ(tags[tag], delay == slow_.delay_ns.end() ? TagDelays::kLost
                                                       : static_cast<uint64_t>(delay->second));
  }
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
  recorder.reset(everything(10), 10, {0, 1, 2});
  Arrival burst[] = {{0, 5000}, {1, 5001}, {2, 4000}};
  recorder.record(burst, 3, 5000);
  EXPECT_EQ(recorder.tracker().received(), 3U);
  EXPECT_EQ(recorder.delays().negative(), 1U);
  EXPECT_EQ(recorder.delays().around_origin().count(), 2U);
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

TEST(StreamRecorder, CountsDamageByItsKind) {
  StreamRecorder recorder;
  recorder.reset({}, 10, {});
  recorder.record_damaged(net::Damage::kLength);
  recorder.record_damaged(net::Damage::kChecksumZero);
  recorder.record_damaged(net::Damage::kChecksumZero);
  Arrival burst[] = {{10, 0}};
  recorder.record(burst, 1, 100);
  net::DamageCounts expected;
  expected[net::Damage::kLength] = expected[net::Damage::kNeverSent] = 1;
  expected[net::Damage::kChecksumZero] = 2;
  EXPECT_EQ(recorder.damaged(), expected);
  EXPECT_EQ(recorder.damaged().total(), 4U);
  EXPECT_EQ(recorder.tracker().received(), 0U);
}

TEST(StreamRecorder, ForgetsTheTrialBefore) {
  StreamRecorder recorder;
  recorder.reset(everything(20'000), 20'000, {0, 7, 19'999});
  feed(recorder, events_of(20'000, 9));
  recorder.record_damaged(net::Damage::kTruncated);
  RecordSpec spec;
  spec.timeouts_ns = everything(100).timeouts_ns;
  recorder.reset(spec, 100, {});
  EXPECT_EQ(recorder.delays().around_origin().count(), 0U);
  EXPECT_EQ(recorder.delays().slower_than(spec.timeouts_ns[0]), 0U);
  EXPECT_EQ(recorder.variation(), nullptr);
  EXPECT_EQ(recorder.tags(), nullptr);
  EXPECT_EQ(recorder.received_by_time().counts(), std::vector<uint64_t>{0});
  EXPECT_EQ(recorder.damaged().total(), 0U);
  EXPECT_EQ(recorder.tracker().loss_runs().count(), 0U);
}

TEST(StreamRecorder, KnowsNothingOfTagsThatWereNotSent) {
  for (const uint64_t sent : {0U, 4U, 5U, 6U, 7U, 10U}) {
    StreamRecorder recorder;
    recorder.reset({}, 10, {4, 6, 8});
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
      variation.record(&arrival, &delay_ns, 1, false);
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

std::vector<std::array<uint64_t, 3>> told(const Histogram& histogram) {
  std::vector<std::array<uint64_t, 3>> result;
  for (const auto& bucket : histogram.buckets()) {
    result.push_back({bucket.lowest, bucket.highest, bucket.count});
  }
  return result;
}

// Bursts in a row, with holes that are filled later or never, or of frames in any order; begun so
// that the ring ends within them.
TEST(DelayVariation, FindsThePairsOfBurstsOfEveryKind) {
  std::mt19937_64 random(47);
  for (int round = 0; round < 200; ++round) {
    constexpr uint64_t kFrames = 600;
    const uint64_t first = round % 2 == 0 ? 0 : DelayVariation::kMaxRing - kFrames / 2;
    std::vector<uint64_t> order(kFrames);
    std::iota(order.begin(), order.end(), first);
    for (uint64_t swaps = random() % 30; swaps > 0; --swaps) {
      std::swap(order[random() % kFrames], order[random() % kFrames]);
    }
    order.resize(kFrames - random() % 50);
    DelayVariation variation;
    variation.reset(first + kFrames);
    std::map<uint64_t, uint64_t> delay_of;
    for (size_t i = 0; i < order.size();) {
      std::vector<Arrival> arrivals;
      std::vector<uint64_t> delays_ns;
      const size_t end = std::min<size_t>(i + 1 + random() % 64, order.size());
      for (; i < end; ++i) {
        arrivals.push_back({order[i], 0});
        delays_ns.push_back(1'000'000 + random() % (random() % 2 == 0 ? 2 : 5000));
        delay_of[order[i]] = delays_ns.back();
      }
      variation.record(arrivals.data(), delays_ns.data(), static_cast<uint32_t>(arrivals.size()),
                       false);
    }
    Histogram shorter(DelayVariation::kBits);
    Histogram longer(DelayVariation::kBits);
    for (const auto& [sequence, delay] : delay_of) {
      const auto before = delay_of.find(sequence - 1);
      if (sequence == 0 || before == delay_of.end()) continue;
      if (delay < before->second) shorter.record(before->second - delay);
      if (delay >= before->second) longer.record(delay - before->second);
    }
    ASSERT_EQ(told(variation.shorter()), told(shorter)) << round;
    ASSERT_EQ(told(variation.longer()), told(longer)) << round;
  }
}

// What is light is the whole less the shaded: both are what a recorder of them alone has.
TEST(StreamRecorder, KeepsWhatStoodInAShadowBesideTheWhole) {
  const Events events = events_of(4000, 11);
  RecordSpec spec;
  spec.timeouts_ns = {100'000};
  spec.ipdv = true;
  std::vector<uint64_t> every(4000);
  std::iota(every.begin(), every.end(), 0);
  StreamRecorder recorder;
  recorder.reset(spec, 4000, every);
  Histogram shaded_ns(kDelayBits);
  uint64_t late = 0;
  std::set<uint64_t> shaded_tags;
  std::set<uint64_t> seen;
  for (const Frame& frame : events.frames) {
    const bool shaded = frame.sent_ns / 500'000 % 2 == 1;
    Arrival arrival{frame.sequence, frame.sent_ns};
    recorder.record(&arrival, 1, frame.received_ns, shaded);
    if (!seen.insert(frame.sequence).second || !shaded) continue;
    shaded_ns.record(frame.received_ns - frame.sent_ns);
    late += frame.received_ns - frame.sent_ns > 100'000 ? 1 : 0;
    shaded_tags.insert(frame.sequence);
  }
  recorder.finish(4000);
  ASSERT_GT(late, 0U);
  EXPECT_EQ(recorder.delays().slower_shaded(100'000), late);
  EXPECT_GT(recorder.delays().slower_than(100'000), late);
  const AroundOrigin shaded = recorder.delays().shaded_around_origin();
  EXPECT_EQ(shaded.origin, recorder.delays().around_origin().origin);
  EXPECT_EQ(shaded.below.count() + shaded.above.count(), shaded_ns.count());
  EXPECT_EQ(shaded.origin + shaded.above.min(), shaded_ns.min());
  EXPECT_EQ(shaded.origin + shaded.above.max(), shaded_ns.max());
  EXPECT_EQ(recorder.tags()->shaded(),
            std::vector<uint64_t>(shaded_tags.begin(), shaded_tags.end()));
  const AroundOrigin of_shadow = recorder.variation()->shaded_around_zero();
  const AroundOrigin of_all = recorder.variation()->around_zero();
  const uint64_t pairs = of_shadow.below.count() + of_shadow.above.count();
  EXPECT_GT(pairs, 0U);
  EXPECT_LT(pairs, of_all.below.count() + of_all.above.count());
}

TEST(StreamRecorder, KeepsTheMemoryOfTheLargestTrialAndTellsHowMuch) {
  RecordSpec spec;
  spec.ipdv = true;
  StreamRecorder recorder;
  EXPECT_EQ(recorder.held_bytes(), 0U);
  recorder.reset(spec, 1'000'000, {});
  const uint64_t held = recorder.held_bytes();
  EXPECT_EQ(held, StreamRecorder::bytes_for(spec, 1'000'000));
  recorder.reset({}, 1'000, {});
  EXPECT_EQ(recorder.held_bytes(), held);
}

// What several shares have recorded, put together, is what one would have: whatever came, by
// whichever queue, and also where the last frames of a share never left.
class Shares : public ::testing::TestWithParam<uint64_t> {
 protected:
  // Percentiles, by buckets of whichever origin: within what they are wide.
  static void expect_alike(const AroundOrigin& one, const AroundOrigin& whole) {
    ASSERT_EQ(one.count(), whole.count());
    const auto least = [](const AroundOrigin& all) {
      return all.below.count() > 0 ? all.origin - all.below.max() : all.origin + all.above.min();
    };
    EXPECT_EQ(least(one), least(whole));
    EXPECT_EQ(one.origin + one.above.max(), whole.origin + whole.above.max());
  }
};

TEST_P(Shares, PutTogetherAreTheWhole) {
  const uint64_t shares = GetParam();
  for (const uint64_t count : {0, 1, 7, 64, 1000, 60'000}) {
    const Events events = events_of(count, count + shares);
    // Stopped: of each share some of the last frames never left, and so never came.
    std::mt19937_64 random(count);
    std::vector<uint64_t> sent;
    for (uint64_t i = 0; i < shares; ++i) {
      const uint64_t all = Share{i, shares}.frames_among(count);
      sent.push_back(all - std::min(all, random() % 4));
    }
    RecordSpec spec;
    spec.timeouts_ns = {25'000, 100'000, 500'000};
    spec.series_interval_ns = 1'000'000;
    spec.series_intervals = 1 + count / 1000;
    std::vector<uint64_t> tags;
    for (uint64_t tag = 3; tag < count; tag += 1 + random() % 40) tags.push_back(tag);
    StreamRecorder alone;
    alone.reset(spec, count, tags);
    StreamRecorder whole;
    whole.reset(spec, count, tags);
    std::atomic<uint64_t> origin{UINT64_MAX};
    std::vector<StreamRecorder> parts(shares);
    std::vector<StreamRecorder*> each;
    for (uint64_t i = 0; i < shares; ++i) {
      std::vector<uint64_t> own_tags;
      for (const uint64_t tag : tags) {
        if (tag % shares == i) own_tags.push_back(tag / shares);
      }
      parts[i].reset(spec, Share{i, shares}.frames_among(count), own_tags, 1, 4, &origin);
      each.push_back(&parts[i]);
    }
    uint64_t end = 0;
    for (uint64_t i = 0; i < shares; ++i) {
      if (sent[i] > 0) end = std::max(end, Share{i, shares}.frame_of(sent[i] - 1) + 1);
    }
    const Owners owners(shares > 1 ? shares : 2);
    std::vector<bool> came(count);
    for (const Frame& frame : events.frames) {
      const uint64_t owner = frame.sequence % shares;
      if (frame.sequence / shares >= sent[owner]) continue;
      if (shares > 1) {
        ASSERT_EQ(owners.owner_of(frame.sequence), owner);
        ASSERT_EQ(owners.number_of(frame.sequence), frame.sequence / shares);
      }
      came[frame.sequence] = true;
      const bool shaded = frame.sequence % 7 == 0;
      Arrival arrival{frame.sequence, frame.sent_ns};
      alone.record(&arrival, 1, frame.received_ns, shaded);
      arrival = {frame.sequence / shares, frame.sent_ns};
      parts[owner].record(&arrival, 1, frame.received_ns, shaded, random() % 4);
    }
    // The twin of the runs: those that never left are none.
    std::vector<uint64_t> runs;
    uint64_t run = 0;
    for (uint64_t k = 0; k < end; ++k) {
      const bool lost = k / shares < sent[k % shares] && !came[k];
      if (lost) ++run;
      if (!lost && run > 0) runs.push_back(run);
      if (!lost) run = 0;
    }
    if (run > 0) runs.push_back(run);
    whole.finish(each, sent);
    EXPECT_EQ(whole.tracker().received(), alone.tracker().received());
    EXPECT_EQ(whole.tracker().duplicate(), alone.tracker().duplicate());
    EXPECT_EQ(whole.tracker().loss_runs().count(), runs.size());
    const uint64_t longest = runs.empty() ? 0 : *std::max_element(runs.begin(), runs.end());
    EXPECT_EQ(whole.tracker().longest_loss().frames, longest);
    for (uint64_t k = 0; k < end; ++k) {
      ASSERT_EQ((whole.tracker().seen_word(k / 64) >> (k % 64) & 1) != 0, came[k]) << k;
    }
    for (const uint64_t timeout_ns : spec.timeouts_ns) {
      EXPECT_EQ(whole.delays().slower_than(timeout_ns), alone.delays().slower_than(timeout_ns));
      EXPECT_EQ(whole.delays().slower_shaded(timeout_ns), alone.delays().slower_shaded(timeout_ns));
    }
    expect_alike(alone.delays().around_origin(), whole.delays().around_origin());
    expect_alike(alone.delays().shaded_around_origin(), whole.delays().shaded_around_origin());
    EXPECT_EQ(whole.received_by_time().counts(), alone.received_by_time().counts());
    if (!tags.empty()) {
      alone.finish(count);
      std::vector<uint64_t> delays_ns;
      std::vector<uint64_t> shaded;
      for (size_t i = 0; i < tags.size(); ++i) {
        if (tags[i] / shares >= sent[tags[i] % shares]) continue;
        if (came[tags[i]] && tags[i] % 7 == 0) shaded.push_back(delays_ns.size());
        delays_ns.push_back(alone.tags()->delays_ns()[i]);
      }
      EXPECT_EQ(whole.tags()->delays_ns(), delays_ns);
      EXPECT_EQ(whole.tags()->shaded(), shaded);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Several, Shares, ::testing::Values(1, 2, 3, 4, 8, 31));

}  // namespace
}  // namespace dutperf::measure
