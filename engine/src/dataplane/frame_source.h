// The frames of one direction in buffers, ready to send.
//
// Each lane (see frame_order.h) has a writer and a pool of buffers that hold its template. A burst
// takes what it needs from each lane and puts it in order. One lane, the common case, is decided
// once per burst and costs nothing per frame. Of several shares each has a source, whose frames are
// those that it would have had in the whole.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dataplane/frame_order.h"
#include "dpdk/frame_pool.h"

namespace dutperf::dataplane {

using vary::kMaxBurst;

class FrameSource {
 public:
  // Of `direction` the frames of `share`. `pools` has one pool for each lane of `direction` and
  // outlives the source.
  FrameSource(const DirectionSpec& direction, Share share,
              const std::vector<dpdk::FramePool*>& pools);

  // Brings the pools' buffers up to date; for the worker that will use them.
  void prepare();

  // The next `count` frames with this send stamp, in order; false, and nothing has happened, when
  // the pools have too few buffers. REQUIRES: count <= kMaxBurst.
  bool next(dpdk::Mbuf** frames, uint32_t count, uint64_t stamp_ns) noexcept {
    return lanes_.size() == 1 ? next_of_one_lane(frames, count, stamp_ns)
                              : next_interleaved(frames, count, stamp_ns);
  }

  // Frames so far whose four-tuple should have come from a table, but had never been learned.
  uint64_t unlearned() const { return unlearned_; }

 private:
  struct Lane {
    vary::FrameWriter writer;
    dpdk::FramePool* pool;
    uint8_t port;  // number, by which its frames leave
  };
  struct LaneBurst {
    vary::Lanes sequences;
    std::array<dpdk::Mbuf*, kMaxBurst> frames;
    uint32_t count;
    uint32_t taken;
  };

  bool next_of_one_lane(dpdk::Mbuf** frames, uint32_t count, uint64_t stamp_ns) noexcept;
  bool next_interleaved(dpdk::Mbuf** frames, uint32_t count, uint64_t stamp_ns) noexcept;
  bool take_buffers() noexcept;

  const Share share_;
  const FrameOrder order_;
  std::vector<Lane> lanes_;
  FrameOrder::Position position_;
  std::vector<LaneBurst> bursts_;
  uint64_t unlearned_ = 0;
};

}  // namespace dutperf::dataplane
