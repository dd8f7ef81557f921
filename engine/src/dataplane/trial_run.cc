#include "dataplane/trial_run.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace dutperf::dataplane {
namespace {

// A share of less than a frame has nothing to end.
uint32_t active_senders(const TrialSpec& spec) {
  uint32_t result = 0;
  for (const DirectionSpec& direction : spec.from) {
    for (uint64_t share = 0; direction.active() && share < spec.shares; ++share) {
      const bool has_frames = Share{share, spec.shares}.frames_among(direction.frames) > 0;
      result += has_frames || spec.shares == 1 ? 1 : 0;
    }
  }
  return result;
}

// The first lanes can fill the transmit queue alone; those of a long IMIX share it.
constexpr size_t kRoomyLanes = 2;

}  // namespace

PortResources::PortResources(const dpdk::Port& port)
    : rx(port.rx()), replies("replies_" + port.options().name) {
  for (uint16_t queue = 0; queue < port.options().tx_queues; ++queue) tx.push_back(port.tx(queue));
  own.mac = port.mac();
  own.vlan = port.options().vlan;
}

SideResources::SideResources(const std::vector<const dpdk::Port*>& side_ports,
                             uint32_t max_frame_bytes)
    : first_port_(*side_ports[0]), max_frame_bytes_(max_frame_bytes) {
  for (const dpdk::Port* port : side_ports) {
    ports.push_back(std::make_unique<PortResources>(*port));
  }
  pools(0, 1);
}

std::vector<SendingPort> SideResources::sending(Share share) const {
  std::vector<SendingPort> result;
  for (const auto& port : ports) {
    result.push_back({port->tx[share.index], share.index == 0 ? &port->replies : nullptr,
                      port->times ? &*port->times : nullptr});
  }
  return result;
}

std::vector<ReceivingPort> SideResources::receiving(Share share) const {
  std::vector<ReceivingPort> result;
  for (const auto& port : ports) {
    dpdk::ReplyRing* const unclaimed = port->unclaimed ? &*port->unclaimed : nullptr;
    dpdk::RxQueues queues = port->rx;
    queues.first = static_cast<uint16_t>(share.index);
    queues.step = static_cast<uint16_t>(share.of);
    result.push_back({queues,
                      &port->own,
                      &port->next_hops,
                      {port->replies, unclaimed},
                      port->times ? &*port->times : nullptr});
  }
  return result;
}

std::vector<dpdk::FramePool*> SideResources::pools(uint64_t share, size_t lanes) {
  const dpdk::PortOptions& options = first_port_.options();
  const bool contiguous = !dpdk::reads_dpdk_memory(options);
  if (share >= pools_.size()) pools_.resize(share + 1);
  std::vector<std::unique_ptr<dpdk::FramePool>>& own = pools_[share];
  std::vector<dpdk::FramePool*> result;
  for (size_t i = 0; i < lanes; ++i) {
    if (i == own.size()) {
      const uint32_t queue = options.tx_descriptors;
      const uint32_t frames = (i < kRoomyLanes ? 2 * queue : queue / 2) - 1;
      const std::string of_share = share == 0 ? "" : std::to_string(share) + "_";
      own.push_back(std::make_unique<dpdk::FramePool>(
          "transmit_" + options.name + "_" + of_share + std::to_string(i), frames, max_frame_bytes_,
          contiguous, first_port_.numa_node()));
    }
    result.push_back(own[i].get());
  }
  return result;
}

StreamRecorders& SideResources::recorders(uint64_t place) {
  while (recorders_.size() <= place) recorders_.push_back(std::make_unique<StreamRecorders>());
  return *recorders_[place];
}

const HandOver& SideResources::hand_over(uint64_t shares) {
  if (!hand_over_ || hand_over_->shares() != shares) {
    hand_over_ = std::make_unique<HandOver>(shares);
  }
  hand_over_->clear();
  return *hand_over_;
}

uint64_t SideResources::held_bytes() const {
  uint64_t bytes = 0;
  for (const auto& recorders : recorders_) {
    for (const measure::StreamRecorder& recorder : *recorders) bytes += recorder.held_bytes();
  }
  return bytes;
}

