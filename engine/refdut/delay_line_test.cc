#include "delay_line.h"

#include <gtest/gtest.h>

#include <random>

#include "parking.h"

namespace dutperf::refdut {
namespace {

TEST(DelayLine, GivesBackWhatIsDueFirstAndOfThoseTheFirstComer) {
  for (const uint64_t spread : {1U, 10U, 1'000'000U}) {
    std::mt19937_64 random(11);
    DelayLine<int> line(5000);
    std::vector<std::pair<uint64_t, int>> twin;
    for (int i = 0; i < 5000; ++i) {
      const uint64_t due = random() % spread;
      line.put(due, i);
      twin.emplace_back(due, i);
    }
    std::stable_sort(twin.begin(), twin.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [due, item] : twin) {
      ASSERT_EQ(line.next_due_ns(), due);
      ASSERT_EQ(line.take(), item);
    }
    EXPECT_EQ(line.next_due_ns(), UINT64_MAX);
  }
}

TEST(DelayLine, KeepsTheOrderWhileFramesComeAndGo) {
  std::mt19937_64 random(12);
  DelayLine<uint64_t> line(1000);
  std::vector<std::pair<uint64_t, uint64_t>> twin;  // due, number
  uint64_t number = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (line.size() < 1000 && (twin.empty() || random() % 2 == 0)) {
      const uint64_t due = static_cast<uint64_t>(i) + random() % 50;
      line.put(due, number);
      twin.emplace_back(due, number++);
      continue;
    }
    const auto first = std::min_element(twin.begin(), twin.end());
    ASSERT_EQ(line.take(), first->second);
    twin.erase(first);
  }
}

TEST(Parking, GivesBackInOrderAndHoldsOneMoreThanItsDistance) {
  Parking<int> parking(3);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 4; ++i) parking.put(4 * round + i, 1, 2);
    for (int i = 0; i < 4; ++i) {
      ASSERT_FALSE(parking.empty());
      EXPECT_EQ(parking.front().until_number, 1U);
      ASSERT_EQ(parking.take(), 4 * round + i);
    }
    ASSERT_TRUE(parking.empty());
  }
}

}  // namespace
}  // namespace dutperf::refdut
