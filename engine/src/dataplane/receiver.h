// The receive loop. There is one; what is recorded is a parameter.
//
// Classify -> account -> learn -> record -> inspect, a burst at a time. Frames that are not this
// trial's are counted where they belong: neighbour requests are answered, another trial's frames
// are stale, the other port's are misdirected, those with other VLAN tags, labels or outer headers
// than the port's are no frames of its network, everything else is foreign, and of that ICMP by
// type: it says why a device does not forward. Of the rest answers to what the trial announced are
// kept; what remains is handed on, if anybody wants it (control/slow_path.h). How a frame is
// damaged is looked at only once it is known to be. Of those that are whole every k-th is
// inspected: what no checksum covers.
//
// Of several shares each has a receiver. A frame is looked at by the one that takes it from the
// port, and recorded by the one whose share it is of (dataplane/hand_over.h).
//
// A receiver is driven by one worker. `published_received` may be read by others at any time; the
// rest only after the worker has ended.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/answer_log.h"
#include "dataplane/exchange.h"
#include "dataplane/hand_over.h"
#include "dataplane/learning.h"
#include "dataplane/port_times.h"
#include "dataplane/resolution.h"
#include "dataplane/trial_clock.h"
#include "dataplane/trial_spec.h"
#include "dpdk/mbuf.h"
#include "dpdk/reply_ring.h"
#include "measure/histogram.h"
#include "measure/shadow_watch.h"
#include "measure/silence_meter.h"
#include "measure/stream_recorder.h"
#include "net/classify.h"
#include "net/damage.h"
#include "net/icmp.h"
#include "net/inspection.h"
#include "net/neighbour.h"
#include "net/reassembly.h"
#include "net/receiving_end.h"

namespace dutperf::dataplane {

using StreamRecorders = std::array<measure::StreamRecorder, kMaxStreams>;
using SenderStalls = std::vector<const measure::StallLog*>;  // of all senders

// Where the frames go that are no test traffic.
struct RepliesAndRest {
  dpdk::ReplyRing& replies;    // to the neighbours
  dpdk::ReplyRing* unclaimed;  // all else but ICMP; null: nobody wants it
};

// A port that a receiver receives by; all that it names outlives the receiver.
struct ReceivingPort {
  dpdk::RxQueues queues;
  const net::OwnAddresses* own;
  const std::vector<net::NeighbourAnswer>* next_hops;
  RepliesAndRest rings;
  const PortTimes* times = nullptr;  // null: no NIC says when a frame came
};

inline constexpr unsigned kGapBits = 5;  // an error bound: 3 % is plenty

// What came in by one port beside the trial's own frames.
struct PortArrivals {
  uint64_t neighbour_requests = 0;
  uint64_t neighbour_conflicts = 0;
  uint64_t foreign = 0;     // ICMP messages and answers among them
  net::IcmpCounts icmp;     // these by kind
  uint64_t other_vlan = 0;  // VLAN tags, labels or outer headers that are not the port's
  uint64_t fragments = 0;
  uint64_t reassembled = 0;  // packets that were whole again
  uint64_t incomplete = 0;   // packets of which pieces are missing, after the trial
  uint64_t stale = 0;
  uint64_t misdirected = 0;
  uint64_t untranslated = 0;  // data that came with its initiator's own address
  net::DamageCounts damaged;  // the trial's
  uint64_t cut_short = 0;     // UDP, truncated before the place that tells whose it is
  uint64_t in_several = 0;    // in several buffers, of which the first is too short: ours to blame
  AnswerLog answers;
  uint64_t unclaimed_lost = 0;  // its ring was full
  uint64_t handed_over = 0;     // came by another share's queue
  uint64_t not_taken_over = 0;  // of these: that share had no room for them, ours to blame
  uint64_t segments = 0;        // of TCP, in a trial of connections; or datagrams of DNS

  // What came by the port's other queues.
  void add(const PortArrivals& other);
};

struct ReceiveReport {
  std::array<net::Inspected, kMaxStreams> inspected;
  // How long each burst's frames may have waited in the port: from the begin of the last poll that
  // left nothing behind to the end of the one that returned them.
  measure::Histogram gap_ns{kGapBits};
  uint64_t shortest_poll_tsc = UINT64_MAX;  // of those that returned frames
  // Of ports whose NIC says when a frame came.
  uint64_t stamped = 0;
  uint64_t unstamped = 0;  // came with no time or with an impossible one: the loop's counts
  uint64_t clock_worst_tsc = 0;

