// One trial on the workers, from launch to collected reports.
//
// Life of a trial, workers on the left, control thread on the right:
//
//   constructed              senders, receivers and their memory exist; nothing runs
//   launch()                 workers prepare their buffers, meet, start together
//   ... steps ...            control sleeps; may look at progress, may stop() or abort()
//   done_fd readable         the last worker has ended
//   join()                   reports may be read
//
// The object outlives its workers: the destructor aborts and joins.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/receiver.h"
#include "dataplane/retransmission.h"
#include "dataplane/roles.h"
#include "dataplane/sender.h"
#include "dataplane/trial_clock.h"
#include "dpdk/eal.h"
#include "dpdk/frame_pool.h"
#include "dpdk/port.h"
#include "dpdk/reply_ring.h"
#include "measure/stream_recorder.h"
#include "net/neighbour.h"

namespace dutperf::dataplane {

// How many frames may wait on the way from a port to its slow path, or back.
inline constexpr unsigned kUnclaimedFrames = 256;

// What one port of the tester owns from trial to trial.
struct PortResources {
  explicit PortResources(const dpdk::Port& port);

  std::vector<dpdk::TxQueue> tx;
  dpdk::RxQueues rx;
  std::optional<PortTimes> times;  // of a NIC that tells them, or is told
  dpdk::ReplyRing replies;
  std::optional<dpdk::ReplyRing> unclaimed;  // where the port has a slow path
  net::OwnAddresses own;
  std::vector<net::NeighbourAnswer> next_hops;  // as they answered before the trial
};

// What one side of the tester owns from trial to trial: of each of its ports, and of all of them.
class SideResources {
 public:
  // `side_ports`: in the order of their numbers, at least one; all outlive it.
  SideResources(const std::vector<const dpdk::Port*>& side_ports, uint32_t max_frame_bytes);

  // One pool of transmit buffers for each lane of each share; made when first needed. Throws
  // dpdk::SetupError.
  std::vector<dpdk::FramePool*> pools(uint64_t share, size_t lanes);
  // Whether what comes in is in buffers of the other side's.
  bool lends_buffers() const { return first_port_.options().driver == dpdk::Driver::kRing; }
  // What `share` has of each port.
  std::vector<SendingPort> sending(Share share) const;
  std::vector<ReceivingPort> receiving(Share share) const;
  // Of what arrives here, by share; after them that of the whole, if there are several.
  StreamRecorders& recorders(uint64_t place);
  const HandOver& hand_over(uint64_t shares);
  uint64_t held_bytes() const;  // by recorders

  std::vector<std::unique_ptr<PortResources>> ports;

 private:
  const dpdk::Port& first_port_;
  uint32_t max_frame_bytes_;
  std::vector<std::vector<std::unique_ptr<dpdk::FramePool>>> pools_;  // by share
  std::vector<std::unique_ptr<StreamRecorders>> recorders_;
  std::unique_ptr<HandOver> hand_over_;
};

class TrialRun {
 public:
  // `spec` and `sides` (left, right) outlive the run. Resets the recorders.
  TrialRun(const TrialSpec& spec, const std::array<SideResources*, kSides>& sides,
           const timing::TscClock& clock, const std::vector<unsigned>& lcores);
  ~TrialRun();
  TrialRun(const TrialRun&) = delete;
  TrialRun& operator=(const TrialRun&) = delete;

  void launch();
  // Ends sending; what was sent is accounted for as ever.
  void stop() { clock_.stop(); }
  void abort() { clock_.abort(); }
  void join();

  // Readable once all workers have ended.
  int done_fd() const { return done_fd_; }
  bool aborted() const { return clock_.aborted(); }
  bool stopped() const { return clock_.stopping(); }
  // Start to end of the residual wait; 0 when the trial was aborted.
  uint64_t running_ns() const;
  uint64_t start_tsc() const { return clock_.start_tsc(); }
  uint64_t published_sent() const;
  uint64_t published_received() const;
  // How many of the frames that left `side` up to `until_ns` after the start, and that the DUT must
  // forward, have not arrived, by whole intervals of the time series; and how many arrived later
  // than the frame timeout.
  uint64_t missing_from(Side side, uint64_t until_ns) const;

