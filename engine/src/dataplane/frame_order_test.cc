#include "dataplane/frame_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace dutperf::dataplane {
namespace {

using Sizes = std::vector<uint32_t>;

DirectionSpec direction_of(const std::vector<Sizes>& streams, Mix mix) {
  DirectionSpec direction;
  direction.mix = mix;
  for (const Sizes& sizes : streams) {
    StreamSpec stream;
    stream.id = static_cast<uint8_t>(direction.streams.size());
    stream.tag.stream = stream.id;
    stream.frame_sizes = sizes;
    stream.layout.src_ip = *net::IpAddress::parse("198.18.0.2");
    stream.layout.dst_ip = *net::IpAddress::parse("198.19.0.2");
    direction.streams.push_back(stream);
  }
  return direction;
}

struct Frame {
  size_t stream;
  uint32_t size;
  uint64_t sequence;
  bool operator==(const Frame&) const = default;
};

// Frame i of the direction is foreground iff (i * m) mod n < m; frame k of a stream has the size
// sizes[k mod n]. Counted from the first frame, one by one.
std::vector<Frame> frames_by_definition(const std::vector<Sizes>& streams, uint64_t m, uint64_t n,
                                        size_t count) {
  std::vector<Frame> frames;
  std::vector<uint64_t> numbers(2);
  for (uint64_t i = 0; i < count; ++i) {
    const size_t stream = i * m % n < m ? 0 : 1;
    const uint64_t number = numbers[stream]++;
    frames.push_back({stream, streams[stream][number % streams[stream].size()], number});
  }
  return frames;
}

// What a lane stands for is what its writer's template says.
std::vector<Frame> frames_by_order(const DirectionSpec& direction, size_t count) {
  const FrameOrder order(direction);
  const std::vector<vary::FrameWriter> writers = FrameOrder::writers(direction);
  FrameOrder::Position position;
  std::vector<Frame> frames;
  for (size_t i = 0; i < count; ++i) {
    const FrameOrder::Next next = order.next(position);
    const std::vector<uint8_t>& bytes = writers.at(next.lane).template_bytes();
    const uint8_t stream = bytes[bytes.size() - 18 + 4];
    frames.push_back({stream, static_cast<uint32_t>(bytes.size()) + 4, next.sequence});
  }
  return frames;
}

struct Case {
  std::vector<Sizes> streams;
  uint64_t m = 1;
  uint64_t n = 1;
};

class FrameOrderOf : public ::testing::TestWithParam<Case> {};

TEST_P(FrameOrderOf, IsTheNaiveLoops) {
  const auto& [streams, m, n] = GetParam();
  EXPECT_EQ(frames_by_order(direction_of(streams, Mix(m, n)), 5000),
            frames_by_definition(streams, m, n, 5000));
}

TEST_P(FrameOrderOf, HasALaneForEachStreamAndSize) {
  const auto& [streams, m, n] = GetParam();
  const DirectionSpec direction = direction_of(streams, Mix(m, n));
  size_t lanes = 0;
  for (Sizes sizes : streams) {
    std::sort(sizes.begin(), sizes.end());
    lanes += static_cast<size_t>(std::unique(sizes.begin(), sizes.end()) - sizes.begin());
  }
  EXPECT_EQ(FrameOrder::lanes(direction), lanes);
  EXPECT_EQ(FrameOrder::writers(direction).size(), lanes);
}

const Sizes kSingle = {64};
const Sizes kAaafg = {64, 64, 64, 1280, 1518};  // RFC 6985 names
const Sizes kSimple = {64, 64, 64, 64, 64, 64, 64, 594, 594, 594, 594, 1518};
const Sizes kZigzag = {64, 1518, 65, 1518, 64, 128, 64};

INSTANTIATE_TEST_SUITE_P(
    Traffic, FrameOrderOf,
    ::testing::Values(Case{{kSingle}}, Case{{kAaafg}}, Case{{kSimple}}, Case{{kZigzag}},
                      Case{{kSingle, kSingle}, 9, 10}, Case{{kSingle, kSingle}, 1, 2},
                      Case{{kSingle, kSingle}, 1, 10}, Case{{kAaafg, kSingle}, 9, 10},
                      Case{{kSingle, kAaafg}, 1, 2}, Case{{kAaafg, kZigzag}, 1, 10},
                      Case{{kSimple, kAaafg}, 7, 13},
                      Case{{kZigzag, kSimple}, 999'999, 1'000'000}));

TEST(FrameOrder, IsTheNaiveLoopsForRandomTraffic) {
  std::mt19937_64 random(6985);
  for (int i = 0; i < 60; ++i) {
    std::vector<Sizes> streams(2);
    for (Sizes& sizes : streams) {
      sizes.resize(1 + random() % 64);
      for (uint32_t& size : sizes) size = static_cast<uint32_t>(64 + random() % 8);
    }
    const uint64_t n = 2 + random() % 50;
    const uint64_t m = 1 + random() % (n - 1);
    ASSERT_EQ(frames_by_order(direction_of(streams, Mix(m, n)), 500),
              frames_by_definition(streams, m, n, 500));
  }
}

TEST(FrameOrder, GoesOnFromACopiedPosition) {
  const FrameOrder order(direction_of({kAaafg, kZigzag}, Mix(2, 3)));
  FrameOrder::Position position;
  for (int i = 0; i < 1234; ++i) order.next(position);
  FrameOrder::Position copy = position;
  for (int i = 0; i < 100; ++i) {
    const FrameOrder::Next one = order.next(position);
    const FrameOrder::Next other = order.next(copy);
    ASSERT_EQ(one.lane, other.lane);
    ASSERT_EQ(one.sequence, other.sequence);
  }
}

TEST(DirectionSpec, SharesItsFramesBetweenTheStreamsAsTheOrderDoes) {
  for (const auto& [m, n] : {std::pair{9, 10}, {1, 2}, {1, 10}, {3, 7}}) {
    const DirectionSpec direction =
        direction_of({kSingle, kSingle}, Mix(static_cast<uint64_t>(m), static_cast<uint64_t>(n)));
    std::map<size_t, uint64_t> counts;
    uint64_t total = 0;
    for (const Frame& frame : frames_by_order(direction, 1000)) {
      ASSERT_EQ(direction.frames_of(0, total), counts[0]);
      ASSERT_EQ(direction.frames_of(1, total), counts[1]);
      ++counts[frame.stream];
      ++total;
    }
  }
}

// RFC 2544 16 with three inputs and three outputs: all inputs have a frame to X, then to Y, then to
// Z; an IMIX moves on when all have had a frame of a size.
TEST(FrameOrder, TakesThePathsInTurnAndASizeForAll) {
  DirectionSpec direction = direction_of({{64, 128}}, {1, 1});
  StreamSpec& stream = direction.streams[0];
  for (uint8_t k = 1; k < 9; ++k) {
    Path path;
    path.sent_by = k % 3;
    path.received_by = k / 3;
    path.src_ip = *net::IpAddress::parse("198.18." + std::to_string(k % 3) + ".2");
    path.dst_ip = *net::IpAddress::parse("198.19." + std::to_string(k / 3) + ".2");
    stream.more_paths.push_back(path);
  }
  const FrameOrder order(direction);
  const std::vector<vary::FrameWriter> writers = FrameOrder::writers(direction);
  const std::vector<uint8_t> ports = FrameOrder::ports(direction);
  ASSERT_EQ(writers.size(), 18U);
  ASSERT_EQ(FrameOrder::lanes(direction), 18U);
  FrameOrder::Position position;
  for (uint64_t k = 0; k < 40; ++k) {
    const FrameOrder::Next next = order.next(position);
    const std::vector<uint8_t>& frame = writers.at(next.lane).template_bytes();
    constexpr size_t kSrcIp = 14 + 12;
    constexpr size_t kDstIp = 14 + 16;
    EXPECT_EQ(next.sequence, k);
    EXPECT_EQ(ports.at(next.lane), k % 3) << k;
    EXPECT_EQ(frame[kSrcIp + 2], k % 3) << k;
    EXPECT_EQ(frame[kDstIp + 2], k / 3 % 3) << k;
    EXPECT_EQ(frame.size() + 4, k / 9 % 2 == 0 ? 64U : 128U) << k;
  }
}

}  // namespace
}  // namespace dutperf::dataplane
