// The slow path of a port: to a program that speaks for the tester, a routing daemon, by a tap.
//
//   device -> port -> what is neither test traffic nor a question that the engine answers -> tap
//   device <- port <- whatever the program sends                                          <- tap
//
// While no worker uses the port the control thread passes frames itself (as `Neighbours` answers
// then); during a trial the port's receiver and sender do, through rings. What has no room is lost,
// as on any wire, and counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/trial_run.h"
#include "dpdk/port.h"
#include "kernel/tap.h"

namespace dutperf::control {

class SlowPath {
 public:
  struct Counts {
    uint64_t to_tap = 0;
    uint64_t from_tap = 0;
    uint64_t lost = 0;  // on either way
  };

  // Of a port that has a tap. Both outlive it. Throws dpdk::SetupError.
  SlowPath(dpdk::Port& port, dataplane::PortResources& resources);

  // REQUIRES of these two: no worker uses the port. A frame without VLAN tags.
  void give(const uint8_t* frame, size_t size);
  void send_waiting();
  // Passes on what waits at both ends while the workers run.
  void carry();

  // Since the last call.
  Counts take_counts();

 private:
  // Hands a frame of the tap to `send` until there is none, but no more than a ring holds: a
  // program that floods must not hold the control thread.
  template <typename Send>
  void each_waiting(Send&& send);

  dpdk::Port& port_;
  dataplane::PortResources& resources_;
  kernel::Tap tap_;
  Counts counts_;
};

}  // namespace dutperf::control
