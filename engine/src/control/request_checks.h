// Whether the ports that are open can carry what a trial asks for: before its first frame. All
// throw ProtocolError, which says what to change.
#pragma once

#include <optional>
#include <string>

#include "control/messages.h"
#include "control/open_ports.h"

namespace dutperf::control {

void check_tags(const TrialRequest& request, const OpenPorts& open);
void check_paths(const TrialRequest& request, const OpenPorts& open);
// Sizes, and the memory that accounting for each frame takes.
void check_fits(const TrialRequest& request, const OpenPorts& open);

// Gives the streams whose ends are bound the tables of their sides; `open`: null if no port is.
void bind_ends(TrialRequest& request, const OpenPorts* open);

// Splits the trial in as many shares as the ports have queues for; one, and why, if what it records
// or sends cannot be put together from several.
std::optional<std::string> split(dataplane::TrialSpec& spec, const OpenPorts& open);

}  // namespace dutperf::control
