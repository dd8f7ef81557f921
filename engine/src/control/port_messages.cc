#include "control/port_messages.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "control/limits.h"

namespace dutperf::control {
namespace {

using control::to_json;  // not hidden by the ones in here
using dataplane::Side;

constexpr std::array<std::pair<const char*, dpdk::Driver>, 7> kDrivers = {{
    {"af_packet", dpdk::Driver::kAfPacket},
    {"af_xdp", dpdk::Driver::kAfXdp},
    {"pci", dpdk::Driver::kPci},
    {"memif", dpdk::Driver::kMemif},
    {"vdev", dpdk::Driver::kVirtual},
    {"ring", dpdk::Driver::kRing},
    {"null", dpdk::Driver::kNull},
}};

dpdk::Driver parse_driver(ObjectReader& reader) {
  const std::string name = reader.text("driver");
  for (const auto& [known, driver] : kDrivers) {
    if (name == known) return driver;
  }
  reader.refuse("driver", "is none of af_packet, af_xdp, pci, memif, vdev, ring, null");
}

const char* driver_name(dpdk::Driver driver) {
  for (const auto& [name, known] : kDrivers) {
    if (driver == known) return name;
  }
  return "unknown";
}

kernel::TapOptions parse_tap(const Json& json, const std::string& where) {
  ObjectReader reader(json, where);
  kernel::TapOptions options{reader.text("network_namespace"), reader.text("interface")};
  constexpr size_t kMostBytes = 15;  // of an interface's name
  if (options.interface.empty() || options.interface.size() > kMostBytes) {
    reader.refuse("interface", "must have 1 to 15 characters");
  }
  reader.finish();
  return options;
}

// `side_key`: the key of the side.
PortId parse_port_id(ObjectReader& reader, const std::string& side_key) {
  const Side side = parse_side(reader, side_key);
  return {side, static_cast<uint8_t>(reader.number_or("number", 0, 0, dataplane::kMaxPorts - 1))};
}

PortToOpen parse_port(const Json& json, const std::string& where) {
  ObjectReader reader(json, where);
  const PortId id = parse_port_id(reader, "name");
  dpdk::PortOptions options;
  // In DPDK's names of devices and memory there are no spaces.
  options.name = name_of(id.side) + (id.number == 0 ? "" : std::to_string(id.number + 1));
  options.driver = parse_driver(reader);
  options.device = reader.text_or("device", "");
  options.mac = reader.mac_or_none("mac");
  const std::string role = reader.text_or("memif_role", "client");
  if (role != "server" && role != "client") reader.refuse("memif_role", "must be server or client");
  options.memif_server = role == "server";
  options.memif_id = static_cast<uint32_t>(reader.number_or("memif_id", 0, 0, UINT32_MAX));
  options.memif_ring_frames =
      static_cast<uint32_t>(reader.number_or("memif_ring_frames", 4096, 64, 16384));
  if (!std::has_single_bit(options.memif_ring_frames)) {
    reader.refuse("memif_ring_frames", "must be a power of 2");
  }
  const std::string when_full = reader.text_or("when_full", "wait");
  if (when_full != "wait" && when_full != "lose") {
    reader.refuse("when_full", "must be wait or lose");
  }
  options.when_full = when_full == "lose" ? dpdk::WhenFull::kLose : dpdk::WhenFull::kWait;
  options.in_flight_frames =
      static_cast<uint32_t>(reader.number_or("in_flight_frames", 16384, 64, 32768));
  if (!std::has_single_bit(options.in_flight_frames)) {
    reader.refuse("in_flight_frames", "must be a power of 2");
  }
  options.mtu = static_cast<uint16_t>(reader.number_or("mtu", 1500, 68, 9702));
  options.vlan = reader.vlan_or_none("vlan");
  options.labels = reader.labels_or_none("mpls");
  options.outer = reader.encapsulation_or_none("encapsulation");
  if (options.outer.bytes() > 0 && options.labels.bytes() > 0) {
    reader.refuse("encapsulation", "does not go with mpls");
  }
  // The kernel takes the outermost tag off what a packet socket receives, and DPDK puts 802.1Q's
  // back, whatever it was.
  const bool is_socket = options.driver == dpdk::Driver::kAfPacket;
  if (is_socket && options.vlan.bytes() > 0 && !options.vlan.begin_with_8021q()) {
    reader.refuse("vlan", "must begin with TPID 33024 (0x8100): af_packet receives no other");
  }
  options.rx_queues =
      static_cast<uint16_t>(reader.number_or("rx_queues", 1, 1, dpdk::kMostRxQueues));
  options.rx_descriptors =
      static_cast<uint16_t>(reader.number_or("rx_descriptors", 8192, 64, 32768));
  options.tx_descriptors =
      static_cast<uint16_t>(reader.number_or("tx_descriptors", 4096, 64, 32768));
  if (reader.has("tap") && !reader.at("tap").is_null())
    options.tap = parse_tap(reader.at("tap"), reader.path("tap"));
  std::shared_ptr<const net::BindingTable> bindings = reader.bindings_or_none("bindings");
  if (bindings && id.number > 0) reader.refuse("bindings", "are for the first port of a side");
  reader.finish();
  return {id, options, std::move(bindings)};
}

// As many on either side, each number once; the frames of a side are all of one kind.
void check_ports(const ObjectReader& reader, const std::vector<PortToOpen>& ports) {
  const size_t pairs = ports.size() / dataplane::kSides;
  for (size_t i = 0; i < ports.size(); ++i) {
    const PortId& id = ports[i].id;
    const bool in_place = dataplane::index_of(id.side) == i / pairs && id.number == i % pairs;
    if (ports.size() % dataplane::kSides != 0 || !in_place) {
      reader.refuse("ports", "must be as many on the left as on the right, numbered from 0 on");
    }
    const dpdk::PortOptions& own = ports[i].options;
    const dpdk::PortOptions& first = ports[i - id.number].options;
    if (own.vlan != first.vlan || own.labels != first.labels || own.outer != first.outer ||
        own.when_full != first.when_full) {
      reader.refuse("ports",
                    "of a side must have the same vlan, mpls, encapsulation and when_full");
    }
  }
}

net::AddressRange parse_range(const Json& json, const std::string& where) {
  ObjectReader reader(json, where);
  net::AddressRange range;
  range.first = reader.ip("first");
  range.count = static_cast<uint32_t>(reader.number_or("count", 1, 1, 65536));
  range.shift = static_cast<uint32_t>(reader.number_or("shift", 0, 0, 127));
  reader.finish();
  return range;
}

Json to_json(const std::map<std::string, uint64_t>& counters) {
  Json list = Json::array();
  for (const auto& [name, count] : counters) list.push_back({{"name", name}, {"count", count}});
  return list;
}

Json to_json(const kernel::InterfaceCounters& counters) {
  return {{"rx_missed", counters.rx_missed},
          {"rx_fifo", counters.rx_fifo},
          {"rx_over", counters.rx_over},
          {"rx_nohandler", counters.rx_nohandler},
          {"rx_dropped", counters.rx_dropped},
          {"rx_crc", counters.rx_crc},
          {"rx_frame", counters.rx_frame},
          {"rx_length", counters.rx_length},
          {"tx_errors", counters.tx_errors},
          {"tx_dropped", counters.tx_dropped},
          {"queue_dropped", counters.queue_dropped},
          {"driver", to_json(counters.driver)},
          {"socket_full", counters.socket_full},
          {"xdp_dropped", counters.xdp_dropped},
          {"xdp_ring_full", counters.xdp_ring_full},
          {"xdp_fill_ring_empty", counters.xdp_fill_ring_empty}};
}

const char* flow_control_name(dpdk::FlowControl flow_control) {
  switch (flow_control) {
    case dpdk::FlowControl::kOn: return "on";
    case dpdk::FlowControl::kOff: return "off";
    case dpdk::FlowControl::kUnknown: return "unknown";
  }
  return "unknown";
}

}  // namespace

Side parse_side(ObjectReader& reader, const std::string& key) {
  const std::string name = reader.text(key);
  if (name != "left" && name != "right") reader.refuse(key, "must be left or right");
  return name == "left" ? Side::kLeft : Side::kRight;
}

std::string name_of(Side side) { return side == Side::kLeft ? "left" : "right"; }

std::string name_of(const PortId& id) {
  return name_of(id.side) + (id.number == 0 ? "" : " " + std::to_string(id.number + 1));
}

Json of_port(const char* key, const PortId& id, Json json) {
  json[key] = name_of(id.side);
  if (id.number > 0) json["number"] = id.number;
  return json;
}

Json to_json(const dpdk::PortCounters& counters) {
  return {{"rx_frames", counters.rx_frames},
          {"tx_frames", counters.tx_frames},
          {"rx_missed", counters.rx_missed},
          {"rx_errors", counters.rx_errors},
          {"rx_nombuf", counters.rx_nombuf},
          {"tx_errors", counters.tx_errors},
          {"pauses", to_json(counters.pauses)},
          {"kernel", counters.kernel ? to_json(*counters.kernel) : Json()}};
}

PortsOpenParams parse_ports_open(const Json& params) {
  ObjectReader reader(params, "");
  PortsOpenParams result;
  const Json& ports = reader.array("ports", 2, dataplane::kSides * dataplane::kMaxPorts);
  for (size_t i = 0; i < ports.size(); ++i) {
    result.ports.push_back(parse_port(ports[i], element("ports", i)));
  }
  std::sort(result.ports.begin(), result.ports.end(),
            [](const PortToOpen& a, const PortToOpen& b) { return a.id < b.id; });
  check_ports(reader, result.ports);
  result.shares = reader.number_or("shares", 1, 1, dataplane::kMaxShares);
  for (PortToOpen& port : result.ports) {
    port.options.tx_queues = static_cast<uint16_t>(result.shares);
    port.options.rx_queues = std::max(port.options.rx_queues, port.options.tx_queues);
  }
  result.link_timeout_ns = reader.number_or("link_timeout_ns", 5'000'000'000, 0, kMaxNs);
  reader.finish();
  return result;
}

NeighboursParams parse_neighbours(const Json& params) {
  ObjectReader reader(params, "");
  NeighboursParams result;
  result.timeout_ns = reader.number_or("timeout_ns", 3'000'000'000, 0, kMaxNs);
  const Json& ports = reader.array("ports", 0, dataplane::kSides * dataplane::kMaxPorts);
  for (size_t i = 0; i < ports.size(); ++i) {
    ObjectReader port(ports[i], element("ports", i));
    PortNeighbours neighbours;
    neighbours.port = parse_port_id(port, "port");
    for (const PortNeighbours& earlier : result.ports) {
      if (earlier.port == neighbours.port) port.refuse("port", "stands twice");
    }
    const Json& own = port.array("own", 0, 65536);
    for (size_t k = 0; k < own.size(); ++k) {
      neighbours.own.push_back(parse_range(own[k], element(port.path("own"), k)));
    }
    const Json& resolve = port.array("resolve", 0, 65536);
    for (size_t k = 0; k < resolve.size(); ++k) {
      const auto ip =
          net::IpAddress::parse(resolve[k].is_string() ? resolve[k].get<std::string>() : "");
      if (!ip) port.refuse(element("resolve", k), "is not an IP address");
      neighbours.resolve.push_back(*ip);
    }
    port.finish();
    result.ports.push_back(std::move(neighbours));
  }
  reader.finish();
  return result;
}

Json to_json(const net::SegmentPath& path) {
  Json segments = Json::array();
  for (const net::IpAddress& segment : path.segments) segments.push_back(segment.text());
  return {{"segments", segments},
          {"segments_left", path.left},
          {"reduced", path.reduced},
          {"tag", path.tag}};
}

Json to_json(const net::Encapsulation& outer) {
  const net::TunnelEnds& ends = outer.ends();
  const auto compared = [&](size_t bits) { return std::min(bits, 8 * ends.local.size()); };
  Json json = {{"local", ends.local.text()},
               {"remote", ends.remote.text()},
               {"local_bits", compared(ends.local_bits)},
               {"remote_bits", compared(ends.remote_bits)},
               {"ttl", ends.ttl},
               {"flow_label", ends.flow_label}};
  switch (ends.kind) {
    case net::Tunnel::kNone: return {};
    case net::Tunnel::kIp: json["kind"] = "ip"; break;
    case net::Tunnel::kGre: json["kind"] = "gre"; break;
    case net::Tunnel::kVxlan:
      json["kind"] = "vxlan";
      json["vni"] = ends.vni;
      json["src_port"] = ends.src_port;
      json["inner_mac"] = ends.inner_mac.text();
      break;
    case net::Tunnel::kSrv6:
      json["kind"] = "srv6";
      json["srh"] = to_json(ends.sent);
      json["received_srh"] = to_json(ends.received);
      break;
  }
  return json;
}

Json to_json(const PortStatus& status) {
  Json vlan = Json::array();
  for (const net::VlanTag& tag : status.options.vlan.list()) {
    vlan.push_back({{"tpid", tag.tpid},
                    {"id", tag.id},
                    {"pcp", tag.pcp},
                    {"last_id", tag.last_id ? Json(*tag.last_id) : Json()}});
  }
  Json labels = Json::array();
  for (const net::MplsLabel& label : status.options.labels.list()) {
    labels.push_back({{"label", label.label}, {"tc", label.tc}, {"ttl", label.ttl}});
  }
  return of_port(
      "name", status.id,
      {{"driver", driver_name(status.options.driver)},
       {"device", status.options.device},
       {"mac", status.mac.text()},
       {"link_up", status.link.up},
       {"link_speed_mbps", status.link.speed_mbps ? Json(*status.link.speed_mbps) : Json()},
       {"full_duplex", status.link.full_duplex},
       {"flow_control", flow_control_name(status.flow_control)},
       {"numa_node", status.numa_node >= 0 ? Json(status.numa_node) : Json()},
       {"mtu", status.mtu},
       {"vlan", vlan},
       {"mpls", labels},
       {"encapsulation", to_json(status.options.outer)},
       {"in_flight_frames", status.in_flight_frames ? Json(*status.in_flight_frames) : Json()},
       {"dpdk_name", status.dpdk_name},
       {"counters", to_json(status.counters)}});
}

Json to_json(const ResolvedNeighbour& neighbour) {
  return of_port("port", neighbour.port,
                 {{"ip", neighbour.ip.text()},
                  {"mac", neighbour.mac ? Json(neighbour.mac->text()) : Json()},
                  {"duration_ns", neighbour.duration_ns}});
}

}  // namespace dutperf::control
