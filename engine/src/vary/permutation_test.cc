#include "vary/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "vary/draw.h"
#include "vary/testing/statistics.h"

namespace dutperf::vary {
namespace {

using testing::Counts;
using testing::is_uniform;
using testing::Pairs;

constexpr uint64_t kPortCombinations = 64'512ULL * 49'151;  // of RFC 4814

// Whether [0, size) is visited once each, and place_of finds the way back.
void expect_bijection(uint64_t size, uint64_t key) {
  const Permutation permutation(size, key);
  std::vector<bool> seen(size);
  for (uint64_t i = 0; i < size; ++i) {
    const uint64_t value = permutation.at(i);
    ASSERT_LT(value, size) << size;
    ASSERT_FALSE(seen[value]) << value << " comes twice in " << size;
    seen[value] = true;
    ASSERT_EQ(permutation.place_of(value), i) << size;
  }
}

TEST(Permutation, IsABijectionOfEverySizeUpTo2000) {
  for (uint64_t size = 1; size <= 2000; ++size) {
    expect_bijection(size, size);
    expect_bijection(size, ~size);
  }
}

class LargePermutation : public ::testing::TestWithParam<uint64_t> {};

TEST_P(LargePermutation, IsABijection) { expect_bijection(GetParam(), 1); }

// Squares, their neighbours, powers of two, primes, and 256 networks of 5,000 ports.
INSTANTIATE_TEST_SUITE_P(Sizes, LargePermutation,
                         ::testing::Values(65'535, 65'536, 65'537, 999'999, 1'000'000, 1'000'001,
                                           1'000'003, 1 << 20, 256 * 5000));

class HugePermutation : public ::testing::TestWithParam<uint64_t> {};

TEST_P(HugePermutation, NeverRepeatsInItsFirstMillions) {
  const Permutation permutation(GetParam(), 48);
  std::vector<uint64_t> values(3'000'000);
  for (uint64_t i = 0; i < values.size(); ++i) {
    values[i] = permutation.at(i);
    ASSERT_LT(values[i], GetParam());
  }
  std::sort(values.begin(), values.end());
  EXPECT_EQ(std::adjacent_find(values.begin(), values.end()), values.end());
}

TEST_P(HugePermutation, FindsThePlaceOfEachValue) {
  const Permutation permutation(GetParam(), 48);
  std::mt19937_64 random(48);
  for (int i = 0; i < 300'000; ++i) {
    const uint64_t index = random() % GetParam();
    ASSERT_EQ(permutation.place_of(permutation.at(index)), index);
    ASSERT_EQ(permutation.at(permutation.place_of(index)), index);
  }
  for (const uint64_t index : {uint64_t{0}, GetParam() - 1}) {
    EXPECT_EQ(permutation.place_of(permutation.at(index)), index);
  }
}

TEST_P(HugePermutation, SpreadsAnyPrefixEvenlyOverAllNumbers) {
  constexpr uint64_t kCells = 1000;
  const Permutation permutation(GetParam(), 3);
  const double width = static_cast<double>(GetParam()) / kCells;
  Counts high(kCells);
  Counts low(kCells);
  for (uint64_t i = 0; i < 500'000; ++i) {
    const uint64_t value = permutation.at(i);
    ++high[std::min(kCells - 1, static_cast<uint64_t>(static_cast<double>(value) / width))];
    ++low[value % kCells];
  }
  EXPECT_TRUE(is_uniform(high)) << testing::chi_square_deviation(high);
  EXPECT_TRUE(is_uniform(low)) << testing::chi_square_deviation(low);
}

TEST_P(HugePermutation, GivesNeighboursNumbersThatSayNothingAboutEachOther) {
  constexpr uint64_t kCells = 50;
  const Permutation permutation(GetParam(), 4);
  const double width = static_cast<double>(GetParam()) / kCells;
  const auto cell = [&](uint64_t value) {
    return std::min(kCells - 1, static_cast<uint64_t>(static_cast<double>(value) / width));
  };
  Pairs high(kCells);
  Pairs low(kCells);
  Counts distances(1000);
  for (uint64_t i = 0; i < 500'000; ++i) {
    const uint64_t a = permutation.at(i);
    const uint64_t b = permutation.at(i + 1);
    high.add(cell(a), cell(b));
    low.add(a % kCells, b % kCells);
    const uint64_t distance = b >= a ? b - a : b + GetParam() - a;
    ++distances[std::min<uint64_t>(999,
                                   static_cast<uint64_t>(1000.0 * static_cast<double>(distance) /
                                                         static_cast<double>(GetParam())))];
  }
  EXPECT_TRUE(is_uniform(high.counts())) << testing::chi_square_deviation(high.counts());
  EXPECT_TRUE(is_uniform(low.counts())) << testing::chi_square_deviation(low.counts());
  EXPECT_TRUE(is_uniform(distances)) << testing::chi_square_deviation(distances);
}

INSTANTIATE_TEST_SUITE_P(Sizes, HugePermutation,
                         ::testing::Values(kPortCombinations, 1ULL << 40, (1ULL << 40) - 87,
                                           Permutation::kMaxSize - 1, Permutation::kMaxSize));

// --- rectangles, as they are

struct Rectangle {
  uint64_t rows;
  uint64_t columns;
};

class PairPermutation : public ::testing::TestWithParam<Rectangle> {
 protected:
  uint64_t size() const { return GetParam().rows * GetParam().columns; }
  const Permutation permutation_{GetParam().rows, GetParam().columns, 11};
};

TEST_P(PairPermutation, FindsThePlaceOfEachValue) {
  std::mt19937_64 random(11);
  EXPECT_EQ(permutation_.size(), size());
  for (int i = 0; i < 300'000; ++i) {
    const uint64_t index = random() % size();
    const uint64_t value = permutation_.at(index);
    ASSERT_LT(value, size());
    ASSERT_EQ(permutation_.place_of(value), index);
  }
}

TEST_P(PairPermutation, IsTheSameForABurstAsForSingleFrames) {
  std::mt19937_64 random(12);
  for (uint32_t count = 1; count <= kMaxBurst; ++count) {
    Lanes indices;
    for (uint64_t& index : indices.lane) index = random() % size();
    Lanes left;
    Lanes right;
    permutation_.pairs_at(indices, left, right, count);
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_LT(right.lane[i], GetParam().columns);
      ASSERT_EQ(left.lane[i] * GetParam().columns + right.lane[i],
                permutation_.at(indices.lane[i]));
    }
  }
}

TEST_P(PairPermutation, SaysNothingAboutTheNextPair) {
  constexpr uint64_t kCells = 50;
  Pairs left(kCells);
  Pairs right(kCells);
  Pairs both(kCells);
  const auto left_cell = [&](uint64_t value) {
    return value / GetParam().columns * kCells / GetParam().rows;
  };
  const auto right_cell = [&](uint64_t value) {
    return value % GetParam().columns * kCells / GetParam().columns;
  };
  for (uint64_t i = 0; i < 500'000; ++i) {
    const uint64_t a = permutation_.at(i);
    const uint64_t b = permutation_.at(i + 1);
    left.add(left_cell(a), left_cell(b));
    right.add(right_cell(a), right_cell(b));
    both.add(left_cell(a), right_cell(a));
  }
  for (const Pairs* pairs : {&left, &right, &both}) {
    // Cells of 4,096 rows are not quite equal in size; that alone is 1 here.
    EXPECT_LT(testing::chi_square_deviation(pairs->counts()), testing::kFair + 1);
  }
}

// Ports of RFC 4814; the shortest side either way; networks by ports; the longest side.
INSTANTIATE_TEST_SUITE_P(Rectangles, PairPermutation,
                         ::testing::Values(Rectangle{49151, 64512}, Rectangle{4096, 1 << 24},
                                           Rectangle{1 << 24, 4096}, Rectangle{49151 * 256, 64512},
                                           Rectangle{1 << 16, 1ULL << 31},
                                           Rectangle{1ULL << 31, 1 << 16}));

TEST(Permutation, OfPairsIsABijection) {
  const Permutation permutation(4096, 5003, 1);
  std::vector<bool> seen(permutation.size());
  for (uint64_t i = 0; i < seen.size(); ++i) {
    const uint64_t value = permutation.at(i);
    ASSERT_LT(value, seen.size());
    ASSERT_FALSE(seen[value]) << value << " comes twice";
    seen[value] = true;
  }
}

TEST(Permutation, FlipsHalfOfTheBitsFromOneIndexToTheNext) {
  const Permutation permutation(Permutation::kMaxSize, 5);
  std::vector<uint64_t> flips(48);
  constexpr uint64_t kSteps = 3'000'000;
  for (uint64_t i = 0; i < kSteps; ++i) {
    const uint64_t difference = permutation.at(i) ^ permutation.at(i + 1);
    for (size_t bit = 0; bit < 48; ++bit) flips[bit] += (difference >> bit) & 1;
  }
  for (size_t bit = 0; bit < 48; ++bit) {
    EXPECT_TRUE(testing::is_half(flips[bit], kSteps)) << "bit " << bit;
  }
}

TEST(Permutation, PutsAnyNumberAnywhereEquallyOftenOverAllKeys) {
  for (const uint64_t size : {10, 97, 100, 1000}) {
    Counts first(size);
    Counts last(size);
    for (uint64_t key = 0; key < 1000 * size; ++key) {
      const Permutation permutation(size, mix64(key));
      ++first[permutation.at(0)];
      ++last[permutation.at(size - 1)];
    }
    EXPECT_TRUE(is_uniform(first)) << size << ": " << testing::chi_square_deviation(first);
    EXPECT_TRUE(is_uniform(last)) << size << ": " << testing::chi_square_deviation(last);
  }
}

TEST(Permutation, IsAnotherOneForAnotherKey) {
  constexpr uint64_t kSize = 10'000;
  const Permutation one(kSize, 1);
  const Permutation two(kSize, 2);
  Pairs pairs(20);
  uint64_t same = 0;
  for (uint64_t i = 0; i < kSize; ++i) {
    same += one.at(i) == two.at(i) ? 1 : 0;
    pairs.add(one.at(i) / 500, two.at(i) / 500);
  }
  EXPECT_LT(same, 10U);  // 1 is to be expected
  EXPECT_LT(testing::chi_square_deviation(pairs.counts()), testing::kFair);
}

TEST(Permutation, IsTheSameForTheSameKey) {
  const Permutation one(kPortCombinations, 7);
  const Permutation again(kPortCombinations, 7);
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(one.at(i), again.at(i));
  EXPECT_EQ(one.size(), kPortCombinations);
}

TEST(Permutation, IsTheSameForABurstAsForSingleFrames) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 20'000; ++round) {
    const uint64_t size = 1 + random() % (1ULL << (1 + random() % 48));
    const Permutation permutation(size, random());
    const auto count = static_cast<uint32_t>(1 + random() % kMaxBurst);
    Lanes indices;
    for (uint64_t& index : indices.lane) index = random() % size;
    Lanes out;
    permutation.at_all(indices, out, count);
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(out.lane[i], permutation.at(indices.lane[i])) << size;
    }
  }
}

}  // namespace
}  // namespace dutperf::vary
