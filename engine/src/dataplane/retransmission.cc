#include "dataplane/retransmission.h"

#include <algorithm>

#include "net/http.h"

namespace dutperf::dataplane {
namespace {

constexpr size_t index_of(Step step) { return static_cast<size_t>(step); }

// Of the same connections as `spec.first`, later.
net::SegmentLayout layout_of(const ExchangeSpec& spec, Step step) {
  net::SegmentLayout layout = spec.first;
  layout.step = step;
  if (step <= Step::kRequest) return layout;
  if (spec.includes(Step::kRequest)) {
    layout.sent_before += static_cast<uint32_t>(net::kHttpRequestBytes);
    layout.answered_before += static_cast<uint32_t>(net::http_response(spec.object_bytes).size());
  }
  return layout;
}

vary::FrameWriter writer_of(const StreamSpec& stream, const net::SegmentLayout& segment) {
  net::FrameLayout layout = stream.layout;
  layout.tcp = segment;
  layout.frame_size = net::segment_frame_size(layout.ip_version, segment);
  return {layout, stream.tag, stream.variations, stream.tuples};
}

}  // namespace

Retransmission::Retransmission(const ExchangeSpec& spec, const DirectionSpec& direction,
                               const std::vector<dpdk::FramePool*>& pools,
                               const dpdk::TxQueue& queue, Exchange& initiator,
                               const Exchange& responder, const Sender& sender,
                               const timing::TscClock& clock)
    : spec_(spec),
      queue_(queue),
      initiator_(initiator),
      responder_(responder),
      sender_(sender),
      clock_(clock),
      load_(direction.load()) {
  for (size_t i = 0; i < kSegments.size(); ++i) {
    if (!spec.includes(kSegments[i])) continue;
    segments_.push_back(
        {kSegments[i], writer_of(direction.streams[0], layout_of(spec, kSegments[i])), pools[i]});
  }
  uint64_t after_ns = 0;
  for (uint32_t i = 0; i < spec.retransmit; ++i)
    rounds_.push_back({after_ns += spec.rto_ns << i, 0, 0});
}

void Retransmission::prepare() {
  for (Segment& segment : segments_) segment.pool->refresh(segment.writer.template_bytes(), 0);
}

void Retransmission::step() noexcept {
  const uint64_t now_tsc = timing::read_tsc();
  if (now_tsc < start_tsc_) return;
  const uint64_t now_ns = clock_.to_ns(now_tsc - start_tsc_);
  if (now_ns < looked_ns_ + kEveryNs) return;
  looked_ns_ = now_ns;
  for (Round& round : rounds_) go_on(round, now_ns);
}

void Retransmission::go_on(Round& round, uint64_t now_ns) noexcept {
  if (now_ns < round.after_ns) return;
  const uint64_t due = std::min(load_.frames_in(now_ns - round.after_ns), sender_.published_sent());
  const uint64_t end = std::min(due, round.next + kMostAStep);
  if (end < due) looked_ns_ = 0;  // there is more to do
  for (; round.next < end; ++round.next) {
    for (; round.segment < segments_.size(); ++round.segment) {
      Segment& segment = segments_[round.segment];
      if (is_missing(segment.step, round.next) && !send(segment, round.next)) return;
    }
    round.segment = 0;
  }
}

// Whether the connection has sent it, and nobody has got it.
bool Retransmission::is_missing(Step step, uint64_t connection) const noexcept {
  const auto came = [&](Step answer) {
    return !spec_.includes(answer) || initiator_.has(answer, connection);
  };
  // The numbers of later segments are those that the responder has chosen.
  if (step != Step::kSyn && initiator_.report().renumbered > 0) return false;
  switch (step) {
    case Step::kSyn: return !came(Step::kSynAck);
    case Step::kAck: return came(Step::kSynAck) && !responder_.has(step, connection);
    case Step::kRequest:
      return came(Step::kSynAck) && !came(Step::kResponse) &&
             !(spec_.includes(Step::kSyn) && initiator_.holds_back(connection));
    case Step::kFin: return came(Step::kResponse) && !came(Step::kFinAck);
    case Step::kLastAck: return came(Step::kFinAck) && !responder_.has(step, connection);
    default: return false;
  }
}

bool Retransmission::send(Segment& segment, uint64_t connection) noexcept {
  vary::Lanes number;
  vary::lanes::count_up(connection, number, 1, 1);
  dpdk::Mbuf* mbuf = nullptr;
  if (!segment.pool->get(&mbuf, 1)) return false;
  segment.writer.write(dpdk::buffers_of(&mbuf), number, 1, load_.due_ns(connection),
                       dpdk::kFrameOffset);
  if (queue_.send(&mbuf, 1) == 0) {
    dpdk::free_frame(mbuf);
    return false;
  }
  ++initiator_.report().retransmitted[index_of(segment.step)];
  return true;
}

}  // namespace dutperf::dataplane
