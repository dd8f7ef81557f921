// For tests that let frames arrive one by one.
#pragma once

#include "measure/sequence_tracker.h"

namespace dutperf::measure::testing {

// Whether it is here for the first time.
inline bool arrive(SequenceTracker& tracker, uint64_t sequence) {
  Arrival arrival{sequence, 0};
  return tracker.record(&arrival, 1) == 1;
}

}  // namespace dutperf::measure::testing
