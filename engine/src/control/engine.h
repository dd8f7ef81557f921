// The protocol's methods. Owns everything that lives from trial to trial: the ports, their buffers,
// what is known of the neighbours, and the table of learned four-tuples.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "control/announcer.h"
#include "control/learned_table.h"
#include "control/messages.h"
#include "control/monitor.h"
#include "control/open_ports.h"
#include "control/pcap.h"
#include "control/port_report.h"
#include "dataplane/trial_run.h"
#include "dpdk/eal.h"
#include "dpdk/port.h"
#include "timing/clock.h"

namespace dutperf::control {

class Engine {
 public:
  // Throws dpdk::SetupError.
  explicit Engine(const dpdk::EalOptions& options);

  Json hello() const;
  Json open_ports(const Json& params, Monitor& monitor);
  Json port_status() const;
  Json set_neighbours(const Json& params, Monitor& monitor);
  Json run_trial(const Json& params, Monitor& monitor);
  Json preview(const Json& params) const;
  Json drop_table();

  // For idle times: keeps the device's neighbour entries alive and the receive queues empty.
  void idle();

 private:
  struct Snapshot {
    std::vector<PortSnapshot> ports;
    std::vector<kernel::InputQueue> input_queues;
  };

  OpenPorts& open() const;
  Snapshot snapshot() const;
  uint64_t own_input_queue_drops(const TrialResult& result) const;
  void add_ports(const dataplane::TrialRun& run, const Announcer& announcer, const Snapshot& before,
                 const Snapshot& after, TrialResult& result, measure::TrialFacts& facts);
  void write_announcements(const std::vector<Announcement>& announcements, PcapWriter& pcap) const;
  void fill_in_macs(TrialRequest& request) const;
  void fill_in_macs(std::vector<Announcement>& announcements) const;
  uint64_t until(uint64_t tsc) const;
  // Serves the monitor until the run has ended; stops it when it is lost and the spec says so.
  void watch(dataplane::TrialRun& run, const dataplane::TrialSpec& spec, Announcer& announcer,
             Monitor& monitor);
  void look_at_links() const;
  void carry_slow_paths();
  uint64_t since_start_ns(const dataplane::TrialRun& run) const;
  void stop_if_lost(dataplane::TrialRun& run, const dataplane::TrialSpec& spec) const;

  dpdk::EalOptions options_;
  timing::TscCalibration calibration_;  // while DPDK starts
  dpdk::Eal eal_;
  timing::TscClock clock_;
  uint64_t clock_offset_ns_ = 0;  // what two workers' clocks may be apart at most
  std::unique_ptr<OpenPorts> open_;
  LearnedTable table_;
};

}  // namespace dutperf::control
