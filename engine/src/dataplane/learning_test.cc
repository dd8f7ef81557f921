#include "dataplane/learning.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "net/headers.h"

namespace dutperf::dataplane {
namespace {

constexpr uint64_t kSeed = 7;
constexpr uint8_t kStream = 3;

struct Learnt {
  int ip_version;
  std::optional<vary::IndexOrder> order;  // none: plainly enumerated
  uint64_t tuples;
  uint64_t entries;
};

class LearningTest : public testing::TestWithParam<Learnt> {};

// A table of its own, and the trial that fills it.
struct Trial {
  explicit Trial(const Learnt& c, uint64_t frames)
      : memory(state::TupleTable::bytes_for(c.ip_version, c.entries) / 64 + 1),
        table(c.ip_version, c.entries, memory.data()) {
    StreamSpec stream;
    stream.tag.stream = kStream;
    stream.variations.seed = kSeed;
    if (c.order) stream.tuples = {vary::IndexSource::kGenerated, *c.order, c.tuples, nullptr};
    DirectionSpec& direction = spec.from[index_of(Side::kRight)];
    direction.frames = frames;
    direction.streams.push_back(stream);
    spec.learn = {Side::kRight, c.ip_version, c.entries, false, &table, std::nullopt};
  }

  struct alignas(64) Line {
    uint8_t bytes[64] = {};
  };
  std::vector<Line> memory;
  state::TupleTable table;
  TrialSpec spec;
};

// The headers of a frame whose destination port and address tell `mark`.
std::vector<uint8_t> frame_of(int ip_version, uint32_t mark) {
  std::vector<uint8_t> frame(64, 0x11);
  const uint16_t ether_type = ip_version == 4 ? 0x0008 : 0xdd86;  // in the order of the wire
  std::memcpy(frame.data() + 12, &ether_type, 2);
  uint8_t* const ip = frame.data() + sizeof(net::EthernetHeader);
  if (ip_version == 4) {
    ip[0] = 0x45;
  } else {
    ip[6] = net::kProtocolUdp;
  }
  const size_t ports = sizeof(net::EthernetHeader) + (ip_version == 4 ? 20 : 40);
  std::memcpy(frame.data() + ports, &mark, 4);
  return frame;
}

uint32_t mark_in(const state::TupleTable& table, uint64_t entry) {
  state::Entries out;
  table.read(&entry, 1, out);
  return static_cast<uint32_t>(out.ports[0]);
}

uint64_t slow_entry(const Learnt& c, uint64_t number) {
  if (!c.order) return number % c.entries;
  const vary::IndexDraw draw(*c.order, c.tuples, vary::IndexSource::kGenerated, kSeed, kStream);
  return draw.at(number) % c.entries;
}

void pass(Learning& learning, const std::vector<uint64_t>& numbers,
          const std::vector<std::vector<uint8_t>>& frames) {
  for (size_t first = 0; first < numbers.size(); first += 32) {
    measure::Arrival arrivals[32];
    const uint8_t* pointers[32];
    const auto count = static_cast<uint32_t>(std::min<size_t>(32, numbers.size() - first));
    for (uint32_t i = 0; i < count; ++i) {
      arrivals[i] = {numbers[first + i], 0};
      pointers[i] = frames[first + i].data();
    }
    Learning::Burst burst;
    learning.look_up(arrivals, pointers, count, burst);
    learning.learn(burst);
  }
}

TEST_P(LearningTest, PutsEachTupleIntoTheEntryOfItsNumber) {
  const Learnt c = GetParam();
  const bool each_once = !c.order || *c.order == vary::IndexOrder::kOnce;
  const uint64_t sent = each_once ? c.tuples : 3 * c.tuples;
  Trial trial(c, sent);
  Learning learning(trial.spec);
  std::mt19937_64 random(1);
  std::vector<uint64_t> numbers;
  std::vector<std::vector<uint8_t>> frames;
  std::vector<uint32_t> expected(c.entries, 0);
  for (uint64_t k = 0; k < sent; ++k) {
    if (random() % 10 == 0) continue;  // lost
    const auto mark = static_cast<uint32_t>(random() | 1);
    numbers.push_back(k);
    frames.push_back(frame_of(c.ip_version, mark));
    expected[slow_entry(c, k)] = mark;
  }
  pass(learning, numbers, frames);
  for (uint64_t entry = 0; entry < c.entries; ++entry) {
    EXPECT_EQ(mark_in(trial.table, entry), expected[entry]) << entry;
  }
  EXPECT_EQ(learning.counts().learned, numbers.size());
}

INSTANTIATE_TEST_SUITE_P(Orders, LearningTest,
                         testing::Values(Learnt{4, std::nullopt, 100, 100},
                                         Learnt{4, std::nullopt, 100, 30},
                                         Learnt{6, vary::IndexOrder::kOnce, 333, 333},
                                         Learnt{4, vary::IndexOrder::kOnce, 333, 40},
                                         Learnt{4, vary::IndexOrder::kRandom, 200, 200},
                                         Learnt{6, vary::IndexOrder::kRandom, 200, 7},
                                         Learnt{4, vary::IndexOrder::kDecreasing, 77, 77},
                                         Learnt{4, vary::IndexOrder::kShuffled, 100, 1}));

TEST(Learning, LeavesOutWhatIsOfAnotherVersion) {
  Trial trial({4, vary::IndexOrder::kOnce, 10, 10}, 10);
  Learning learning(trial.spec);
  pass(learning, {0, 1, 2}, {frame_of(4, 5), frame_of(6, 5), frame_of(4, 6)});
  EXPECT_EQ(learning.counts().learned, 2);
  EXPECT_EQ(learning.counts().unexpected, 1);
  EXPECT_EQ(mark_in(trial.table, 1), 0);
  EXPECT_EQ(mark_in(trial.table, 2), 6);
}

TEST(Learning, LeavesOutFramesWhosePortsStandElsewhere) {
  for (const int version : {4, 6}) {
    Trial trial({version, vary::IndexOrder::kOnce, 10, 10}, 10);
    Learning learning(trial.spec);
    std::vector<uint8_t> other = frame_of(version, 5);
    other[sizeof(net::EthernetHeader) + (version == 4 ? 0 : 6)] = version == 4 ? 0x46 : 60;
    pass(learning, {0, 1}, {frame_of(version, 6), other});
    EXPECT_EQ(learning.counts().learned, 1);
    EXPECT_EQ(learning.counts().unexpected, 1);
  }
}

TEST(Learning, LeavesOutNumbersThatWereNeverSent) {
  Trial trial({4, vary::IndexOrder::kOnce, 10, 5}, 10);
  Learning learning(trial.spec);
  pass(learning, {10, 1ULL << 47, 4}, {frame_of(4, 5), frame_of(4, 5), frame_of(4, 6)});
  EXPECT_EQ(learning.counts().learned, 1);
  EXPECT_EQ(mark_in(trial.table, 0), 0);
  EXPECT_EQ(mark_in(trial.table, 4), 6);
}

}  // namespace
}  // namespace dutperf::dataplane
