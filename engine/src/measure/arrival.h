// What a receiver hands to measurement: one received test frame.
#pragma once

#include <cstdint>

namespace dutperf::measure {

struct Arrival {
  uint64_t sequence;
  uint64_t sent_ns;  // the stamp: since the trial's start
};

}  // namespace dutperf::measure
