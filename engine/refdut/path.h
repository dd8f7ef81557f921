// One direction of the device: from a frame's arrival to its departure.
//
//   arrive -> rules -> (parking) -> servers -> delay line -> outbox -> send      a test frame
//   arrive_other -> rules -> delay line -> outbox -> send                        an IP packet
//   pass -> outbox -> send                                                       anything else
//
// Where the link is narrower, a frame is cut on its way into the outbox. There is an outbox for
// each port of the side where frames leave; all the rest is the direction's.
//
// `Io` is the outside world: DPDK's ports and buffers, or a test's. One thread.
//
//   Frame                              a buffer that one owner frees; default: none
//   uint8_t* bytes(Frame); size_t size(Frame); size_t room(Frame); void set_size(Frame, size_t)
//   Frame keep(Frame)                  moves it to where it may stay long; none (and freed): no
//                                      room
//   Frame blank()                      a new one, which takes what a frame of a port does; none: no
//                                      room
//   Frame share(Frame)                 a second reference, freed apart
//   void free(Frame)
//   uint32_t transmit(size_t port, Frame*, uint32_t)   how many the port took; its port_index()
//   uint64_t now_ns(), raw_ns()        by the tester's clock, and by another (witness.h)
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "account.h"
#include "alteration.h"
#include "behaviour.h"
#include "damage.h"
#include "delay_line.h"
#include "fate.h"
#include "fragmentation.h"
#include "net/classify.h"
#include "outbox.h"
#include "parking.h"
#include "ports.h"
#include "servers.h"
#include "trial_book.h"
#include "waiting.h"

namespace dutperf::refdut {

// Of up to kPairs pairs of ports: with one it is known beforehand by which port a frame leaves.
template <typename Io, size_t kPairs>
class Path {
 public:
  using Frame = typename Io::Frame;

  Path(Io& io, TrialBook& book, Direction direction, size_t frames_held)
      : io_(io), book_(book), direction_(direction), line_(frames_held) {}

  void configure(const DirectionBehaviour& behaviour, uint64_t seed, uint64_t now_ns) {
    release_parked(now_ns);
    rules_ = Rules(behaviour.rules, seed, direction_);
    other_rules_ = rules_;  // counts of its own, which no trial resets
    servers_ = Servers(behaviour.service, behaviour.freezes);
    serves_others_ = behaviour.service && behaviour.service->others;
    fragments_ = behaviour.fragments;
    other_pieces_reached_ = 0;
    configured_ns_ = now_ns;
    run_ = 0;  // the next test frame starts all counts
    parkings_.clear();
    for (const Rule& rule : behaviour.rules) {
      const bool reorders = rule.action.kind == Action::Kind::kReorder;
      parkings_.push_back(reorders ? Parking<Waiting>(rule.action.distance) : Parking<Waiting>());
    }
  }

  // What frames leave with; they come without. `relay`, where there is one, has an edge for each,
  // and stays as long as the path.
  void leave_with(const net::VlanTags& vlan, const net::Encapsulation& outer,
                  const BorderRelay* relay) {
    vlan_ = vlan;
    outer_ = outer;
    relay_ = relay;
  }

  // How many hops have been taken of what arrives: a router's one.
  void take_hops(uint8_t hops) { hops_taken_ = hops; }

  // The receive queue that takes a test frame, as it came in.
  uint8_t queue_of(const uint8_t* frame, const net::Classified& classified) const {
    return servers_.queue_of(frame, classified.ip_version);
  }

  // A test frame came in; its port had last been looked at `gap_ns` ago.
  void arrive(Frame frame, const net::Classified& classified, Way way, uint64_t now_ns,
              uint64_t gap_ns) {
    Waiting waiting;
    waiting.way = way;
    TrialAccount& trial = recognise(frame, *classified.tag, now_ns, waiting);
    trial.directions[direction_].look(gap_ns);
    const Fate fate = rules_.decide(
        {waiting.stream, waiting.background, now_ns - trial.began_ns, now_ns - configured_ns_});
    if (fate.dropped_by != Fate::kNone) {
      lose(waiting, now_ns, LossCause::kRule);
    } else {
      meet(fate, classified, waiting, now_ns);
    }
    if (parked_ > 0) release_overtaken(now_ns);
  }

  // What arrives from now on has come at that time.
  void witness(uint64_t raw_ns) { arrival_raw_ns_ = raw_ns; }

