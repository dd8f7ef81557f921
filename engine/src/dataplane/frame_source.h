// Frames of one direction, in order: which stream and size comes next, and the buffers for them.
//
// Each combination of stream and frame size has a lane: a writer, and a pool of buffers that hold
// its template. A burst takes what it needs from each lane and puts it in order. One lane, the
// common case, is decided once per burst and costs nothing per frame.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dataplane/trial_spec.h"
#include "dpdk/frame_pool.h"
#include "vary/frame_writer.h"

namespace dutperf::dataplane {

using vary::kMaxBurst;

// The writers of a direction's lanes, in lane order: streams, and in each the sizes in the order of
// their first appearance.
std::vector<vary::FrameWriter> writers_of(const DirectionSpec& direction);

class FrameSource {
 public:
  // `pools` has one pool for each lane of `direction` (see writers_of) and outlives the source.
  FrameSource(const DirectionSpec& direction, std::vector<dpdk::FramePool*> pools);

  // Brings the pools' buffers up to date; for the worker that will use them.
  void prepare();

  // The next `count` frames with this send stamp, in order; false, and nothing has happened, when
  // the pools have too few buffers. REQUIRES: count <= kMaxBurst.
  bool next(dpdk::Mbuf** frames, uint32_t count, uint64_t stamp_ns) noexcept;

 private:
  struct Lane {
    vary::FrameWriter writer;
    dpdk::FramePool* pool;
  };
  // Where in the direction we are.
  struct Position {
    Mix::Walk mix;
    std::array<uint64_t, kMaxStreams> sequence{};
    std::array<uint32_t, kMaxStreams> in_pattern{};
  };
  struct LaneBurst {
    vary::Lanes sequences;
    std::array<dpdk::Mbuf*, kMaxBurst> frames;
    uint32_t count;
    uint32_t taken;
  };

  bool next_of_one_lane(dpdk::Mbuf** frames, uint32_t count, uint64_t stamp_ns) noexcept;
  bool next_interleaved(dpdk::Mbuf** frames, uint32_t count, uint64_t stamp_ns) noexcept;
  static void write(const Lane& lane, dpdk::Mbuf* const* frames, const vary::Lanes& sequences,
                    uint32_t count, uint64_t stamp_ns) noexcept;
  uint32_t advance(Position& position, uint64_t& sequence) const noexcept;

  const Mix mix_;
  std::vector<Lane> lanes_;
  std::array<std::vector<uint32_t>, kMaxStreams> pattern_;  // lane of each place in the sizes
  Position position_;
  std::vector<LaneBurst> bursts_;
};

}  // namespace dutperf::dataplane
