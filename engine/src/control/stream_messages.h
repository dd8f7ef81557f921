// Parsing of what one stream's frames look like and what varies in them. Throws ProtocolError.
#pragma once

#include <cstdint>
#include <string>

#include "control/messages.h"

namespace dutperf::control {

struct ParsedStream {
  dataplane::StreamSpec spec;
  std::vector<PathAddressing> addressing;  // of each path
};

// `seed` is the trial's; the stream's draws are keyed by it and the stream's id.
ParsedStream parse_stream(const Json& json, const std::string& where, uint16_t trial_id,
                          uint64_t seed);

// Refuses an enumeration that `frames` frames would exhaust.
void check_enumeration(const dataplane::StreamSpec& stream, uint64_t frames,
                       const std::string& where);

}  // namespace dutperf::control
