#include "dataplane/sender.h"

#include <algorithm>

namespace dutperf::dataplane {

Sender::Sender(const TrialSpec& spec, Side side, dpdk::TxQueue queue,
               const std::vector<dpdk::FramePool*>& pools, dpdk::ReplyRing& replies,
               TrialClock& clock)
    : frames_(spec.from[index_of(side)].frames),
      rate_fps_(std::max<uint64_t>(spec.from[index_of(side)].rate_fps, 1)),
      burst_limit_(std::min(spec.burst_limit, kMaxBurst)),
      hopeless_tsc_(clock.tsc().to_tsc(kHopelessLagLimits * spec.lag_limit_ns)),
      queue_(queue),
      source_(spec.from[index_of(side)], pools),
      replies_(replies),
      clock_(clock),
      schedule_(0, clock.tsc().hz(), rate_fps_) {
  report_.built_by_time.reset(spec.record.series_interval_ns, spec.record.series_intervals);
}

Sender::~Sender() { dpdk::free_frames(pending_.data() + pending_first_, pending_count_); }

void Sender::start(uint64_t start_tsc) {
  start_tsc_ = start_tsc;
  schedule_ = timing::Schedule(start_tsc, clock_.tsc().hz(), rate_fps_);
}

void Sender::step() noexcept {
  send_replies();
  if (!sending()) return;
  if (clock_.stopping()) [[unlikely]] {
    frames_ = report_.sent;
    clock_.sender_done();
    return;
  }
  uint64_t now = timing::read_tsc();
  for (uint32_t burst = 0; burst < kBurstsPerStep; ++burst) {
    if (pending_count_ == 0) build_due(now);
    if (pending_count_ == 0) return;
    const bool behind = pending_count_ == burst_limit_;
    const uint64_t done = hand_over(now);
    give_up_if_hopeless(now);
    if (!sending()) clock_.sender_done();
    if (!behind || pending_count_ > 0 || !sending()) return;
    now = done;
  }
}

void Sender::build_due(uint64_t now) noexcept {
  const auto left = static_cast<uint32_t>(std::min<uint64_t>(frames_ - built_, burst_limit_));
  const uint32_t due = schedule_.due_count(now, left);
  if (due == 0) return;
  // Without free buffers all are queued: the port is the bottleneck.
  const uint64_t stamp_ns = clock_.tsc().to_ns(now - start_tsc_);
  if (!source_.next(pending_.data(), due, stamp_ns)) {
    ++report_.tx_full;
    give_up_if_hopeless(now);
    if (!sending()) clock_.sender_done();
    return;
  }
  report_.built_by_time.add(stamp_ns, due);
  pending_stamp_tsc_ = now;
  built_ += due;
  pending_first_ = 0;
  pending_count_ = due;
}

uint64_t Sender::hand_over(uint64_t now) noexcept {
  const uint32_t taken = queue_.send(pending_.data() + pending_first_, pending_count_);
  if (taken < pending_count_) ++report_.tx_full;
  if (taken == 0) return now;
  const uint64_t done = timing::read_tsc();
  report_.call_ns.record(clock_.tsc().to_ns(done - pending_stamp_tsc_), taken);
  // The oldest frame's lag stands for its burst: never less than the truth.
  report_.lag_ns.record(clock_.tsc().to_ns(now - schedule_.next_due_tsc()), taken);
  schedule_.advance(taken);
  report_.burst_frames.record(taken);
  if (report_.sent == 0) report_.first_tsc = now;
  report_.last_tsc = now;
  report_.sent += taken;
  published_sent_.store(report_.sent, std::memory_order_relaxed);
  pending_first_ += taken;
  pending_count_ -= taken;
  return done;
}

void Sender::give_up_if_hopeless(uint64_t now) noexcept {
  if (sending() && now > schedule_.next_due_tsc() + hopeless_tsc_) report_.gave_up = true;
}

void Sender::send_replies() noexcept {
  dpdk::Mbuf* replies[8];
  const uint32_t count = replies_.take(replies, 8);
  if (count == 0) return;
  const uint32_t taken = queue_.send(replies, count);
  if (taken < count) dpdk::free_frames(replies + taken, count - taken);
}

}  // namespace dutperf::dataplane
