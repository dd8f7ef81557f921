#include "dataplane/hand_over.h"

#include <gtest/gtest.h>

#include <vector>

namespace dutperf::dataplane {
namespace {

TEST(HandOver, GivesEachShareWhatEachOtherPutInTurn) {
  const HandOver all(3);
  for (uint64_t from = 0; from < 3; ++from) {
    for (uint64_t to = 0; to < 3; ++to) {
      if (from == to) continue;
      for (uint64_t i = 0; i < 5; ++i) {
        const HandedOver record{(10 * from + to) << 16 | i, 1, 2, 3};
        EXPECT_EQ(all.ring(from, to).put(&record, 1), 1U);
      }
    }
  }
  std::vector<HandedOver> taken(8);
  EXPECT_EQ(all.ring(2, 1).take(taken.data(), 8), 5U);
  for (uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(taken[i].number(), 21U);
    EXPECT_EQ(taken[i].queue(), i);
  }
  EXPECT_EQ(all.ring(2, 1).take(taken.data(), 8), 0U);
  EXPECT_EQ(all.ring(1, 2).take(taken.data(), 8), 5U);
}

TEST(HandOver, HasNoRoomForMoreThanItsRecords) {
  HandOver all(2);
  const HandedOver record{};
  uint64_t put = 0;
  while (all.ring(0, 1).put(&record, 1) == 1) ++put;
  EXPECT_EQ(put, HandOver::kRecords - 1);
  all.clear();
  EXPECT_EQ(all.ring(0, 1).put(&record, 1), 1U);
}

}  // namespace
}  // namespace dutperf::dataplane
