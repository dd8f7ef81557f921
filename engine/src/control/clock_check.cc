#include "control/clock_check.h"

#include <algorithm>
#include <string>

#include "dpdk/eal.h"
#include "dpdk/error.h"
#include "timing/synchrony.h"

namespace dutperf::control {
namespace {

constexpr uint64_t kPatienceNs = 500'000'000;

}  // namespace

void check_invariant_clock() {
  if (timing::tsc_is_invariant() || timing::counts_by_host(timing::hypervisor())) return;
  throw dpdk::SetupError(
      "this CPU does not promise a time stamp counter of constant rate (invariant TSC)",
      "rates and delays would be wrong: use another machine, or give the virtual machine the flag "
      "(qemu: -cpu host,+invtsc)");
}

uint64_t measure_clock_offset_ns(const std::vector<unsigned>& lcores,
                                 const timing::TscClock& clock) {
  constexpr uint64_t kToleratedNs = 1000;
  struct Question {
    timing::SynchronyProbe probe;
    timing::OffsetBounds bounds;
    uint64_t patience_tsc;
  };
  uint64_t possible_ns = 0;
  for (size_t i = 1; i < lcores.size(); ++i) {
    Question question;
    question.patience_tsc = clock.to_tsc(kPatienceNs);
    const auto ask = [](void* argument) {
      auto& self = *static_cast<Question*>(argument);
      self.bounds = self.probe.ask(self.patience_tsc);
      return 0;
    };
    const auto answer = [](void* argument) {
      auto& self = *static_cast<Question*>(argument);
      self.probe.answer(self.patience_tsc);
      return 0;
    };
    dpdk::Eal::launch(lcores[i], answer, &question);
    dpdk::Eal::launch(lcores[0], ask, &question);
    dpdk::Eal::wait(lcores[0]);
    dpdk::Eal::wait(lcores[i]);
    if (clock.to_ns(question.bounds.certain()) > kToleratedNs) {
      throw dpdk::SetupError(
          "the time stamp counters of the workers' CPUs are at least " +
              std::to_string(clock.to_ns(question.bounds.certain())) + " ns apart",
          "delays between them would be wrong: use one worker, or CPUs of one socket");
    }
    possible_ns = std::max(possible_ns, clock.to_ns(question.bounds.possible()));
  }
  return possible_ns;
}

}  // namespace dutperf::control