  // What another share of the direction has received beside.
  void add(const ReceiveReport& other);
};

class Receiver {
 public:
  // Receives at `side`, by its `ports` in the order of their numbers, what the other side sends.
  // Of several shares it records the frames of `share`, and hands over those of others. `recorders`
  // (one for each stream, already reset), `hand_over`, `clock` and the senders' `stalls` outlive
  // the receiver.
  Receiver(const TrialSpec& spec, Side side, Share share, const std::vector<ReceivingPort>& ports,
           StreamRecorders& recorders, const HandOver& hand_over, const timing::TscClock& clock,
           const SenderStalls& stalls);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  void start(uint64_t start_tsc) {
    start_tsc_ = start_tsc;
    for (Input& input : inputs_) input.drained_tsc.fill(timing::read_tsc());
  }
  // Receives a burst by each queue of each port; as many as a sender sends in a step, when frames
  // are waiting.
  void step() noexcept;
  // Before the trial: those of the direction's other shares, which outlive it.
  void listen_with(const std::vector<const measure::SilenceMeter*>& others) {
    silence_.listen_with(others);
  }
  // Before the trial: TCP segments are its to answer. It outlives the receiver.
  void answer_by(Exchange* exchange) { exchange_ = exchange; }
  // The same of DNS.
  void answer_by(Resolution* resolution) { resolution_ = resolution; }
  // After the trial: takes what others have handed over since.
  void finish() noexcept { take_handed_over(); }

  uint64_t published_received() const {
    return published_received_.load(std::memory_order_relaxed);
  }
  const ReceiveReport& report() const { return report_; }
  size_t ports() const { return inputs_.size(); }
  const PortArrivals& arrivals(size_t number) const { return inputs_[number].arrivals; }
  // After the trial: in which of the tester's shadows the frames stood.
  const std::vector<measure::Shadow>& finish_shadows() {
    shadows_.finish();
    return shadows_.shadows();
  }
  const measure::SilenceMeter& silence() const { return silence_; }
  state::Learner::Counts learned() const {
    return learning_ ? learning_->counts() : state::Learner::Counts{};
  }

 private:
  static constexpr uint32_t kBurst = 32;
  static constexpr uint32_t kBurstsPerStep = 4;
  static_assert(kBurst <= measure::StreamRecorder::kMaxArrivals);
  static_assert(kBurst <= net::Reassembly::kKept);
  // A burst's frames of each stream.
  struct Burst {
    measure::Arrival arrivals[kMaxStreams][kBurst];
    const uint8_t* frames[kMaxStreams][kBurst];  // of the arrivals, behind tags and the rest
    uint32_t count[kMaxStreams] = {};
  };

  // What a port's test frames have before them. Decided once: who has nothing pays nothing.
  enum class Before : uint8_t { kNothing, kTags, kLabels, kOuter };

  // One of the side's ports.
  struct Input {
    ReceivingPort port;
    uint16_t number;
    // Of each queue: begin of the last poll that left nothing behind.
    std::array<uint64_t, dpdk::kMostRxQueues> drained_tsc{};
    std::unique_ptr<net::Reassembly> reassembly;  // null: nothing comes in pieces
    std::optional<timing::PortClock> clock;       // of a NIC that says when a frame came
    PortArrivals arrivals;
  };

  // When frames came: between two of the loop's times, or at one that the NIC told.
  struct Times {
    uint64_t drained_tsc;
    uint64_t polled_tsc;
    uint64_t received_tsc;
    uint64_t came_tsc;
    uint64_t received_ns;  // since the start
  };

