#include "dataplane/mix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace dutperf::dataplane {
namespace {

// The definition (RFC 8219 5.3 as siitperf reads it).
bool is_foreground(uint64_t frame, uint64_t m, uint64_t n) {
  return static_cast<uint64_t>((unsigned __int128){frame} * m % n) < m;
}

void for_each_mix(uint64_t largest, void (*check)(uint64_t m, uint64_t n)) {
  for (uint64_t n = 1; n <= largest; ++n) {
    for (uint64_t m = 1; m <= n; ++m) {
      if (std::gcd(m, n) == 1) check(m, n);
    }
  }
}

TEST(MixWalk, IsTheDefinitionFrameByFrame) {
  for_each_mix(60, [](uint64_t m, uint64_t n) {
    const Mix mix(m, n);
    Mix::Walk walk;
    for (uint64_t frame = 0; frame < 3 * n + 7; ++frame) {
      ASSERT_EQ(walk.next(mix), is_foreground(frame, m, n)) << m << "/" << n << ", " << frame;
    }
  });
}

TEST(Mix, CountsTheForegroundAmongTheFirstFrames) {
  for_each_mix(60, [](uint64_t m, uint64_t n) {
    const Mix mix(m, n);
    uint64_t foreground = 0;
    for (uint64_t total = 0; total < 3 * n + 7; ++total) {
      ASSERT_EQ(mix.foreground_among(total), foreground) << m << "/" << n << " of " << total;
      foreground += is_foreground(total, m, n) ? 1 : 0;
    }
  });
}

TEST(Mix, KnowsThePlaceOfEachFrameOfAStream) {
  for_each_mix(60, [](uint64_t m, uint64_t n) {
    const Mix mix(m, n);
    uint64_t foreground = 0;
    uint64_t background = 0;
    for (uint64_t frame = 0; frame < 3 * n + 7; ++frame) {
      const uint64_t place = is_foreground(frame, m, n) ? mix.place_of_foreground(foreground++)
                                                        : mix.place_of_background(background++);
      ASSERT_EQ(place, frame) << m << "/" << n;
    }
  });
}

TEST(Mix, CountsExactlyInTheLongestTrials) {
  std::mt19937_64 random(8219);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t n = 1 + random() % 1'000'000;
    const uint64_t m = 1 + random() % n;
    const uint64_t periods = random() % ((1ULL << 40) / n);
    const Mix mix(m, n);
    if (std::gcd(m, n) != 1) continue;
    ASSERT_EQ(mix.foreground_among(periods * n), periods * m);  // m of every n
    const uint64_t total = random() % (1ULL << 40);
    const uint64_t before = mix.foreground_among(total);
    ASSERT_EQ(mix.foreground_among(total + 1) - before, is_foreground(total, m, n) ? 1U : 0U);
    ASSERT_EQ(is_foreground(total, m, n) ? mix.place_of_foreground(before)
                                         : mix.place_of_background(total - before),
              total);
  }
}

TEST(Mix, SpreadsTheForegroundEvenly) {
  for_each_mix(30, [](uint64_t m, uint64_t n) {
    const Mix mix(m, n);
    for (uint64_t first = 0; first < n; ++first) {
      for (uint64_t length = 1; length <= 2 * n; ++length) {
        const uint64_t among = mix.foreground_among(first + length) - mix.foreground_among(first);
        const double share = static_cast<double>(length * m) / static_cast<double>(n);
        ASSERT_LE(std::abs(static_cast<double>(among) - share), 1) << m << "/" << n;
      }
    }
  });
}

TEST(Mix, HasTheMixesOfRfc8219) {
  const auto pattern = [](uint64_t m, uint64_t n, size_t frames) {
    const Mix mix(m, n);
    Mix::Walk walk;
    std::string text;
    for (size_t i = 0; i < frames; ++i) text += walk.next(mix) ? 'F' : 'b';
    return text;
  };
  EXPECT_EQ(pattern(1, 1, 10), "FFFFFFFFFF");
  EXPECT_EQ(pattern(9, 10, 20), "FbFFFFFFFFFbFFFFFFFF");
  EXPECT_EQ(pattern(1, 2, 10), "FbFbFbFbFb");
  EXPECT_EQ(pattern(1, 10, 20), "FbbbbbbbbbFbbbbbbbbb");
}

}  // namespace
}  // namespace dutperf::dataplane
