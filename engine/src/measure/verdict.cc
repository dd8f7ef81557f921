#include "measure/verdict.h"

#include <algorithm>

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

// A sender may take duration * 1.00001 (10 ppm: no clock of the trade is worse), and its last frame
// may lag by the limit.
bool fell_behind(const TrialFacts& facts, const DirectionFacts& direction) {
  const uint64_t allowed = facts.duration_ns + facts.duration_ns / 100'000 + facts.lag_limit_ns;
  return direction.gave_up || direction.sending_ns > allowed;
}

// How much later than it should have been the sender was done, or gave up.
uint64_t behind_ns(const TrialFacts& facts, const DirectionFacts& direction) {
  const uint64_t over = direction.sending_ns - std::min(direction.sending_ns, facts.duration_ns);
  return std::max(over, direction.gave_up ? direction.max_lag_ns : 0);
}

// Most of the time that a sender is behind it stood before a full port: then more cores or a lower
// rate would change nothing, as what is behind the port decides.
bool held_back(const TrialFacts& facts, const DirectionFacts& direction) {
  return direction.port_full_ns >= behind_ns(facts, direction) / 2;
}

uint64_t lost_frames(const DirectionFacts& direction) {
  return direction.sent - std::min(direction.sent, direction.received);
}

// Lost and overdue frames are within the disclosed tolerance; zero without one.
bool tolerable(const TrialFacts& facts, const DirectionFacts& direction) {
  const uint64_t missing = lost_frames(direction) + direction.overdue;
  return within_tolerance(missing, direction.intended, facts.loss_tolerance_ppb);
}

// Frames of whatever kind that the tester itself dropped on receive.
uint64_t own_drops(const PortFacts& port) {
  return port.rx_missed + port.rx_nombuf + port.rx_errors;
}

// More frames are missing than the tester itself can have dropped: so the DUT lost some, and too
// many of them.
bool surely_lost(const TrialFacts& facts, const DirectionFacts& direction) {
  const uint64_t lost = lost_frames(direction);
  const bool known = direction.receiving_port < facts.ports.size();
  const uint64_t own = known ? own_drops(facts.ports[direction.receiving_port]) : 0;
  const uint64_t at_least = lost - std::min(lost, own);
  return !within_tolerance(at_least, direction.intended, facts.loss_tolerance_ppb);
}