  // How many frames may be fetched from the ports now.
  uint64_t room(uint64_t now_ns) { return servers_.room(now_ns); }

  // A test frame came in that router or gateway do not forward.
  void refuse(Frame frame, const net::Classified& classified, Way way, uint64_t now_ns,
              LossCause cause) {
    Waiting waiting;
    waiting.way = way;
    recognise(frame, *classified.tag, now_ns, waiting);
    lose(waiting, now_ns, cause);
  }

  // An IP packet came in that is no test frame. It takes service only where that is said.
  void arrive_other(Frame frame, Way way, uint64_t now_ns) {
    const Fate fate = other_rules_.decide(Facts::of_other(now_ns - configured_ns_));
    ++others_.seen;
    if (fate.dropped_by != Fate::kNone) {
      ++others_.dropped_by_rule;
      io_.free(frame);
      return;
    }
    const auto served =
        serves_others_ ? servers_.serve(0, now_ns) : std::optional<uint64_t>(now_ns);
    if (!served) {
      ++others_.dropped_by_queue;
      io_.free(frame);
      return;
    }
    others_.copies += fate.copies;
    put_headers(frame);
    Waiting waiting;
    waiting.frame = frame;
    waiting.way = way;
    waiting.arrival_ns = now_ns;
    waiting.due_ns = *served + fate.delay_ns;
    // All references before the first departs, as it may be freed or moved then.
    for (uint32_t i = 0; i < fate.copies; ++i) io_.share(frame);
    for (uint32_t i = 0; i <= fate.copies; ++i) dispatch(waiting, now_ns);
  }

  // Anything else leaves as it is, as soon as it can.
  void pass(Frame frame, Way way, uint64_t now_ns) {
    put_tags(frame);
    Waiting waiting;
    waiting.frame = frame;
    waiting.way = way;
    waiting.arrival_ns = waiting.due_ns = now_ns;
    ++others_.seen;
    dispatch(waiting, now_ns);
  }

  // Moves what is due to the outboxes. Where one of them is full, the rest waits in order.
  void release(uint64_t now_ns) {
    if (parked_ > 0) release_tired(now_ns);
    while (line_.next_due_ns() <= now_ns && !outbox_of(line_.next()).full()) {
      post(line_.take(), now_ns);
    }
  }

  // Gives the outboxes to their ports.
  void send() {
    for (size_t number = 0; number < kPairs; ++number) {
      if (outboxes_[number].size() > 0) send(number, outboxes_[number]);
    }
  }

  // The rules' counts of the trial that runs go into its account.
  void settle() {
    TrialAccount* trial = book_.find(run_);
    if (trial == nullptr) return;
    trial->directions[direction_].rules = rules_.counts();
    trial->directions[direction_].queues = servers_.counts();
  }

  const OtherCounts& others() const { return others_; }
  // Of the rules, since they were given.
  const std::vector<RuleCount>& other_rules() const { return other_rules_.counts(); }
  uint64_t held() const {
    uint64_t frames = line_.size() + parked_;
    for (const Outbox& outbox : outboxes_) frames += outbox.whole_frames();
    return frames;
  }
  // Failures that belong to no trial that is remembered, or to no test frame.
  uint64_t other_failures() const { return other_failures_; }

 private:
  static constexpr uint64_t kPatienceNs = 1'000'000'000;
  using Displacement = DirectionAccount::Displacement;

  using Outbox = refdut::Outbox<Frame>;
  using Waiting = refdut::Waiting<Frame>;

  TrialAccount& recognise(Frame frame, const net::WireTag& tag, uint64_t now_ns, Waiting& waiting) {
    waiting.frame = frame;
    waiting.arrival_ns = now_ns;
    waiting.arrival_raw_ns = arrival_raw_ns_;
    waiting.stream = tag.stream;
    waiting.background = (tag.flags & net::kTagFlagBackground) != 0;
    waiting.sequence = tag.sequence();
    const TestFrame seen{tag.trial, tag.stream, waiting.background, waiting.sequence};
    TrialAccount& trial = book_.of_frame(direction_, waiting.way.in, seen, now_ns);
    if (trial.run > run_) begin(trial, now_ns);
    waiting.run = trial.run;
    trial.last_ns = now_ns;
    trial.directions[direction_].see(waiting.way.in, seen);
    trial.directions[direction_].readings.look(io_.bytes(frame), io_.size(frame), seen.trial,
                                               seen.stream, seen.sequence);
    return trial;
  }

