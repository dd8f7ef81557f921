#include "measure/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace dutperf::measure {
namespace {

using Values = std::vector<uint64_t>;

// Values of all magnitudes, the ends included.
Values sample(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  Values values = {0, UINT64_MAX, UINT64_MAX - 1, 1ULL << 63, (1ULL << 63) - 1};
  while (values.size() < size) values.push_back(random() >> (random() % 64));
  return values;
}

Histogram record_all(const Values& values, unsigned bits) {
  Histogram histogram(bits);
  for (const uint64_t value : values) histogram.record(value);
  return histogram;
}

uint64_t count_between(const Values& sorted, uint64_t lowest, uint64_t highest) {
  return static_cast<uint64_t>(std::upper_bound(sorted.begin(), sorted.end(), highest) -
                               std::lower_bound(sorted.begin(), sorted.end(), lowest));
}

void expect_equal(const Histogram& left, const Histogram& right) {
  EXPECT_EQ(left.count(), right.count());
  EXPECT_EQ(left.min(), right.min());
  EXPECT_EQ(left.max(), right.max());
  const auto left_buckets = left.buckets();
  const auto right_buckets = right.buckets();
  ASSERT_EQ(left_buckets.size(), right_buckets.size());
  for (size_t i = 0; i < left_buckets.size(); ++i) {
    EXPECT_EQ(left_buckets[i].lowest, right_buckets[i].lowest);
    EXPECT_EQ(left_buckets[i].highest, right_buckets[i].highest);
    EXPECT_EQ(left_buckets[i].count, right_buckets[i].count);
  }
}

class HistogramOf : public ::testing::TestWithParam<unsigned> {};

TEST_P(HistogramOf, HoldsEachValueInOneBucketAsTheSortedValuesSay) {
  Values values = sample(20'000, GetParam());
  const Histogram histogram = record_all(values, GetParam());
  std::sort(values.begin(), values.end());
  uint64_t total = 0;
  uint64_t previous = 0;
  for (const auto& bucket : histogram.buckets()) {
    ASSERT_LE(bucket.lowest, bucket.highest);
    if (total > 0) {
      ASSERT_GT(bucket.lowest, previous);
    }
    ASSERT_EQ(bucket.count, count_between(values, bucket.lowest, bucket.highest));
    total += bucket.count;
    previous = bucket.highest;
  }
  EXPECT_EQ(total, values.size());
  EXPECT_EQ(histogram.count(), values.size());
}

TEST_P(HistogramOf, BoundsTheRelativeError) {
  const Histogram histogram = record_all(sample(20'000, 1), GetParam());
  for (const auto& bucket : histogram.buckets()) {
    ASSERT_LE(bucket.highest - bucket.lowest, bucket.lowest >> GetParam()) << bucket.lowest;
  }
}

TEST_P(HistogramOf, KeepsSmallValuesExactly) {
  Histogram histogram(GetParam());
  const uint64_t exact = 2ULL << GetParam();
  for (uint64_t value = 0; value < exact; ++value) histogram.record(value, value + 1);
  const auto buckets = histogram.buckets();
  ASSERT_EQ(buckets.size(), exact);
  for (uint64_t value = 0; value < exact; ++value) {
    ASSERT_EQ(buckets[value].lowest, value);
    ASSERT_EQ(buckets[value].highest, value);
    ASSERT_EQ(buckets[value].count, value + 1);
  }
}

TEST_P(HistogramOf, KeepsMinimumAndMaximumExactly) {
  const Values values = {1'000'003, 77'777'777, 1'000'033, 999'999'937};
  const Histogram histogram = record_all(values, GetParam());
  EXPECT_EQ(histogram.min(), 1'000'003U);
  EXPECT_EQ(histogram.max(), 999'999'937U);
  EXPECT_EQ(histogram.buckets().front().lowest, 1'000'003U);
  EXPECT_EQ(histogram.buckets().back().highest, 999'999'937U);
}

TEST_P(HistogramOf, HasOneExactBucketForASingleValue) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{123'456'789}, UINT64_MAX}) {
    const auto buckets = record_all({value}, GetParam()).buckets();
    ASSERT_EQ(buckets.size(), 1U);
    EXPECT_EQ(buckets[0].lowest, value);
    EXPECT_EQ(buckets[0].highest, value);
  }
}

TEST_P(HistogramOf, MergesToWhatOneHistogramWouldHaveRecorded) {
  const Values one = sample(3000, 2);
  const Values other = {5, 6, 7, 1'000'000};
  Values both = one;
  both.insert(both.end(), other.begin(), other.end());
  Histogram merged = record_all(one, GetParam());
  merged.merge(record_all(other, GetParam()));
  expect_equal(merged, record_all(both, GetParam()));
  Histogram other_way = record_all(other, GetParam());
  other_way.merge(record_all(one, GetParam()));
  expect_equal(other_way, merged);
}

TEST_P(HistogramOf, IsUnchangedByMergingAnEmptyOne) {
  Histogram merged = record_all({5, 1000}, GetParam());
  merged.merge(Histogram(GetParam()));
  expect_equal(merged, record_all({5, 1000}, GetParam()));
}

TEST_P(HistogramOf, StartsAnewAfterReset) {
  Histogram histogram = record_all(sample(1000, 3), GetParam());
  histogram.reset();
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_TRUE(histogram.buckets().empty());
  histogram.record(42);
  expect_equal(histogram, record_all({42}, GetParam()));
}

TEST_P(HistogramOf, CountsFromAValueOnWithinItsPrecision) {
  const Values values = sample(2'000, 8);
  const Histogram histogram = record_all(values, GetParam());
  for (const uint64_t from : values) {
    const auto at_least = [&](uint64_t limit) {
      return static_cast<uint64_t>(
          std::count_if(values.begin(), values.end(), [&](uint64_t v) { return v >= limit; }));
    };
    EXPECT_GE(histogram.count_from(from), at_least(from));
    EXPECT_LE(histogram.count_from(from), at_least(from - (from >> GetParam())));
  }
}

INSTANTIATE_TEST_SUITE_P(Bits, HistogramOf, ::testing::Values(1, 5, 7, 10));

}  // namespace
}  // namespace dutperf::measure