  void step_of(Input& input, uint16_t queue) noexcept;
  // Returns how many frames there were.
  template <Before kBefore>
  uint32_t receive_burst(Input& input, uint16_t queue) noexcept;
  // Takes what came at one time.
  template <Before kBefore>
  void take(Input& input, uint16_t queue, dpdk::Mbuf** mbufs, uint32_t count,
            const Times& times) noexcept;
  // Of a trial of connections.
  void take_segments(Input& input, uint16_t queue, dpdk::Mbuf** mbufs, uint32_t count,
                     const Times& times) noexcept;
  // Of a trial of a DNS64 server.
  void take_datagrams(Input& input, uint16_t queue, dpdk::Mbuf** mbufs, uint32_t count,
                      const Times& times) noexcept;
  // These return true when the buffer leaves as an answer, or a ring took it.
  bool take_dns(dpdk::Mbuf* mbuf, const net::Datagram& datagram, Input& input,
                Burst& burst) noexcept;
  bool take_other(dpdk::Mbuf* mbuf, Input& input) noexcept;
  bool take_segment(dpdk::Mbuf* mbuf, const net::Segment& segment, Input& input, Burst& burst,
                    const Times& times) noexcept;
  // Takes them one by one, each at the time of its stamp.
  template <Before kBefore>
  void take_stamped(Input& input, uint16_t queue, dpdk::Mbuf** mbufs, uint32_t count,
                    Times times) noexcept;
  // Here and below `frame` is what stands behind its VLAN tags, labels and outer headers.
  void account(const uint8_t* frame, const net::Classified& classified, Input& input,
               Burst& burst) noexcept;
  // Takes those out of the burst that should have come by another one of several ports, that are
  // for somebody else, or that a gateway should have translated.
  void sort_out(Input& input, Burst& burst) noexcept;
  // Here it is the frame of a piece, and `burst` takes the test frame that it may complete.
  void take_piece(const uint8_t* frame, size_t size, Input& input, Burst& burst) noexcept;
  bool take_aside(dpdk::Mbuf* mbuf, net::Classified classified, Input& input) noexcept;
  void account_damaged(uint8_t stream, const uint8_t* frame, net::Classified classified,
                       Input& input) noexcept;
  // True when the outer headers of a frame of this trial are damaged.
  bool account_outer(const uint8_t* frame, const net::Classified& classified,
                     Input& input) noexcept;
  void account_truncated(const net::Classified& classified, Input& input) noexcept;
  const uint8_t* ether_type_of(const uint8_t* frame) const noexcept;
  void account_icmp(const uint8_t* frame, const net::Classified& classified, Input& input) noexcept;
  void inspect(const Burst& burst) noexcept;
  // Whether it is a SYN of the flood, and counted.
  bool take_flood(const uint8_t* frame, size_t size, const Times& times) noexcept;
  // `queue`: by which they came.
  void record(Burst& burst, const Times& times, uint64_t queue) noexcept;
  // Keeps this share's frames, by their numbers in it.
  void hand_over(Burst& burst, const Times& times, uint64_t queue, PortArrivals& arrivals) noexcept;
  void take_handed_over() noexcept;
  // Its frame has its tags still.
  // These return true when a ring took the buffer.
  bool account_foreign(dpdk::Mbuf* mbuf, Input& input) noexcept;
  bool answer(dpdk::Mbuf* mbuf, Input& input) noexcept;
  bool hand_on(dpdk::Mbuf* mbuf, Input& input) noexcept;
  bool keep_answer(const uint8_t* frame, size_t size, Input& input) noexcept;

  static constexpr uint8_t kNotExpected = 0xff;

  // The lengths that the IP packets of a stream's frames must have, in turn.
  struct IpBytes {
    IpBytes() = default;
    explicit IpBytes(const StreamSpec& stream);
    uint32_t of(uint64_t sequence) const { return count == 1 ? first : in_turn[sequence % count]; }

    uint32_t first = 0;
    uint64_t count = 0;
    std::vector<uint32_t> in_turn;
  };

  const uint16_t trial_id_;
  const bool verify_checksums_;
  const uint64_t inspect_every_;
  const net::VlanTags vlan_;
  const net::LabelStack labels_;
  const net::Encapsulation outer_;
  const uint32_t before_bytes_;  // of all of these
  const AnswerSpec answers_;
  const Before before_;
  std::array<uint8_t, 256> stream_of_id_;  // index of the stream, or kNotExpected
  std::array<IpBytes, kMaxStreams> ip_bytes_;
  std::array<net::Expected, kMaxStreams> expected_;
  std::array<std::vector<uint8_t>, kMaxStreams> received_by_;  // by the stream's paths
  std::array<std::optional<net::ReceivingEnd>, kMaxStreams> ends_;
  std::vector<Input> inputs_;
  std::optional<OwnSources> untranslated_;
  bool sorts_ = false;
  std::optional<net::SequenceNumbers> flood_;  // those of the second stream's SYNs
  uint64_t flood_frames_ = 0;
  StreamRecorders& recorders_;
  const Share share_;
  const measure::Owners owners_;
  const HandOver& hand_over_;
  const timing::TscClock clock_;
  std::optional<Learning> learning_;
  Exchange* exchange_ = nullptr;
  Resolution* resolution_ = nullptr;
  const timing::Load load_;  // of what comes
  uint64_t start_tsc_ = 0;
  uint64_t uninspected_;  // frames to come before the next one that is inspected
  measure::ShadowWatch shadows_;
  bool has_beside_;  // the second stream's frames need not be forwarded
  measure::SilenceMeter silence_;
  ReceiveReport report_;
  alignas(64) std::atomic<uint64_t> published_received_{0};
};

}  // namespace dutperf::dataplane
