#include "dataplane/frame_order.h"

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

FrameOrder::FrameOrder(const DirectionSpec& direction) : mix_(direction.mix) {
  uint32_t first_lane = 0;
  for (size_t i = 0; i < direction.streams.size(); ++i) {
    const std::vector<uint32_t> sizes = distinct_sizes(direction.streams[i]);
    for (const uint32_t size : direction.streams[i].frame_sizes) {
      const auto place = std::find(sizes.begin(), sizes.end(), size) - sizes.begin();
      pattern_[i].push_back(first_lane + static_cast<uint32_t>(place));
    }
    first_lane += static_cast<uint32_t>(sizes.size());
  }
}

std::vector<vary::FrameWriter> FrameOrder::writers(const DirectionSpec& direction) {
  std::vector<vary::FrameWriter> writers;
  for (const StreamSpec& stream : direction.streams) {
    for (const uint32_t size : distinct_sizes(stream)) {
      net::FrameLayout layout = stream.layout;
      layout.frame_size = size;
      writers.emplace_back(layout, stream.tag, stream.variations, stream.tuples);
    }
  }
  return writers;
}

size_t FrameOrder::lanes(const DirectionSpec& direction) {
  size_t lanes = 0;
  for (const StreamSpec& stream : direction.streams) lanes += distinct_sizes(stream).size();
  return lanes;
}

}  // namespace dutperf::dataplane
