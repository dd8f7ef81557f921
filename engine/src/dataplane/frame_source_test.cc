#include "dataplane/frame_source.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <random>

#include "dpdk/pool.h"
#include "dpdk/testing/memory.h"

namespace dutperf::dataplane {
namespace {

using Bytes = std::vector<uint8_t>;
using Pools = std::vector<dpdk::FramePool*>;

constexpr uint32_t kFramesInAPool = 255;
constexpr vary::Variation kSrcPort{vary::Field::kSrcPort, 0, 16, 1024, 65535};
constexpr vary::Variation kDstNetwork{vary::Field::kDstIp, 16, 8, 0, 255};

StreamSpec stream(uint8_t id, const std::vector<uint32_t>& sizes) {
  StreamSpec spec;
  spec.id = id;
  spec.tag = {9, id, 0};
  spec.frame_sizes = sizes;
  spec.layout.src_ip = *net::IpAddress::parse("198.18.0.2");
  spec.layout.dst_ip = *net::IpAddress::parse("198.19.0.2");
  spec.variations.list = {kSrcPort, kDstNetwork};
  return spec;
}

DirectionSpec one_stream() {
  DirectionSpec direction;
  direction.streams = {stream(0, {64})};
  return direction;
}

DirectionSpec two_streams_of_many_sizes() {
  DirectionSpec direction;
  direction.streams = {stream(1, {64, 64, 64, 570, 1518}), stream(2, {101, 64})};
  direction.mix = Mix(2, 3);
  return direction;
}

// Its second lane is the first to run out of buffers.
DirectionSpec a_rare_size_first() {
  DirectionSpec direction;
  direction.streams = {stream(3, {1518, 64, 64, 64, 64})};
  return direction;
}

DirectionSpec two_pairs_of_ports() {
  DirectionSpec direction = one_stream();
  direction.streams[0].variations.list = {kSrcPort};
  for (uint8_t k = 1; k < 4; ++k) {
    Path path;
    path.sent_by = k % 2;
    path.received_by = k / 2;
    path.src_ip = *net::IpAddress::parse("198.18." + std::to_string(k % 2) + ".2");
    path.dst_ip = *net::IpAddress::parse("198.19." + std::to_string(k / 2) + ".2");
    direction.streams[0].more_paths.push_back(path);
  }
  return direction;
}

// Frames with their stamps, one by one into fresh buffers.
class Plain {
 public:
  explicit Plain(const DirectionSpec& direction)
      : order_(direction), writers_(FrameOrder::writers(direction)) {}

  Bytes next(uint64_t stamp_ns) {
    const FrameOrder::Next next = order_.next(position_);
    Bytes frame = writers_[next.lane].template_bytes();
    uint8_t* const bytes = frame.data();
    vary::Lanes sequence;
    vary::lanes::fill(next.sequence, sequence, 1);
    writers_[next.lane].write(&bytes, sequence, 1, stamp_ns);
    return frame;
  }

 private:
  FrameOrder order_;
  std::vector<vary::FrameWriter> writers_;
  FrameOrder::Position position_;
};

// A port that keeps frames far beyond any ring, and sends them late and out of order.
class SlowPort {
 public:
  ~SlowPort() { send(queue_.size()); }

  void take(dpdk::Mbuf* frame, Bytes expected) { queue_.push_back({frame, std::move(expected)}); }
  size_t queued() const { return queue_.size(); }

  // Sends `count` frames of those queued; each must still be the frame that was handed over.
  void send(size_t count) {
    for (; count > 0; --count) {
      const size_t place = random_() % std::min<size_t>(queue_.size(), 50);
      const auto entry = queue_.begin() + static_cast<ptrdiff_t>(place);
      const Bytes now(dpdk::frame_of(entry->frame),
                      dpdk::frame_of(entry->frame) + dpdk::size_of(entry->frame));
      EXPECT_EQ(now, entry->expected) << "was rewritten while it was queued";
      dpdk::free_frame(entry->frame);
      queue_.erase(entry);
    }
  }

