#include "forwarding_rounds.h"

#include "interposed/unmapping.h"

namespace dutperf::refdut {
namespace {

constinit Rounds rounds;

// Some seconds. A loop that is stuck for longer reads no port, or never will again.
constexpr uint32_t kPatienceNaps = 50'000;

// Everyone who unmaps waits for less than a round.
void await_end_of_round() noexcept { rounds.await_end(kPatienceNaps); }

}  // namespace

Rounds& forwarding_rounds() {
  interposed::before_unmapping = await_end_of_round;
  return rounds;
}

}  // namespace dutperf::refdut
