// Which losses the tester may have caused itself: of the frames that stood in the shadow of its own
// stalls (measure/shadow_watch.h), those that are missing, and no more of them than the shadows can
// have cost. The verdict excuses the device so many.
//
//   lost_in_shadow()   stream by stream, within what each shadow can have cost
//   share_bursts()     then over all directions: a burst costs no frame twice
#pragma once

#include <cstdint>
#include <vector>

#include "control/messages.h"
#include "dataplane/trial_spec.h"
#include "measure/sequence_tracker.h"
#include "measure/shadow_watch.h"

namespace dutperf::control {

// Of a stream's lost frames those that were due while a shadow lay on the direction that may lose
// frames, and no more than it can have cost: what is left of that stays in `shadows` for the next
// stream. With a window nobody knows any more which ones were lost: as many as there can be.
// Of several shares it is asked of each, with its shadows, its tracker, and what it has sent.
uint64_t lost_in_shadow(const dataplane::DirectionSpec& direction, size_t stream,
                        dataplane::Share share, std::vector<measure::Shadow>& shadows,
                        const measure::SequenceTracker& tracker, uint64_t sent);

// A burst that both directions suffered from costs no frame of each: when the directions' losses in
// shadows are more than all bursts together can have cost, each is excused its share of that.
void share_bursts(std::vector<DirectionResult>& directions);

}  // namespace dutperf::control
