// The control thread's side of neighbour discovery: finds the next hops' MACs, and answers the
// device's questions whenever no worker does (before, between and after trials). During a trial the
// receivers answer.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "control/messages.h"
#include "control/monitor.h"
#include "control/slow_path.h"
#include "dataplane/trial_run.h"
#include "dpdk/port.h"

namespace dutperf::control {

class Neighbours {
 public:
  using Ports = std::array<dpdk::Port*, dataplane::kSides>;
  using Sides = std::array<dataplane::SideResources*, dataplane::kSides>;
  using SlowPaths = std::array<SlowPath*, dataplane::kSides>;

  // `slow_paths`: null where a port has none.
  Neighbours(const Ports& ports, const Sides& sides, const SlowPaths& slow_paths)
      : ports_(ports), sides_(sides), slow_paths_(slow_paths) {}

  // Replaces own addresses and next hops; forgets all answers.
  void set(const NeighboursParams& params);

  // Asks every next hop again and waits for fresh answers, at most the timeout of `set`. The
  // questions are the learning frames of RFC 2544 C.2.4.1: the device learns the tester by them.
  std::vector<ResolvedNeighbour> resolve(Monitor& monitor);

  // Answers for `duration_ns`; false when the monitor wants to end.
  bool serve(uint64_t duration_ns, Monitor& monitor);

  // Handles what has arrived, and what the slow paths have to send; frames of no interest are
  // dropped.
  void drain();

  std::optional<net::Mac> find(dataplane::Side side, const net::IpAddress& ip) const;

  // Messages since `resolve` began by which a next hop has another MAC than it answered first, or
  // an own address is somebody else's.
  uint64_t conflicts(dataplane::Side side) const;

 private:
  void ask(dataplane::Side side, const net::IpAddress& target);
  void learn(dataplane::Side side, const net::NeighbourAnswer& answer);
  void handle(dataplane::Side side, uint8_t* frame, size_t size);
  // A message without VLAN tags, which are `vlan_id` and those of the side.
  void handle_message(dataplane::Side side, uint8_t* frame, size_t size, uint16_t vlan_id);
  void hand_on(dataplane::Side side, const uint8_t* frame, size_t size);

  Ports ports_;
  Sides sides_;
  SlowPaths slow_paths_;
  std::array<std::vector<net::IpAddress>, dataplane::kSides> next_hops_;
  uint64_t timeout_ns_ = 0;
  std::array<std::vector<net::NeighbourAnswer>, dataplane::kSides> known_;
  std::array<uint64_t, dataplane::kSides> conflicts_{};
};

}  // namespace dutperf::control