TrialRun::TrialRun(const TrialSpec& spec, const std::array<SideResources*, kSides>& sides,
                   const timing::TscClock& clock, const std::vector<unsigned>& lcores)
    : spec_(spec),
      sides_(sides),
      clock_(clock, static_cast<uint32_t>(lcores.size()), active_senders(spec),
             spec.residual_wait_ns, spec.not_before_tsc),
      lcores_(lcores),
      roles_(assign_roles(lcores.size(), spec.shares, spec.is_answered())),
      workers_running_(static_cast<uint32_t>(lcores.size())),
      done_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  SenderStalls stalls;
  for (End& end : ends_) {
    for (uint64_t share = 0; share < spec.shares; ++share) {
      end.stalls.push_back(std::make_unique<measure::StallLog>());
      stalls.push_back(end.stalls.back().get());
    }
  }
  for (const Side side : kBothSides) prepare(side, stalls);
  for (const Side side : kBothSides) prepare_retransmission(side);
  for (const std::vector<Role>& roles : roles_) {
    Worker worker{this, {}, {}, nullptr};
    for (const Role& role : roles) {
      const End& end = ends_[index_of(role.side)];
      if (role.duty == Duty::kSend) {
        worker.senders.push_back(end.senders[role.share].get());
        if (end.retransmission) worker.retransmission = end.retransmission.get();
      } else {
        worker.receivers.push_back(end.receivers[role.share].get());
      }
    }
    workers_.push_back(std::move(worker));
  }
}

void TrialRun::prepare(Side side, const SenderStalls& stalls) {
  SideResources& resources = *sides_[index_of(side)];
  End& end = ends_[index_of(side)];
  // What an earlier trial had no time for is not about this one.
  for (const auto& port : resources.ports) port->replies.clear();
  reset_recorders(side);
  const HandOver& hand_over = resources.hand_over(spec_.shares);
  const size_t lanes = FrameOrder::lanes(spec_.from[index_of(side)]);
  for (uint64_t i = 0; i < spec_.shares; ++i) {
    const Share share{i, spec_.shares};
    {
      const dpdk::BesideLcore beside(lcore_of({Duty::kSend, side, i}));
      end.senders.push_back(std::make_unique<Sender>(spec_, side, share, resources.sending(share),
                                                     resources.pools(i, lanes), clock_,
                                                     *end.stalls[i]));
    }
    const dpdk::BesideLcore beside(lcore_of({Duty::kReceive, side, i}));
    end.receivers.push_back(
        std::make_unique<Receiver>(spec_, side, share, resources.receiving(share),
                                   resources.recorders(i), hand_over, clock_.tsc(), stalls));
  }
  for (const auto& receiver : end.receivers) receiver->listen_with(meters_beside(side, *receiver));
  if (spec_.resolution) {
    end.resolution = std::make_unique<Resolution>(
        *spec_.resolution, spec_.from[index_of(side)].active(), resources.ports[0]->tx[0],
        *resources.pools(0, lanes + 1).back(), resources.lends_buffers());
    end.receivers[0]->answer_by(end.resolution.get());
  }
  if (!spec_.exchange) return;
  end.exchange = std::make_unique<Exchange>(
      *spec_.exchange, spec_.from[index_of(side)].active(), resources.ports[0]->tx[0],
      *resources.pools(0, lanes + 1).back(), resources.lends_buffers());
  end.receivers[0]->answer_by(end.exchange.get());
}

void TrialRun::prepare_retransmission(Side initiator) {
  const DirectionSpec& direction = spec_.from[index_of(initiator)];
  if (!spec_.exchange || spec_.exchange->retransmit == 0 || !direction.active()) return;
  SideResources& resources = *sides_[index_of(initiator)];
  const size_t before = FrameOrder::lanes(direction) + 1;  // the sender's, and that of the exchange
  const std::vector<dpdk::FramePool*> pools =
      resources.pools(0, before + Retransmission::kSegments.size());
  End& end = ends_[index_of(initiator)];
  end.retransmission = std::make_unique<Retransmission>(
      *spec_.exchange, direction,
      std::vector(pools.begin() + static_cast<long>(before), pools.end()),
      resources.ports[0]->tx[0], *end.exchange, *ends_[index_of(other(initiator))].exchange,
      *end.senders[0], clock_.tsc());
}

