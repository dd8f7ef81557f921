// Which frame comes next in a direction: of which stream, with which number, of which size.
//
// Each combination of stream, path and frame size is a lane, with a writer of its own.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dataplane/trial_spec.h"
#include "vary/frame_writer.h"

namespace dutperf::dataplane {

class FrameOrder {
 public:
  explicit FrameOrder(const DirectionSpec& direction);

  struct Next {
    uint32_t lane;
    uint64_t sequence;  // number of the frame in its stream
  };
  // Where in the direction we are; starts at its first frame.
  struct Position {
    Mix::Walk mix;
    std::array<uint64_t, kMaxStreams> sequence{};
    std::array<uint32_t, kMaxStreams> in_pattern{};
  };

  // The next frame; `position` moves on.
  Next next(Position& position) const noexcept {
    const uint32_t stream = position.mix.next(mix_) ? 0 : 1;
    const std::vector<uint32_t>& pattern = pattern_[stream];
    uint32_t& place = position.in_pattern[stream];
    const uint32_t lane = pattern[place];
    place = place + 1 == pattern.size() ? 0 : place + 1;
    return {lane, position.sequence[stream]++};
  }

  // The lanes' writers: streams, in each the paths, in each the sizes in the order of their first
  // appearance.
  static std::vector<vary::FrameWriter> writers(const DirectionSpec& direction);
  // By which of the side's ports a lane's frames leave.
  static std::vector<uint8_t> ports(const DirectionSpec& direction);
  static size_t lanes(const DirectionSpec& direction);

 private:
  Mix mix_;
  std::array<std::vector<uint32_t>, kMaxStreams> pattern_;  // lane of each place, all paths a size
};

}  // namespace dutperf::dataplane
