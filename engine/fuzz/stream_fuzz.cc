// What one stream's recorder makes of the tags of a trial: in any order, any number of times, of
// other trials and testers, with any number and any stamp. See trace.h for the input.
//
// A slow twin that remembers every frame says what each count has to be. The stream is short enough
// for every loss run to have a bucket of its own.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "fuzz/require.h"
#include "fuzz/sample.h"
#include "fuzz/trace.h"
#include "measure/stream_recorder.h"

namespace dutperf::fuzz {
namespace {

constexpr uint64_t kFrames = 2000;
constexpr uint64_t kWindowWords = 8;
constexpr uint64_t kDistance = 5;
constexpr int64_t kLongestNs = (1LL << 44) - 2;  // longer delays vary like this one
// In order, with gaps of one to seven frames.
std::vector<uint64_t> tagged_frames() {
  std::vector<uint64_t> result;
  for (uint64_t frame = 500; frame < kFrames; frame += 1 + frame % 7) result.push_back(frame);
  return result;
}

measure::RecordSpec spec_of(uint8_t options) {
  measure::RecordSpec spec;
  spec.timeouts_ns = {2'000, 1'000'000, 1'000'000'000};
  spec.ipdv = (options & kWithVariation) != 0;
  spec.series_interval_ns = 100'000;
  spec.series_intervals = 20;
  if ((options & kWithDistance) != 0) spec.reordering_distance = kDistance;
  if ((options & kWithWindow) != 0) spec.tracking_bytes = kWindowWords * 8;
  return spec;
}

class SlowRecorder {
 public:
  explicit SlowRecorder(const measure::RecordSpec& spec) : spec_(spec) {}

  void record(const measure::Arrival& arrival, uint64_t received_ns) {
    ++fed_;
    if (arrival.sequence >= kFrames) {
      ++impossible_;
    } else if (beyond_window(arrival.sequence)) {
      ++unplaced_;
    } else if (delays_.contains(arrival.sequence)) {
      ++duplicate_;
    } else {
      if (newest_ && arrival.sequence + spec_.reordering_distance < *newest_) ++reordered_;
      delays_[arrival.sequence] =
          static_cast<int64_t>(received_ns) - static_cast<int64_t>(arrival.sent_ns);
      newest_ = std::max(newest_.value_or(0), arrival.sequence);
    }
  }

  void compare(const measure::StreamRecorder& recorder) const {
    compare_counts(recorder.tracker());
    compare_delays(recorder.delays());
    if (recorder.tags() != nullptr) compare_tags(*recorder.tags());
    if (recorder.variation() != nullptr) compare_variation(*recorder.variation());
    require(recorder.damaged().total() == impossible_, "impossible numbers count as damaged");
    const std::vector<uint64_t> by_time = recorder.received_by_time().counts();
    uint64_t received = 0;
    for (const uint64_t count : by_time) received += count;
    require(received == delays_.size(), "the series holds every received frame");
  }

 private:
  bool beyond_window(uint64_t sequence) const {
    return spec_.tracking_bytes == kWindowWords * 8 && newest_ &&
           *newest_ / 64 >= sequence / 64 + kWindowWords;
  }

  void compare_counts(const measure::SequenceTracker& tracker) const {
    require(tracker.received() + tracker.duplicate() + tracker.unplaced() + tracker.impossible() ==
                fed_,
            "every arrival counts once");
    require(tracker.received() == delays_.size(), "received");
    require(tracker.duplicate() == duplicate_, "duplicate");
    require(tracker.unplaced() == unplaced_, "unplaced");
    require(tracker.impossible() == impossible_, "impossible");
    require(tracker.reordered() == reordered_, "reordered");
    uint64_t lost = 0;
    for (const auto& run : tracker.loss_runs().buckets()) lost += run.lowest * run.count;
    require(lost == kFrames - delays_.size(), "the loss runs hold every lost frame");
  }

