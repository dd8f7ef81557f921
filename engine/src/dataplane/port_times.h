// What the NIC of a port can say of times, and be told.
//
// No port has one yet (docs/hardware.md): who opens one that does gives its resources a PortTimes,
// and that is all that the loops need to know. The tests do, with a NIC of their own.
#pragma once

#include <cstdint>
#include <optional>

#include "dpdk/frame_times.h"
#include "timing/port_clock.h"

namespace dutperf::dataplane {

// Without a field it is the loop's own time, as ever.
struct PortTimes {
  timing::PortClock::Read read;         // its clock; any thread may ask
  timing::ClockReading opened;          // when the port was opened
  std::optional<dpdk::TimeField> came;  // of received frames
  std::optional<dpdk::TimeField> due;   // of frames to send
  uint64_t lead_ns = 100'000;           // that long before it is due a frame is handed over

  timing::PortClock clock(const timing::TscClock& tsc) const { return {read, opened, tsc}; }
};

}  // namespace dutperf::dataplane
