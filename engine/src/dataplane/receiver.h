// The receive loop. There is one; what is recorded is a parameter.
//
// Classify -> account -> record. Frames that are not this trial's are counted where they belong:
// neighbour requests are answered, another trial's frames are stale, the other port's are
// misdirected, everything else is foreign.
//
// A receiver is driven by one worker. `published_received` may be read by others at any time; the
// rest only after the worker has ended.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "dataplane/trial_spec.h"
#include "dpdk/mbuf.h"
#include "dpdk/reply_ring.h"
#include "measure/sequence_tracker.h"
#include "net/classify.h"
#include "net/neighbour.h"

namespace dutperf::dataplane {

using StreamTrackers = std::array<measure::SequenceTracker, kMaxStreams>;

struct ReceiveReport {
  uint64_t neighbour_requests = 0;
  uint64_t foreign = 0;
  uint64_t stale = 0;
  uint64_t misdirected = 0;
  uint64_t corrupt = 0;
};

class Receiver {
 public:
  // Receives at `side` what the other side sends. `trackers` (one for each stream, already reset),
  // `own` and `replies` outlive the receiver.
  Receiver(const TrialSpec& spec, Side side, dpdk::RxQueue queue, StreamTrackers& trackers,
           const net::OwnAddresses& own, dpdk::ReplyRing& replies);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  void step() noexcept;

  uint64_t published_received() const {
    return published_received_.load(std::memory_order_relaxed);
  }
  const ReceiveReport& report() const { return report_; }

 private:
  void account(const uint8_t* frame, const net::Classified& classified) noexcept;
  bool answer(dpdk::Mbuf* mbuf) noexcept;

  static constexpr uint8_t kNotExpected = 0xff;

  // The IP packet's length that frame `sequence` of a stream must have.
  uint32_t expected_ip_bytes(uint8_t stream, uint64_t sequence) const {
    const std::vector<uint32_t>& lengths = ip_bytes_[stream];
    return lengths.size() == 1 ? lengths[0] : lengths[sequence % lengths.size()];
  }

  const uint16_t trial_id_;
  const bool verify_checksums_;
  std::array<uint8_t, 256> stream_of_id_;  // index of the stream, or kNotExpected
  std::array<std::vector<uint32_t>, kMaxStreams> ip_bytes_;
  const dpdk::RxQueue queue_;
  StreamTrackers& trackers_;
  const net::OwnAddresses& own_;
  dpdk::ReplyRing& replies_;
  ReceiveReport report_;
  alignas(64) std::atomic<uint64_t> published_received_{0};
};

}  // namespace dutperf::dataplane
