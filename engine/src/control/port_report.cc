#include "control/port_report.h"

#include <optional>

#include "kernel/attribution.h"
#include "kernel/counters.h"
#include "kernel/driver_counters.h"

namespace dutperf::control {
namespace {

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

PortReport port_report(const PortId& id, const dpdk::Port& port, const PortSnapshot& before,
                       const PortSnapshot& after, const dataplane::PortArrivals& arrivals,
                       uint64_t never_sent) {
  PortReport report{};
  report.id = id;
  report.before = before.counters;
  report.after = after.counters;
  report.neighbour_requests = arrivals.neighbour_requests;
  report.neighbour_conflicts = arrivals.neighbour_conflicts;
  report.foreign = arrivals.foreign;
  report.icmp = arrivals.icmp;
  report.answers = arrivals.answers;
  report.stale = arrivals.stale;
  report.misdirected = arrivals.misdirected;
  report.untranslated = arrivals.untranslated;
  report.other_vlan = arrivals.other_vlan;
  report.fragments = arrivals.fragments;
  report.reassembled = arrivals.reassembled;
  report.incomplete = arrivals.incomplete;
  report.handed_over = arrivals.handed_over;
  report.not_taken_over = arrivals.not_taken_over;
  report.damaged = arrivals.damaged;
  report.damaged[net::Damage::kTruncated] += arrivals.cut_short;
  report.damaged[net::Damage::kNeverSent] += never_sent;
  attribute(port, difference(report.before, report.after), report);
  return report;
}

measure::PortFacts facts_of(const PortReport& report, const dpdk::Port& port,
                            const PortSnapshot& before, const PortSnapshot& after,
                            const dataplane::PortArrivals& arrivals) {
  const dpdk::PortCounters during = difference(report.before, report.after);
  return {name_of(report.id), before.link.up, after.link.up,
          before.link.changes != after.link.changes, port.flow_control() == dpdk::FlowControl::kOn,
          // A port that does not obey pause frames counts them all the same.
          port.flow_control() == dpdk::FlowControl::kOff
              ? 0
              : kernel::pause_frames_received(during.pauses),
          during.rx_missed, during.rx_errors, during.rx_nombuf, during.tx_errors,
          arrivals.cut_short, report.interface_drops, report.not_taken_over, report.send_drops,
          report.damaged_on_wire, report.neighbour_conflicts};
}

}  // namespace dutperf::control
