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
  size_t first_lane = 0;
  for (size_t i = 0; i < direction.streams.size(); ++i) {
    const StreamSpec& stream = direction.streams[i];
    const std::vector<uint32_t> sizes = distinct_sizes(stream);
    for (const uint32_t size : stream.frame_sizes) {
      const auto place =
          static_cast<size_t>(std::find(sizes.begin(), sizes.end(), size) - sizes.begin());
      for (size_t path = 0; path < stream.paths(); ++path) {
        pattern_[i].push_back(static_cast<uint32_t>(first_lane + path * sizes.size() + place));
      }
    }
    first_lane += stream.paths() * sizes.size();
  }
}

std::vector<vary::FrameWriter> FrameOrder::writers(const DirectionSpec& direction) {
  std::vector<vary::FrameWriter> writers;
  for (const StreamSpec& stream : direction.streams) {
    for (size_t path = 0; path < stream.paths(); ++path) {
      for (const uint32_t size : distinct_sizes(stream)) {
        net::FrameLayout layout = stream.layout_of(path);
        layout.frame_size = size;
        writers.emplace_back(layout, stream.tag, stream.variations, stream.tuples);
      }
    }
  }
  return writers;
}

std::vector<uint8_t> FrameOrder::ports(const DirectionSpec& direction) {
  std::vector<uint8_t> ports;
  for (const StreamSpec& stream : direction.streams) {
    for (size_t path = 0; path < stream.paths(); ++path) {
      ports.insert(ports.end(), distinct_sizes(stream).size(), stream.sent_by(path));
    }
  }
  return ports;
}

size_t FrameOrder::lanes(const DirectionSpec& direction) { return ports(direction).size(); }

}  // namespace dutperf::dataplane
