// The input of stream_fuzz: one byte of options, then what arrived, tag after tag as on the wire.
#pragma once

#include "net/headers.h"

namespace dutperf::fuzz {

inline constexpr uint8_t kWithVariation = 1;
inline constexpr uint8_t kWithTags = 2;
inline constexpr uint8_t kWithWindow = 4;
inline constexpr uint8_t kWithDistance = 8;

struct TraceEntry {
  net::Be32 after;  // the entry before, in units of 1,024 ns; 0: came in the same burst
  net::WireTag tag;
};
static_assert(sizeof(TraceEntry) == 22);

}  // namespace dutperf::fuzz