 private:
  struct Entry {
    dpdk::Mbuf* frame;
    Bytes expected;
  };
  std::deque<Entry> queue_;
  std::mt19937_64 random_{3};
};

class FrameSourceTest : public ::testing::TestWithParam<DirectionSpec (*)()> {
 protected:
  FrameSourceTest() {
    dpdk::testing::memory();
    for (size_t lane = 0; lane < 8; ++lane) {
      const std::string name = "test_" + std::to_string(lane);
      owned_.push_back(std::make_unique<dpdk::FramePool>(name, kFramesInAPool, 2048, true, -1));
    }
  }

  Pools pools(const DirectionSpec& direction) const {
    Pools result;
    for (size_t i = 0; i < FrameOrder::lanes(direction); ++i) result.push_back(owned_[i].get());
    return result;
  }

  // Hands the next `count` frames to `port`; false when there are no buffers.
  static bool pass_on(FrameSource& source, Plain& plain, uint32_t count, uint64_t stamp_ns,
                      SlowPort& port) {
    dpdk::Mbuf* frames[kMaxBurst];
    if (!source.next(frames, count, stamp_ns)) return false;
    for (uint32_t i = 0; i < count; ++i) port.take(frames[i], plain.next(stamp_ns));
    return true;
  }

  static size_t buffers_in(dpdk::FramePool& pool) {
    std::vector<dpdk::Mbuf*> all;
    for (dpdk::Mbuf* frame = nullptr; pool.get(&frame, 1);) all.push_back(frame);
    dpdk::free_frames(all.data(), static_cast<uint32_t>(all.size()));
    return all.size();
  }