  void begin(const TrialAccount& trial, uint64_t now_ns) {
    settle();
    release_parked(now_ns);
    run_ = trial.run;
    rules_.restart(trial.trial_id);
    servers_.restart(trial.began_ns);
  }

  void meet(const Fate& fate, const net::Classified& classified, Waiting& waiting,
            uint64_t now_ns) {
    waiting.delay_ns = fate.delay_ns;
    waiting.copies = fate.copies;
    if (fate.alteration.any()) {
      alter(fate.alteration, hops_taken_, io_.bytes(waiting.frame), classified);
    }
    if (fate.corrupted && does_damage(fate.damage, io_.bytes(waiting.frame), classified)) {
      waiting.corrupted = true;
      waiting.damage = fate.damage;
      io_.set_size(waiting.frame, inflict(fate.damage, fate.damage_draw, io_.bytes(waiting.frame),
                                          io_.size(waiting.frame), classified));
    }
    put_headers(waiting.frame);
    if (fate.displaced_by == Fate::kNone) {
      enter(waiting, now_ns);
    } else if (keep(waiting, now_ns)) {
      const Action& action = rules_.all()[fate.displaced_by].action;
      const uint64_t number = rules_.counts()[fate.displaced_by].reached;
      waiting.distance = action.distance;
      waiting.ahead = served_in_order_ - lost_in_order_;
      parkings_[fate.displaced_by].put(waiting, number + action.distance,
                                       now_ns + action.at_most_ns);
      ++parked_;
    }
  }

  // Of what goes on to the other side, in its tunnel.
  void put_headers(Frame frame) {
    if (outer_.bytes() > 0) {
      constexpr size_t kIp = sizeof(net::EthernetHeader);
      const uint8_t* const ip = io_.bytes(frame) + kIp;
      const auto edge = relay_ ? relay_->edge_for(ip, io_.size(frame) - kIp) : std::nullopt;
      io_.set_size(frame, outer_.put_in(io_.bytes(frame), io_.size(frame)));
      if (edge) net::Encapsulation::redirect(io_.bytes(frame), *edge);
    }
    put_tags(frame);
  }

  void put_tags(Frame frame) {
    if (vlan_.bytes() > 0) io_.set_size(frame, vlan_.put_in(io_.bytes(frame), io_.size(frame)));
  }

  void enter(Waiting& waiting, uint64_t now_ns) {
    const auto served = servers_.serve(waiting.way.queue, now_ns);
    if (!served) {
      lose(waiting, now_ns, LossCause::kQueue);
      return;
    }
    waiting.due_ns = servers_.thaw(*served + waiting.delay_ns);
    waiting.in_order = waiting.distance == 0;
    served_in_order_ += waiting.in_order;
    const uint32_t copies = waiting.copies;
    Waiting copy = waiting;
    copy.copy = true;
    for (uint32_t i = 0; i < copies; ++i) io_.share(waiting.frame);
    dispatch(waiting, now_ns);
    for (uint32_t i = 0; i < copies; ++i) dispatch(copy, now_ns);
  }

  // To its outbox at once, if nothing is before it; else to the delay line.
  void dispatch(Waiting waiting, uint64_t now_ns) {
    if (waiting.due_ns <= now_ns && line_.next_due_ns() > waiting.due_ns &&
        !outbox_of(waiting).full()) {
      post(waiting, now_ns);
    } else if (keep(waiting, now_ns)) {
      line_.put(waiting.due_ns, waiting);
    }
  }

  Outbox& outbox_of(const Waiting& waiting) { return outboxes_[kPairs == 1 ? 0 : waiting.way.out]; }

  void post(const Waiting& waiting, uint64_t now_ns) {
    Outbox& outbox = outbox_of(waiting);
    if (!fragments_) [[likely]] {
      outbox.put(waiting);
      return;
    }
    const Cut cut(io_.bytes(waiting.frame), io_.size(waiting.frame), fragments_->mtu,
                  waiting.way.id);
    switch (cut.passage()) {
      case Cut::Passage::kWhole: outbox.put(waiting); return;
      case Cut::Passage::kInPieces: post_pieces(outbox, waiting, cut, now_ns); return;
      case Cut::Passage::kNone: lose(waiting, now_ns, LossCause::kTooBig); return;
    }
  }

