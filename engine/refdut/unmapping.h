// The program's munmap() waits for the forwarding loop; unmapping.cc says why.
#pragma once

#include "rounds.h"

namespace dutperf::refdut {

// Those of the device's forwarding loop; munmap() waits for the end of the one that runs.
extern Rounds forwarding_rounds;

}  // namespace dutperf::refdut
