// What a port saw during a trial: its counters before and after, what the kernel counted at the
// interface below it and on whose account that is, and what the receiver met there. Told twice: to
// the reader (PortReport), and to the verdict as differences over the trial (measure::PortFacts).
#pragma once

#include "control/messages.h"
#include "dataplane/receiver.h"
#include "dpdk/port.h"
#include "measure/verdict.h"

namespace dutperf::control {

struct PortSnapshot {
  dpdk::PortCounters counters;
  dpdk::LinkState link;
};

PortReport port_report(dataplane::Side side, const dpdk::Port& port, const PortSnapshot& before,
                       const PortSnapshot& after, const dataplane::ReceiveReport& received,
                       const dataplane::StreamRecorders& recorders);

// Of the report of the same snapshots.
measure::PortFacts facts_of(const PortReport& report, const dpdk::Port& port,
                            const PortSnapshot& before, const PortSnapshot& after,
                            const dataplane::ReceiveReport& received);

}  // namespace dutperf::control
