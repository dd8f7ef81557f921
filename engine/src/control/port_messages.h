// The protocol's messages about ports, as C++ values: opening them, what they count, whom they
// answer for. The Python side is src/dutperf/protocol/port_messages.py. Parsing throws
// ProtocolError.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/json.h"
#include "dataplane/trial_spec.h"
#include "dpdk/port.h"
#include "net/address.h"

namespace dutperf::control {

// One of the tester's ports: numbers count those of a side from 0.
struct PortId {
  dataplane::Side side = dataplane::Side::kLeft;
  uint8_t number = 0;

  auto operator<=>(const PortId&) const = default;
};

struct PortToOpen {
  PortId id;
  dpdk::PortOptions options;
  std::shared_ptr<const net::BindingTable> bindings;  // whose B4s are behind it; null: none's
};

struct PortsOpenParams {
  std::vector<PortToOpen> ports;  // in the order of their ids; as many on either side
  uint64_t shares = 1;            // for so many there are queues, both ways
  uint64_t link_timeout_ns = 0;
};

struct PortNeighbours {
  PortId port;
  std::vector<net::AddressRange> own;
  std::vector<net::IpAddress> resolve;
};

struct NeighboursParams {
  std::vector<PortNeighbours> ports;  // those that are not among them have none
  uint64_t timeout_ns = 0;
};

struct PortStatus {
  PortId id;
  dpdk::PortOptions options;
  net::Mac mac;
  dpdk::LinkState link;
  dpdk::FlowControl flow_control = dpdk::FlowControl::kUnknown;
  int numa_node = -1;
  uint16_t mtu = 0;
  std::string dpdk_name;
  std::optional<uint32_t> in_flight_frames;
  dpdk::PortCounters counters;
};

struct ResolvedNeighbour {
  PortId port;
  net::IpAddress ip;
  std::optional<net::Mac> mac;
  uint64_t duration_ns = 0;
};

PortsOpenParams parse_ports_open(const Json& params);
NeighboursParams parse_neighbours(const Json& params);
dataplane::Side parse_side(ObjectReader& reader, const std::string& key);

std::string name_of(dataplane::Side side);  // left, right
std::string name_of(const PortId& id);      // left, left 2, ...
// `json` with the port's side as the value of `key`, and its number unless that is 0.
Json of_port(const char* key, const PortId& id, Json json);
Json to_json(const dpdk::PortCounters& counters);
Json to_json(const PortStatus& status);
Json to_json(const ResolvedNeighbour& neighbour);

}  // namespace dutperf::control
