#include "vary/divisor.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace dutperf::vary {
namespace {

void expect_exact(uint64_t number, uint64_t divisor) {
  const Divisor::Result result = Divisor(divisor).divide(number);
  ASSERT_EQ(result.quotient, number / divisor) << number << " / " << divisor;
  ASSERT_EQ(result.remainder, number % divisor) << number << " % " << divisor;
}

TEST(Divisor, DividesRandomNumbersOfAllLengths) {
  std::mt19937_64 random(64);
  for (int i = 0; i < 2'000'000; ++i) {
    const uint64_t number = random() >> (random() % 64);
    const uint64_t divisor = (random() >> (random() % 64)) | (i % 3 == 0);
    if (divisor != 0) expect_exact(number, divisor);
  }
}

TEST(Divisor, DividesNumbersBesideEachMultiple) {
  std::mt19937_64 random(65);
  for (int i = 0; i < 500'000; ++i) {
    const uint64_t divisor = 1 + (random() >> (random() % 64)) % UINT64_MAX;
    const uint64_t multiple = random() % (UINT64_MAX / divisor) * divisor;
    for (const uint64_t number : {multiple - 1, multiple, multiple + 1}) {
      expect_exact(number, divisor);
    }
  }
}

TEST(Divisor, DividesTheExtremes) {
  std::vector<uint64_t> extremes;
  for (int bit = 0; bit < 64; ++bit) {
    for (const uint64_t beside : {-1, 0, 1}) extremes.push_back((1ULL << bit) + beside);
  }
  extremes.insert(extremes.end(), {UINT64_MAX, UINT64_MAX - 1, 3, 64512, 49151, 1'000'003});
  for (const uint64_t number : extremes) {
    for (const uint64_t divisor : extremes) {
      if (divisor != 0) expect_exact(number, divisor);
    }
  }
}

TEST(Divisor, KnowsItsValue) { EXPECT_EQ(Divisor(64512).value(), 64512U); }

}  // namespace
}  // namespace dutperf::vary
