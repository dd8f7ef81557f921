// A NIC's clock for tests: its rate is not what it says, and wanders.
#pragma once

#include <cmath>
#include <cstdint>

#include "timing/port_clock.h"

namespace dutperf::timing::testing {

struct DriftingClock {
  double ticks_per_tsc = 0.4;
  uint64_t first_ticks = 1'000'000;
  uint64_t first_tsc = 0;
  double off_ppm = 0;     // of the rate, all the time
  double wander_ppm = 0;  // more, up and down
  double wander_tsc = 1;  // how long once up and down takes

  // The rate's integral, so a time has one tick and the other way round.
  uint64_t ticks_at(uint64_t tsc) const {
    const auto since = static_cast<double>(static_cast<int64_t>(tsc - first_tsc));
    const double turn = 2 * M_PI / wander_tsc;
    const double wandered = wander_ppm * 1e-6 / turn * (1 - std::cos(turn * since));
    const double ticks = ticks_per_tsc * (since * (1 + off_ppm * 1e-6) + wandered);
    return first_ticks + static_cast<uint64_t>(static_cast<int64_t>(std::llround(ticks)));
  }

  // The other way round, to a tick or two.
  uint64_t tsc_at(uint64_t ticks) const {
    uint64_t tsc = first_tsc;
    int64_t off = 1;
    for (int tries = 0; off != 0 && tries < 8; ++tries) {
      off = static_cast<int64_t>(ticks - ticks_at(tsc));
      const double step = std::trunc(static_cast<double>(off) / ticks_per_tsc);
      tsc += static_cast<uint64_t>(static_cast<int64_t>(step));
    }
    return tsc;
  }

  // One that takes so long, and reads in its middle.
  ClockReading read_at(uint64_t tsc, uint64_t window_tsc = 0) const {
    return {tsc, ticks_at(tsc + window_tsc / 2), tsc + window_tsc};
  }
};

}  // namespace dutperf::timing::testing
