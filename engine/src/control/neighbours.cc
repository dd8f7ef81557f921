#include "control/neighbours.h"

#include <algorithm>
#include <chrono>

#include "net/classify.h"

namespace dutperf::control {
namespace {

using Clock = std::chrono::steady_clock;
using dataplane::kBothSides;
using dataplane::Side;

constexpr auto kAskAgain = std::chrono::milliseconds(100);
constexpr uint32_t kBurst = 32;

uint64_t ns_since(Clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

}  // namespace

void Neighbours::set(const NeighboursParams& params) {
  timeout_ns_ = params.timeout_ns;
  for (const Side side : kBothSides) {
    const size_t i = dataplane::index_of(side);
    sides_[i]->own.ranges = params.sides[i].own;
    next_hops_[i] = params.sides[i].resolve;
    known_[i].clear();
  }
}

std::vector<ResolvedNeighbour> Neighbours::resolve(Monitor& monitor) {
  drain();  // what came before is not about this trial
  const Clock::time_point start = Clock::now();
  std::vector<ResolvedNeighbour> result;
  for (const Side side : kBothSides) {
    known_[dataplane::index_of(side)].clear();
    conflicts_[dataplane::index_of(side)] = 0;
    for (const net::IpAddress& ip : next_hops_[dataplane::index_of(side)]) {
      result.push_back({side, ip, std::nullopt, 0});
    }
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
      neighbour.mac = find(neighbour.side, neighbour.ip);
      neighbour.duration_ns = ns_since(start);
      all_known = all_known && neighbour.mac.has_value();
      if (!neighbour.mac && ask_now) ask(neighbour.side, neighbour.ip);
    }
    if (!all_known && !monitor.wait(-1, 1)) break;
  }
  return result;
}

bool Neighbours::serve(uint64_t duration_ns, Monitor& monitor) {
  const Clock::time_point start = Clock::now();
  drain();
  while (ns_since(start) < duration_ns) {
    const uint64_t left_ms = (duration_ns - ns_since(start)) / 1'000'000;
    if (!monitor.wait(-1, static_cast<int>(std::clamp<uint64_t>(left_ms, 1, 5)))) return false;
    drain();
  }
  return true;
}

void Neighbours::drain() {
  for (const Side side : kBothSides) {
    dpdk::Mbuf* mbufs[kBurst];
    // Bounded: a device that floods the tester must not hold the control thread.
    for (int bursts = 0; bursts < 1024; ++bursts) {
      const uint32_t count = ports_[dataplane::index_of(side)]->rx().receive(mbufs, kBurst);
      if (count == 0) break;
      for (uint32_t i = 0; i < count; ++i) {
        handle(side, dpdk::frame_of(mbufs[i]), dpdk::size_of(mbufs[i]));
      }
      dpdk::free_frames(mbufs, count);
    }
    SlowPath* const slow_path = slow_paths_[dataplane::index_of(side)];
    if (slow_path != nullptr) slow_path->send_waiting();
  }
}

std::optional<net::Mac> Neighbours::find(Side side, const net::IpAddress& ip) const {
  const auto& known = known_[dataplane::index_of(side)];
  const auto entry = std::find_if(known.begin(), known.end(),
                                  [&](const net::NeighbourAnswer& each) { return each.ip == ip; });
  return entry == known.end() ? std::nullopt : std::optional(entry->mac);
}

uint64_t Neighbours::conflicts(Side side) const { return conflicts_[dataplane::index_of(side)]; }

// The first answer of a next hop stays: a claim that nobody asked for must not lead the trial's
// frames astray, nor a storm of them fill memory.
void Neighbours::learn(Side side, const net::NeighbourAnswer& answer) {
  const auto& asked = next_hops_[dataplane::index_of(side)];
  const bool is_asked = std::find(asked.begin(), asked.end(), answer.ip) != asked.end();
  if (is_asked && !find(side, answer.ip)) known_[dataplane::index_of(side)].push_back(answer);
}

// Asked from the side's first own address of the same version.
void Neighbours::ask(Side side, const net::IpAddress& target) {
  const size_t i = dataplane::index_of(side);
  const auto& ranges = sides_[i]->own.ranges;
  const auto own = std::find_if(ranges.begin(), ranges.end(), [&](const net::AddressRange& range) {
    return range.first.version == target.version;
  });
  if (own == ranges.end()) return;
  uint8_t frame[net::kTaggedNeighbourFrameBytes];
  const size_t size = net::write_request(own->first, ports_[i]->mac(), target, frame);
  ports_[i]->send_copy(frame, sides_[i]->own.vlan.put_in(frame, size));
}

void Neighbours::handle(Side side, uint8_t* frame, size_t size) {
  const net::VlanTags& vlan = sides_[dataplane::index_of(side)]->own.vlan;
  const net::FrameKind kind = net::classify_behind(vlan, frame, size).kind;
  const bool neighbour = kind == net::FrameKind::kNeighbour;
  if (!neighbour && kind != net::FrameKind::kForeign) return;
  if (!vlan.stand_in(frame, size)) return;
  const uint16_t vlan_id = net::VlanTags::id_in(frame);
  size = vlan.take_out(frame, size);
  if (neighbour) {
    handle_message(side, frame, size, vlan_id);
  } else {
    hand_on(side, frame, size);
  }
}

void Neighbours::handle_message(Side side, uint8_t* frame, size_t size, uint16_t vlan_id) {
  const size_t i = dataplane::index_of(side);
  const auto claim = net::parse_claim(frame, size);
  if (claim && net::contradicts(*claim, sides_[i]->own, known_[i])) ++conflicts_[i];
  if (const auto answer = net::parse_answer(frame, size)) learn(side, *answer);
  uint8_t reply[net::kTaggedNeighbourFrameBytes];
  const size_t reply_size = net::write_reply(frame, size, sides_[i]->own, reply);
  if (reply_size == 0) {
    hand_on(side, frame, size);
    return;
  }
  ports_[i]->send_copy(reply, sides_[i]->own.vlan.put_in(reply, reply_size, vlan_id));
}

void Neighbours::hand_on(Side side, const uint8_t* frame, size_t size) {
  SlowPath* const slow_path = slow_paths_[dataplane::index_of(side)];
  if (slow_path != nullptr) slow_path->give(frame, size);
}

}  // namespace dutperf::control
