#include "dataplane/trial_run.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace dutperf::dataplane {
namespace {

uint32_t active_senders(const TrialSpec& spec) {
  return static_cast<uint32_t>(spec.from[0].active()) +
         static_cast<uint32_t>(spec.from[1].active());
}

// The first lanes can fill the transmit queue alone; those of a long IMIX share it.
constexpr size_t kRoomyLanes = 2;

}  // namespace

PortResources::PortResources(const dpdk::Port& port)
    : tx(port.tx()), rx(port.rx()), replies("replies_" + port.options().name) {
  own.mac = port.mac();
  own.vlan = port.options().vlan;
}

SideResources::SideResources(const std::vector<const dpdk::Port*>& side_ports,
                             uint32_t max_frame_bytes)
    : first_port_(*side_ports[0]), max_frame_bytes_(max_frame_bytes) {
  for (const dpdk::Port* port : side_ports) {
    ports.push_back(std::make_unique<PortResources>(*port));
  }
  pools(1);
}

std::vector<SendingPort> SideResources::sending() const {
  std::vector<SendingPort> result;
  for (const auto& port : ports)
    result.push_back({port->tx, &port->replies, port->times ? &*port->times : nullptr});
  return result;
}

std::vector<ReceivingPort> SideResources::receiving() const {
  std::vector<ReceivingPort> result;
  for (const auto& port : ports) {
    dpdk::ReplyRing* const unclaimed = port->unclaimed ? &*port->unclaimed : nullptr;
    result.push_back({port->rx,
                      &port->own,
                      &port->next_hops,
                      {port->replies, unclaimed},
                      port->times ? &*port->times : nullptr});
  }
  return result;
}

std::vector<dpdk::FramePool*> SideResources::pools(size_t lanes) {
  const dpdk::PortOptions& options = first_port_.options();
  const bool contiguous = !dpdk::reads_dpdk_memory(options);
  std::vector<dpdk::FramePool*> result;
  for (size_t i = 0; i < lanes; ++i) {
    if (i == pools_.size()) {
      const uint32_t queue = options.tx_descriptors;
      const uint32_t frames = (i < kRoomyLanes ? 2 * queue : queue / 2) - 1;
      pools_.push_back(std::make_unique<dpdk::FramePool>(
          "transmit_" + options.name + "_" + std::to_string(i), frames, max_frame_bytes_,
          contiguous, first_port_.numa_node()));
    }
    result.push_back(pools_[i].get());
  }
  return result;
}

TrialRun::TrialRun(const TrialSpec& spec, const std::array<SideResources*, kSides>& sides,
                   const timing::TscClock& clock, const std::vector<unsigned>& lcores)
    : spec_(spec),
      sides_(sides),
      clock_(clock, static_cast<uint32_t>(lcores.size()), active_senders(spec),
             spec.residual_wait_ns, spec.not_before_tsc),
      lcores_(lcores),
      workers_running_(static_cast<uint32_t>(lcores.size())),
      done_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  for (const Side side : kBothSides) {
    SideResources& resources = *sides[index_of(side)];
    const Side sender = other(side);
    for (size_t i = 0; i < kMaxStreams; ++i) {
      const std::vector<StreamSpec>& streams = spec.from[index_of(sender)].streams;
      resources.recorders[i].reset(spec.record, spec.frames_of(sender, i),
                                   spec.tags_of(sender, i).sequences(),
                                   i < streams.size() ? streams[i].paths() : 1);
    }
    // What an earlier trial had no time for is not about this one.
    for (const auto& port : resources.ports) port->replies.clear();
    const size_t lanes = FrameOrder::lanes(spec.from[index_of(side)]);
    senders_[index_of(side)] = std::make_unique<Sender>(
        spec, side, resources.sending(), resources.pools(lanes), clock_, stalls_[index_of(side)]);
    receivers_[index_of(side)] =
        std::make_unique<Receiver>(spec, side, resources.receiving(), resources.recorders, clock,
                                   SenderStalls{&stalls_[0], &stalls_[1]});
  }
  for (const std::vector<Role>& roles : assign_roles(lcores.size())) {
    Worker worker{this, {}, {}};
    for (const Role& role : roles) {
      if (role.duty == Duty::kSend) {
        worker.senders.push_back(senders_[index_of(role.side)].get());
      } else {
        worker.receivers.push_back(receivers_[index_of(role.side)].get());
      }
    }
    workers_.push_back(std::move(worker));
  }
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
  const uint64_t start_tsc = clock_.meet_at_start();
  for (Sender* sender : worker.senders) sender->start(start_tsc);
  for (Receiver* receiver : worker.receivers) receiver->start(start_tsc);
  while (!clock_.ended()) {
    for (Sender* sender : worker.senders) sender->step();
    for (Receiver* receiver : worker.receivers) receiver->step();
  }
}

uint64_t TrialRun::running_ns() const {
  const uint64_t end = clock_.end_tsc();
  return aborted() || end == UINT64_MAX ? 0 : clock_.tsc().to_ns(end - clock_.start_tsc());
}

uint64_t TrialRun::published_sent() const {
  return senders_[0]->published_sent() + senders_[1]->published_sent();
}

uint64_t TrialRun::published_received() const {
  return receivers_[0]->published_received() + receivers_[1]->published_received();
}

state::Learner::Counts TrialRun::learned() const {
  if (!spec_.learn) return {};
  return receivers_[index_of(other(spec_.learn->from))]->learned();
}

uint64_t TrialRun::missing_from(Side side, uint64_t until_ns) const {
  const Sender& sender = *senders_[index_of(side)];
  const DirectionSpec& direction = spec_.from[index_of(side)];
  // Of the last burst some frames may still wait for the port.
  const uint64_t sent = direction.expected_among(
      std::min(sender.report().built_by_time.sum_before(until_ns), sender.published_sent()));
  uint64_t received = 0;
  uint64_t late = 0;
  for (size_t i = 0; i < direction.streams.size(); ++i) {
    if (direction.streams[i].is_beside()) continue;
    const measure::StreamRecorder& recorder = sides_[index_of(other(side))]->recorders[i];
    received += recorder.received_by_time().sum_before(until_ns);
    if (spec_.frame_timeout_ns) late += recorder.delays().slower_than(*spec_.frame_timeout_ns);
  }
  return sent - std::min(sent, received) + late;
}

}  // namespace dutperf::dataplane
