// What the initiator of a trial's connections sends again (RFC 6298), where the trial asks for it.
//
// Nothing is kept of a connection but its bits (dataplane/exchange.h). So a connection has one
// timer, which runs from when its first segment was due: after the RTO, and after twice as long
// each time, it sends again what has no answer, whatever that is by then. What no answer of its own
// tells, that an ACK came, the responder's bits do: a responder would send again what the ACK was
// for. Segments that are sent again have the stamp of the first: what is timed by it has waited.
//
// It belongs to the worker that sends and receives at the initiator's side.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/exchange.h"
#include "dataplane/sender.h"
#include "dataplane/trial_spec.h"
#include "dpdk/frame_pool.h"
#include "timing/clock.h"
#include "timing/load.h"
#include "vary/frame_writer.h"

namespace dutperf::dataplane {

class Retransmission {
 public:
  // What may be sent again.
  static constexpr std::array kSegments = {Step::kSyn, Step::kAck, Step::kRequest, Step::kFin,
                                           Step::kLastAck};

  // Of `direction` of the trial. `pools`: one for each of kSegments. All that is referred to
  // outlives it.
  Retransmission(const ExchangeSpec& spec, const DirectionSpec& direction,
                 const std::vector<dpdk::FramePool*>& pools, const dpdk::TxQueue& queue,
                 Exchange& initiator, const Exchange& responder, const Sender& sender,
                 const timing::TscClock& clock);

  // As of a sender.
  void prepare();
  void start(uint64_t start_tsc) { start_tsc_ = start_tsc; }
  void step() noexcept;

 private:
  struct Segment {
    Step step;
    vary::FrameWriter writer;
    dpdk::FramePool* pool;
  };
  // One of the times at which each connection is looked at, in the order of their first segments.
  struct Round {
    uint64_t after_ns;
    uint64_t next = 0;   // connection
    size_t segment = 0;  // of it, after one for which there was no room
  };

  void go_on(Round& round, uint64_t now_ns) noexcept;
  bool is_missing(Step step, uint64_t connection) const noexcept;
  // False when there is no room: again later.
  bool send(Segment& segment, uint64_t connection) noexcept;

  static constexpr uint64_t kMostAStep = 256;    // connections that a round looks at
  static constexpr uint64_t kEveryNs = 100'000;  // the timer's grain

  const ExchangeSpec& spec_;
  const dpdk::TxQueue queue_;
  Exchange& initiator_;
  const Exchange& responder_;
  const Sender& sender_;
  const timing::TscClock clock_;
  const timing::Load load_;
  std::vector<Segment> segments_;  // those that the trial has
  std::vector<Round> rounds_;
  uint64_t start_tsc_ = 0;
  uint64_t looked_ns_ = 0;
};

}  // namespace dutperf::dataplane
