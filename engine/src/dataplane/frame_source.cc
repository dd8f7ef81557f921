#include "dataplane/frame_source.h"

namespace dutperf::dataplane {

FrameSource::FrameSource(const DirectionSpec& direction, Share share,
                         const std::vector<dpdk::FramePool*>& pools)
    : share_(share), order_(direction) {
  std::vector<vary::FrameWriter> writers = FrameOrder::writers(direction);
  const std::vector<uint8_t> ports = FrameOrder::ports(direction);
  for (size_t i = 0; i < writers.size(); ++i) {
    lanes_.push_back({std::move(writers[i]), pools[i], ports[i]});
  }
  if (lanes_.size() > 1) bursts_.resize(lanes_.size());
  for (uint64_t i = 0; i < share.index; ++i) order_.next(position_);
}

void FrameSource::prepare() {
  for (Lane& lane : lanes_) lane.pool->refresh(lane.writer.template_bytes(), lane.port);
}

bool FrameSource::next_of_one_lane(dpdk::Mbuf** frames, uint32_t count,
                                   uint64_t stamp_ns) noexcept {
  const Lane& lane = lanes_[0];
  vary::Lanes sequences;
  const auto step = static_cast<uint32_t>(share_.of);
  vary::lanes::count_up(position_.sequence[0], sequences, count, step);
  vary::FrameWriter::Burst burst;
  lane.writer.compose(sequences, count, stamp_ns, burst);
  if (!lane.pool->get(frames, count)) return false;
  lane.writer.store(burst, dpdk::buffers_of(frames), dpdk::kFrameOffset);
  position_.sequence[0] += uint64_t{count} * step;
  unlearned_ += burst.unlearned();
  return true;
}

bool FrameSource::next_interleaved(dpdk::Mbuf** frames, uint32_t count,
                                   uint64_t stamp_ns) noexcept {
  std::array<uint32_t, kMaxBurst> lane_of;
  for (LaneBurst& burst : bursts_) burst.count = burst.taken = 0;
  FrameOrder::Position position = position_;
  for (uint32_t i = 0; i < count; ++i) {
    const FrameOrder::Next next = order_.next(position);
    lane_of[i] = next.lane;
    LaneBurst& burst = bursts_[next.lane];
    burst.sequences.lane[burst.count++] = next.sequence;
    for (uint64_t k = 1; k < share_.of; ++k) order_.next(position);
  }
  if (!take_buffers()) return false;
  position_ = position;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (bursts_[i].count == 0) continue;
    vary::FrameWriter::Burst burst;
    lanes_[i].writer.compose(bursts_[i].sequences, bursts_[i].count, stamp_ns, burst);
    lanes_[i].writer.store(burst, dpdk::buffers_of(bursts_[i].frames.data()), dpdk::kFrameOffset);
    unlearned_ += burst.unlearned();
  }
  for (uint32_t i = 0; i < count; ++i) {
    LaneBurst& burst = bursts_[lane_of[i]];
    frames[i] = burst.frames[burst.taken++];
  }
  return true;
}

// All lanes' buffers, or none.
bool FrameSource::take_buffers() noexcept {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    LaneBurst& burst = bursts_[i];
    if (burst.count == 0 || lanes_[i].pool->get(burst.frames.data(), burst.count)) continue;
    for (size_t k = 0; k < i; ++k) dpdk::free_frames(bursts_[k].frames.data(), bursts_[k].count);
    return false;
  }
  return true;
}

}  // namespace dutperf::dataplane
