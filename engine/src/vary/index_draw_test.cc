#include "vary/index_draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "vary/draw.h"
#include "vary/testing/statistics.h"
#include "vary/testing/stream.h"

namespace dutperf::vary {
namespace {

using testing::Counts;
using testing::is_uniform;
using testing::kIndexOrders;
using testing::Pairs;

constexpr uint64_t kCounts[] = {1,
                                2,
                                7,
                                1000,
                                4'000'000,
                                400'000'000,
                                1ULL << 32,
                                (1ULL << 32) + 1,
                                IndexDraw::kMaxCount,
                                IndexDraw::kMaxCount - 87};

IndexDraw of(IndexOrder order, uint64_t count, uint64_t seed = 1, uint64_t stream = 0,
             IndexSource source = IndexSource::kLearned) {
  return {order, count, source, seed, stream};
}

std::vector<uint64_t> first_of(const IndexDraw& draw, uint64_t frames) {
  std::vector<uint64_t> indices;
  for (uint64_t k = 0; k < frames; ++k) indices.push_back(draw.at(k));
  return indices;
}

using Indices = std::vector<uint64_t>;

TEST(IndexDraw, GoesUpAndDownAndAroundOrStays) {
  EXPECT_EQ(first_of(of(IndexOrder::kIncreasing, 3), 7), (Indices{0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(first_of(of(IndexOrder::kDecreasing, 3), 7), (Indices{2, 1, 0, 2, 1, 0, 2}));
  EXPECT_EQ(first_of(of(IndexOrder::kFirst, 3), 4), (Indices{0, 0, 0, 0}));
  EXPECT_EQ(first_of(of(IndexOrder::kOnce, 3), 3), (Indices{0, 1, 2}));
}

TEST(IndexDraw, ShufflesEachRoundIntoTheSameOrder) {
  constexpr uint64_t kCount = 1000;
  const Indices twice = first_of(of(IndexOrder::kShuffled, kCount), 2 * kCount);
  Indices round(twice.begin(), twice.begin() + kCount);
  EXPECT_TRUE(std::equal(round.begin(), round.end(), twice.begin() + kCount));
  EXPECT_FALSE(std::is_sorted(round.begin(), round.end()));
  std::sort(round.begin(), round.end());
  EXPECT_EQ(round, first_of(of(IndexOrder::kIncreasing, kCount), kCount));
}

TEST(IndexDraw, OfABurstIsThatOfEachFrame) {
  std::mt19937_64 random(3);
  for (const IndexOrder order : kIndexOrders) {
    for (const uint64_t count : kCounts) {
      const IndexDraw draw = of(order, count, random(), random() % 256);
      for (uint32_t burst = 1; burst <= kMaxBurst; ++burst) {
        Lanes numbers;
        for (uint64_t& number : numbers.lane) {
          number = (random() >> 16) >> (random() % 48);
          if (order == IndexOrder::kOnce) number %= count;
        }
        Lanes out;
        draw.at_all(numbers, out, burst);
        for (uint32_t i = 0; i < burst; ++i) {
          ASSERT_EQ(out.lane[i], draw.at(numbers.lane[i]));
          ASSERT_LT(out.lane[i], count);
        }
      }
    }
  }
}

TEST(IndexDraw, IsUniformWhateverTheCount) {
  constexpr uint64_t kCells = 1000;
  for (const uint64_t count : {uint64_t{1000}, uint64_t{400'000'000}, IndexDraw::kMaxCount}) {
    const IndexDraw draw = of(IndexOrder::kRandom, count);
    Counts high(kCells);
    Counts low(kCells);
    Pairs neighbours(25);
    const auto cell = [&](uint64_t index, uint64_t cells) {
      return static_cast<uint64_t>((unsigned __int128){index} * cells / count);
    };
    for (uint64_t k = 0; k < 1'000'000; ++k) {
      const uint64_t index = draw.at(k);
      ++high[cell(index, kCells)];
      ++low[index % kCells];
      neighbours.add(cell(index, 25), cell(draw.at(k + 1), 25));
    }
    EXPECT_TRUE(is_uniform(high)) << count;
    EXPECT_TRUE(is_uniform(low)) << count;
    EXPECT_TRUE(is_uniform(neighbours.counts())) << count;
  }
}

// Draws of 32 bits would prefer some of the entries of a large table by a tenth.
TEST(IndexDraw, PrefersNoEntryOfALargeTable) {
  constexpr uint64_t kCount = 3'000'000'000;  // 2^32 is 1.43 times that
  const IndexDraw draw = of(IndexOrder::kRandom, kCount);
  Counts parity(2);
  for (uint64_t k = 0; k < 4'000'000; ++k) ++parity[draw.at(k) % 2];
  EXPECT_TRUE(is_uniform(parity));
  Counts thirds(3);
  for (uint64_t k = 0; k < 4'000'000; ++k) ++thirds[draw.at(k) % 3];
  EXPECT_TRUE(is_uniform(thirds));
}

TEST(IndexDraw, IsAnotherOneForAnotherSeedStreamOrSource) {
  for (const IndexOrder order : {IndexOrder::kRandom, IndexOrder::kShuffled}) {
    const Indices one = first_of(of(order, 1000, 1, 0), 1000);
    EXPECT_EQ(one, first_of(of(order, 1000, 1, 0), 1000));
    const auto same_as = [&](const IndexDraw& other) {
      uint64_t same = 0;
      for (uint64_t k = 0; k < one.size(); ++k) same += one[k] == other.at(k) ? 1 : 0;
      return same;
    };
    EXPECT_LT(same_as(of(order, 1000, 2, 0)), 10U);
    EXPECT_LT(same_as(of(order, 1000, 1, 1)), 10U);
    EXPECT_LT(same_as(of(order, 1000, 1, 0, IndexSource::kGenerated)), 10U);
  }
}

}  // namespace
}  // namespace dutperf::vary
