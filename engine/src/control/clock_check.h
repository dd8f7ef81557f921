// Before anything is measured: whether the CPUs' time stamp counters can be one clock. A frame that
// one worker stamps is received by another, so what their clocks are apart goes into every delay.
// The probe itself is timing/synchrony.h; here two workers at a time are made to run it.
#pragma once

#include <cstdint>
#include <vector>

#include "timing/clock.h"

namespace dutperf::control {

// Throws dpdk::SetupError when the counter's rate may change.
void check_invariant_clock();

// The largest offset between the first worker's clock and another's that cannot be ruled out.
// Throws dpdk::SetupError when one is certain. REQUIRES: the workers are idle.
uint64_t measure_clock_offset_ns(const std::vector<unsigned>& lcores,
                                 const timing::TscClock& clock);

}  // namespace dutperf::control
