// The protocol's messages as C++ values; the Python side is src/dutperf/protocol, and
// both are tested against protocol/golden. Parsing throws ProtocolError.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/announcement_messages.h"
#include "control/exchange_messages.h"
#include "control/json.h"
#include "control/port_messages.h"
#include "control/record_messages.h"
#include "control/resolution_messages.h"
#include "dataplane/trial_spec.h"
#include "dpdk/port.h"
#include "measure/histogram.h"
#include "measure/shadow_watch.h"
#include "measure/silence_meter.h"
#include "measure/verdict.h"
#include "net/address.h"
#include "net/icmp.h"

namespace dutperf::control {

inline constexpr int kProtocolVersion = 2;

// Whose MAC the frames of a path carry: the next hop's and the port's, unless said otherwise.
struct PathAddressing {
  net::IpAddress next_hop;
  std::optional<net::Mac> src_mac;
  std::optional<net::Mac> dst_mac;
};

// A trial as asked for: the spec still lacks the MACs, which the next hops will give.
struct TrialRequest {
  dataplane::TrialSpec spec;
  uint64_t settle_ns = 0;
  std::vector<std::vector<PathAddressing>> addressing[dataplane::kSides];  // of each stream's paths
  std::vector<dataplane::Side> order;  // sending sides, in the order of the request
  std::vector<Announcement> announcements;
  bool fine_delays = false;  // in the result
};

struct PreviewParams {
  TrialRequest trial;
  uint64_t count = 0;
  std::string path;
};

// `where` is the trial's path in error messages.
TrialRequest parse_trial(const Json& params, const std::string& where = "");
PreviewParams parse_preview(const Json& params);

// Frames that the DUT need not forward: how many there were, and how many came.
struct BesideResult {
  uint64_t intended = 0;
  uint64_t sent = 0;
  uint64_t received = 0;
};

// What one of several shares of a direction did.
struct ShareReport {
  uint64_t intended = 0;
  uint64_t sent = 0;
  uint64_t sending_ns = 0;
  uint64_t max_lag_ns = 0;
  uint64_t port_full_ns = 0;
  uint64_t received = 0;  // distinct frames
  uint64_t longest_gap_ns = 0;
};

struct DirectionResult {
  dataplane::Side from;
  uint64_t intended_rate_fps = 0;
  double offered_rate_fps = 0;
  uint64_t sending_ns = 0;
  uint64_t tx_full = 0;
  uint64_t port_full_ns = 0;
  uint64_t ring_full = 0;
  const measure::Histogram* lag_ns = nullptr;
  const measure::Histogram* burst_frames = nullptr;
  const measure::Histogram* send_call_ns = nullptr;
  const measure::Histogram* receive_gap_ns = nullptr;
  uint64_t delay_floor_ns = 0;
  uint64_t delay_bound_ns = 0;
  std::vector<measure::Stall> stalls;                 // of the sender
  std::optional<measure::Stall> stalled;              // the one that it ended in, also in the list
  std::vector<std::vector<measure::Shadow>> shadows;  // in which the frames stood, by share
  measure::Silence longest_silence;
  std::vector<ShareReport> by_share;  // empty: there is one
  std::vector<StreamResult> streams;  // which the DUT must forward
  std::optional<BesideResult> beside;
};

// Frames of a port's slow path (control/slow_path.h).
struct SlowPathReport {
  uint64_t to_tap = 0;
  uint64_t from_tap = 0;
  uint64_t lost = 0;
};

struct PortReport {
  PortId id;
  dpdk::PortCounters before;
  dpdk::PortCounters after;
  uint64_t neighbour_requests = 0;
  uint64_t neighbour_conflicts = 0;
  uint64_t foreign = 0;
  net::IcmpCounts icmp;          // of these
  dataplane::AnswerLog answers;  // likewise
  uint64_t stale = 0;
  uint64_t misdirected = 0;
  uint64_t untranslated = 0;
  net::DamageCounts damaged;  // those truncated beyond recognition among them
  uint64_t other_vlan = 0;
  uint64_t fragments = 0;
  uint64_t reassembled = 0;
  uint64_t incomplete = 0;
  uint64_t announced = 0;
  std::optional<SlowPathReport> slow_path;
  uint64_t handed_over = 0;     // came by another share's queue
  uint64_t not_taken_over = 0;  // of these: that share had no room for them
  uint64_t interface_drops = 0;
  uint64_t send_drops = 0;
  uint64_t damaged_on_wire = 0;
};

struct TrialResult {
  uint16_t trial_id = 0;
  measure::Verdict verdict;
  bool ended_early = false;
  uint64_t shares = 1;                           // in which each direction's work was split
  std::optional<std::string> one_share_because;  // although ports have queues for several
  std::vector<DirectionResult> directions;
  std::optional<ExchangeResult> exchange;
  std::optional<ResolutionResult> resolution;
  std::vector<PortReport> ports;
  std::vector<kernel::InputQueue> input_queues;  // those where something rose
  uint64_t input_queue_drops = 0;                // of these, the tester's own
  std::vector<ResolvedNeighbour> neighbours;
  std::optional<TableResult> table;
  std::optional<uint64_t> begin_unix_ns;  // when the first frame was due; none: none was
  uint64_t total_ns = 0;
  uint64_t overhead_ns = 0;
};

std::string direction_name(dataplane::Side from);  // forward, reverse
Json to_json(const TrialResult& result);

}  // namespace dutperf::control
