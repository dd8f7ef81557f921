// Are the time stamp counters fit to be one clock? They must run at a constant rate in every power
// state (invariant), and those of different CPUs must tell the same time, because a frame that one
// worker stamps is received by another.
//
// The offset between two CPUs is measured by asking: a question leaves at t1, the other CPU answers
// with its own time, the answer is here at t2. So the offset lies between (answer - t2) and
// (answer - t1); many rounds narrow that, and a preempted round is merely loose.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace dutperf::timing {

// False also where the CPU does not say, as in virtual machines that hide the flag.
bool tsc_is_invariant();

// The twelve letters by which a hypervisor names itself; empty without one.
std::string hypervisor();
// Whether that is an emulation whose counter is the host's clock, though no flag says so.
bool counts_by_host(std::string_view hypervisor);

struct OffsetBounds {
  int64_t lowest = INT64_MIN;
  int64_t highest = INT64_MAX;

  // Narrows the bounds by one round.
  void narrow(uint64_t asked, uint64_t answer, uint64_t heard);
  // Farthest from zero that is possible, and that is certain.
  uint64_t possible() const;
  uint64_t certain() const;
};

class SynchronyProbe {
 public:
  static constexpr uint64_t kRounds = 5000;

  // Runs on the other CPU, at the same time as `ask`; both end after kRounds or when `patience`
  // ticks are over.
  void answer(uint64_t patience_tsc);
  OffsetBounds ask(uint64_t patience_tsc);

 private:
  alignas(64) std::atomic<uint64_t> question_{0};
  alignas(64) std::atomic<uint64_t> answered_{0};
  std::atomic<uint64_t> answer_tsc_{0};
};

}  // namespace dutperf::timing
