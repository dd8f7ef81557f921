// The result of one direction of a trial: what its sender did, and what arrived of each stream at
// the other side. Reads the workers' reports, judges nothing.
#pragma once

#include "control/messages.h"
#include "dataplane/trial_run.h"
#include "timing/clock.h"

namespace dutperf::control {

// `recorders` are those of the receiving side; they are finished by it. The result points to
// histograms of `run`, which outlives it. REQUIRES: `run` has been joined.
DirectionResult direction_result(const TrialRequest& request, dataplane::Side from,
                                 const dataplane::TrialRun& run,
                                 dataplane::StreamRecorders& recorders,
                                 const timing::TscClock& clock);

}  // namespace dutperf::control
