// The result of one direction of a trial: what its sender did, and what arrived of each stream at
// the other side. Reads the workers' reports, judges nothing.
#pragma once

#include "control/messages.h"
#include "dataplane/trial_run.h"
#include "timing/clock.h"

namespace dutperf::control {

// Finishes the recorders of the receiving side. The result points to histograms of `run`, which
// outlives it. REQUIRES: `run` has been joined.
DirectionResult direction_result(const TrialRequest& request, dataplane::Side from,
                                 dataplane::TrialRun& run, const timing::TscClock& clock);

}  // namespace dutperf::control
