// The control thread's side of neighbour discovery: finds the next hops' MACs, and answers the
// device's questions whenever no worker does (before, between and after trials). During a trial the
// receivers answer.
#pragma once

#include <optional>
#include <vector>

#include "control/messages.h"
#include "control/monitor.h"
#include "control/slow_path.h"
#include "dataplane/trial_run.h"
#include "dpdk/port.h"

namespace dutperf::control {

// What the control thread needs of a port.
struct PortLink {
  PortId id;
  dpdk::Port* port;
  dataplane::PortResources* resources;
  SlowPath* slow_path;  // null: it has none
};

class Neighbours {
 public:
  // What `links` names outlives it.
  explicit Neighbours(const std::vector<PortLink>& links);

  // Replaces own addresses and next hops; forgets all answers.
  void set(const NeighboursParams& params);

  // Asks every next hop again and waits for fresh answers, at most the timeout of `set`. The
  // questions are the learning frames of RFC 2544 C.2.4.1: the device learns the tester by them.
  std::vector<ResolvedNeighbour> resolve(Monitor& monitor);

  // Answers for `duration_ns`, or until the trial is stopped; false when the monitor wants to end.
  bool serve(uint64_t duration_ns, Monitor& monitor);

  // Handles what has arrived, and what the slow paths have to send; frames of no interest are
  // dropped.
  void drain();

  std::optional<net::Mac> find(const PortId& port, const net::IpAddress& ip) const;

  // Messages since `resolve` began by which a next hop has another MAC than it answered first, or
  // an own address is somebody else's.
  uint64_t conflicts(const PortId& port) const;

 private:
  struct Link : PortLink {
    std::vector<net::IpAddress> next_hops;
    std::vector<net::NeighbourAnswer> known;
    uint64_t conflicts = 0;

    std::optional<net::Mac> find(const net::IpAddress& ip) const;
  };

  static void drain(Link& link, uint16_t queue);
  const Link* link_of(const PortId& port) const;
  static void ask(const Link& link, const net::IpAddress& target);
  static void learn(Link& link, const net::NeighbourAnswer& answer);
  static void handle(Link& link, uint8_t* frame, size_t size);
  // A message without VLAN tags, which are `vlan_id` and those of the side.
  static void handle_message(Link& link, uint8_t* frame, size_t size, uint16_t vlan_id);
  static void hand_on(const Link& link, const uint8_t* frame, size_t size);

  std::vector<Link> links_;
  uint64_t timeout_ns_ = 0;
};

}  // namespace dutperf::control
