// Delays against the slow way: keep all, and look at each bucket.
#include "measure/delays.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "measure/testing/times.h"

namespace dutperf::measure {
namespace {

using testing::kMs;

constexpr uint64_t kFew = Delays::kExact / 2;
constexpr uint64_t kMany = 10 * Delays::kExact;

struct Case {
  const char* name;
  uint64_t count;
  uint64_t base_ns;
  uint64_t spread_ns;   // of most
  uint64_t longer_ns;   // one in 500 takes up to that much longer
  uint64_t drop_ns;     // after half of them, all are that much shorter
  uint32_t same = 1;    // so many in a row are equal
  uint32_t burst = 64;  // at most
};

void PrintTo(const Case& of, std::ostream* out) { *out << of.name; }

std::vector<uint64_t> delays_of(const Case& of) {
  std::mt19937_64 random(of.count + of.spread_ns);
  std::vector<uint64_t> result;
  while (result.size() < of.count) {
    uint64_t delay_ns = of.base_ns + random() % (of.spread_ns + 1);
    if (random() % 500 == 0) delay_ns += random() % (of.longer_ns + 1);
    if (result.size() > of.count / 2) delay_ns -= of.drop_ns;
    result.insert(result.end(), of.same, delay_ns);
  }
  return result;
}

struct Bucket {
  uint64_t lowest;
  uint64_t highest;
  uint64_t count;
};

std::vector<Bucket> buckets_of(const AroundOrigin& values) {
  std::vector<Bucket> result;
  const auto below = values.below.buckets();
  for (auto bucket = below.rbegin(); bucket != below.rend(); ++bucket) {
    result.push_back(
        {values.origin - bucket->highest, values.origin - bucket->lowest, bucket->count});
  }
  for (const auto& bucket : values.above.buckets()) {
    result.push_back({values.origin + bucket.lowest, values.origin + bucket.highest, bucket.count});
  }
  return result;
}

class RecordedDelays : public ::testing::TestWithParam<Case> {
 protected:
  RecordedDelays() {
    sorted_ = delays_of(GetParam());
    delays_.reset(timeouts());
    std::mt19937_64 random(7);
    for (size_t i = 0; i < sorted_.size();) {
      const size_t burst = std::min(1 + random() % GetParam().burst, sorted_.size() - i);
      delays_.record(&sorted_[i], static_cast<uint32_t>(burst), false);
      i += burst;
    }
    std::sort(sorted_.begin(), sorted_.end());
  }

