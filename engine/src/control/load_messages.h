// A direction's load over time (see dutperf/protocol/stream_messages.py): parsing of the request's
// steps, and when it was, by that load, that frames were lost or none arrived. Throws
// ProtocolError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "control/json.h"
#include "dataplane/trial_spec.h"
#include "measure/sequence_tracker.h"
#include "measure/silence_meter.h"
#include "timing/load.h"

namespace dutperf::control {

// Reads `rate_fps` and `steps`, and counts the frames of a trial of `duration_ns`.
void parse_load(ObjectReader& reader, uint64_t duration_ns, dataplane::DirectionSpec& direction);

// A stream's frames lost in a row. Times are those at which frames were due.
struct TimedLoss {
  measure::LossRun run;
  uint64_t begin_ns = 0;           // of the first lost one
  uint64_t last_ns = 0;            // of the last lost one
  std::optional<uint64_t> end_ns;  // of the next one, which arrived; none: none did
};

// `run` of the direction's `stream`, of which `sent` frames left; none when nothing was lost.
// `load` is the direction's.
std::optional<TimedLoss> timed(const dataplane::DirectionSpec& direction, const timing::Load& load,
                               size_t stream, const measure::LossRun& run, uint64_t sent);

Json to_json(const std::optional<TimedLoss>& loss);
Json to_json(const measure::Silence& silence);

}  // namespace dutperf::control
