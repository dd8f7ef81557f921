// One trial as the workers see it: complete and immutable before the first of them starts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/answer_log.h"
#include "dataplane/mix.h"
#include "dataplane/tag_spread.h"
#include "measure/share.h"
#include "measure/stream_recorder.h"
#include "net/dns.h"
#include "net/frame.h"
#include "net/inspection.h"
#include "net/receiving_end.h"
#include "net/tcp.h"
#include "state/tuple_table.h"
#include "timing/load.h"
#include "vary/draw.h"
#include "vary/tuples.h"
#include "vary/variation.h"

namespace dutperf::dataplane {

using measure::Share;

enum class Side : uint8_t { kLeft = 0, kRight = 1 };
inline constexpr size_t kSides = 2;
inline constexpr Side kBothSides[kSides] = {Side::kLeft, Side::kRight};

constexpr Side other(Side side) { return side == Side::kLeft ? Side::kRight : Side::kLeft; }
constexpr size_t index_of(Side side) { return static_cast<size_t>(side); }

inline constexpr size_t kMaxPorts = 4;    // of a side, numbered from 0
inline constexpr size_t kMaxShares = 32;  // of a direction's work
inline constexpr size_t kMaxStreams = 2;  // foreground, and background or frames beside it

// Every so many received frames one is inspected: a number that no pattern of sizes or addresses
// has in common with it, so that all of a pattern have their turn.
inline constexpr uint64_t kInspectEvery = 61;

// From a port of one side to a port of the other.
struct Path {
  uint8_t sent_by = 0;
  uint8_t received_by = 0;
  net::IpAddress src_ip;
  net::IpAddress dst_ip;
  net::Mac src_mac;
  net::Mac dst_mac;
};

// Frames of one kind. Frame number k takes path k mod p, the first of which is the layout's own,
// from port 0 to port 0 (RFC 2544 16), and has the size frame_sizes[k / p mod n]: one size, or an
// IMIX (RFC 6985); the layout's own size is not used. Sizes include the FCS.
struct StreamSpec {
  uint8_t id = 0;
  net::FrameLayout layout;
  net::TagIdentity tag;
  vary::Variations variations;
  std::optional<vary::Tuples> tuples;              // none: what is enumerated, each once
  std::shared_ptr<const state::TupleTable> given;  // theirs, if it came with the request
  std::vector<Path> more_paths;
  std::vector<uint32_t> frame_sizes = {64};
  std::vector<uint32_t> received_frame_sizes = {64};  // where the DUT changes the size
  net::Expected expected;                             // beside, where they arrive
  std::optional<net::ReceivedEnd> received_end;       // none: whatever arrives
  uint32_t most_pieces = 1;                           // in which the DUT may forward a frame

  size_t paths() const { return 1 + more_paths.size(); }
  uint8_t sent_by(size_t path) const { return path == 0 ? 0 : more_paths[path - 1].sent_by; }
  uint8_t received_by(size_t path) const {
    return path == 0 ? 0 : more_paths[path - 1].received_by;
  }
  net::FrameLayout layout_of(size_t path) const {
    net::FrameLayout result = layout;
    if (path == 0) return result;
    const Path& own = more_paths[path - 1];
    result.src_ip = own.src_ip;
    result.dst_ip = own.dst_ip;
    result.src_mac = own.src_mac;
    result.dst_mac = own.dst_mac;
    return result;
  }

