#include "dataplane/frame_source.h"

#include <algorithm>

namespace dutperf::dataplane {
namespace {

std::vector<uint32_t> distinct_sizes(const StreamSpec& stream) {
  std::vector<uint32_t> sizes;
  for (const uint32_t size : stream.frame_sizes) {
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

std::vector<vary::FrameWriter> writers_of(const DirectionSpec& direction) {
  std::vector<vary::FrameWriter> writers;
  for (const StreamSpec& stream : direction.streams) {
    for (const uint32_t size : distinct_sizes(stream)) {
      net::FrameLayout layout = stream.layout;
      layout.frame_size = size;
      writers.emplace_back(layout, stream.tag, stream.variations);
    }
  }
  return writers;
}

FrameSource::FrameSource(const DirectionSpec& direction, std::vector<dpdk::FramePool*> pools)
    : mix_(direction.mix) {
  std::vector<vary::FrameWriter> writers = writers_of(direction);
  for (size_t i = 0; i < writers.size(); ++i) lanes_.push_back({std::move(writers[i]), pools[i]});
  uint32_t first_lane = 0;
  for (size_t i = 0; i < direction.streams.size(); ++i) {
    const std::vector<uint32_t> sizes = distinct_sizes(direction.streams[i]);
    for (const uint32_t size : direction.streams[i].frame_sizes) {
      const auto place = std::find(sizes.begin(), sizes.end(), size) - sizes.begin();
      pattern_[i].push_back(first_lane + static_cast<uint32_t>(place));
    }
    first_lane += static_cast<uint32_t>(sizes.size());
  }
  if (lanes_.size() > 1) bursts_.resize(lanes_.size());
}

void FrameSource::prepare() {
  for (Lane& lane : lanes_) lane.pool->refresh(lane.writer.template_bytes());
}

bool FrameSource::next(dpdk::Mbuf** frames, uint32_t count, uint64_t stamp_ns) noexcept {
  return lanes_.size() == 1 ? next_of_one_lane(frames, count, stamp_ns)
                            : next_interleaved(frames, count, stamp_ns);
}

bool FrameSource::next_of_one_lane(dpdk::Mbuf** frames, uint32_t count,
                                   uint64_t stamp_ns) noexcept {
  if (!lanes_[0].pool->get(frames, count)) return false;
  vary::Lanes sequences;
  vary::lanes::count_up(position_.sequence[0], sequences, count);
  write(lanes_[0], frames, sequences, count, stamp_ns);
  position_.sequence[0] += count;
  return true;
}

bool FrameSource::next_interleaved(dpdk::Mbuf** frames, uint32_t count,
                                   uint64_t stamp_ns) noexcept {
  std::array<uint32_t, kMaxBurst> lane_of;
  for (LaneBurst& burst : bursts_) burst.count = burst.taken = 0;
  Position position = position_;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t sequence = 0;
    lane_of[i] = advance(position, sequence);
    LaneBurst& burst = bursts_[lane_of[i]];
    burst.sequences.lane[burst.count++] = sequence;
  }
  for (size_t i = 0; i < lanes_.size(); ++i) {
    LaneBurst& burst = bursts_[i];
    if (burst.count == 0 || lanes_[i].pool->get(burst.frames.data(), burst.count)) continue;
    for (size_t k = 0; k < i; ++k) dpdk::free_frames(bursts_[k].frames.data(), bursts_[k].count);
    return false;
  }
  for (size_t i = 0; i < lanes_.size(); ++i) {
    LaneBurst& burst = bursts_[i];
    if (burst.count == 0) continue;
    write(lanes_[i], burst.frames.data(), burst.sequences, burst.count, stamp_ns);
  }
  for (uint32_t i = 0; i < count; ++i) {
    LaneBurst& burst = bursts_[lane_of[i]];
    frames[i] = burst.frames[burst.taken++];
  }
  position_ = position;
  return true;
}

void FrameSource::write(const Lane& lane, dpdk::Mbuf* const* frames, const vary::Lanes& sequences,
                        uint32_t count, uint64_t stamp_ns) noexcept {
  uint8_t* bytes[kMaxBurst];
  for (uint32_t i = 0; i < count; ++i) bytes[i] = dpdk::frame_of(frames[i]);
  lane.writer.write(bytes, sequences, count, stamp_ns);
}

// The lane of the direction's next frame; `sequence` is its number in its stream.
uint32_t FrameSource::advance(Position& position, uint64_t& sequence) const noexcept {
  const uint32_t stream = position.mix.next(mix_) ? 0 : 1;
  sequence = position.sequence[stream]++;
  const std::vector<uint32_t>& pattern = pattern_[stream];
  uint32_t& place = position.in_pattern[stream];
  const uint32_t lane = pattern[place];
  place = place + 1 == pattern.size() ? 0 : place + 1;
  return lane;
}

}  // namespace dutperf::dataplane
