// The known-answer device: two paths, a router or a wire between them, and the trials' accounts.
// With several pairs of ports the router chooses one of the other side's, and there is a wire for
// each pair.
//
// `Io` as in path.h, and: uint32_t receive(size_t port, Frame*, uint32_t). Ports: port_index().
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "dns64_server.h"
#include "gateway.h"
#include "map_translator.h"
#include "path.h"
#include "ports.h"
#include "router.h"

namespace dutperf::refdut {

// Of up to kPairs pairs of ports. With one nothing is asked, frame by frame, about others.
template <typename Io, size_t kPairs = 1>
class Device {
 public:
  using Frame = typename Io::Frame;
  using Path = refdut::Path<Io, kPairs>;

  // `macs`: of its ports, of no more pairs than kPairs. `frames_held`: for each direction.
  Device(Io& io, std::span<const net::Mac> macs, size_t frames_held)
      : io_(io),
        macs_(macs.begin(), macs.end()),
        pairs_(macs.size() / 2),
        book_(pairs_),
        paths_{Path(io, book_, kForward, frames_held), Path(io, book_, kReverse, frames_held)} {
    looked_ns_.fill(io.now_ns());
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Throws control::ProtocolError, and goes on as before, when its ports are too few or too many.
  void configure(const Behaviour& behaviour) {
    require_pairs(behaviour, pairs_);
    const uint64_t now_ns = io_.now_ns();
    if (behaviour.routing) {
      router_.reset();
      routing_ = *behaviour.routing;
      if (routing_.on) router_.emplace(routing_, macs_);
      if (!routing_.on) server_.reset();
    }
    if (router_) router_->agent().behave(behaviour.agent);
    if (behaviour.nat) {
      gateway_.reset();
      if (*behaviour.nat) gateway_.emplace(**behaviour.nat, behaviour.seed);
    }
    if (behaviour.dns64) {
      server_.reset();
      if (*behaviour.dns64 && router_) server_.emplace(**behaviour.dns64, routing_);
    }
    if (behaviour.vlan) vlan_ = *behaviour.vlan;
    if (behaviour.encapsulation) {
      outer_ = *behaviour.encapsulation;
      for (const size_t side : {0U, 1U}) {
        relays_[side].reset();
        if (behaviour.edges[side]) relays_[side].emplace(*behaviour.edges[side]);
      }
    }
    if (behaviour.translation) {
      for (const size_t side : {0U, 1U}) {
        const auto& own = (*behaviour.translation)[side];
        translators_[side].reset();
        if (own) translators_[side].emplace(*own);
      }
    }
    for (Path& path : paths_) path.settle();
    for (const Direction d : {kForward, kReverse}) {
      const auto& relay = relays_[1 - d];
      paths_[d].leave_with(vlan_[1 - d], outer_[1 - d], relay ? &*relay : nullptr);
      paths_[d].take_hops(router_ ? 1 : 0);
      paths_[d].configure(behaviour.directions[d], behaviour.seed, now_ns);
    }
  }

  // Looks at all ports once; true when there was a frame.
  bool step() {
    if (gateway_) gateway_->tick(io_.now_ns());
    const bool forward = step(kForward);
    return step(kReverse) || forward;
  }

  // None when the device is no gateway.
  Gateway* gateway() { return gateway_ ? &*gateway_ : nullptr; }
  uint64_t now_ns() const { return io_.now_ns(); }

  bool holds_frames() const { return paths_[0].held() + paths_[1].held() > 0; }

  // Call when nothing has come for a while.
  void idle() { book_.prepare_next(); }

  Json report(const Asked& asked = {}) {
    for (Path& path : paths_) path.settle();
    Json json = {{"schema_version", 1}, {"trials", book_.to_json(asked)}};
    for (const Direction d : {kForward, kReverse}) {
      const OtherCounts& others = paths_[d].others();
      json["device"][kDirectionNames[d]] = {
          {"other_frames", others.seen},
          {"other_dropped", other_dropped_[d]},
          {"other_dropped_of_nobody", of_nobody_[d]},
          {"other_dropped_of_another", of_another_[d]},
          {"other_dropped_by_rule", others.dropped_by_rule},
          {"other_dropped_by_queue", others.dropped_by_queue},
          {"other_dropped_too_big", others.dropped_too_big},
          {"other_incomplete", others.incomplete},
          {"other_copies", others.copies},
          {"other_left", others.left},
          {"other_failed", others.failed},
          {"other_pieces", piece_counts_json(others.pieces)},
          {"other_rules", rule_counts_json(paths_[d].other_rules())},
          {"other_failures", paths_[d].other_failures()},
          {"held", paths_[d].held()}};
    }
    if (router_) json["agent"] = router_->agent().report();
    if (gateway_) json["nat"] = gateway_->report(io_.now_ns());
    if (server_) json["dns64"] = server_->report();
    return json;
  }

 private:
  static constexpr uint32_t kBurst = 32;

  // Round and round from the port behind the first that had frames the last time: where they are
  // withheld, none lets more in than the others.
  bool step(Direction direction) {
    if constexpr (kPairs == 1) return step(direction, 0);
    bool any = false;
    size_t number = first_[direction];
    for (size_t i = 0; i < pairs_; ++i) {
      const bool had_frames = step(direction, number);
      number = number + 1 < pairs_ ? number + 1 : 0;
      if (had_frames && !any) first_[direction] = number;
      any |= had_frames;
    }
    return any;
  }

  // The direction's frames come in on the side of the same number, here by one of its ports.
  bool step(Direction direction, size_t number) {
    Path& path = paths_[direction];
    const size_t port = port_index(direction, number);
    const uint64_t polled_ns = io_.now_ns();
    path.release(polled_ns);
    Frame frames[kBurst];
    const auto wanted = static_cast<uint32_t>(std::min<uint64_t>(kBurst, path.room(polled_ns)));
    const uint32_t count = wanted > 0 ? io_.receive(port, frames, wanted) : 0;
    // Before the other clock, as it is read behind it where frames leave: what keeps the device
    // from its CPU between two readings makes this residence time longer, never shorter.
    if (count > 0) path.witness(io_.raw_ns());
    // After the poll: told from an earlier time, a frame would leave before its delay is over.
    const uint64_t now_ns = count > 0 ? io_.now_ns() : polled_ns;
    for (uint32_t i = 0; i < count; ++i) {
      handle(direction, number, frames[i], now_ns, now_ns - looked_ns_[port]);
    }
    if (count < wanted) looked_ns_[port] = polled_ns;  // nothing was left behind
    path.send();
    return count > 0;
  }

  void handle(Direction direction, size_t number, Frame frame, uint64_t now_ns, uint64_t gap_ns) {
    if (!take_tags(direction, frame) || !take_outer(direction, frame)) return;
    if (server_ && !serve(direction, number, frame, now_ns)) return;
    auto classified = net::classify(io_.bytes(frame), io_.size(frame));
    const bool is_test = classified.kind == net::FrameKind::kTest;
    Way way;
    if constexpr (kPairs > 1) way.in = way.out = static_cast<uint8_t>(number);
    // A NIC hashes what it receives, not what the device makes of it.
    if (is_test) way.queue = paths_[direction].queue_of(io_.bytes(frame), classified);
    if (router_) {
      switch (router_->handle(port_index(direction, number), io_.bytes(frame), io_.size(frame))) {
        case Router::Verdict::kForward:
          if constexpr (kPairs > 1) way.out = router_->leaves_by();
          break;
        case Router::Verdict::kReply: answer(direction, way, frame, now_ns); return;
        case Router::Verdict::kDrop:
          drop(direction, way, frame, classified, now_ns, LossCause::kRouting);
          return;
      }
      if (gateway_ && !translate(direction, way, frame, now_ns)) {
        drop(direction, way, frame, classified, now_ns, LossCause::kNat);
        return;
      }
      if (!translate_edges(direction, way, frame)) {
        drop(direction, way, frame, classified, now_ns, LossCause::kNat);
        return;
      }
      if (gateway_ || translators_[0] || translators_[1]) {
        classified = net::classify(io_.bytes(frame), io_.size(frame));
      }
    }
    if (!has_edge(direction, frame)) {
      drop(direction, way, frame, classified, now_ns, LossCause::kRouting);
    } else if (!has_room(direction, frame)) {
      drop(direction, way, frame, classified, now_ns, LossCause::kTooBig);
    } else if (is_test) {
      paths_[direction].arrive(frame, classified, way, now_ns, gap_ns);
    } else if (is_other_packet(frame, classified)) {
      paths_[direction].arrive_other(frame, way, now_ns);
    } else {
      paths_[direction].pass(frame, way, now_ns);
    }
  }

  // Queries and answers of DNS. False: the frame goes no further.
  bool serve(Direction direction, size_t number, Frame frame, uint64_t now_ns) {
    const auto verdict =
        server_->handle(direction, io_.bytes(frame), io_.size(frame), io_.room(frame));
    if (verdict == Dns64Server::Verdict::kDrop) {
      ++other_dropped_[direction];
      io_.free(frame);
      return false;
    }
    if (verdict == Dns64Server::Verdict::kNotOurs) return true;
    io_.set_size(frame, server_->bytes());
    if (verdict == Dns64Server::Verdict::kOnward) return true;
    paths_[1 - direction].pass(frame, {.out = static_cast<uint8_t>(number)}, now_ns);
    return false;
  }

  // False, and the frame is gone, when it has others than those of the side where it came in.
  bool take_tags(Direction direction, Frame frame) {
    const net::VlanTags& vlan = vlan_[direction];
    if (vlan.bytes() == 0) return true;
    const bool carries =
        io_.size(frame) >= sizeof(net::EthernetHeader) + net::VlanTags::kMaxBytes &&
        vlan.stand_in(io_.bytes(frame));
    if (!carries) {
      ++other_dropped_[direction];
      io_.free(frame);
      return false;
    }
    io_.set_size(frame, vlan.take_out(io_.bytes(frame), io_.size(frame)));
    return true;
  }

  // False, and the frame is gone, when it is a test frame without the outer headers that those of
  // the side have, or not of the customer edge that it says; neighbours, and who asks the device
  // itself, go without.
  bool take_outer(Direction direction, Frame frame) {
    const net::Encapsulation& outer = outer_[direction];
    if (outer.bytes() == 0) return true;
    uint8_t* const bytes = io_.bytes(frame);
    const size_t size = io_.size(frame);
    constexpr size_t kLeast = sizeof(net::EthernetHeader) + sizeof(net::Ipv4Header);
    const bool carries = size >= kLeast + outer.received_bytes() &&
                         outer.stands_at(bytes + offsetof(net::EthernetHeader, ether_type));
    if (carries && is_from_its_edge(direction, bytes, size)) {
      io_.set_size(frame, outer.take_out(bytes, size));
    } else if (carries || net::classify(bytes, size).kind == net::FrameKind::kTest) {
      ++other_dropped_[direction];
      io_.free(frame);
      return false;
    }
    return true;
  }

  // A border relay takes nothing else (RFC 7597 8.1, RFC 7596 6.2).
  bool is_from_its_edge(Direction direction, const uint8_t* bytes, size_t size) {
    if (!relays_[direction]) return true;
    const uint8_t* const outer = bytes + sizeof(net::EthernetHeader);
    const size_t before = sizeof(net::EthernetHeader) + outer_[direction].received_bytes();
    const Sender sender = relays_[direction]->sender_of(outer, bytes + before, size - before);
    of_nobody_[direction] += sender == Sender::kNobody;
    of_another_[direction] += sender == Sender::kAnother;
    return sender == Sender::kOwn;
  }

  // For what goes to a customer edge: there is one.
  bool has_edge(Direction direction, Frame frame) {
    const auto& relay = relays_[1 - direction];
    constexpr size_t kIp = sizeof(net::EthernetHeader);
    return !relay || (io_.size(frame) > kIp &&
                      relay->edge_for(io_.bytes(frame) + kIp, io_.size(frame) - kIp));
  }

  // For the outer headers that it gets where it leaves.
  bool has_room(Direction direction, Frame frame) {
    const uint32_t more = outer_[1 - direction].bytes();
    return more == 0 || io_.size(frame) + more <= io_.room(frame);
  }

  // What rules for others are about, of all that is no test frame: no ARP, no neighbour discovery.
  bool is_other_packet(Frame frame, const net::Classified& classified) {
    if (classified.kind == net::FrameKind::kNeighbour) return false;
    if (io_.size(frame) < sizeof(net::EthernetHeader)) return false;
    const uint16_t type =
        reinterpret_cast<const net::EthernetHeader*>(io_.bytes(frame))->ether_type;
    return type == net::kEtherTypeIpv4 || type == net::kEtherTypeIpv6;
  }

  // False when the frame goes no further.
  bool translate(Direction direction, Way& way, Frame frame, uint64_t now_ns) {
    const auto decision = gateway_->decide(direction, io_.bytes(frame), io_.size(frame), now_ns);
    switch (decision.kind) {
      case Gateway::Decision::Kind::kPass: return true;
      case Gateway::Decision::Kind::kDrop: return false;
      case Gateway::Decision::Kind::kRefuse:
        refuse(direction, way, frame, decision.flow, now_ns);
        return false;
      case Gateway::Decision::Kind::kTranslate: break;
    }
    if (decision.other.version == 6) way.id = decision.flow.id;
    io_.set_size(frame, translated_size(decision.flow, decision.other.version));
    return refdut::translate(decision.flow, decision.other, io_.bytes(frame));
  }

  // Tells who sent the frame, as a frame of its own.
  void refuse(Direction direction, Way way, Frame frame, const Flow& flow, uint64_t now_ns) {
    const size_t port = port_index(direction, way.in);
    if (!router_->refuse(port, gateway_->refusal(), flow, io_.bytes(frame))) return;
    if (const Frame reply = io_.blank(); reply != Frame{}) answer(direction, way, reply, now_ns);
  }

  // Likewise, for a border relay of MAP-T.
  bool translate_edges(Direction direction, Way& way, Frame frame) {
    const auto& from = translators_[direction];
    const auto& to = translators_[1 - direction];
    if (!from && !to) return true;
    const auto flow = read_flow(io_.bytes(frame), io_.size(frame));
    if (!flow) return false;
    const auto other = from ? from->from_edges(*flow) : to->to_edges(*flow);
    if (!other) return false;
    const size_t size = translated_size(*flow, other->version);
    if (size > io_.room(frame)) return false;
    if (size > io_.size(frame)) io_.set_size(frame, size);
    if (!refdut::translate(*flow, *other, io_.bytes(frame))) return false;
    io_.set_size(frame, size);
    if (other->version == 6) way.id = flow->id;
    return true;
  }

  void drop(Direction direction, Way way, Frame frame, const net::Classified& classified,
            uint64_t now_ns, LossCause cause) {
    if (classified.kind == net::FrameKind::kTest) {
      paths_[direction].refuse(frame, classified, way, now_ns, cause);
    } else {
      ++other_dropped_[direction];
      io_.free(frame);
    }
  }

  // The reply takes this buffer, mostly of the question, and leaves where that came in.
  void answer(Direction direction, Way way, Frame frame, uint64_t now_ns) {
    std::memcpy(io_.bytes(frame), router_->reply(), router_->reply_bytes());
    io_.set_size(frame, router_->reply_bytes());
    paths_[1 - direction].pass(frame, {.out = way.in}, now_ns);
  }

  Io& io_;
  std::vector<net::Mac> macs_;  // of all ports
  size_t pairs_;
  std::array<size_t, 2> first_{};  // the number of the port that is looked at first
  TrialBook book_;
  std::array<Path, 2> paths_;
  std::array<net::VlanTags, 2> vlan_;
  std::array<net::Encapsulation, 2> outer_;
  std::array<std::optional<BorderRelay>, 2> relays_;  // of these tunnels
  std::array<std::optional<MapTranslator>, 2> translators_;
  std::optional<Router> router_;
  std::optional<Gateway> gateway_;
  Routing routing_;
  std::optional<Dns64Server> server_;
  std::array<uint64_t, 2 * kPairs> looked_ns_{};  // by port
  std::array<uint64_t, 2> other_dropped_{};
  // Of these: by a border relay, for whose they are.
  std::array<uint64_t, 2> of_nobody_{};
  std::array<uint64_t, 2> of_another_{};
};

}  // namespace dutperf::refdut