void TrialRun::reset_recorders(Side side) {
  const Side sender = spec_.sender_to(side);
  const std::vector<StreamSpec>& streams = spec_.from[index_of(sender)].streams;
  const bool several = spec_.shares > 1;
  size_t queues = 1;
  for (const auto& port : sides_[index_of(side)]->ports) {
    if (several) queues = std::max<size_t>(queues, port->rx.end);
  }
  for (size_t stream = 0; stream < kMaxStreams; ++stream) {
    const size_t paths = stream < streams.size() ? streams[stream].paths() : 1;
    const uint64_t frames = spec_.frames_of(sender, stream);
    const std::vector<uint64_t> tags = spec_.tags_of(sender, stream).sequences();
    std::atomic<uint64_t>& origin = origins_[index_of(side)][stream];
    origin = UINT64_MAX;
    if (!several) {
      const dpdk::BesideLcore beside(lcore_of({Duty::kReceive, side}));
      sides_[index_of(side)]->recorders(0)[stream].reset(spec_.record, frames, tags, paths);
      continue;
    }
    for (uint64_t i = 0; i < spec_.shares; ++i) {
      const dpdk::BesideLcore beside(lcore_of({Duty::kReceive, side, i}));
      const Share share{i, spec_.shares};
      std::vector<uint64_t> own_tags;
      for (const uint64_t tag : tags) {
        if (tag % share.of == i) own_tags.push_back(tag / share.of);
      }
      sides_[index_of(side)]->recorders(i)[stream].reset(
          spec_.record, share.frames_among(frames), std::move(own_tags), paths, queues, &origin);
    }
    sides_[index_of(side)]->recorders(spec_.shares)[stream].reset(spec_.record, frames, tags,
                                                                  paths);
  }
}

unsigned TrialRun::lcore_of(const Role& role) const {
  size_t worker = 0;
  while (std::ranges::find(roles_[worker], role) == roles_[worker].end()) ++worker;
  return lcores_[worker];
}

std::vector<const measure::SilenceMeter*> TrialRun::meters_beside(Side side,
                                                                  const Receiver& own) const {
  std::vector<const measure::SilenceMeter*> result;
  for (const auto& receiver : ends_[index_of(side)].receivers) {
    if (receiver.get() != &own) result.push_back(&receiver->silence());
  }
  return result;
}

TrialRun::~TrialRun() {
  if (launched_) {
    abort();
    join();
  }
  close(done_fd_);
}

void TrialRun::launch() {
  launched_ = true;
  for (size_t i = 0; i < workers_.size(); ++i) {
    dpdk::Eal::launch(lcores_[i], &TrialRun::work, &workers_[i]);
  }
}

void TrialRun::join() {
  for (const unsigned lcore : lcores_) dpdk::Eal::wait(lcore);
  launched_ = false;
  for (End& end : ends_) {
    for (const auto& receiver : end.receivers) receiver->finish();
    if (end.exchange) end.exchange->finish();
    if (end.resolution) end.resolution->finish();
    sum_up(end);
  }
}

void TrialRun::sum_up(End& end) {
  end.sent = end.senders[0]->report();
  end.received = end.receivers[0]->report();
  for (uint64_t share = 1; share < spec_.shares; ++share) {
    end.sent.add(end.senders[share]->report());
    end.received.add(end.receivers[share]->report());
  }
  for (size_t port = 0; port < end.receivers[0]->ports(); ++port) {
    PortArrivals& arrivals = end.arrivals.emplace_back(end.receivers[0]->arrivals(port));
    for (uint64_t share = 1; share < spec_.shares; ++share) {
      arrivals.add(end.receivers[share]->arrivals(port));
    }
  }
}

int TrialRun::work(void* worker) {
  auto& self = *static_cast<Worker*>(worker);
  TrialRun& run = *self.run;
  run.work_until_end(self);
  if (run.workers_running_.fetch_sub(1) == 1) eventfd_write(run.done_fd_, 1);
  return 0;
}

void TrialRun::work_until_end(Worker& worker) {
  for (Sender* sender : worker.senders) sender->prepare();
  if (worker.retransmission != nullptr) worker.retransmission->prepare();
  const uint64_t start_tsc = clock_.meet_at_start();
  for (Sender* sender : worker.senders) sender->start(start_tsc);
  for (Receiver* receiver : worker.receivers) receiver->start(start_tsc);
  if (worker.retransmission != nullptr) worker.retransmission->start(start_tsc);
  while (!clock_.ended()) {
    for (Sender* sender : worker.senders) sender->step();
    for (Receiver* receiver : worker.receivers) receiver->step();
    if (worker.retransmission != nullptr) worker.retransmission->step();
  }
}

