#include "dataplane/sender.h"

#include <algorithm>

#include "measure/shadow_watch.h"

namespace dutperf::dataplane {
namespace {

std::vector<dpdk::TxQueue> queues_of(const std::vector<SendingPort>& ports) {
  std::vector<dpdk::TxQueue> queues;
  for (const SendingPort& port : ports) queues.push_back(port.queue);
  return queues;
}

// By how much frames are handed over before they are due; 0 unless all ports can wait with them.
uint64_t lead_ns_of(const std::vector<SendingPort>& ports) {
  uint64_t lead_ns = UINT64_MAX;
  for (const SendingPort& port : ports) {
    lead_ns = std::min(lead_ns, port.times != nullptr && port.times->due ? port.times->lead_ns : 0);
  }
  return lead_ns;
}

}  // namespace

void SendReport::add(const SendReport& other) {
  if (other.sent > 0) {
    first_tsc = sent == 0 ? other.first_tsc : std::min(first_tsc, other.first_tsc);
    last_tsc = std::max(last_tsc, other.last_tsc);
  }
  sent += other.sent;
  tx_full += other.tx_full;
  port_full_tsc = std::max(port_full_tsc, other.port_full_tsc);
  ring_full += other.ring_full;
  gave_up |= other.gave_up;
  if (!stalled || (other.stalled && other.stalled->away_ns > stalled->away_ns)) {
    stalled = other.stalled;
  }
  lag_ns.merge(other.lag_ns);
  burst_frames.merge(other.burst_frames);
  call_ns.merge(other.call_ns);
  clock_worst_tsc = std::max(clock_worst_tsc, other.clock_worst_tsc);
  built_by_time.add_all_of(other.built_by_time);
}

Sender::Sender(const TrialSpec& spec, Side side, Share share, const std::vector<SendingPort>& ports,
               const std::vector<dpdk::FramePool*>& pools, TrialClock& clock,
               measure::StallLog& stalls)
    : frames_(share.frames_among(spec.from[index_of(side)].frames)),
      rate_fps_(std::max<uint64_t>(share.part_of(spec.from[index_of(side)].rate_fps), 1)),
      burst_limit_(std::min(spec.burst_limit, kMaxBurst)),
      hopeless_tsc_(clock.tsc().to_tsc(kHopelessLagLimits * spec.lag_limit_ns)),
      stall_tsc_(clock.tsc().to_tsc(measure::stall_ns_at(rate_fps_))),
      ports_(ports),
      queues_(queues_of(ports)),
      lead_tsc_(clock.tsc().to_tsc(lead_ns_of(ports))),
      source_(spec.from[index_of(side)], share, pools),
      clock_(clock),
      schedule_(0, clock.tsc().hz(), spec.from[index_of(side)].load(), share.index, share.of),
      stall_(stalls, rate_fps_, measure::stall_ns_at(rate_fps_)) {
  report_.built_by_time.reset(spec.record.series_interval_ns, spec.record.series_intervals);
  if (lead_tsc_ == 0) return;
  for (const SendingPort& port : ports_) {
    paces_.push_back({*port.times->due, port.times->clock(clock.tsc())});
  }
}

Sender::~Sender() { dpdk::free_frames(pending_.data() + pending_first_, pending_count_); }

void Sender::start(uint64_t start_tsc) {
  start_tsc_ = start_tsc;
  schedule_.shift(start_tsc);
}

void Sender::step() noexcept {
  uint64_t now = timing::read_tsc();
  if (now + lead_tsc_ < start_tsc_) return;
  if (send_replies()) now = timing::read_tsc();
  if (!sending()) return;
  if (clock_.stopping()) [[unlikely]] {
    frames_ = report_.sent;
    end_if_done(now);
    return;
  }
  for (uint32_t burst = 0; burst < kBurstsPerStep; ++burst) {
    if (pending_count_ == 0) build_due(now);
    if (pending_count_ == 0) return;
    const bool behind = pending_count_ == burst_limit_;
    const uint64_t done = hand_over(now);
    give_up_if_hopeless(now);
    end_if_done(done);
    if (!behind || pending_count_ > 0 || !sending()) return;
    now = done;
  }
}

void Sender::build_due(uint64_t now) noexcept {
  const auto left = static_cast<uint32_t>(std::min<uint64_t>(frames_ - built_, burst_limit_));
  uint32_t due = schedule_.due_count(now + lead_tsc_, left);
  if (due == 0) return;
  bool built = false;
  pending_stamp_tsc_ = now;
  if (!paces_.empty()) [[unlikely]] {
    pending_stamp_tsc_ = schedule_.next_due_tsc();
    due = build_for_nic(due, now);
    built = due > 0;
  } else {
    const uint64_t stamp_ns = clock_.tsc().to_ns(now - start_tsc_);
    built = source_.next(pending_.data(), due, stamp_ns);
    if (built) report_.built_by_time.add(stamp_ns, due);
  }
  // Without free buffers all are queued: the port is the bottleneck.
  if (!built) {
    ++report_.tx_full;
    note_port_full(true, now, now);
    give_up_if_hopeless(now);
    end_if_done(now);
    return;
  }
  built_ += due;
  pending_first_ = 0;
  pending_count_ = due;
}

[[gnu::noinline]] uint32_t Sender::build_for_nic(uint32_t due, uint64_t now) noexcept {
  for (Pace& pace : paces_) {
    pace.clock.read_if_due(now);
    report_.clock_worst_tsc = std::max(report_.clock_worst_tsc, pace.clock.worst_tsc());
  }
  for (uint32_t i = 0; i < due; ++i) {
    const uint64_t due_tsc = schedule_.due_tsc(i);
    const uint64_t stamp_ns = clock_.tsc().to_ns(due_tsc - start_tsc_);
    if (!source_.next(&pending_[i], 1, stamp_ns)) return i;
    report_.built_by_time.add(stamp_ns, 1);
    const Pace& pace = paces_[paces_.size() == 1 ? 0 : dpdk::leaves_by(pending_[i])];
    pace.due.put(pending_[i], pace.clock.to_ticks(due_tsc));
  }
  return due;
}

uint64_t Sender::hand_over(uint64_t now) noexcept {
  // The oldest frame's lag stands for its burst: never less than the truth. None is due before now
  // unless the NIC waits with it.
  const uint64_t due_tsc = schedule_.next_due_tsc();
  const uint64_t lag_tsc = now - std::min(now, due_tsc);
  if (stall_.open() || lag_tsc > stall_tsc_) [[unlikely]]
    note_stall(now, lag_tsc);
  uint32_t taken = queues_.send(pending_.data() + pending_first_, pending_count_);
  const bool refused = taken < pending_count_;
  if (refused) {
    ++report_.tx_full;
    if (queues_.when_full() == dpdk::WhenFull::kLose) taken += lose_pending(taken);
  }
  if (taken == 0) {
    note_port_full(true, now, now);
    return now;
  }
  const uint64_t done = timing::read_tsc();
  note_port_full(refused || queues_.had_no_room(), now, done);
  report_.call_ns.record(clock_.tsc().to_ns(done - std::min(done, pending_stamp_tsc_)), taken);
  report_.lag_ns.record(clock_.tsc().to_ns(lag_tsc), taken);
  const uint64_t last_tsc = paces_.empty() ? now : std::max(now, schedule_.due_tsc(taken - 1));
  schedule_.advance(taken);
  report_.burst_frames.record(taken);
  if (report_.sent == 0) report_.first_tsc = std::max(now, due_tsc);
  report_.last_tsc = last_tsc;
  report_.sent += taken;
  published_sent_.store(report_.sent, std::memory_order_relaxed);
  pending_first_ += taken;
  pending_count_ -= taken;
  return done;
}

void Sender::note_stall(uint64_t now, uint64_t lag_tsc) noexcept {
  const timing::TscClock& tsc = clock_.tsc();
  const uint64_t idle_tsc = report_.sent == 0 ? lag_tsc : now - report_.last_tsc;
  stall_.note(tsc.to_ns(now - start_tsc_), tsc.to_ns(lag_tsc), tsc.to_ns(idle_tsc));
}

uint32_t Sender::lose_pending(uint32_t first) noexcept {
  const uint32_t count = pending_count_ - first;
  dpdk::free_frames(pending_.data() + pending_first_ + first, count);
  report_.ring_full += count;
  return count;
}

void Sender::note_port_full(bool full, uint64_t now, uint64_t done) noexcept {
  if (full) {
    if (port_full_since_tsc_ == 0) port_full_since_tsc_ = now;
  } else if (port_full_since_tsc_ != 0) [[unlikely]] {
    report_.port_full_tsc += done - port_full_since_tsc_;
    port_full_since_tsc_ = 0;
  }
}

void Sender::give_up_if_hopeless(uint64_t now) noexcept {
  if (sending() && now > schedule_.next_due_tsc() + hopeless_tsc_) report_.gave_up = true;
}

void Sender::end_if_done(uint64_t now) noexcept {
  if (sending()) return;
  note_port_full(false, now, now);
  report_.stalled = stall_.finish(clock_.tsc().to_ns(std::max(now, start_tsc_) - start_tsc_));
  clock_.sender_done();
}

bool Sender::send_replies() noexcept {
  bool any = false;
  for (const SendingPort& port : ports_) {
    if (port.replies == nullptr) continue;
    dpdk::Mbuf* replies[8];
    const uint32_t count = port.replies->take(replies, 8);
    if (count == 0) continue;
    any = true;
    const uint32_t taken = port.queue.send(replies, count);
    if (taken < count) dpdk::free_frames(replies + taken, count - taken);
  }
  return any;
}

}  // namespace dutperf::dataplane
