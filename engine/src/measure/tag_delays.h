// The exact delays of tagged frames (RFC 8219 7.2): of the frames from `first` on, `count`, spread
// evenly. Which ones they are follows from their number, so no mark on the wire is needed: tag j is
// frame first + floor(j * span / count).
#pragma once

#include <cstdint>
#include <vector>

#include "measure/arrival.h"

namespace dutperf::measure {

struct TagSpread {
  uint64_t first = 0;
  uint64_t span = 0;   // frames from `first` to the end of the stream
  uint64_t count = 0;  // at most `span`; 0: no tags

  uint64_t sequence_of(uint64_t tag) const {
    return first + static_cast<uint64_t>((unsigned __int128){tag} * span / count);
  }
  // The first tag whose frame is `sequence` or a later one; `count` when there is none.
  uint64_t tag_from(uint64_t sequence) const {
    if (sequence <= first) return 0;
    const auto scaled = (unsigned __int128){sequence - first} * count;
    const uint64_t tag = static_cast<uint64_t>((scaled + span - 1) / span);
    return tag < count ? tag : count;
  }
};

class TagDelays {
 public:
  static constexpr uint64_t kLost = UINT64_MAX;

  void reset(const TagSpread& spread) {
    spread_ = spread;
    delays_ns_.assign(spread.count, kLost);
    gap_first_ = 0;
    gap_frames_ = spread.count == 0 ? UINT64_MAX : spread.first;
  }

  void record(const Arrival* arrivals, const uint64_t* delays_ns, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      // Nearly all frames lie between the tag that came last and the next one.
      const uint64_t sequence = arrivals[i].sequence;
      if (sequence - gap_first_ >= gap_frames_) [[unlikely]]
        record_slow(sequence, delays_ns[i]);
    }
  }

  // After the trial: forgets the tags that were not sent, all from frame `sent` on.
  void finish(uint64_t sent) {
    if (spread_.count > 0) delays_ns_.resize(spread_.tag_from(sent));
  }

  // One for each tag, in the order of sending; kLost when it did not arrive.
  const std::vector<uint64_t>& delays_ns() const { return delays_ns_; }

 private:
  void record_slow(uint64_t sequence, uint64_t delay_ns) {
    const uint64_t tag = spread_.tag_from(sequence);
    if (tag < spread_.count && spread_.sequence_of(tag) == sequence) delays_ns_[tag] = delay_ns;
    const uint64_t next_tag = spread_.tag_from(sequence + 1);
    const uint64_t next = next_tag < spread_.count ? spread_.sequence_of(next_tag) : UINT64_MAX;
    gap_first_ = sequence + 1;
    gap_frames_ = next - gap_first_;
  }

  TagSpread spread_;
  std::vector<uint64_t> delays_ns_;
  uint64_t gap_first_ = 0;
  uint64_t gap_frames_ = UINT64_MAX;
};

}  // namespace dutperf::measure
