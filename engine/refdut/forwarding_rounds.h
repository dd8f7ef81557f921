// The rounds of the device's forwarding loop; munmap() waits for the end of the one that runs.
#pragma once

#include "rounds.h"

namespace dutperf::refdut {

// Has munmap() wait from now on.
Rounds& forwarding_rounds();

}  // namespace dutperf::refdut
