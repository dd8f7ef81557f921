// The verdict on one trial: did the DUT forward everything, did it lose frames, or can the tester
// not tell? Pure: counts in, verdict out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/damage.h"

namespace dutperf::measure {

enum class VerdictKind : uint8_t { kPass, kFail, kInvalid };

struct Reason {
  std::string code;
  std::string message;
  std::string hint;
};

struct Verdict {
  VerdictKind kind = VerdictKind::kPass;
  std::vector<Reason> reasons;
};

// Frames that spent this part of the frame timeout in the tester itself may be late because of it.
inline constexpr uint64_t kHeldShare = 2;

// What the verdict needs to know of one direction.
struct DirectionFacts {
  std::string name;
  uint64_t intended = 0;
  uint64_t sent = 0;
  uint64_t received = 0;
  uint64_t duplicate = 0;
  uint64_t overdue = 0;         // received, but slower than the frame timeout
  uint64_t lost_in_shadow = 0;  // of the lost ones: sent in the shadow of the tester's stalls
  uint64_t overdue_in_shadow = 0;
  bool burst_shadow = false;      // one of them was a sender's stall
  uint64_t longest_stall_ns = 0;  // of either sender, or of the receiver
  uint64_t negative_delay = 0;    // received before they were sent
  uint64_t held_frames = 0;       // may have waited half the frame timeout inside the tester
  size_t receiving_port = 0;      // place in TrialFacts::ports, of the first
  size_t receiving_ports = 1;     // from there on
  uint64_t sending_ns = 0;
  size_t shares = 1;
  size_t slowest_share = 0;  // of these, from 0 on
  uint64_t idle_end_ns = 0;  // its load ends so long before the trial
  uint64_t max_lag_ns = 0;
  uint64_t away_at_end_ns = 0;  // the sender did not run for so long, and ended late for it
  uint64_t port_full_ns = 0;    // the port, or what is behind it, had no room for frames
  uint64_t ring_full = 0;       // of the lost ones: the device's ring had no room
  net::DamageCounts damaged;    // arrived, and yet not received: lost
  bool gave_up = false;         // hopelessly behind: stopped before the last frame
};

// What it needs to know of one port; counter values are differences over the trial.
struct PortFacts {
  std::string name;
  bool link_up_before = true;
  bool link_up_after = true;
  bool link_flapped = false;  // went down or up in between, whatever it is now
  bool flow_control_on = false;
  uint64_t pauses_received = 0;  // pause frames that it may have obeyed
  uint64_t rx_missed = 0;
  uint64_t rx_errors = 0;
  uint64_t rx_nombuf = 0;
  uint64_t tx_errors = 0;
  uint64_t cut_short = 0;        // truncated frames of which nobody can tell whose they are
  uint64_t interface_drops = 0;  // received, and dropped below the port by the tester's own machine
  uint64_t not_taken_over = 0;   // the workers' own: a share had no room for what another received
  uint64_t send_drops = 0;       // the port took them, and they never left the tester
  uint64_t damaged_on_wire = 0;  // of the wire, the device or the port; beside `rx_errors`
  uint64_t neighbour_conflicts = 0;  // a next hop's MAC is another one, or an own one's is
};

// What it needs to know of connections, beside the SYNs, which are a direction's frames.
struct ExchangeFacts {
  struct Segments {
    std::string name;
    uint64_t sent = 0;
    uint64_t received = 0;
  };
  std::vector<Segments> segments;
  uint64_t not_sent = 0;  // the tester had no room for them
  uint64_t resets = 0;
  uint64_t strange = 0;      // came, and were none that could come
  uint64_t may_be_ours = 0;  // so many the tester's stalls may have cost
};

// Of a trial of a DNS64 server.
struct ResolutionFacts {
  uint64_t not_sent = 0;    // the tester had no room for them
  uint64_t refused = 0;     // by a response code
  uint64_t wrong = 0;       // came, and were not what was asked for
  uint64_t unasked = 0;     // were answered without the authority
  uint64_t not_cached = 0;  // questions to the authority about names that were to be in the cache
};

struct TrialFacts {
  uint64_t duration_ns = 0;
  uint64_t frame_timeout_ns = 0;
  uint64_t loss_tolerance_ppb = 0;  // of a direction's intended frames, lost or overdue
  bool aborted = false;
  bool stopped = false;                            // on request
  bool ended_early = false;                        // because too many frames seemed lost
  std::vector<std::string> unresolved_neighbours;  // "198.18.0.1 on port left"
  std::vector<DirectionFacts> directions;
  std::vector<PortFacts> ports;
  std::optional<ExchangeFacts> exchange;
  std::optional<ResolutionFacts> resolution;
  uint64_t input_queue_drops = 0;  // of the tester's machine, at whichever port
};

// How long sending may take beyond the load's duration for its rate to count as offered: 10 ppm
// (no clock of the trade is worse, and siitperf allows as much); in short trials as long as in one
// of 60 s, but never more than 0.1 %; and a step of the send loop. See docs/adr/0001.
constexpr uint64_t tolerated_ns(uint64_t duration_ns) {
  constexpr uint64_t kStepNs = 5'000;
  constexpr uint64_t kOfAMinuteNs = 600'000;
  return std::max(duration_ns / 100'000, std::min(duration_ns / 1000, kOfAMinuteNs)) + kStepNs;
}

// So many lost or late ones of a direction's `intended` frames let it pass. When they are more, no
// later frame can change the verdict.
bool within_tolerance(uint64_t missing, uint64_t intended, uint64_t loss_tolerance_ppb);

// Reasons that make a trial invalid outrank reasons to fail it.
Verdict judge(const TrialFacts& facts);

}  // namespace dutperf::measure