  // After join(). Of all shares together, unless it says so.
  const SendReport& sent_from(Side side) const { return ends_[index_of(side)].sent; }
  const ReceiveReport& received_at(Side side) const { return ends_[index_of(side)].received; }
  const PortArrivals& arrivals_at(Side side, size_t number) const {
    return ends_[index_of(side)].arrivals[number];
  }
  // Those that ended, by their begin.
  std::vector<measure::Stall> stalls_of(Side side) const;
  // In which of the tester's shadows the frames stood that arrive at `side`, by share.
  const std::vector<measure::Shadow>& shadows_at(Side side, uint64_t share) const {
    return ends_[index_of(side)].receivers[share]->finish_shadows();
  }
  // Beyond the number of the last frame that has left `side`: of several shares, whose senders may
  // be stopped a little apart, not how many have.
  uint64_t end_of(Side side) const;
  // `last_due_ns`: when the last frame was due that the DUT must forward.
  measure::Silence silence_at(Side side, uint64_t last_due_ns) const;
  // A share's.
  const SendReport& sent_from(Side side, uint64_t share) const {
    return ends_[index_of(side)].senders[share]->report();
  }
  const ReceiveReport& received_at(Side side, uint64_t share) const {
    return ends_[index_of(side)].receivers[share]->report();
  }
  uint64_t shares() const { return spec_.shares; }
  Side receiver_of(Side sender) const { return spec_.receiver_of(sender); }
  // REQUIRES: it is a trial of connections.
  const ExchangeReport& exchange_at(Side side) const {
    return ends_[index_of(side)].exchange->report();
  }
  // REQUIRES: it is a trial of a DNS64 server.
  const ResolutionReport& resolution_at(Side side) const {
    return ends_[index_of(side)].resolution->report();
  }
  // Of a stream that arrives at `side`, of which `sent` frames left.
  const measure::StreamRecorder& finish_recorder(Side side, size_t stream, uint64_t sent);
  // A share's, complete after that.
  const measure::StreamRecorder& recorder_of(Side side, size_t stream, uint64_t share) const {
    return sides_[index_of(side)]->recorders(share)[stream];
  }
  // Frames that arrived with numbers that the stream has not.
  uint64_t never_sent_at(Side side, size_t stream) const;
  // Frames of learned four-tuples that were built although their entry was empty.
  uint64_t unlearned() const;
  // What the receivers stored; of the one that learns.
  state::Learner::Counts learned() const;

 private:
  struct Worker {
    TrialRun* run;
    std::vector<Sender*> senders;
    std::vector<Receiver*> receivers;
    Retransmission* retransmission;  // null: nothing is sent again
  };
  // One side's, by share, and what they say together.
  struct End {
    std::vector<std::unique_ptr<measure::StallLog>> stalls;
    std::vector<std::unique_ptr<Sender>> senders;
    std::vector<std::unique_ptr<Receiver>> receivers;
    std::unique_ptr<Exchange> exchange;  // null: nothing is answered
    std::unique_ptr<Retransmission> retransmission;
    std::unique_ptr<Resolution> resolution;  // null: it is no trial of DNS
    SendReport sent;
    ReceiveReport received;
    std::vector<PortArrivals> arrivals;  // by port
  };

  void prepare(Side side, const SenderStalls& stalls);
  void prepare_retransmission(Side initiator);
  void reset_recorders(Side side);
  // Where the role is played.
  unsigned lcore_of(const Role& role) const;
  // Those of the side's other receivers.
  std::vector<const measure::SilenceMeter*> meters_beside(Side side, const Receiver& own) const;
  void sum_up(End& end);
  uint64_t published_sent(Side side) const;
  static int work(void* worker);
  void work_until_end(Worker& worker);

  const TrialSpec& spec_;
  const std::array<SideResources*, kSides> sides_;
  TrialClock clock_;
  const std::vector<unsigned> lcores_;
  const std::vector<std::vector<Role>> roles_;                                  // of each
  std::array<std::array<std::atomic<uint64_t>, kMaxStreams>, kSides> origins_;  // of delays
  std::array<End, kSides> ends_;
  std::vector<Worker> workers_;
  std::atomic<uint32_t> workers_running_;
  int done_fd_;
  bool launched_ = false;
};

}  // namespace dutperf::dataplane
