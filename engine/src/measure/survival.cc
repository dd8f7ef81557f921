#include "measure/survival.h"

#include <algorithm>
#include <bit>

namespace dutperf::measure {
namespace {

// The first number from `from` on, up to `end`, that did not fare like the others of its run.
uint64_t run_end(const SequenceTracker& tracker, uint64_t from, uint64_t end, bool arrived) {
  while (from < end) {
    const uint64_t word = tracker.seen_word(from / 64);
    const uint64_t bits = (arrived ? word : ~word) >> (from % 64);
    // At most up to the end of the word: zeros were shifted in.
    const auto run = static_cast<uint64_t>(std::countr_one(bits));
    from += run;
    if (run == 0 || from % 64 != 0) break;
  }
  return std::min(from, end);
}

void add_received(uint64_t begin, uint64_t end, Survival& survival) {
  while (begin < end) {
    const uint64_t block = begin / survival.block_frames;
    const uint64_t border = std::min(end, (block + 1) * survival.block_frames);
    survival.received[block] += border - begin;
    begin = border;
  }
}

}  // namespace

Survival survival_of(const SequenceTracker& tracker, uint64_t intended, uint64_t sent,
                     uint64_t blocks) {
  Survival survival;
  survival.block_frames = std::max<uint64_t>((intended + blocks - 1) / blocks, 1);
  survival.received.resize((intended + survival.block_frames - 1) / survival.block_frames);
  for (uint64_t next = 0; next < sent;) {
    const uint64_t lost = run_end(tracker, next, sent, true);
    add_received(next, lost, survival);
    next = run_end(tracker, lost, sent, false);
    if (next == lost) continue;
    if (survival.lost_ranges.size() < kMaxLostRanges) {
      survival.lost_ranges.emplace_back(lost, next - lost);
    } else {
      ++survival.more_ranges;
    }
  }
  return survival;
}

}  // namespace dutperf::measure
