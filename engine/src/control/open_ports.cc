#include "control/open_ports.h"

#include <algorithm>

namespace dutperf::control {
namespace {

using dataplane::index_of;
using dataplane::kBothSides;
using dataplane::Side;

uint32_t max_frame_bytes(const dpdk::PortOptions& options) {
  return std::max<uint32_t>(2048, options.mtu + 64U);
}

}  // namespace

OpenPorts::OpenPorts(const PortsOpenParams& params) : shares(params.shares) {
  const auto is_ring = [](const PortToOpen& port) {
    return port.options.driver == dpdk::Driver::kRing;
  };
  const size_t pairs = params.ports.size() / dataplane::kSides;
  for (size_t i = 0; i < pairs; ++i) {
    if (is_ring(params.ports[i]) != is_ring(params.ports[pairs + i])) {
      throw ProtocolError(kInvalidParams, "ports: ring ports come in pairs");
    }
    rings.push_back(is_ring(params.ports[i]) ? std::make_unique<dpdk::RingPair>(i, params.shares)
                                             : nullptr);
  }
  uint32_t frame_bytes = 0;
  for (const PortToOpen& each : params.ports) {
    const dpdk::RingPair* const pair = rings[each.id.number].get();
    ports.push_back({each.id, std::make_unique<dpdk::Port>(each.options, pair), nullptr});
    frame_bytes = std::max(frame_bytes, max_frame_bytes(each.options));
    if (each.bindings) bindings[index_of(each.id.side)] = each.bindings;
  }
  for (const Side side : kBothSides) {
    std::vector<const dpdk::Port*> own;
    for (uint8_t i = 0; i < pairs; ++i) own.push_back(&port({side, i}));
    sides[index_of(side)] = std::make_unique<dataplane::SideResources>(own, frame_bytes);
  }
  std::vector<PortLink> links;
  for (OpenPort& each : ports) {
    dataplane::PortResources& own = resources(each.id);
    if (each.port->options().tap) each.slow_path = std::make_unique<SlowPath>(*each.port, own);
    links.push_back({each.id, each.port.get(), &own, each.slow_path.get()});
  }
  neighbours = std::make_unique<Neighbours>(links);
}

OpenPorts::~OpenPorts() {
  for (const OpenPort& each : ports) each.port->close();
}

Announcer OpenPorts::announcer(const std::vector<Announcement>& announcements) const {
  return Announcer(announcements, {ports[0].port.get(), ports[of_side()].port.get()},
                   {&resources({Side::kLeft, 0}), &resources({Side::kRight, 0})});
}

bool OpenPorts::has_slow_path() const {
  return std::any_of(ports.begin(), ports.end(),
                     [](const OpenPort& each) { return each.slow_path != nullptr; });
}

}  // namespace dutperf::control
