// Ethernet flow control of a kernel interface (IEEE 802.3 annex 31B; ethtool -a and -A).
#pragma once

#include <optional>
#include <string>

namespace dutperf::kernel {

// Whether the interface obeys or sends pause frames; none: its driver tells nothing, as that of a
// virtual interface.
std::optional<bool> flow_control(const std::string& interface);

// Both ways, with the autonegotiation that it has. It stays so when the port is closed: to put it
// back would take the link down again. What cannot be set is told by `flow_control`.
void switch_flow_control_off(const std::string& interface);

}  // namespace dutperf::kernel
