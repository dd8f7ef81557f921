#include "control/port_report.h"

#include <optional>

#include "kernel/attribution.h"
#include "kernel/counters.h"
#include "kernel/driver_counters.h"

namespace dutperf::control {
namespace {

using dataplane::Side;

dpdk::PortCounters difference(const dpdk::PortCounters& before, const dpdk::PortCounters& after) {
  const bool told = before.kernel && after.kernel;
  return {after.rx_frames - before.rx_frames,
          after.tx_frames - before.tx_frames,
          after.rx_missed - before.rx_missed,
          after.rx_errors - before.rx_errors,
          after.rx_nombuf - before.rx_nombuf,
          after.tx_errors - before.tx_errors,
          kernel::rise(before.pauses, after.pauses),
          told ? std::optional(kernel::rise(*before.kernel, *after.kernel)) : std::nullopt};
}

// Says in the report what the kernel counted at the port's interface, and on whose account.
void attribute(const dpdk::Port& port, const dpdk::PortCounters& during, PortReport& report) {
  if (!during.kernel) return;
  const kernel::Attribution found =
      kernel::attribute(*during.kernel, port.attachment().value(), report.foreign);
  report.interface_drops = found.receive;
  report.send_drops = found.send;
  report.damaged_on_wire = found.damaged;
}

}  // namespace

PortReport port_report(Side side, const dpdk::Port& port, const PortSnapshot& before,
                       const PortSnapshot& after, const dataplane::ReceiveReport& received,
                       const dataplane::StreamRecorders& recorders) {
  PortReport report{};
  report.side = side;
  report.before = before.counters;
  report.after = after.counters;
  report.neighbour_requests = received.neighbour_requests;
  report.neighbour_conflicts = received.neighbour_conflicts;
  report.foreign = received.foreign;
  report.icmp = received.icmp;
  report.answers = received.answers;
  report.stale = received.stale;
  report.misdirected = received.misdirected;
  report.other_vlan = received.other_vlan;
  report.fragments = received.fragments;
  report.reassembled = received.reassembled;
  report.incomplete = received.incomplete;
  for (const measure::StreamRecorder& recorder : recorders) report.damaged += recorder.damaged();
  report.damaged[net::Damage::kTruncated] += received.cut_short;
  attribute(port, difference(report.before, report.after), report);
  return report;
}

measure::PortFacts facts_of(const PortReport& report, const dpdk::Port& port,
                            const PortSnapshot& before, const PortSnapshot& after,
                            const dataplane::ReceiveReport& received) {
  const dpdk::PortCounters during = difference(report.before, report.after);
  return {name_of(report.side), before.link.up, after.link.up,
          before.link.changes != after.link.changes, port.flow_control() == dpdk::FlowControl::kOn,
          // A port that does not obey pause frames counts them all the same.
          port.flow_control() == dpdk::FlowControl::kOff
              ? 0
              : kernel::pause_frames_received(during.pauses),
          during.rx_missed, during.rx_errors, during.rx_nombuf, during.tx_errors,
          received.cut_short, report.interface_drops, report.send_drops, report.damaged_on_wire,
          report.neighbour_conflicts};
}

}  // namespace dutperf::control
