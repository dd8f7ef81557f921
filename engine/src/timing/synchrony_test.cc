#include "timing/synchrony.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "timing/clock.h"

namespace dutperf::timing {
namespace {

// Rounds between two clocks of which the other is `offset` ahead, with random travel times.
OffsetBounds bounds_of(int64_t offset, uint64_t seed) {
  std::mt19937_64 random(seed);
  OffsetBounds bounds;
  uint64_t now = 1'000'000'000;
  for (int round = 0; round < 100; ++round) {
    const uint64_t asked = now;
    now += 100 + random() % 5000;
    const uint64_t answer = now + static_cast<uint64_t>(offset);
    now += 100 + random() % 5000;
    bounds.narrow(asked, answer, now);
  }
  return bounds;
}

TEST(OffsetBounds, ContainTheTruthWhateverTheTravelTimesAre) {
  for (const int64_t offset : {0, 1, -1, 250, -250, 100'000, -100'000}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const OffsetBounds bounds = bounds_of(offset, seed);
      EXPECT_LE(bounds.lowest, offset);
      EXPECT_GE(bounds.highest, offset);
      EXPECT_LT(bounds.highest - bounds.lowest, 2000) << "narrow after a hundred rounds";
    }
  }
}

TEST(OffsetBounds, AreCertainOnlyWhenZeroIsRuledOut) {
  EXPECT_EQ(bounds_of(0, 7).certain(), 0U);
  EXPECT_GT(bounds_of(50'000, 7).certain(), 45'000U);
  EXPECT_GT(bounds_of(-50'000, 7).certain(), 45'000U);
  EXPECT_LE(bounds_of(-50'000, 7).certain(), 50'000U);
  EXPECT_GE(bounds_of(-50'000, 7).possible(), 50'000U);
}

TEST(Hypervisor, OfWhichTheCounterIsTheHostsClockIsAnEmulationThatIsKnown) {
  EXPECT_TRUE(counts_by_host("TCGTCGTCGTCG"));
  for (const char* other : {"", "KVMKVMKVM\0\0\0", "VMwareVMware", "TCG"}) {
    EXPECT_FALSE(counts_by_host(other)) << other;
  }
  EXPECT_TRUE(hypervisor().empty() || hypervisor().size() == 12);
}

TEST(SynchronyProbe, DoesNotRuleOutZeroBetweenThreadsOfOneClock) {
  SynchronyProbe probe;
  constexpr uint64_t kPatience = 40'000'000'000;
  std::thread other([&] { probe.answer(kPatience); });
  const OffsetBounds bounds = probe.ask(kPatience);
  other.join();
  EXPECT_EQ(bounds.certain(), 0U);
  EXPECT_LT(bounds.possible(), uint64_t{INT64_MAX});
}

TEST(SynchronyProbe, GivesUpWhenNobodyAnswers) {
  SynchronyProbe probe;
  const OffsetBounds bounds = probe.ask(1000);
  EXPECT_EQ(bounds.certain(), 0U);
  EXPECT_EQ(bounds.lowest, INT64_MIN);
}

}  // namespace
}  // namespace dutperf::timing
