// All that is recorded of one stream where it arrives: loss, duplicates and order, delays and their
// variation, tags, and when frames were lost. One pass over each burst; what a trial did not ask
// for is decided once per burst.
//
// Not thread safe: the receiving worker owns it; read after the trial.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "measure/arrival.h"
#include "measure/delay_variation.h"
#include "measure/delays.h"
#include "measure/sequence_tracker.h"
#include "measure/tag_delays.h"
#include "measure/time_series.h"
#include "net/damage.h"

namespace dutperf::measure {

// What to record of a trial, see the protocol's Record.
struct RecordSpec {
  std::vector<uint64_t> timeouts_ns;  // rising
  bool ipdv = false;
  uint64_t series_interval_ns = 100'000'000;
  uint64_t series_intervals = 1;
  uint64_t reordering_distance = 0;
  uint64_t tracking_bytes = UINT64_MAX;
};

class StreamRecorder {
 public:
  static constexpr uint32_t kMaxArrivals = 64;
  static_assert(kMaxArrivals <= Delays::kMaxBurst);

  // Bytes that recording takes, per stream; the histograms' few hundred KiB are left out.
  static uint64_t bytes_for(const RecordSpec& spec, uint64_t frames) {
    const uint64_t bits = std::min(SequenceTracker::bytes_for(frames), spec.tracking_bytes);
    return bits + (spec.ipdv ? 8 * DelayVariation::ring_for(frames) : 0);
  }

  // What it has of that already, from earlier trials.
  uint64_t held_bytes() const { return tracker_.held_bytes() + variation_.held_bytes(); }

  // Prepares for a trial; keeps memory of earlier ones. `tags` are the tagged frames, rising.
  // `queues`: by which they may come, each in its own order. `origin`: see Delays.
  void reset(const RecordSpec& spec, uint64_t frames, std::vector<uint64_t> tags, size_t paths = 1,
             size_t queues = 1, std::atomic<uint64_t>* origin = nullptr) {
    tracker_.reset(frames, spec.tracking_bytes, spec.reordering_distance, paths, queues);
    delays_.reset(spec.timeouts_ns, origin);
    tagged_ = !tags.empty();
    tags_.reset(std::move(tags));
    received_by_time_.reset(spec.series_interval_ns, spec.series_intervals);
    ipdv_ = spec.ipdv;
    if (ipdv_) variation_.reset(frames);
    damaged_ = {};
  }

  // `arrivals`, kMaxArrivals at most, came with one receive call that ended at `received_ns`.
  // Reorders them. `shaded`: they stood in the shadow of one of the tester's stalls.
  void record(Arrival* arrivals, uint32_t count, uint64_t received_ns, bool shaded = false,
              size_t queue = 0) noexcept {
    const uint32_t first = tracker_.record(arrivals, count, queue);
    received_by_time_.add_all(arrivals, first);
    uint64_t delays_ns[kMaxArrivals];
    const uint32_t timed = time(arrivals, first, received_ns, delays_ns);
    delays_.record(delays_ns, timed, shaded);
    if (ipdv_) variation_.record(arrivals, delays_ns, timed, shaded);
    if (tagged_) tags_.record(arrivals, delays_ns, timed, shaded);
  }

  void record_damaged(net::Damage damage) { ++damaged_[damage]; }

  // After the trial, given that the stream's frames 0 .. sent-1 left.
  void finish(uint64_t sent) {
    tracker_.finish(sent);
    tags_.finish(sent);
  }

  // In place of recording: what the shares of the stream have recorded, of whose frames the first
  // `sent` left. REQUIRES: reset for the whole stream, with their spec; no IPDV, no windows.
  void finish(std::span<StreamRecorder* const> shares, std::span<const uint64_t> sent) {
    std::vector<const SequenceTracker*> trackers;
    std::vector<const Delays*> delays;
    std::vector<const TagDelays*> tags;
    for (size_t i = 0; i < shares.size(); ++i) {
      StreamRecorder& share = *shares[i];
      share.finish(sent[i]);
      trackers.push_back(&share.tracker_);
      delays.push_back(&share.delays_);
      tags.push_back(&share.tags_);
      received_by_time_.add_all_of(share.received_by_time_);
      damaged_ += share.damaged_;
    }
    tracker_.finish(trackers, sent);
    delays_.put_together(delays);
    if (tagged_) tags_.put_together(tags);
  }

  const SequenceTracker& tracker() const { return tracker_; }
  const Delays& delays() const { return delays_; }
  const DelayVariation* variation() const { return ipdv_ ? &variation_ : nullptr; }
  const TagDelays* tags() const { return tagged_ ? &tags_ : nullptr; }
  const TimeSeries& received_by_time() const { return received_by_time_; }
  // None of them is received.
  net::DamageCounts damaged() const {
    net::DamageCounts result = damaged_;
    result[net::Damage::kNeverSent] = tracker_.impossible();
    return result;
  }

 private:
  // The delays of all that did not arrive before they left; those are moved to the front.
  uint32_t time(Arrival* arrivals, uint32_t count, uint64_t received_ns, uint64_t* delays_ns) {
    bool negative = false;
    for (uint32_t i = 0; i < count; ++i) {
      delays_ns[i] = received_ns - arrivals[i].sent_ns;
      negative |= arrivals[i].sent_ns > received_ns;
    }
    if (!negative) [[likely]]
      return count;
    uint32_t timed = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const Arrival arrival = arrivals[i];
      if (arrival.sent_ns > received_ns) [[unlikely]] {
        delays_.record_negative();
        continue;
      }
      delays_ns[timed] = received_ns - arrival.sent_ns;
      arrivals[timed++] = arrival;
    }
    return timed;
  }

  SequenceTracker tracker_;
  Delays delays_;
  DelayVariation variation_;
  TagDelays tags_;
  TimeSeries received_by_time_;
  bool tagged_ = false;
  bool ipdv_ = false;
  net::DamageCounts damaged_;
};

}  // namespace dutperf::measure