  void compare_delays(const measure::Delays& delays) const {
    uint64_t negative = 0;
    std::vector<uint64_t> slower(spec_.timeouts_ns.size());
    for (const auto& [sequence, delay] : delays_) {
      if (delay < 0) ++negative;
      for (size_t i = 0; i < slower.size(); ++i) {
        if (delay > static_cast<int64_t>(spec_.timeouts_ns[i])) ++slower[i];
      }
    }
    require(delays.negative() == negative, "negative");
    require(delays.around_origin().count() + negative == delays_.size(), "one delay a frame");
    for (size_t i = 0; i < slower.size(); ++i) {
      require(delays.slower_than(spec_.timeouts_ns[i]) == slower[i], "slower");
    }
  }

  void compare_variation(const measure::DelayVariation& variation) const {
    uint64_t shorter = 0;
    uint64_t longer = 0;
    for (const auto& [sequence, delay] : delays_) {
      const auto before = delays_.find(sequence - 1);
      if (delay < 0 || before == delays_.end() || before->second < 0) continue;
      const bool is_shorter = std::min(delay, kLongestNs) < std::min(before->second, kLongestNs);
      ++(is_shorter ? shorter : longer);
    }
    require(variation.shorter().count() == shorter, "pairs with a shorter delay");
    require(variation.longer().count() == longer, "pairs with a longer delay");
  }

  void compare_tags(const measure::TagDelays& tags) const {
    const std::vector<uint64_t> tagged = tagged_frames();
    require(tags.delays_ns().size() == tagged.size(), "each tag has a delay");
    for (size_t i = 0; i < tagged.size(); ++i) {
      const auto frame = delays_.find(tagged[i]);
      const bool timed = frame != delays_.end() && frame->second >= 0;
      const uint64_t delay =
          timed ? static_cast<uint64_t>(frame->second) : measure::TagDelays::kLost;
      require(tags.delays_ns()[i] == delay, "the delay of a tagged frame");
    }
  }

  measure::RecordSpec spec_;
  std::map<uint64_t, int64_t> delays_;  // of those that came, by number
  std::optional<uint64_t> newest_;
  uint64_t fed_ = 0;
  uint64_t duplicate_ = 0;
  uint64_t unplaced_ = 0;
  uint64_t impossible_ = 0;
  uint64_t reordered_ = 0;
};

bool is_ours(const net::WireTag& tag) {
  return tag.magic == net::kTagMagic && tag.trial == kTrial && tag.stream == kStream;
}

void check(uint8_t options, const std::vector<TraceEntry>& trace) {
  static measure::StreamRecorder recorder;  // kept from trial to trial, as the receiver does
  const measure::RecordSpec spec = spec_of(options);
  recorder.reset(spec, kFrames,
                 (options & kWithTags) != 0 ? tagged_frames() : std::vector<uint64_t>{});
  SlowRecorder slow(spec);
  std::vector<measure::Arrival> burst;
  uint64_t now_ns = 0;
  const auto deliver = [&] {
    if (!burst.empty()) recorder.record(burst.data(), static_cast<uint32_t>(burst.size()), now_ns);
    burst.clear();
  };
  for (const TraceEntry& entry : trace) {
    if (entry.after > 0 || burst.size() == measure::StreamRecorder::kMaxArrivals) deliver();
    now_ns += uint64_t{entry.after} * 1024;
    if (!is_ours(entry.tag)) continue;
    burst.push_back({entry.tag.sequence(), entry.tag.stamp_ns()});
    slow.record(burst.back(), now_ns);
  }
  deliver();
  recorder.finish(kFrames);
  slow.compare(recorder);
}

}  // namespace
}  // namespace dutperf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using dutperf::fuzz::TraceEntry;
  if (size < 1 + sizeof(TraceEntry)) return 0;
  std::vector<TraceEntry> trace((size - 1) / sizeof(TraceEntry));
  std::memcpy(trace.data(), data + 1, trace.size() * sizeof(TraceEntry));
  dutperf::fuzz::check(data[0], trace);
  return 0;
}
