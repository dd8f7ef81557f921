// What the kernel tells of an interface and of its queue discipline, by netlink.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kernel/counters.h"

namespace dutperf::kernel {

using Bytes = std::span<const uint8_t>;

// Fills in what an answer to RTM_GETLINK says; false when there are no 64-bit counters in it.
bool parse_link(Bytes answer, InterfaceCounters& counters);
// What an answer to RTM_GETQDISC says the root discipline dropped; none: it does not say.
std::optional<uint32_t> parse_queue_drops(Bytes answer);

// Asks the kernel about the interface of this number; false when it does not tell.
bool read_interface(unsigned index, InterfaceCounters& counters);

}  // namespace dutperf::kernel