  // Shorter and longer than all, and between them.
  static std::vector<uint64_t> timeouts() {
    const Case& of = GetParam();
    const uint64_t shortest = of.base_ns - of.drop_ns;
    std::vector<uint64_t> result = {shortest / 2, shortest + of.spread_ns / 2,
                                    of.base_ns + of.spread_ns / 2, of.base_ns + of.spread_ns,
                                    of.base_ns + of.spread_ns + of.longer_ns + 1};
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  std::vector<uint64_t> sorted_;
  Delays delays_;
};

TEST_P(RecordedDelays, AreInTheirBucketsWhoseEndsAreExact) {
  const std::vector<Bucket> buckets = buckets_of(delays_.around_origin());
  ASSERT_FALSE(buckets.empty());
  EXPECT_EQ(buckets.front().lowest, sorted_.front());
  EXPECT_EQ(buckets.back().highest, sorted_.back());
  auto next = sorted_.begin();
  for (const Bucket& bucket : buckets) {
    const auto end = next + static_cast<ptrdiff_t>(bucket.count);
    ASSERT_LE(end, sorted_.end());
    ASSERT_GE(*next, bucket.lowest);
    ASSERT_LE(*(end - 1), bucket.highest);
    next = end;
  }
  EXPECT_EQ(next, sorted_.end());
}

// The PDV of RFC 8219 7.3.1: by the upper end of the bucket that holds the percentile.
TEST_P(RecordedDelays, SpreadAsFarAsTheirBucketsSay) {
  const size_t rank = (sorted_.size() * 999 + 999) / 1000;
  const uint64_t pdv_ns = sorted_[rank - 1] - sorted_[0];
  size_t seen = 0;
  for (const Bucket& bucket : buckets_of(delays_.around_origin())) {
    seen += bucket.count;
    if (seen < rank) continue;
    const uint64_t found_ns = bucket.highest - sorted_[0];
    EXPECT_GE(found_ns, pdv_ns);
    EXPECT_LE(found_ns - pdv_ns, pdv_ns / 1000) << "0.1 %, not of the delay";
    break;
  }
}

TEST_P(RecordedDelays, AreSlowerThanTheTimeoutsThatTheyExceed) {
  for (const uint64_t timeout_ns : timeouts()) {
    const auto slower =
        sorted_.end() - std::upper_bound(sorted_.begin(), sorted_.end(), timeout_ns);
    EXPECT_EQ(delays_.slower_than(timeout_ns), static_cast<uint64_t>(slower)) << timeout_ns;
  }
}

TEST_P(RecordedDelays, AreForgottenByTheNextTrial) {
  delays_.reset({});
  EXPECT_EQ(delays_.around_origin().count(), 0U);
  const uint64_t delay_ns = 77;
  delays_.record(&delay_ns, 1, false);
  const std::vector<Bucket> buckets = buckets_of(delays_.around_origin());
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_EQ(buckets[0].lowest, 77U);
  EXPECT_EQ(buckets[0].highest, 77U);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RecordedDelays,
    ::testing::Values(Case{"Constant", kMany, 20'000, 0, 0, 0},
                      Case{"FewOnALongWay", kFew, 100 * kMs, 2'000, 0, 0},
                      Case{"ManyOnALongWay", kMany, 100 * kMs, 2'000, 0, 0},
                      Case{"ManyOnALongWayInRuns", kMany, 100 * kMs, 2'000, 0, 0, 13},
                      Case{"OneByOne", kMany, 100 * kMs, 2'000, 0, 0, 1, 1},
                      Case{"SomeMuchLonger", kMany, kMs, 50'000, 300 * kMs, 0},
                      Case{"ALittleShorterLater", kMany, 100 * kMs, 2'000, 30'000, 1'500},
                      Case{"MuchShorterLater", kMany, 100 * kMs, 2'000, 30'000, 99 * kMs}),
    [](const auto& test) { return std::string(test.param.name); });

// All of the first are slow: what comes later is told as coarsely as the bucket's ends say.
TEST(Delays, AreKnownAsFinelyAsTheirBucketIsWide) {
  Delays delays;
  delays.reset({});
  for (size_t i = 0; i < Delays::kExact; ++i) {
    const uint64_t slow_ns = 30 * kMs;
    delays.record(&slow_ns, 1, false);
  }
  for (uint64_t delay_ns = 20'000; delay_ns < 20'100; ++delay_ns)
    delays.record(&delay_ns, 1, false);
  const std::vector<Bucket> buckets = buckets_of(delays.around_origin());
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].lowest, 20'000U);
  EXPECT_EQ(buckets[0].count, 100U);
  EXPECT_LE(buckets[0].highest - buckets[0].lowest, 30 * kMs / 1000);
}

// Those in a shadow are in the same buckets as all: what is left of these is that of the rest.
TEST(Delays, KeepThoseInAShadowBesideTheWholeInTheSameBuckets) {
  Delays delays;
  delays.reset({});
  std::mt19937_64 random(5);
  uint64_t shaded = 0;
  for (size_t i = 0; i < 3 * Delays::kExact; ++i) {
    const uint64_t delay_ns = 100 * kMs + random() % 1'000'000;
    const bool in_shadow = i % 5 == 0;
    shaded += in_shadow ? 1 : 0;
    delays.record(&delay_ns, 1, in_shadow);
  }
  EXPECT_EQ(delays.shaded_around_origin().count(), shaded);
  const std::vector<Bucket> whole = buckets_of(delays.around_origin());
  auto place = whole.begin();
  for (const Bucket& bucket : buckets_of(delays.shaded_around_origin())) {
    while (place->highest < bucket.lowest) ++place;
    EXPECT_GE(bucket.lowest, place->lowest);
    EXPECT_LE(bucket.highest, place->highest);
    EXPECT_LE(bucket.count, place->count);
  }
}

}  // namespace
}  // namespace dutperf::measure
