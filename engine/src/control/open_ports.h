// The tester's ports while they are open: as many on either side, with what the control thread has
// of each, and what the workers have of each side.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "control/announcer.h"
#include "control/neighbours.h"
#include "control/port_messages.h"
#include "control/slow_path.h"
#include "dataplane/trial_run.h"
#include "dpdk/port.h"

namespace dutperf::control {

struct OpenPort {
  PortId id;
  std::unique_ptr<dpdk::Port> port;
  std::unique_ptr<SlowPath> slow_path;  // null: it has none
};

struct OpenPorts {
  // Throws ProtocolError or dpdk::SetupError.
  explicit OpenPorts(const PortsOpenParams& params);

  // Drivers that do not copy frames hold buffers of the pools below until their port is closed.
  ~OpenPorts();
  OpenPorts(const OpenPorts&) = delete;
  OpenPorts& operator=(const OpenPorts&) = delete;

  size_t of_side() const { return ports.size() / dataplane::kSides; }
  // REQUIRES of these two: there is one.
  const dpdk::Port& port(const PortId& id) const {
    return *ports[dataplane::index_of(id.side) * of_side() + id.number].port;
  }
  dataplane::PortResources& resources(const PortId& id) const {
    return *sides[dataplane::index_of(id.side)]->ports[id.number];
  }
  bool has_slow_path() const;
  Announcer announcer(const std::vector<Announcement>& announcements) const;

  const uint64_t shares;  // for so many the ports have queues
  std::vector<std::unique_ptr<dpdk::RingPair>> rings;
  std::vector<OpenPort> ports;  // in the order of their ids
  std::array<std::unique_ptr<dataplane::SideResources>, dataplane::kSides> sides;
  std::unique_ptr<Neighbours> neighbours;
  // Whose B4s each side is; null: none's.
  std::array<std::shared_ptr<const net::BindingTable>, dataplane::kSides> bindings;
};

}  // namespace dutperf::control
