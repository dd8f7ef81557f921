// Tags, each by going through what their stratum may be.
#include "dataplane/tag_spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace dutperf::dataplane {
namespace {

TagSpread spread_of(uint64_t first, uint64_t span, uint64_t count, uint64_t seed = 1) {
  return {first, span, count, vary::key_of(seed, 0, TagSpread::kGroup)};
}

TEST(TagSpread, HasATagInEachStratum) {
  std::mt19937_64 random(8219);
  for (uint64_t round = 0; round < 200; ++round) {
    const uint64_t span = 1 + random() % 5000;
    const TagSpread spread = spread_of(random() % 1000, span, 1 + random() % span, round);
    const std::vector<uint64_t> tags = spread.sequences();
    ASSERT_EQ(tags.size(), spread.count);
    for (uint64_t tag = 0; tag < spread.count; ++tag) {
      EXPECT_GE(tags[tag], spread.first + tag * span / spread.count);
      EXPECT_LT(tags[tag], spread.first + (tag + 1) * span / spread.count);
    }
  }
}

// Whatever the period that divides the distance between tags.
TEST(TagSpread, MeetsEachPhaseOfAPeriodAboutAsOften) {
  constexpr uint64_t kTags = 50'000;
  for (const uint64_t period : {2, 10, 64, 1000}) {
    std::vector<uint64_t> met(period);
    for (const uint64_t sequence : spread_of(7, kTags * 1000, kTags).sequences()) {
      ++met[sequence % period];
    }
    const uint64_t mean = kTags / period;
    const auto deviation = static_cast<uint64_t>(6 * std::sqrt(static_cast<double>(mean)));
    EXPECT_GE(*std::min_element(met.begin(), met.end()) + deviation, mean) << period;
    EXPECT_LE(*std::max_element(met.begin(), met.end()), mean + deviation) << period;
  }
}

TEST(TagSpread, LeavesASingleTagItsTime) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(spread_of(600, 600, 1, seed).sequences(), std::vector<uint64_t>{600});
  }
}

TEST(TagSpread, ChangesWithTheSeedAndNotOtherwise) {
  EXPECT_EQ(spread_of(0, 10'000, 10).sequences(), spread_of(0, 10'000, 10).sequences());
  EXPECT_NE(spread_of(0, 10'000, 10).sequences(), spread_of(0, 10'000, 10, 2).sequences());
}

TEST(TagSpread, HoldsAsManyTagsAndFramesAsThereMayBe) {
  constexpr uint64_t kFrames = 1ULL << 40;
  const TagSpread spread = spread_of(0, kFrames, 1'000'000);
  EXPECT_LT(spread.sequence_of(999'999), kFrames);
  EXPECT_GE(spread.sequence_of(999'999), kFrames / 1'000'000 * 999'999);
  EXPECT_TRUE(spread_of(5, 0, 0).sequences().empty());
}

// Known to the plan as well, see test_engine_tagging.py.
TEST(TagSpread, TakesTheFramesThatThePlanExpects) {
  EXPECT_EQ(spread_of(500, 500, 5, 42).sequences(),
            (std::vector<uint64_t>{542, 647, 703, 853, 944}));
}

}  // namespace
}  // namespace dutperf::dataplane
