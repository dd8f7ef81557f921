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

  dpdk::TxQueue tx;
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

  // One pool of transmit buffers for each lane; made when first needed. Throws dpdk::SetupError.
  std::vector<dpdk::FramePool*> pools(size_t lanes);
  std::vector<SendingPort> sending() const;
  std::vector<ReceivingPort> receiving() const;

  std::vector<std::unique_ptr<PortResources>> ports;
  StreamRecorders recorders;  // of what arrives here

 private:
  const dpdk::Port& first_port_;
  uint32_t max_frame_bytes_;
  std::vector<std::unique_ptr<dpdk::FramePool>> pools_;
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

  // After join().
  const SendReport& sent_from(Side side) const { return senders_[index_of(side)]->report(); }
  const measure::StallLog& stalls_of(Side side) const { return stalls_[index_of(side)]; }
  // In which of the tester's shadows the frames stood that arrive at `side`.
  const std::vector<measure::Shadow>& shadows_at(Side side) const {
    return receivers_[index_of(side)]->finish_shadows();
  }
  const measure::SilenceMeter& silence_at(Side side) const {
    return receivers_[index_of(side)]->silence();
  }
  const ReceiveReport& received_at(Side side) const { return receivers_[index_of(side)]->report(); }
  const PortArrivals& arrivals_at(Side side, size_t number) const {
    return receivers_[index_of(side)]->arrivals(number);
  }
  // Frames of learned four-tuples that were built although their entry was empty.
  uint64_t unlearned() const { return senders_[0]->unlearned() + senders_[1]->unlearned(); }
  // What the receivers stored; of the one that learns.
  state::Learner::Counts learned() const;

 private:
  struct Worker {
    TrialRun* run;
    std::vector<Sender*> senders;
    std::vector<Receiver*> receivers;
  };

  static int work(void* worker);
  void work_until_end(Worker& worker);

  const TrialSpec& spec_;
  const std::array<SideResources*, kSides> sides_;
  TrialClock clock_;
  const std::vector<unsigned> lcores_;
  std::array<measure::StallLog, kSides> stalls_;
  std::array<std::unique_ptr<Sender>, kSides> senders_;
  std::array<std::unique_ptr<Receiver>, kSides> receivers_;
  std::vector<Worker> workers_;
  std::atomic<uint32_t> workers_running_;
  int done_fd_;
  bool launched_ = false;
};

}  // namespace dutperf::dataplane