uint64_t TrialRun::running_ns() const {
  const uint64_t end = clock_.end_tsc();
  return aborted() || end == UINT64_MAX ? 0 : clock_.tsc().to_ns(end - clock_.start_tsc());
}

uint64_t TrialRun::published_sent() const {
  uint64_t sent = 0;
  for (const Side side : kBothSides) sent += published_sent(side);
  return sent;
}

uint64_t TrialRun::published_sent(Side side) const {
  uint64_t sent = 0;
  for (const auto& sender : ends_[index_of(side)].senders) sent += sender->published_sent();
  return sent;
}

uint64_t TrialRun::published_received() const {
  uint64_t received = 0;
  for (const End& end : ends_) {
    for (const auto& receiver : end.receivers) received += receiver->published_received();
  }
  return received;
}

uint64_t TrialRun::unlearned() const {
  uint64_t unlearned = 0;
  for (const End& end : ends_) {
    for (const auto& sender : end.senders) unlearned += sender->unlearned();
  }
  return unlearned;
}

state::Learner::Counts TrialRun::learned() const {
  if (!spec_.learn) return {};
  return ends_[index_of(other(spec_.learn->from))].receivers[0]->learned();
}

std::vector<measure::Stall> TrialRun::stalls_of(Side side) const {
  std::vector<measure::Stall> result;
  for (const auto& log : ends_[index_of(side)].stalls) {
    for (size_t i = 0; i < log->ended(); ++i) result.push_back(log->stall(i));
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& one, const auto& another) {
    return one.begin_ns < another.begin_ns;
  });
  return result;
}

uint64_t TrialRun::end_of(Side side) const {
  uint64_t end = 0;
  for (uint64_t i = 0; i < spec_.shares; ++i) {
    const uint64_t sent = sent_from(side, i).sent;
    if (sent > 0) end = std::max(end, Share{i, spec_.shares}.frame_of(sent - 1) + 1);
  }
  return end;
}

measure::Silence TrialRun::silence_at(Side side, uint64_t last_due_ns) const {
  const Receiver& first = *ends_[index_of(side)].receivers[0];
  return first.silence().longest_of(meters_beside(side, first), last_due_ns);
}

const measure::StreamRecorder& TrialRun::finish_recorder(Side side, size_t stream, uint64_t sent) {
  SideResources& resources = *sides_[index_of(side)];
  if (spec_.shares == 1) {
    measure::StreamRecorder& recorder = resources.recorders(0)[stream];
    recorder.finish(sent);
    return recorder;
  }
  std::vector<measure::StreamRecorder*> shares;
  std::vector<uint64_t> sent_of_shares;
  for (uint64_t share = 0; share < spec_.shares; ++share) {
    shares.push_back(&resources.recorders(share)[stream]);
    sent_of_shares.push_back(sent_from(spec_.sender_to(side), share).sent);
  }
  measure::StreamRecorder& whole = resources.recorders(spec_.shares)[stream];
  whole.finish(shares, sent_of_shares);
  return whole;
}

uint64_t TrialRun::never_sent_at(Side side, size_t stream) const {
  uint64_t frames = 0;
  for (uint64_t share = 0; share < spec_.shares; ++share) {
    frames += recorder_of(side, stream, share).tracker().impossible();
  }
  return frames;
}

uint64_t TrialRun::missing_from(Side side, uint64_t until_ns) const {
  const DirectionSpec& direction = spec_.from[index_of(side)];
  uint64_t built = 0;
  for (const auto& sender : ends_[index_of(side)].senders) {
    built += sender->report().built_by_time.sum_before(until_ns);
  }
  // Of the last bursts some frames may still wait for the port.
  const uint64_t sent = direction.expected_among(std::min(built, published_sent(side)));
  uint64_t received = 0;
  uint64_t late = 0;
  for (uint64_t share = 0; share < spec_.shares; ++share) {
    const StreamRecorders& recorders = sides_[index_of(spec_.receiver_of(side))]->recorders(share);
    for (size_t i = 0; i < direction.streams.size(); ++i) {
      if (direction.streams[i].is_beside()) continue;
      received += recorders[i].received_by_time().sum_before(until_ns);
      if (spec_.frame_timeout_ns)
        late += recorders[i].delays().slower_than(*spec_.frame_timeout_ns);
    }
  }
  return sent - std::min(sent, received) + late;
}

}  // namespace dutperf::dataplane
