#include "vary/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <set>

#include "vary/testing/statistics.h"

namespace dutperf::vary {
namespace {

using testing::Counts;
using testing::is_uniform;
using testing::Pairs;

using Wide = unsigned __int128;

TEST(Draw, IsSplitMix64) {
  // The first outputs of the published generator with seed 0, and with seed 1234567.
  EXPECT_EQ(draw(0, 1), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(draw(0, 2), 0x6e789e6aa1b965f4ULL);
  EXPECT_EQ(draw(0, 3), 0x06c45d188009454fULL);
  EXPECT_EQ(draw(1234567, 1), 6457827717110365317ULL);
  EXPECT_EQ(draw(1234567, 2), 3203168211198807973ULL);
}

TEST(Draw, SetsEachOfIts64BitsInHalfOfTheFrames) {
  constexpr uint64_t kDraws = 400'000;
  const uint64_t key = key_of(1, 0, 0);
  std::vector<uint64_t> ones(64);
  for (uint64_t number = 0; number < kDraws; ++number) {
    const uint64_t bits = draw(key, number);
    for (size_t bit = 0; bit < 64; ++bit) ones[bit] += (bits >> bit) & 1;
  }
  for (size_t bit = 0; bit < 64; ++bit) {
    EXPECT_TRUE(is_uniform({ones[bit], kDraws - ones[bit]})) << "bit " << bit;
  }
}

// --- ranges

TEST(ToRange, IsTheProductOverTwoToThe32) {
  std::mt19937_64 random(32);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    const uint64_t size = 1 + (random() % (1ULL << 32) >> (random() % 32));
    ASSERT_EQ(to_range(bits, size), static_cast<uint64_t>(Wide{bits} * size >> 32));
  }
}

TEST(ToRange, ReachesBothEnds) {
  for (const uint64_t size : {1ULL, 2ULL, 3ULL, 49151ULL, 64512ULL, 65536ULL, 1ULL << 32}) {
    EXPECT_EQ(to_range(0, size), 0U) << size;
    EXPECT_EQ(to_range(UINT32_MAX, size), size - 1) << size;
  }
}

struct Range {
  uint32_t min;
  uint32_t max;
  uint64_t size() const { return uint64_t{max} - min + 1; }
};

class RandomRange : public ::testing::TestWithParam<Range> {
 protected:
  uint32_t value(uint64_t number, uint64_t half) const {
    const uint64_t bits = draw(key_, number);
    const auto random = static_cast<uint32_t>(half == 0 ? bits >> 32 : bits);
    return GetParam().min + to_range(random, GetParam().size());
  }
  const uint64_t key_ = key_of(20'26, 1, 7);
};

TEST_P(RandomRange, HasEachOfItsValuesEquallyOften) {
  const uint64_t draws = std::max<uint64_t>(1'000'000, 40 * GetParam().size());
  for (const uint64_t half : {0, 1}) {
    Counts counts(GetParam().size());
    for (uint64_t number = 0; number < draws; ++number) {
      const uint32_t drawn = value(number, half);
      ASSERT_GE(drawn, GetParam().min);
      ASSERT_LE(drawn, GetParam().max);
      ++counts[drawn - GetParam().min];
    }
    EXPECT_TRUE(is_uniform(counts)) << testing::chi_square_deviation(counts);
    EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 0U) << "a value never comes";
  }
}

INSTANTIATE_TEST_SUITE_P(PortsAndAddresses, RandomRange,
                         ::testing::Values(Range{1024, 65535},  // source ports of RFC 4814
                                           Range{1, 49151},     // destination ports
                                           Range{0, 65535}, Range{0, 1}, Range{0, 2}, Range{0, 9},
                                           Range{7, 1006}, Range{0, 255}, Range{2, 65533},
                                           Range{32767, 32769}, Range{0, (1 << 18) - 1}));

// A 15-bit generator (rand() where RAND_MAX is 32767) silently never leaves the lower half:
// 1024 + rand() % 64512 is at most 33,791.
uint32_t port_of_15_bits(uint64_t bits) {
  return static_cast<uint32_t>(1024 + (bits & 0x7fff) % 64512);
}

constexpr uint32_t kEndOfHalfRange = 33'791;

TEST(HalfRange, IsNotAllThatSourcePortsComeFrom) {
  const uint64_t key = key_of(1, 0, 0);
  uint64_t below = 0;
  uint64_t above = 0;
  uint32_t largest = 0;
  for (uint64_t number = 0; number < 2'000'000; ++number) {
    const uint32_t port = 1024 + to_range(static_cast<uint32_t>(draw(key, number) >> 32), 64512);
    ++(port <= kEndOfHalfRange ? below : above);
    largest = std::max(largest, port);
  }
  EXPECT_EQ(largest, 65535U);
  // 32,768 ports are below, 31,744 above: compare them port by port.
  const double share = static_cast<double>(above) / static_cast<double>(below + above);
  EXPECT_NEAR(share, 31'744.0 / 64'512.0, 0.002);
}

TEST(HalfRange, IsFoundByTheTestOfUniformity) {
  Counts counts(64512);
  uint32_t largest = 0;
  for (uint64_t number = 0; number < 2'600'000; ++number) {
    const uint32_t port = port_of_15_bits(draw(1, number));
    largest = std::max(largest, port);
    ++counts[port - 1024];
  }
  EXPECT_EQ(largest, kEndOfHalfRange);
  EXPECT_FALSE(is_uniform(counts));
}

// --- independence

constexpr uint64_t kStateCells = 64;
constexpr uint64_t kPairs = 1'000'000;

uint64_t cell_of(uint32_t bits) { return to_range(bits, kStateCells); }
uint32_t high(uint64_t bits) { return static_cast<uint32_t>(bits >> 32); }
uint32_t low(uint64_t bits) { return static_cast<uint32_t>(bits); }

// How the two numbers of a pair come from (key, number).
struct Sources {
  const char* name;
  uint64_t (*first)(uint64_t number);
  uint64_t (*second)(uint64_t number);
};

uint64_t bits_of(uint64_t seed, uint64_t stream, uint64_t group, uint64_t number) {
  return draw(key_of(seed, stream, group), number);
}

const Sources kSources[] = {
    {"the halves of a draw", [](uint64_t n) { return cell_of(high(bits_of(1, 0, 0, n))); },
     [](uint64_t n) { return cell_of(low(bits_of(1, 0, 0, n))); }},
    {"a frame and the next", [](uint64_t n) { return cell_of(high(bits_of(1, 0, 0, n))); },
     [](uint64_t n) { return cell_of(high(bits_of(1, 0, 0, n + 1))); }},
    {"a half and the next frame's other",
     [](uint64_t n) { return cell_of(low(bits_of(1, 0, 0, n))); },
     [](uint64_t n) { return cell_of(high(bits_of(1, 0, 0, n + 1))); }},
    {"two groups", [](uint64_t n) { return cell_of(high(bits_of(1, 0, 0, n))); },
     [](uint64_t n) { return cell_of(high(bits_of(1, 0, 1, n))); }},
    {"two streams", [](uint64_t n) { return cell_of(high(bits_of(1, 0, 0, n))); },
     [](uint64_t n) { return cell_of(high(bits_of(1, 1, 0, n))); }},
    {"two seeds", [](uint64_t n) { return cell_of(high(bits_of(1, 0, 0, n))); },
     [](uint64_t n) { return cell_of(high(bits_of(2, 0, 0, n))); }},
    {"seed and group exchanged", [](uint64_t n) { return cell_of(low(bits_of(1, 2, 3, n))); },
     [](uint64_t n) { return cell_of(low(bits_of(3, 2, 1, n))); }},
    {"frames that lie 2^32 apart", [](uint64_t n) { return cell_of(high(bits_of(1, 0, 0, n))); },
     [](uint64_t n) { return cell_of(high(bits_of(1, 0, 0, n + (1ULL << 32)))); }},
};

class Independent : public ::testing::TestWithParam<Sources> {};

TEST_P(Independent, NumbersSayNothingAboutEachOther) {
  Pairs pairs(kStateCells);
  for (uint64_t n = 0; n < kPairs; ++n) pairs.add(GetParam().first(n), GetParam().second(n));
  EXPECT_TRUE(is_uniform(pairs.counts()))
      << GetParam().name << ": " << testing::chi_square_deviation(pairs.counts());
}

INSTANTIATE_TEST_SUITE_P(Draws, Independent, ::testing::ValuesIn(kSources));

TEST(Independent, WouldFindAWeakGenerator) {
  Pairs pairs(kStateCells);
  uint64_t state = 1;
  for (uint64_t n = 0; n < kPairs; ++n) {
    const uint64_t next = (state * 1103515245 + 12345) & 0x7fffffff;  // the example in ISO C
    pairs.add(state % kStateCells, next % kStateCells);
    state = next;
  }
  EXPECT_FALSE(is_uniform(pairs.counts()));
}

TEST(KeyOf, IsDifferentForEverySeedStreamAndGroup) {
  std::set<uint64_t> keys;
  size_t made = 0;
  for (const uint64_t seed : {0ULL, 1ULL, 2ULL, 0x7fffffffffffffffULL}) {
    for (uint64_t stream = 0; stream < 256; ++stream) {
      for (uint64_t group = 0; group <= 512; ++group, ++made) {
        keys.insert(key_of(seed, stream, group == 512 ? UINT32_MAX : group));
      }
    }
  }
  EXPECT_EQ(keys.size(), made);
}

TEST(KeyOf, ChangesHalfOfItsBitsWithTheSeed) {
  uint64_t flipped = 0;
  for (uint64_t seed = 0; seed < 100'000; ++seed) {
    flipped += static_cast<uint64_t>(std::popcount(key_of(seed, 0, 0) ^ key_of(seed + 1, 0, 0)));
  }
  EXPECT_NEAR(static_cast<double>(flipped) / 100'000, 32, 0.1);
}

}  // namespace
}  // namespace dutperf::vary
