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

// `trial`: whose it is, its id and `exchange` known. The stream's draws are keyed by the trial's
// `seed` and the stream's id.
ParsedStream parse_stream(const Json& json, const std::string& where,
                          const dataplane::TrialSpec& trial, uint64_t seed);

// Refuses an enumeration that `frames` frames would exhaust.
void check_enumeration(const dataplane::StreamSpec& stream, uint64_t frames,
                       const std::string& where);

}  // namespace dutperf::control