  std::vector<std::unique_ptr<dpdk::FramePool>> owned_;
};

TEST_P(FrameSourceTest, NeverRewritesAFrameThatIsStillQueued) {
  const DirectionSpec direction = GetParam()();
  FrameSource source(direction, {}, pools(direction));
  source.prepare();
  Plain plain(direction);
  SlowPort port;
  std::mt19937_64 random(7);
  int dry = 0;
  for (uint64_t stamp_ns = 0; stamp_ns < 20'000; ++stamp_ns) {
    const auto count = static_cast<uint32_t>(1 + random() % kMaxBurst);
    if (pass_on(source, plain, count, stamp_ns, port)) continue;
    ++dry;
    ASSERT_GT(port.queued(), 0U) << "buffers are lost";
    port.send(1 + random() % port.queued());
  }
  EXPECT_GT(dry, 1000) << "the queue was never full";
}

TEST_P(FrameSourceTest, GivesAllBuffersBackWhenOneLaneHasNone) {
  const DirectionSpec direction = GetParam()();
  FrameSource source(direction, {}, pools(direction));
  source.prepare();
  Plain plain(direction);
  {
    SlowPort port;
    while (pass_on(source, plain, 16, 0, port)) continue;
    dpdk::Mbuf* frames[kMaxBurst];
    for (int again = 0; again < 100; ++again) ASSERT_FALSE(source.next(frames, 16, 0));
  }
  for (dpdk::FramePool* pool : pools(direction)) EXPECT_EQ(buffers_in(*pool), kFramesInAPool);
}

TEST_P(FrameSourceTest, LeavesQueuedFramesOfTheLastTrialAlone) {
  const DirectionSpec before = GetParam()();
  DirectionSpec after = GetParam()();
  for (StreamSpec& spec : after.streams) {
    spec.tag.trial = 10;
    spec.layout.dscp = 46;
    for (uint32_t& size : spec.frame_sizes) size += 11;
  }
  SlowPort port;
  {
    FrameSource source(before, {}, pools(before));
    source.prepare();
    Plain plain(before);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(pass_on(source, plain, 20, 1, port));
  }
  FrameSource source(after, {}, pools(after));
  source.prepare();
  Plain plain(after);
  for (uint64_t i = 0; i < 500; ++i) {
    while (!pass_on(source, plain, 20, i, port)) port.send(port.queued() / 2 + 1);
  }
}

TEST_P(FrameSourceTest, SaysOfEachFrameByWhichPortItLeaves) {
  const DirectionSpec direction = GetParam()();
  FrameSource source(direction, {}, pools(direction));
  source.prepare();
  uint64_t sequence = 0;
  for (int burst = 0; burst < 10; ++burst) {
    dpdk::Mbuf* frames[kMaxBurst];
    ASSERT_TRUE(source.next(frames, 13, 0));
    for (uint32_t i = 0; i < 13; ++i, ++sequence) {
      const StreamSpec& stream = direction.streams[0];
      if (direction.streams.size() > 1) continue;
      EXPECT_EQ(dpdk::leaves_by(frames[i]), stream.sent_by(sequence % stream.paths()));
    }
    dpdk::free_frames(frames, 13);
  }
}

// Frame k of the whole is number k / q of share k mod q, to the last byte.
TEST_P(FrameSourceTest, OfSeveralSharesHasTheFramesOfTheWhole) {
  const DirectionSpec direction = GetParam()();
  for (const uint64_t shares : {2, 3, 8}) {
    std::vector<std::unique_ptr<FrameSource>> sources;
    for (uint64_t i = 0; i < shares; ++i) {
      sources.push_back(
          std::make_unique<FrameSource>(direction, Share{i, shares}, pools(direction)));
      sources.back()->prepare();
    }
    Plain plain(direction);
    for (uint64_t k = 0; k < 500; ++k) {
      const Bytes expected = plain.next(k);
      dpdk::Mbuf* frame = nullptr;
      ASSERT_TRUE(sources[k % shares]->next(&frame, 1, k));
      const Bytes found(dpdk::frame_of(frame), dpdk::frame_of(frame) + dpdk::size_of(frame));
      EXPECT_EQ(found, expected) << k << " of " << shares;
      dpdk::free_frame(frame);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Traffic, FrameSourceTest,
                         ::testing::Values(&one_stream, &two_streams_of_many_sizes,
                                           &a_rare_size_first, &two_pairs_of_ports));

// Alike or not, alone in their buffers or not: each is free again when the last one lets go of it.
TEST(FreedFrames, AreBackInTheirPools) {
  dpdk::testing::memory();
  constexpr unsigned kBuffers = 63;
  rte_mempool* const pools[] = {dpdk::create_pool("freed_0", kBuffers, 256, true, -1),
                                dpdk::create_pool("freed_1", kBuffers, 256, true, -1)};
  const auto all_are_free = [&] {
    return rte_mempool_full(pools[0]) == 1 && rte_mempool_full(pools[1]) == 1;
  };
  std::mt19937_64 random(3);
  for (int round = 0; round < 400; ++round) {
    std::vector<dpdk::Mbuf*> frames;
    std::vector<dpdk::Mbuf*> shared;
    const bool one_pool = round % 2 == 0;
    for (uint64_t left = random() % 33; left > 0; --left) {
      frames.push_back(rte_pktmbuf_alloc(pools[one_pool ? 0 : random() % 2]));
      const uint64_t kind = round % 4 < 2 ? 9 : random() % 10;
      if (kind == 0) shared.push_back(dpdk::share(frames.back()));
      if (kind == 1) rte_pktmbuf_chain(frames.back(), rte_pktmbuf_alloc(pools[random() % 2]));
      if (kind == 2) {
        dpdk::Mbuf* const original = frames.back();
        frames.back() = rte_pktmbuf_alloc(pools[0]);
        rte_pktmbuf_attach(frames.back(), original);
        dpdk::free_frame(original);
      }
    }
    dpdk::free_frames(frames.data(), static_cast<uint32_t>(frames.size()));
    ASSERT_EQ(all_are_free(), shared.empty()) << round;
    for (dpdk::Mbuf* const frame : shared) dpdk::free_frame(frame);
    ASSERT_TRUE(all_are_free()) << round;
  }
  for (rte_mempool* const pool : pools) rte_mempool_free(pool);
}

}  // namespace
}  // namespace dutperf::dataplane
