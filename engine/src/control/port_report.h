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

// `never_sent`: frames with such numbers, of which nobody knows by which of several ports they
// came.
PortReport port_report(const PortId& id, const dpdk::Port& port, const PortSnapshot& before,
                       const PortSnapshot& after, const dataplane::PortArrivals& arrivals,
                       uint64_t never_sent);

// Of the report of the same snapshots.
measure::PortFacts facts_of(const PortReport& report, const dpdk::Port& port,
                            const PortSnapshot& before, const PortSnapshot& after,
                            const dataplane::PortArrivals& arrivals);

}  // namespace dutperf::control
