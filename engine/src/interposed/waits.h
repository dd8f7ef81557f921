// How often a driver has waited for room to send.
#pragma once

#include <cstdint>

namespace dutperf::interposed {

// By this thread, so far.
extern constinit thread_local uint32_t waits_for_room;

}  // namespace dutperf::interposed