  bool is_learned() const { return tuples && tuples->source == vary::IndexSource::kLearned; }
  // SYNs that nobody answers, without a tag (RFC 3511 5.5).
  bool is_flood() const { return is_beside() && layout.tcp.has_value(); }
  // The DUT need not forward these (RFC 2544 11.1, RFC 5180 5.3): none of them is lost.
  bool is_beside() const { return (tag.flags & net::kTagFlagBeside) != 0; }
};

// What one side sends. A side without streams only answers neighbours.
struct DirectionSpec {
  uint64_t rate_fps = 0;                // the highest of `steps`; without any the rate throughout
  std::vector<timing::RateStep> steps;  // the load over time; one has a frame
  uint64_t frames = 0;                  // of all streams together
  std::vector<StreamSpec> streams;      // foreground first
  Mix mix{1, 1};
  net::VlanTags vlan;           // the streams' layouts have them, too
  net::VlanTags received_vlan;  // with which the frames arrive: the DUT may change them
  net::LabelStack labels;       // as the tags
  net::LabelStack received_labels;
  net::Encapsulation outer;           // the sending port's
  net::Encapsulation received_outer;  // the receiving port's
  // Half an interval later than the schedule begins: two directions whose frames are due at the
  // same times would wait for each other, the one always first, the other always second (ADR 8).
  bool between = false;

  bool active() const { return !streams.empty(); }

  // When the frames are due, from the start of the trial on.
  timing::Load load() const {
    return timing::Load(std::max<uint64_t>(rate_fps, 1), steps, between);
  }

  // How many of the direction's first `total` frames belong to streams[index].
  uint64_t frames_of(size_t index, uint64_t total) const {
    const uint64_t foreground = mix.foreground_among(total);
    return index == 0 ? foreground : total - foreground;
  }
  // Whether the DUT need not forward the second stream.
  bool has_flood() const { return streams.size() > 1 && streams[1].is_flood(); }
  bool has_beside() const { return streams.size() > 1 && streams[1].is_beside(); }
  // How many of the direction's first `total` frames the DUT must forward.
  uint64_t expected_among(uint64_t total) const {
    return has_beside() ? frames_of(0, total) : total;
  }
  // Which of the direction's first `total` frames is the last one of these. REQUIRES: total > 0.
  uint64_t last_expected_among(uint64_t total) const {
    return has_beside() ? place_of(0, frames_of(0, total) - 1) : total - 1;
  }
  // Which of the direction's frames is number `sequence` of streams[index].
  uint64_t place_of(size_t index, uint64_t sequence) const {
    return index == 0 ? mix.place_of_foreground(sequence) : mix.place_of_background(sequence);
  }
};

// Frames of each direction's foreground stream whose exact delays are kept (RFC 8219 7.2).
struct TagPlan {
  uint64_t first_ns = 0;
  uint64_t count = 0;
};

// Store the four-tuples that arrive of a side's foreground stream; number i in entry i mod entries.
struct LearnSpec {
  Side from = Side::kLeft;
  int ip_version = 4;  // as they arrive
  uint64_t entries = 1;
  bool keep = false;                   // the table of earlier trials, not a new one
  state::TupleTable* table = nullptr;  // outlives the trial
  std::optional<state::ExpectedSources> expected;
  uint64_t told = 0;  // so many of the first entries stand in the result
};

// Addresses of the initiator's own, one bit of which differs only where one of `varying` is set.
struct OwnSources {
  net::IpAddress address;
  std::array<uint8_t, 16> varying{};

  // Whether a frame, behind its tags, is from one of them. REQUIRES: a whole IP header of that
  // version is there.
  bool sent(const uint8_t* frame, int ip_version) const {
    if (address.version != ip_version) return false;
    const size_t at =
        sizeof(net::EthernetHeader) +
        (ip_version == 4 ? offsetof(net::Ipv4Header, src) : offsetof(net::Ipv6Header, src));
    for (size_t i = 0; i < address.size(); ++i) {
      const int differing = frame[at + i] ^ address.bytes[i];
      if ((differing & ~varying[i] & 0xff) != 0) return false;
    }
    return true;
  }
};

// The steps that connections take in a trial: from `first.step`, which the send loop sends, to
// `last`. What went before was another trial's.
struct ExchangeSpec {
  net::SegmentLayout first;
  net::Step last = net::Step::kResponse;
  uint64_t connections = 0;         // at most 2^32
  uint32_t object_bytes = 64;       // of a response, behind its header
  uint32_t retransmit = 0;          // how often a connection that waits for a segment sends again
  uint64_t rto_ns = 1'000'000'000;  // after its first segment; doubled each time (RFC 6298 5.5)
  // What comes to the responder from these was not translated, and did not arrive.
  std::optional<OwnSources> untranslated;

