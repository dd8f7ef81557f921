#include "measure/connection_gaps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace dutperf::measure {
namespace {

constexpr uint64_t kBlocks = 8;

SequenceTracker tracker_of(const std::vector<bool>& arrived) {
  SequenceTracker tracker;
  tracker.reset(arrived.size());
  for (uint64_t k = 0; k < arrived.size(); ++k) {
    Arrival arrival{k, 0};
    if (arrived[k]) tracker.record(&arrival, 1);
  }
  return tracker;
}

// `connections` in turn, `rounds` times; none is lost.
std::vector<bool> all(uint64_t connections, uint64_t rounds) {
  return std::vector<bool>(connections * rounds, true);
}

TEST(ConnectionGaps, OneThatDiesIsNamed) {
  constexpr uint64_t kConnections = 100'000;
  std::vector<bool> arrived = all(kConnections, 10);
  for (uint64_t round = 4; round < 10; ++round) arrived[round * kConnections + 77'777] = false;
  const ConnectionGaps gaps =
      gaps_of(tracker_of(arrived), kConnections, arrived.size(), arrived.size(), 10);
  EXPECT_EQ(gaps.named, (std::vector<ConnectionGaps::Named>{{77'777, 6}}));
  EXPECT_EQ(gaps.open_lost.count(), 1);
  EXPECT_EQ(gaps.back_lost.count(), 0);
  EXPECT_EQ(gaps.tenths[7], (ConnectionGaps::Tenth{10'000, 0, 1}));
  EXPECT_EQ(gaps.tenths[6], (ConnectionGaps::Tenth{10'000, 0, 0}));
  EXPECT_EQ(gaps.out, (std::vector<uint64_t>{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}));
}

TEST(ConnectionGaps, OfOneThatComesBackTheLongestGapCounts) {
  std::vector<bool> arrived = all(10, 20);
  for (const uint64_t round : {2, 5, 6, 7, 12, 13}) arrived[round * 10 + 3] = false;
  const ConnectionGaps gaps = gaps_of(tracker_of(arrived), 10, 200, 200, kBlocks);
  EXPECT_EQ(gaps.back_lost.count(), 1);
  EXPECT_EQ(gaps.back_lost.max(), 3);
  EXPECT_EQ(gaps.open_lost.count(), 0);
  EXPECT_EQ(gaps.last_back, 143);
  EXPECT_TRUE(gaps.named.empty());
}

TEST(ConnectionGaps, OfFramesThatNeverLeftNothingIsSaid) {
  const ConnectionGaps none = gaps_of(tracker_of(std::vector<bool>(100)), 10, 100, 0, kBlocks);
  EXPECT_EQ(none.open_lost.count(), 0);
  std::vector<bool> arrived = all(10, 10);
  std::fill(arrived.begin() + 55, arrived.end(), false);
  const ConnectionGaps stopped = gaps_of(tracker_of(arrived), 10, 100, 55, kBlocks);
  EXPECT_EQ(stopped.open_lost.count(), 0);
  EXPECT_EQ(stopped.out, std::vector<uint64_t>(kBlocks, 0));
}

TEST(ConnectionGaps, NamesSoManyAndCountsTheOthers) {
  const std::vector<bool> arrived(1000, false);
  const ConnectionGaps gaps = gaps_of(tracker_of(arrived), 500, 1000, 1000, kBlocks);
  EXPECT_EQ(gaps.named.size(), ConnectionGaps::kMostNamed);
  EXPECT_EQ(gaps.open_lost.count(), 500);
  EXPECT_EQ(gaps.open_lost.min(), 2);
}

// Round by round, with a record for each connection.
TEST(ConnectionGaps, AreWhatARecordOfEachConnectionSays) {
  struct Record {
    uint64_t run = 0;
    uint64_t longest = 0;
  };
  std::mt19937_64 random(20261201);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(::testing::Message() << "round " << round);
    const uint64_t intended = 1 + random() % 700;
    const uint64_t connections = 1 + random() % (intended + 3);
    const uint64_t sent = random() % 3 == 0 ? random() % (intended + 1) : intended;
    const uint64_t blocks = 1 + random() % 20;
    const uint64_t share = 1 + random() % 5;
    std::vector<bool> arrived(intended);
    for (uint64_t k = 0; k < sent; ++k) arrived[k] = random() % share == 0;
    const uint64_t block_frames = (intended + blocks - 1) / blocks;
    std::vector<Record> records(connections);
    std::vector<uint64_t> out;
    uint64_t last_back = 0;
    for (uint64_t k = 0; k < intended; ++k) {
      Record& record = records[k % connections];
      if (k < sent && !arrived[k]) ++record.run;
      if (k < sent && arrived[k]) {
        if (record.run > 0) last_back = k;
        record.longest = std::max(record.longest, record.run);
        record.run = 0;
      }
      if (k % block_frames == 0) {
        out.push_back(static_cast<uint64_t>(std::count_if(
            records.begin(), records.end(), [](const Record& each) { return each.run > 0; })));
      }
    }
    uint64_t open = 0;
    uint64_t back = 0;
    for (const Record& record : records) {
      open += record.run > 0 ? 1 : 0;
      back += record.run == 0 && record.longest > 0 ? 1 : 0;
    }
    const ConnectionGaps gaps = gaps_of(tracker_of(arrived), connections, intended, sent, blocks);
    EXPECT_EQ(gaps.open_lost.count(), open);
    EXPECT_EQ(gaps.back_lost.count(), back);
    EXPECT_EQ(gaps.last_back, last_back);
    EXPECT_EQ(gaps.out, out);
    uint64_t counted = 0;
    for (const ConnectionGaps::Tenth& tenth : gaps.tenths) counted += tenth.connections;
    EXPECT_EQ(counted, std::min(connections, sent));
  }
}

}  // namespace
}  // namespace dutperf::measure
