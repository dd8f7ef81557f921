#include "measure/verdict.h"

#include <algorithm>
#include <array>
#include <span>

namespace dutperf::measure {
namespace {

class Judge {
 public:
  void invalid(const char* code, std::string message, std::string hint) {
    verdict_.kind = VerdictKind::kInvalid;
    verdict_.reasons.push_back({code, std::move(message), std::move(hint)});
  }

  void fail(const char* code, std::string message) {
    if (verdict_.kind == VerdictKind::kPass) verdict_.kind = VerdictKind::kFail;
    verdict_.reasons.push_back({code, std::move(message), ""});
  }

  bool passes() const { return verdict_.kind == VerdictKind::kPass; }

  Verdict take() { return std::move(verdict_); }

 private:
  Verdict verdict_;
};

std::string ms(uint64_t ns) {
  const std::string text = std::to_string(ns / 1000);  // microseconds
  const std::string padded = text.size() < 4 ? std::string(4 - text.size(), '0') + text : text;
  return padded.substr(0, padded.size() - 3) + "." + padded.substr(padded.size() - 3) + " ms";
}

// How long the direction has for its frames: the trial less a pause at its end.
uint64_t load_ns(const TrialFacts& facts, const DirectionFacts& direction) {
  return facts.duration_ns - direction.idle_end_ns;
}

bool fell_behind(const TrialFacts& facts, const DirectionFacts& direction) {
  const uint64_t intended_ns = load_ns(facts, direction);
  const uint64_t allowed = intended_ns + tolerated_ns(intended_ns);
  return direction.gave_up || direction.sending_ns > allowed;
}

// How much later than it should have been the sender was done, or gave up.
uint64_t behind_ns(const TrialFacts& facts, const DirectionFacts& direction) {
  const uint64_t over =
      direction.sending_ns - std::min(direction.sending_ns, load_ns(facts, direction));
  return std::max(over, direction.gave_up ? direction.max_lag_ns : 0);
}

// Most of the time that a sender is behind it stood before a full port: then more cores or a lower
// rate would change nothing, as what is behind the port decides.
bool held_back(const TrialFacts& facts, const DirectionFacts& direction) {
  return direction.port_full_ns >= behind_ns(facts, direction) / 2;
}

// It did not run when it should have ended: that tells nothing of what it can offer.
bool was_away(const TrialFacts& facts, const DirectionFacts& direction) {
  return direction.away_at_end_ns > 0 &&
         direction.away_at_end_ns >= behind_ns(facts, direction) / 2;
}

uint64_t lost_frames(const DirectionFacts& direction) {
  return direction.sent - std::min(direction.sent, direction.received);
}

// Of the lost frames those that no stall of the tester can have cost.
uint64_t lost_in_light(const DirectionFacts& direction) {
  const uint64_t lost = lost_frames(direction);
  return lost - std::min(lost, direction.lost_in_shadow);
}

// Lost and overdue frames are within the disclosed tolerance; zero without one.
bool tolerable(const TrialFacts& facts, const DirectionFacts& direction) {
  const uint64_t missing = lost_frames(direction) + direction.overdue;
  return within_tolerance(missing, direction.intended, facts.loss_tolerance_ppb);
}

bool tolerable_in_light(const TrialFacts& facts, const DirectionFacts& direction) {
  const uint64_t late =
      direction.overdue - std::min(direction.overdue, direction.overdue_in_shadow);
  return within_tolerance(lost_in_light(direction) + late, direction.intended,
                          facts.loss_tolerance_ppb);
}

// Frames of whatever kind that the tester itself dropped on receive. Damaged ones are not among
// them: they may be the DUT's.
uint64_t own_drops(const PortFacts& port) {
  return port.rx_missed + port.rx_nombuf + port.interface_drops + port.not_taken_over;
}

uint64_t damaged_on_wire(const PortFacts& port) { return port.rx_errors + port.damaged_on_wire; }

std::span<const PortFacts> receiving_ports(const TrialFacts& facts,
                                           const DirectionFacts& direction) {
  const std::span<const PortFacts> ports(facts.ports);
  const size_t first = std::min(direction.receiving_port, ports.size());
  return ports.subspan(first, std::min(direction.receiving_ports, ports.size() - first));
}

// Frames of whatever kind that the tester may have lost of this direction's, on whichever side.
uint64_t own_drops(const TrialFacts& facts, const DirectionFacts& direction) {
  uint64_t drops = facts.input_queue_drops;
  for (size_t i = 0; i < facts.ports.size(); ++i) {
    const bool receives = i - direction.receiving_port < direction.receiving_ports;
    drops += receives ? own_drops(facts.ports[i]) : facts.ports[i].send_drops;
  }
  return drops;
}

// More frames are missing than the tester itself can have dropped: so the DUT lost some, and too
// many of them.
bool surely_lost(const TrialFacts& facts, const DirectionFacts& direction) {
  const uint64_t lost = lost_in_light(direction);
  // A damaged frame did arrive.
  const uint64_t absent = lost - std::min(lost, direction.damaged.total());
  const uint64_t at_least = lost - std::min(absent, own_drops(facts, direction));
  return !within_tolerance(at_least, direction.intended, facts.loss_tolerance_ppb);
}

// Which of a direction's shares, where there are several.
std::string by_share(const DirectionFacts& direction) {
  if (direction.shares == 1) return "";
  return "; share " + std::to_string(direction.slowest_share + 1) + " of " +
         std::to_string(direction.shares) + " was the slowest";
}

void judge_sender(const TrialFacts& facts, const DirectionFacts& direction, Judge& judge) {
  if (direction.sent == 0 && !facts.stopped) {
    judge.invalid("nothing_sent", direction.name + ": the port accepted no frame at all",
                  "check that the link is up and the port's driver can transmit");
  } else if (fell_behind(facts, direction) && held_back(facts, direction)) {
    judge.invalid("held_back",
                  direction.name +
                      ": something behind this port stops the tester: flow control, or a queue "
                      "longer than the tester's buffers; " +
                      std::to_string(direction.sent) + " of " + std::to_string(direction.intended) +
                      " frames in " + ms(direction.sending_ns) + ", no room for " +
                      ms(direction.port_full_ns) + " of it" + by_share(direction),
                  "switch flow control off on both ends, or shorten the device's input queue");
  } else if (fell_behind(facts, direction) && was_away(facts, direction)) {
    // What it sent before tells of the DUT; so a loss there stands.
    if (!tolerable_in_light(facts, direction)) return;
    judge.invalid("sender_lag",
                  direction.name + ": the tester itself did not run for " +
                      ms(direction.away_at_end_ns) +
                      " when the last frames were due, so they left " +
                      ms(behind_ns(facts, direction)) + " late" + by_share(direction),
                  "isolate the tester's cores; the trial is worth repeating");
  } else if (fell_behind(facts, direction)) {
    judge.invalid("sender_behind",
                  direction.name + ": the tester could not keep up with the intended load, " +
                      std::to_string(direction.sent) + " of " + std::to_string(direction.intended) +
                      " frames in " + ms(direction.sending_ns) + by_share(direction),
                  "lower the rate, or give the tester more cores or a faster port driver");
  } else if (!tolerable(facts, direction) && tolerable_in_light(facts, direction)) {
    // A lossless trial stands: it was harder on the DUT than asked for.
    const std::string missing = std::to_string(lost_frames(direction) + direction.overdue);
    judge.invalid(direction.burst_shadow ? "sender_burst" : "receiver_lag",
                  direction.name + ": the " + missing +
                      " lost or late frames left in the recovery window of " +
                      (direction.burst_shadow ? "a stall of the tester's sender"
                                              : "a stall of the tester's receiver") +
                      " (the longest took " + ms(direction.longest_stall_ns) +
                      "), which may have cost them",
                  "isolate the tester's cores; the trial is worth repeating");
  }
}

void judge_clock(const DirectionFacts& direction, Judge& judge) {
  if (direction.negative_delay == 0) return;
  judge.invalid("clock_unstable",
                direction.name + ": " + std::to_string(direction.negative_delay) +
                    " frames arrived before they were sent, by the tester's clock",
                "the CPUs' time stamp counters disagree: use another machine, or one worker core");
}

void judge_receiver(const TrialFacts& facts, const DirectionFacts& direction, Judge& judge) {
  if (direction.overdue == 0 || tolerable(facts, direction)) return;
  if (direction.overdue > direction.held_frames) return;
  judge.invalid("receiver_lag",
                direction.name + ": " + std::to_string(direction.overdue) +
                    " frames were late, but the tester itself held up to " +
                    std::to_string(direction.held_frames) + " that long",
                "isolate the tester's cores, or choose a longer frame timeout");
}

// How the lost frames that arrived were damaged. Of truncated ones without a tag no more are taken
// for this direction's than are lost otherwise.
net::DamageCounts damage_among_lost(const TrialFacts& facts, const DirectionFacts& direction) {
  net::DamageCounts damaged = direction.damaged;
  uint64_t cut_short = 0;
  for (const PortFacts& port : receiving_ports(facts, direction)) cut_short += port.cut_short;
  const uint64_t lost = lost_frames(direction);
  damaged[net::Damage::kTruncated] += std::min(cut_short, lost - std::min(lost, damaged.total()));
  return damaged;
}

std::string in_words(const net::DamageCounts& damaged) {
  constexpr std::array<const char*, net::kDamageNames.size()> kWords = {
      "without a UDP checksum", "with a wrong checksum", "of wrong length", "truncated",
      "with a number never sent"};
  std::string text;
  for (size_t i = 0; i < kWords.size(); ++i) {
    const uint64_t count = damaged[static_cast<net::Damage>(i)];
    if (count > 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kWords[i];
  }
  return text;
}

// What the DUT is not charged with, though it may be only a part.
std::string of_tester(const TrialFacts& facts, const DirectionFacts& direction) {
  const uint64_t own = own_drops(facts, direction);
  return own == 0 ? ""
                  : ", of which the tester itself may have dropped " +
                        std::to_string(std::min(own, lost_frames(direction)));
}

std::string of_wire(const TrialFacts& facts, const DirectionFacts& direction) {
  std::string text;
  for (const PortFacts& port : receiving_ports(facts, direction)) {
    if (damaged_on_wire(port) == 0) continue;
    text += "; " + std::to_string(damaged_on_wire(port)) + " came to port " + port.name +
            " damaged (checksum or length on the wire): by the device, the cable or the port";
  }
  return text;
}

void judge_loss(const TrialFacts& facts, const DirectionFacts& direction, Judge& judge) {
  const bool fails = !tolerable(facts, direction);
  const uint64_t lost = lost_frames(direction);
  const net::DamageCounts damaged = damage_among_lost(facts, direction);
  if (fails && lost > 0) {
    const std::string of_damage = damaged.total() == 0
                                      ? ""
                                      : ", " + std::to_string(std::min(lost, damaged.total())) +
                                            " of them damaged: " + in_words(damaged);
    const std::string of_ring = direction.ring_full == 0
                                    ? ""
                                    : ", " + std::to_string(std::min(lost, direction.ring_full)) +
                                          " of them at the device's full ring";
    const std::string of_shadow =
        direction.lost_in_shadow == 0
            ? ""
            : ", " + std::to_string(lost_in_light(direction)) + " not explained by tester stalls";
    judge.fail("frames_lost", direction.name + ": " + std::to_string(lost) + " of " +
                                  std::to_string(direction.sent) + " frames lost" + of_ring +
                                  of_damage + of_shadow + of_tester(facts, direction) +
                                  of_wire(facts, direction));
  }
  if (fails && direction.overdue > 0) {
    judge.fail("frames_late", direction.name + ": " + std::to_string(direction.overdue) + " of " +
                                  std::to_string(direction.sent) + " frames took longer than " +
                                  ms(facts.frame_timeout_ns));
  }
  // Each lost frame can have arrived damaged once; what is more is of frames that arrived whole.
  const uint64_t damaged_copies = damaged.total() - std::min(damaged.total(), lost);
  const uint64_t copies = direction.duplicate + damaged_copies;
  if (within_tolerance(copies, direction.intended, facts.loss_tolerance_ppb)) return;
  if (direction.duplicate > 0) {
    judge.fail("duplicates", direction.name + ": " + std::to_string(direction.duplicate) +
                                 " frames arrived more than once");
  }
  if (damaged_copies > 0) {
    judge.fail("duplicates",
               direction.name + ": " + std::to_string(damaged_copies) +
                   " more frames arrived damaged than were lost: " + in_words(damaged));
  }
}

uint64_t lost_segments(const ExchangeFacts& exchange) {
  uint64_t lost = 0;
  for (const ExchangeFacts::Segments& each : exchange.segments) {
    lost += each.sent - std::min(each.sent, each.received);
  }
  return lost;
}

// Each segment is a connection's only one of its kind, so none may be missing.
void judge_answers(uint64_t not_sent, Judge& judge) {
  if (not_sent == 0) return;
  judge.invalid("answers_not_sent",
                "the tester had no room for " + std::to_string(not_sent) +
                    " answers of its own: the port takes fewer than come",
                "lower the rate, or give the tester a core for each side");
}

// RFC 8219 9.2: a query that is not answered in time, or not by an AAAA, is none that was
// processed; first of all no name may be in the cache.
void judge_resolution(const ResolutionFacts& resolution, Judge& judge) {
  judge_answers(resolution.not_sent, judge);
  if (resolution.unasked > 0) {
    judge.invalid("answers_cached",
                  std::to_string(resolution.unasked) +
                      " names were answered for which the authority was not asked",
                  "a run before may have asked for them: take another seed, or empty the cache");
  }
  if (resolution.not_cached > 0) {
    judge.invalid("answers_not_cached",
                  "the authority was asked " + std::to_string(resolution.not_cached) +
                      " times for names that were to be in the cache",
                  "give the server a larger cache, or take fewer cached_names");
  }
  if (resolution.refused > 0) {
    judge.fail("queries_refused", std::to_string(resolution.refused) +
                                      " queries were answered by an error (its response code)");
  }
  if (resolution.wrong > 0) {
    judge.fail("answers_wrong",
               std::to_string(resolution.wrong) + " answers were not what was asked for");
  }
}

void judge_exchange(const ExchangeFacts& exchange, Judge& judge) {
  judge_answers(exchange.not_sent, judge);
  const uint64_t lost = lost_segments(exchange);
  if (lost > 0 && lost <= exchange.may_be_ours) {
    judge.invalid("sender_burst",
                  "the " + std::to_string(lost) +
                      " lost segments answered SYNs that left in the recovery window of a stall of "
                      "the tester's, which may have cost them",
                  "isolate the tester's cores; the trial is worth repeating");
  }
  for (const ExchangeFacts::Segments& each : exchange.segments) {
    if (each.received >= each.sent) continue;
    judge.fail("segments_lost", each.name + ": " + std::to_string(each.sent - each.received) +
                                    " of " + std::to_string(each.sent) + " segments lost");
  }
  if (exchange.resets > 0) {
    judge.fail("connections_reset", std::to_string(exchange.resets) + " connections were reset");
  }
  if (exchange.strange > 0) {
    judge.fail("segments_strange",
               std::to_string(exchange.strange) +
                   " segments were damaged, or acknowledged what nobody had sent");
  }
}

// What was lost of a trial, and on whose account.
struct Losses {
  bool any = false;   // in some direction, more than is tolerated
  bool sure = false;  // the DUT lost so many, whatever the tester dropped
};

std::string between_shares(const PortFacts& port) {
  if (port.not_taken_over == 0) return "";
  return ", between its workers " + std::to_string(port.not_taken_over);
}

void judge_port(const PortFacts& port, const Losses& losses, Judge& judge) {
  const std::string where = "port " + port.name;
  if (!port.link_up_before && !port.link_up_after && !port.link_flapped) {
    judge.invalid("link_down", where + ": the link is down",
                  "check the cable or the interface, and that the device under test is up");
  } else if (port.link_up_before != port.link_up_after || port.link_flapped) {
    judge.invalid("link_changed", where + ": the link changed during the trial",
                  "check the cable, or whether the device under test restarted");
  }
  if (port.neighbour_conflicts > 0) {
    judge.invalid("neighbour_changed",
                  where +
                      ": somebody else answered for a next hop during the trial, or for an "
                      "address of the tester's",
                  "is another tester or device in this network, or did the device's MAC change?");
  }
  if (port.flow_control_on) {
    judge.invalid("flow_control", where + ": Ethernet flow control is on",
                  "switch it off on tester and device: it hides loss by stretching time");
  }
  if (port.pauses_received > 0 && !port.flow_control_on && !losses.sure) {
    judge.invalid("held_back",
                  where + ": the device paused it, by " + std::to_string(port.pauses_received) +
                      " pause frames: what it had no room for waited in the tester",
                  "switch flow control off on both ends");
  }
  // Where others share the interface the kernel may have dropped theirs: that alone spoils nothing.
  const bool of_ours = port.rx_missed + port.rx_nombuf + port.not_taken_over > 0 || losses.any;
  if (own_drops(port) > 0 && of_ours && !losses.sure) {
    judge.invalid("receiver_overflow",
                  where + ": the tester itself dropped frames on receive (missed " +
                      std::to_string(port.rx_missed) + ", no buffer " +
                      std::to_string(port.rx_nombuf) + ", below the port " +
                      std::to_string(port.interface_drops) + between_shares(port) + ")",
                  "give the receiving side a core of its own or longer receive queues");
  }
  if (port.send_drops > 0 && losses.any && !losses.sure) {
    judge.invalid("transmit_errors",
                  where + ": " + std::to_string(port.send_drops) +
                      " frames were dropped below the port, before the wire",
                  "lower the rate, or see what ip -s link and tc -s qdisc show of the interface");
  }
  if (port.tx_errors > 0) {
    judge.invalid("transmit_errors",
                  where + ": " + std::to_string(port.tx_errors) +
                      " frames counted as sent did not leave the port",
                  "lower the rate, or check the port's driver and MTU");
  }
}

void judge_input_queues(const TrialFacts& facts, const Losses& losses, Judge& judge) {
  if (facts.input_queue_drops == 0 || !losses.any || losses.sure) return;
  judge.invalid("receiver_overflow",
                "input queues of this machine's CPUs had no room for " +
                    std::to_string(facts.input_queue_drops) + " frames, maybe the test's",
                "raise net.core.netdev_max_backlog, or spread the interface's queues over CPUs");
}

}  // namespace

bool within_tolerance(uint64_t missing, uint64_t intended, uint64_t loss_tolerance_ppb) {
  return (unsigned __int128){missing} * 1'000'000'000 <=
         (unsigned __int128){intended} * loss_tolerance_ppb;
}

Verdict judge(const TrialFacts& facts) {
  Judge judge;
  if (facts.aborted) judge.invalid("aborted", "the trial was aborted", "");
  for (const std::string& neighbour : facts.unresolved_neighbours) {
    judge.invalid("neighbour_missing", "nobody answered for " + neighbour,
                  "check the device's address and link on that side, and the gateway in testbed");
  }
  // A trial that was cut short says nothing about what its sender or the DUT could have done.
  const bool complete = !facts.aborted && facts.unresolved_neighbours.empty();
  for (const DirectionFacts& direction : facts.directions) {
    if (complete) judge_sender(facts, direction, judge);
    if (complete) judge_receiver(facts, direction, judge);
    judge_clock(direction, judge);
  }
  Losses losses;
  for (const DirectionFacts& direction : facts.directions) {
    losses.any = losses.any || !tolerable(facts, direction);
    losses.sure = losses.sure || surely_lost(facts, direction);
  }
  if (facts.exchange) {
    uint64_t own = facts.input_queue_drops;
    for (const PortFacts& port : facts.ports) own += own_drops(port) + port.send_drops;
    const uint64_t lost = lost_segments(*facts.exchange);
    losses.any = losses.any || lost > 0;
    losses.sure = losses.sure || lost > own;
  }
  for (const PortFacts& port : facts.ports) judge_port(port, losses, judge);
  judge_input_queues(facts, losses, judge);
  for (const DirectionFacts& direction : facts.directions) {
    if (complete) judge_loss(facts, direction, judge);
  }
  if (complete && facts.exchange) judge_exchange(*facts.exchange, judge);
  if (complete && facts.resolution) judge_resolution(*facts.resolution, judge);
  if (facts.ended_early && judge.passes()) {
    judge.invalid("stopped_in_error",
                  "sending ended early because frames seemed lost, but they came back later",
                  "run the trial without stop_when_lost: the device holds frames for long");
  }
  return judge.take();
}

}  // namespace dutperf::measure