  // Into buffers of their own, as a copy of the frame may be to leave from the same one.
  void post_pieces(Outbox& outbox, const Waiting& waiting, const Cut& cut, uint64_t now_ns) {
    if (cut.pieces() > kMostPieces) {
      lose(waiting, now_ns, LossCause::kNoBuffer);
      return;
    }
    const uint32_t before = outbox.size();
    uint64_t& reached = pieces_reached(waiting);
    uint64_t dropped = 0;
    Waiting piece = waiting;
    piece.piece = Piece::kNotLast;
    for (uint32_t i = 0; i < cut.pieces(); ++i) {
      if (++reached % fragments_->lose_every == 0) {
        ++dropped;
        continue;
      }
      piece.frame = io_.blank();
      if (piece.frame == Frame{}) {
        take_back(outbox, before);
        lose(waiting, now_ns, LossCause::kNoBuffer);
        return;
      }
      const uint32_t place = fragments_->reversed ? cut.pieces() - 1 - i : i;
      io_.set_size(piece.frame, cut.write(place, io_.bytes(piece.frame)));
      outbox.put(piece);
    }
    if (PieceCounts* counts = pieces_of(waiting)) counts->dropped += dropped;
    if (outbox.size() == before) {
      lose(waiting, now_ns, LossCause::kIncomplete);
      return;
    }
    outbox.call_last(dropped > 0 ? Piece::kLastOfIncomplete : Piece::kLast);
    io_.free(waiting.frame);
  }

  // The pieces of a frame that cannot leave.
  void take_back(Outbox& outbox, uint32_t before) {
    while (outbox.size() > before) io_.free(outbox.take_last());
  }

  // Counted in the trial, or since the device was configured: as rules count.
  uint64_t& pieces_reached(const Waiting& waiting) {
    TrialAccount* trial = book_.find(waiting.run);
    return trial == nullptr ? other_pieces_reached_ : trial->directions[direction_].pieces_reached;
  }

  // Null for a trial that is forgotten.
  PieceCounts* pieces_of(const Waiting& waiting) {
    if (waiting.run == 0) return &others_.pieces;
    TrialAccount* trial = book_.find(waiting.run);
    return trial == nullptr ? nullptr
                            : &trial->directions[direction_].of(waiting.background).pieces;
  }

  // False, and the frame is lost, when the device has no room for it.
  bool keep(Waiting& waiting, uint64_t now_ns) {
    if (line_.size() + parked_ >= line_.capacity()) {
      lose(waiting, now_ns, LossCause::kNoBuffer);
      return false;
    }
    if (waiting.kept) return true;
    waiting.frame = io_.keep(waiting.frame);
    waiting.kept = true;
    if (waiting.frame != Frame{}) return true;
    lose(waiting, now_ns, LossCause::kNoBuffer);
    return false;
  }

  void lose(const Waiting& waiting, uint64_t now_ns, LossCause cause) {
    if (waiting.frame != Frame{}) io_.free(waiting.frame);
    lost_in_order_ += waiting.in_order && !waiting.copy;
    if (waiting.run == 0) ++other_losses(cause);
    TrialAccount* trial = book_.find(waiting.run);
    if (trial == nullptr || waiting.copy) {
      other_failures_ += is_failure(cause);
      return;
    }
    trial->directions[direction_].lose(waiting.background, waiting.stream, waiting.sequence,
                                       now_ns - trial->began_ns, cause);
  }

  uint64_t& other_losses(LossCause cause) {
    if (cause == LossCause::kTooBig) return others_.dropped_too_big;
    if (cause == LossCause::kIncomplete) return others_.incomplete;
    return others_.failed;
  }

  // The first of rule `i`'s parked frames goes on, behind what has just been let through.
  void unpark(size_t i, uint64_t now_ns) {
    Waiting waiting = parkings_[i].take();
    --parked_;
    enter(waiting, now_ns);
  }

  void release_overtaken(uint64_t now_ns) {
    for (size_t i = 0; i < parkings_.size(); ++i) {
      while (!parkings_[i].empty() &&
             parkings_[i].front().until_number <= rules_.counts()[i].reached) {
        unpark(i, now_ns);
      }
    }
  }

  void release_tired(uint64_t now_ns) {
    for (size_t i = 0; i < parkings_.size(); ++i) {
      while (!parkings_[i].empty() && parkings_[i].front().until_ns <= now_ns) {
        unpark(i, now_ns);
      }
    }
  }

