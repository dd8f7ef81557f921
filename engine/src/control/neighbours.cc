#include "control/neighbours.h"

#include <algorithm>
#include <chrono>

#include "net/classify.h"

namespace dutperf::control {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kAskAgain = std::chrono::milliseconds(100);
constexpr uint32_t kBurst = 32;

uint64_t ns_since(Clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

}  // namespace

Neighbours::Neighbours(const std::vector<PortLink>& links) {
  for (const PortLink& link : links) links_.push_back({link, {}, {}, 0});
}

void Neighbours::set(const NeighboursParams& params) {
  timeout_ns_ = params.timeout_ns;
  for (Link& link : links_) {
    const auto told =
        std::find_if(params.ports.begin(), params.ports.end(),
                     [&](const PortNeighbours& each) { return each.port == link.id; });
    const PortNeighbours neighbours = told == params.ports.end() ? PortNeighbours{} : *told;
    link.resources->own.ranges = neighbours.own;
    link.next_hops = neighbours.resolve;
    link.known.clear();
  }
}

std::vector<ResolvedNeighbour> Neighbours::resolve(Monitor& monitor) {
  drain();  // what came before is not about this trial
  const Clock::time_point start = Clock::now();
  std::vector<ResolvedNeighbour> result;
  for (Link& link : links_) {
    link.known.clear();
    link.conflicts = 0;
    for (const net::IpAddress& ip : link.next_hops)
      result.push_back({link.id, ip, std::nullopt, 0});
  }
  Clock::time_point ask_at = start;
  bool all_known = false;
  while (!all_known && ns_since(start) <= timeout_ns_) {
    const bool ask_now = Clock::now() >= ask_at;
    if (ask_now) ask_at = Clock::now() + kAskAgain;
    drain();
    all_known = true;
    for (ResolvedNeighbour& neighbour : result) {
      if (neighbour.mac) continue;
      const Link& link = *link_of(neighbour.port);
      neighbour.mac = link.find(neighbour.ip);
      neighbour.duration_ns = ns_since(start);
      all_known = all_known && neighbour.mac.has_value();
      if (!neighbour.mac && ask_now) ask(link, neighbour.ip);
    }
    if (!all_known && !monitor.wait(-1, 1)) break;
  }
  return result;
}

bool Neighbours::serve(uint64_t duration_ns, Monitor& monitor) {
  const Clock::time_point start = Clock::now();
  drain();
  while (ns_since(start) < duration_ns && !monitor.stop_requested()) {
    const uint64_t left_ms = (duration_ns - ns_since(start)) / 1'000'000;
    if (!monitor.wait(-1, static_cast<int>(std::clamp<uint64_t>(left_ms, 1, 5)))) return false;
    drain();
  }
  return true;
}

void Neighbours::drain() {
  for (Link& link : links_) {
    for (uint16_t queue = 0; queue < link.port->rx().end; ++queue) drain(link, queue);
    if (link.slow_path != nullptr) link.slow_path->send_waiting();
  }
}

void Neighbours::drain(Link& link, uint16_t queue) {
  dpdk::Mbuf* mbufs[kBurst];
  // Bounded: a device that floods the tester must not hold the control thread.
  for (int bursts = 0; bursts < 1024; ++bursts) {
    const uint32_t count = link.port->rx().receive(queue, mbufs, kBurst);
    if (count == 0) break;
    for (uint32_t i = 0; i < count; ++i) {
      handle(link, dpdk::frame_of(mbufs[i]), dpdk::size_of(mbufs[i]));
    }
    dpdk::free_frames(mbufs, count);
  }
}

const Neighbours::Link* Neighbours::link_of(const PortId& port) const {
  const auto link =
      std::find_if(links_.begin(), links_.end(), [&](const Link& each) { return each.id == port; });
  return link == links_.end() ? nullptr : &*link;
}

std::optional<net::Mac> Neighbours::Link::find(const net::IpAddress& ip) const {
  const auto entry = std::find_if(known.begin(), known.end(),
                                  [&](const net::NeighbourAnswer& each) { return each.ip == ip; });
  return entry == known.end() ? std::nullopt : std::optional(entry->mac);
}

std::optional<net::Mac> Neighbours::find(const PortId& port, const net::IpAddress& ip) const {
  const Link* const link = link_of(port);
  return link == nullptr ? std::nullopt : link->find(ip);
}

uint64_t Neighbours::conflicts(const PortId& port) const {
  const Link* const link = link_of(port);
  return link == nullptr ? 0 : link->conflicts;
}

// The first answer of a next hop stays: a claim that nobody asked for must not lead the trial's
// frames astray, nor a storm of them fill memory.
void Neighbours::learn(Link& link, const net::NeighbourAnswer& answer) {
  const auto& asked = link.next_hops;
  const bool is_asked = std::find(asked.begin(), asked.end(), answer.ip) != asked.end();
  if (is_asked && !link.find(answer.ip)) link.known.push_back(answer);
}

// Asked from the port's first own address of the same version.
void Neighbours::ask(const Link& link, const net::IpAddress& target) {
  const net::OwnAddresses& addresses = link.resources->own;
  const auto& ranges = addresses.ranges;
  const auto own = std::find_if(ranges.begin(), ranges.end(), [&](const net::AddressRange& range) {
    return range.first.version == target.version;
  });
  if (own == ranges.end()) return;
  uint8_t frame[net::kTaggedNeighbourFrameBytes];
  const size_t size = net::write_request(own->first, link.port->mac(), target, frame);
  link.port->send_copy(frame, addresses.vlan.put_in(frame, size));
}

void Neighbours::handle(Link& link, uint8_t* frame, size_t size) {
  const net::VlanTags& vlan = link.resources->own.vlan;
  const net::FrameKind kind = net::classify_behind(vlan, frame, size).kind;
  const bool neighbour = kind == net::FrameKind::kNeighbour;
  if (!neighbour && kind != net::FrameKind::kForeign) return;
  if (!vlan.stand_in(frame, size)) return;
  const uint16_t vlan_id = net::VlanTags::id_in(frame);
  size = vlan.take_out(frame, size);
  if (neighbour) {
    handle_message(link, frame, size, vlan_id);
  } else {
    hand_on(link, frame, size);
  }
}

void Neighbours::handle_message(Link& link, uint8_t* frame, size_t size, uint16_t vlan_id) {
  const net::OwnAddresses& own = link.resources->own;
  const auto claim = net::parse_claim(frame, size);
  if (claim && net::contradicts(*claim, own, link.known)) ++link.conflicts;
  if (const auto answer = net::parse_answer(frame, size)) learn(link, *answer);
  uint8_t reply[net::kTaggedNeighbourFrameBytes];
  const size_t reply_size = net::write_reply(frame, size, own, reply);
  if (reply_size == 0) {
    hand_on(link, frame, size);
    return;
  }
  link.port->send_copy(reply, own.vlan.put_in(reply, reply_size, vlan_id));
}

void Neighbours::hand_on(const Link& link, const uint8_t* frame, size_t size) {
  if (link.slow_path != nullptr) link.slow_path->give(frame, size);
}

}  // namespace dutperf::control
