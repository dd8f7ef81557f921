// Which frames of a stream are tagged (RFC 8219 7.2): of those from `first` on, one in each of
// `count` equal strata, at a place in it that is drawn. So they are spread evenly, and no period of
// the device or of a varying field meets them always or never. A single one is frame `first`, at
// the time that RFC 2544 26.2 gives it.
//
// They follow from the trial's seed and their number, so no mark on the wire is needed, and both
// sides know them.
#pragma once

#include <cstdint>
#include <vector>

#include "vary/draw.h"

namespace dutperf::dataplane {

struct TagSpread {
  // Beside the groups of all other draws (see vary/index_draw.cc).
  static constexpr uint64_t kGroup = UINT32_MAX - 3;

  uint64_t first = 0;
  uint64_t span = 0;   // frames from `first` to the end of the stream
  uint64_t count = 0;  // at most `span`; 0: no tags
  uint64_t key = 0;

  // The first frame of a stratum. REQUIRES: there are tags; `stratum` is at most `count`.
  uint64_t begin_of(uint64_t stratum) const {
    return first + static_cast<uint64_t>((unsigned __int128){stratum} * span / count);
  }

  uint64_t sequence_of(uint64_t tag) const {
    const uint64_t begin = begin_of(tag);
    if (count == 1) return begin;
    const uint64_t frames = begin_of(tag + 1) - begin;
    return begin +
           static_cast<uint64_t>(((unsigned __int128){vary::draw(key, tag)} * frames) >> 64);
  }

  // All of them; they rise.
  std::vector<uint64_t> sequences() const {
    std::vector<uint64_t> result(count);
    for (uint64_t tag = 0; tag < count; ++tag) result[tag] = sequence_of(tag);
    return result;
  }
};

}  // namespace dutperf::dataplane