void judge_sender(const TrialFacts& facts, const DirectionFacts& direction, Judge& judge) {
  const uint64_t lost = lost_frames(direction);
  const uint64_t of_burst = std::min(lost, direction.ring_full_catching_up);
  if (direction.sent == 0) {
    judge.invalid("nothing_sent", direction.name + ": the port accepted no frame at all",
                  "check that the link is up and the port's driver can transmit");
  } else if (fell_behind(facts, direction) && held_back(facts, direction)) {
    judge.invalid("held_back",
                  direction.name +
                      ": something behind this port stops the tester: flow control, or a queue "
                      "longer than the tester's buffers; " +
                      std::to_string(direction.sent) + " of " + std::to_string(direction.intended) +
                      " frames in " + ms(direction.sending_ns) + ", no room for " +
                      ms(direction.port_full_ns) + " of it",
                  "switch flow control off on both ends, or shorten the device's input queue");
  } else if (fell_behind(facts, direction)) {
    judge.invalid("sender_behind",
                  direction.name + ": the tester could not keep up with the intended load, " +
                      std::to_string(direction.sent) + " of " + std::to_string(direction.intended) +
                      " frames in " + ms(direction.sending_ns),
                  "lower the rate, or give the tester more cores or a faster port driver");
  } else if (lost > 0 && !tolerable(facts, direction) && lost <= direction.late_departures &&
             direction.max_lag_ns > facts.lag_limit_ns) {
    // The burst that made up for the lag is the tester's, and may be what the DUT lost. A lossless
    // trial stands: it was harder on the DUT than asked for. So does one that lost more frames than
    // all such bursts together held.
    judge.invalid("sender_lag",
                  direction.name + ": a frame left " + ms(direction.max_lag_ns) + " late (limit " +
                      ms(facts.lag_limit_ns) +
                      "), so the loss may come from the burst that followed",
                  "isolate the tester's cores, or raise the lag limit and say so");
  } else if (of_burst > 0 && !tolerable(facts, direction) &&
             within_tolerance(lost - of_burst + direction.overdue, direction.intended,
                              facts.loss_tolerance_ppb)) {
    judge.invalid("sender_lag",
                  direction.name + ": " + std::to_string(of_burst) +
                      " frames found the device's ring full right after a stall of the sender, and "
                      "no others were lost",
                  "isolate the tester's cores");
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

void judge_loss(const TrialFacts& facts, const DirectionFacts& direction, Judge& judge) {
  const bool fails = !tolerable(facts, direction);
  if (fails && direction.received < direction.sent) {
    const std::string of_ring =
        direction.ring_full == 0
            ? ""
            : ", " + std::to_string(direction.ring_full) + " of them at the device's full ring";
    judge.fail("frames_lost", direction.name + ": " +
                                  std::to_string(direction.sent - direction.received) + " of " +
                                  std::to_string(direction.sent) + " frames lost" + of_ring);
  }
  if (fails && direction.overdue > 0) {
    judge.fail("frames_late", direction.name + ": " + std::to_string(direction.overdue) + " of " +
                                  std::to_string(direction.sent) + " frames took longer than " +
                                  ms(facts.frame_timeout_ns));
  }
  if (direction.duplicate > 0) {
    judge.fail("duplicates", direction.name + ": " + std::to_string(direction.duplicate) +
                                 " frames arrived more than once");
  }
}

// `lost_anyway`: the DUT lost frames in some direction whatever the tester dropped.
void judge_port(const PortFacts& port, bool lost_anyway, Judge& judge) {
  const std::string where = "port " + port.name;
  if (!port.link_up_before && !port.link_up_after && !port.link_flapped) {
    judge.invalid("link_down", where + ": the link is down",
                  "check the cable or the interface, and that the device under test is up");
  } else if (port.link_up_before != port.link_up_after || port.link_flapped) {
    judge.invalid("link_changed", where + ": the link changed during the trial",
                  "check the cable, or whether the device under test restarted");
  }
  if (port.flow_control_on) {
    judge.invalid("flow_control", where + ": Ethernet flow control is on",
                  "switch it off on tester and device: it hides loss by stretching time");
  }
  if (own_drops(port) > 0 && !lost_anyway) {
    judge.invalid("receiver_overflow",
                  where + ": the tester itself dropped frames on receive (missed " +
                      std::to_string(port.rx_missed) + ", no buffer " +
                      std::to_string(port.rx_nombuf) + ", errors " +
                      std::to_string(port.rx_errors) + ")",
                  "give the receiving side a core of its own or longer receive queues");
  }
  if (port.tx_errors > 0) {
    judge.invalid("transmit_errors",
                  where + ": " + std::to_string(port.tx_errors) +
                      " frames counted as sent did not leave the port",
                  "lower the rate, or check the port's driver and MTU");
  }
  if (port.corrupt > 0) {
    judge.fail("corrupt_frames", where + ": " + std::to_string(port.corrupt) +
                                     " test frames arrived with a wrong length or checksum");
  }
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
  const bool lost_anyway =
      std::any_of(facts.directions.begin(), facts.directions.end(),
                  [&](const DirectionFacts& direction) { return surely_lost(facts, direction); });
  for (const PortFacts& port : facts.ports) judge_port(port, lost_anyway, judge);
  for (const DirectionFacts& direction : facts.directions) {
    if (complete) judge_loss(facts, direction, judge);
  }
  if (facts.ended_early && judge.passes()) {
    judge.invalid("stopped_in_error",
                  "sending ended early because frames seemed lost, but they came back later",
                  "run the trial without stop_when_lost: the device holds frames for long");
  }
  return judge.take();
}

}  // namespace dutperf::measure
