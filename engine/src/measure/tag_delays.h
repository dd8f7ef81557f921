// The exact delays of tagged frames (RFC 8219 7.2), which are known by their number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "measure/arrival.h"

namespace dutperf::measure {

class TagDelays {
 public:
  static constexpr uint64_t kLost = UINT64_MAX;

  // `sequences` of the tagged frames rise.
  void reset(std::vector<uint64_t> sequences) {
    sequences_ = std::move(sequences);
    delays_ns_.assign(sequences_.size(), kLost);
    shaded_.clear();
    shaded_.reserve(sequences_.size());
    next_ = 0;
    open_gap(0);
  }

  // `shaded` ones stood in the shadow of one of the tester's stalls (shadow_watch.h).
  void record(const Arrival* arrivals, const uint64_t* delays_ns, uint32_t count, bool shaded) {
    for (uint32_t i = 0; i < count; ++i) {
      // Nearly all frames lie between the tag that came last and the next one.
      const uint64_t sequence = arrivals[i].sequence;
      if (sequence - gap_first_ >= gap_frames_) [[unlikely]]
        record_slow(sequence, delays_ns[i], shaded);
    }
  }

  // After the trial: forgets the tags that were not sent, all from frame `sent` on.
  void finish(uint64_t sent) {
    delays_ns_.resize(tag_from(sent));
    std::sort(shaded_.begin(), shaded_.end());
  }

  // In place of recording: what the shares of the same stream have, each of which has finished;
  // tags that were not sent are in none of them.
  void put_together(std::span<const TagDelays* const> shares) {
    std::vector<size_t> next(shares.size());
    std::vector<uint64_t> delays_ns;
    for (const uint64_t sequence : sequences_) {
      const uint64_t owner = sequence % shares.size();
      const TagDelays& share = *shares[owner];
      const size_t place = next[owner]++;
      if (place >= share.delays_ns_.size()) continue;
      if (std::binary_search(share.shaded_.begin(), share.shaded_.end(), place)) {
        shaded_.push_back(delays_ns.size());
      }
      delays_ns.push_back(share.delays_ns_[place]);
    }
    delays_ns_ = std::move(delays_ns);
  }

  // One for each tag, in the order of sending; kLost when it did not arrive.
  const std::vector<uint64_t>& delays_ns() const { return delays_ns_; }
  // Their places in that list, rising.
  const std::vector<uint64_t>& shaded() const { return shaded_; }

 private:
  // The first tag whose frame is `sequence` or a later one; their number when there is none.
  size_t tag_from(uint64_t sequence) const {
    const auto found = std::lower_bound(sequences_.begin(), sequences_.end(), sequence);
    return static_cast<size_t>(found - sequences_.begin());
  }

  void record_slow(uint64_t sequence, uint64_t delay_ns, bool shaded) {
    const bool expected = next_ < sequences_.size() && sequences_[next_] == sequence;
    if (!expected) next_ = tag_from(sequence);
    if (next_ < sequences_.size() && sequences_[next_] == sequence) {
      // Frames come here once each, so there is room for all.
      if (shaded) shaded_.push_back(next_);
      delays_ns_[next_++] = delay_ns;
    }
    open_gap(sequence + 1);
  }

  // From `first` to before the next tag.
  void open_gap(uint64_t first) {
    gap_first_ = first;
    gap_frames_ = (next_ < sequences_.size() ? sequences_[next_] : UINT64_MAX) - first;
  }

  std::vector<uint64_t> sequences_;
  std::vector<uint64_t> delays_ns_;
  std::vector<uint64_t> shaded_;
  size_t next_ = 0;  // the tag that ends the gap
  uint64_t gap_first_ = 0;
  uint64_t gap_frames_ = UINT64_MAX;
};

}  // namespace dutperf::measure