  void release_parked(uint64_t now_ns) {
    for (size_t i = 0; i < parkings_.size(); ++i) {
      while (!parkings_[i].empty()) unpark(i, now_ns);
    }
  }

  // Whether it left behind as many as it was told to. Those that were lost, made to wait, or
  // displaced themselves did not leave before it; what was ahead and still waits is not told from
  // those, so no frame is said to be displaced by more than it was.
  Displacement displacement_of(const Waiting& waiting) const {
    if (waiting.distance == 0) return Displacement::kNone;
    return left_in_order_ >= waiting.ahead + waiting.distance ? Displacement::kFull
                                                              : Displacement::kLess;
  }

  void account_departure(const Waiting& waiting, uint64_t now_ns, uint64_t raw_ns) {
    if (waiting.piece != Piece::kNone && !account_piece(waiting, now_ns)) [[unlikely]] {
      return;
    }
    const Displacement displacement = displacement_of(waiting);
    left_in_order_ += waiting.in_order && !waiting.copy;
    others_.left += waiting.run == 0;
    TrialAccount* trial = book_.find(waiting.run);
    if (trial == nullptr) return;
    trial->directions[direction_].leave(
        {waiting.stream, waiting.way.in, waiting.way.out, waiting.background, waiting.copy,
         waiting.delay_ns > 0, waiting.piece != Piece::kNone, displacement, waiting.corrupted,
         waiting.damage, waiting.sequence, now_ns - waiting.arrival_ns, now_ns - waiting.due_ns,
         raw_ns - waiting.arrival_raw_ns});
  }

  // Whether its frame has left with it. One that lacks a piece is lost with the last of the others.
  bool account_piece(const Waiting& waiting, uint64_t now_ns) {
    PieceCounts* const counts = pieces_of(waiting);
    if (counts != nullptr) ++counts->left;
    if (waiting.piece == Piece::kNotLast) return false;
    if (waiting.piece == Piece::kLastOfIncomplete) {
      Waiting gone = waiting;
      gone.frame = Frame{};  // the port's now
      lose(gone, now_ns, LossCause::kIncomplete);
      return false;
    }
    if (waiting.run == 0) ++others_.pieces.frames;
    return true;
  }

  void send(size_t number, Outbox& outbox) {
    const uint32_t sent =
        io_.transmit(port_index(1U - direction_, number), outbox.frames(), outbox.size());
    const uint64_t now_ns = io_.now_ns();
    const uint64_t raw_ns = sent > 0 ? io_.raw_ns() : 0;
    for (uint32_t i = 0; i < sent; ++i) account_departure(outbox[i], now_ns, raw_ns);
    outbox.remove(sent);
    if (outbox.size() > 0 && now_ns > outbox[0].due_ns + kPatienceNs) give_up(outbox, now_ns);
  }

  void give_up(Outbox& outbox, uint64_t now_ns) {
    for (uint32_t i = 0; i < outbox.size(); ++i) {
      if (outbox[i].piece == Piece::kNotLast) {
        io_.free(outbox[i].frame);
      } else {
        lose(outbox[i], now_ns, LossCause::kRefused);
      }
    }
    outbox.remove(outbox.size());
  }

  Io& io_;
  TrialBook& book_;
  Direction direction_;
  net::VlanTags vlan_;
  net::Encapsulation outer_;
  const BorderRelay* relay_ = nullptr;
  uint8_t hops_taken_ = 0;
  Rules rules_;
  Rules other_rules_;  // the same, as IP packets that are no test frames go through them
  Servers servers_;
  bool serves_others_ = false;              // not only test frames
  std::vector<Parking<Waiting>> parkings_;  // one per rule; those of other actions stay empty
  size_t parked_ = 0;
  DelayLine<Waiting> line_;
  std::optional<Fragments> fragments_;
  std::array<Outbox, kPairs> outboxes_;  // by the number of the port
  uint64_t configured_ns_ = 0;
  uint64_t arrival_raw_ns_ = 0;
  uint64_t run_ = 0;
  uint64_t served_in_order_ = 0;  // frames that no rule displaced, of all trials
  uint64_t left_in_order_ = 0;
  uint64_t lost_in_order_ = 0;  // after they had been served
  OtherCounts others_;
  uint64_t other_pieces_reached_ = 0;  // those of trials that are forgotten, too
  uint64_t other_failures_ = 0;
};

}  // namespace dutperf::refdut