  bool includes(net::Step step) const { return first.step <= step && step <= last; }
};

// The trial's frames are queries to a DNS64 server, whose authority is the other side (RFC 8219 9):
// one that is answered has arrived, where it was sent.
struct ResolutionSpec {
  net::DnsZone zone;
  uint64_t queries = 0;  // at most 2^32
  bool fills = false;    // the server's cache, which may have some of these names
};

// Each direction's foreground is data on TCP connections that another trial has opened: its
// initiator's, or of learned four-tuples its responder's.
struct DataSpec {
  net::SegmentLayout layout;
  std::optional<OwnSources> untranslated;  // as of an exchange
};

struct TrialSpec {
  uint16_t trial_id = 0;
  uint64_t duration_ns = 0;
  uint64_t residual_wait_ns = 0;
  uint64_t lag_limit_ns = 0;
  uint32_t burst_limit = 32;
  uint64_t shares = 1;  // in which each direction's work is split
  bool verify_checksums = true;
  uint64_t inspect_every = kInspectEvery;    // 0: none
  std::optional<uint64_t> frame_timeout_ns;  // slower frames count against the DUT
  uint64_t loss_tolerance_ppb = 0;           // of a direction's frames
  bool stop_when_lost = false;               // more than that
  measure::RecordSpec record;                // its timeouts: the one above and these
  std::vector<uint64_t> slower_ns;
  std::optional<TagPlan> tags;
  std::optional<LearnSpec> learn;
  uint64_t not_before_ns = 0;   // after the start of the trial that made the table
  uint64_t not_before_tsc = 0;  // the same as a time; 0: any
  uint64_t survival_blocks = 0;
  uint64_t connection_blocks = 0;        // 0: nobody asks what became of each connection
  std::optional<ExchangeSpec> exchange;  // the one direction that is active sends segments
  std::optional<DataSpec> data;
  std::optional<ResolutionSpec> resolution;  // the one direction that is active sends queries
  DirectionSpec from[kSides];                // by sending side
  AnswerSpec answers[kSides];                // to be kept, by the side where they come in

  // Where a sender's frames arrive, and whose arrive at a side.
  Side receiver_of(Side sender) const { return resolution ? sender : other(sender); }
  Side sender_to(Side receiver) const { return resolution ? receiver : other(receiver); }
  // What comes is answered where it comes.
  bool is_answered() const { return exchange || resolution; }

  uint64_t frames_of(Side sender, size_t stream) const {
    const DirectionSpec& direction = from[index_of(sender)];
    return stream < direction.streams.size() ? direction.frames_of(stream, direction.frames) : 0;
  }

  // How long before the end of the trial a sender's load ends: in a pause.
  uint64_t idle_end_ns(Side sender) const {
    const DirectionSpec& direction = from[index_of(sender)];
    if (!direction.active()) return 0;
    const uint64_t end_ns = direction.load().step_end_ns(direction.frames - 1);
    return duration_ns - std::min(duration_ns, end_ns);
  }

  // Where the tags of a sender's stream lie; without any for the background.
  TagSpread tags_of(Side sender, size_t stream) const {
    const DirectionSpec& direction = from[index_of(sender)];
    if (!tags || stream > 0 || !direction.active()) return {};
    const StreamSpec& tagged = direction.streams[0];
    const uint64_t frames = frames_of(sender, stream);
    auto first = static_cast<uint64_t>((unsigned __int128){frames} * tags->first_ns / duration_ns);
    if (!direction.steps.empty()) {
      first = direction.frames_of(stream, direction.load().frames_in(tags->first_ns));
    }
    return {first, frames - first, tags->count,
            vary::key_of(tagged.variations.seed, tagged.id, TagSpread::kGroup)};
  }
};

}  // namespace dutperf::dataplane
