#include "connection_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>

namespace dutperf::refdut {
namespace {

Connection connection(uint32_t number) {
  Connection result;
  result.inside.address[3] = 2;
  result.inside.port = static_cast<uint16_t>(number % 50'000);
  result.remote.address[0] = 198;
  result.remote.port = static_cast<uint16_t>(number / 50'000);
  return result;
}

// What the table is by definition: a list, the one that was not used for longest first.
class SlowTable {
 public:
  explicit SlowTable(const TableSettings& settings) : settings_(settings) {}

  bool use(uint32_t number, uint64_t now_ns) {
    const auto found = find(number);
    if (found == list_.end()) return false;
    const bool over = settings_.timeout_ns != 0 && now_ns >= found->second + settings_.timeout_ns;
    list_.erase(found);
    if (!over) list_.emplace_back(number, now_ns);
    return !over;
  }

  bool create(uint32_t number, uint64_t now_ns) {
    if (list_.size() == settings_.entries && settings_.timeout_ns != 0) {
      list_.remove_if([&](const auto& one) { return now_ns >= one.second + settings_.timeout_ns; });
    }
    if (list_.size() == settings_.entries) {
      if (settings_.eviction == Eviction::kRefuse) return false;
      const uint64_t victims = settings_.eviction == Eviction::kChunks ? settings_.chunk : 1;
      for (uint64_t i = 0; i < victims; ++i) list_.pop_front();
    }
    list_.emplace_back(number, now_ns);
    return true;
  }

 private:
  std::list<std::pair<uint32_t, uint64_t>>::iterator find(uint32_t number) {
    return std::find_if(list_.begin(), list_.end(),
                        [&](const auto& one) { return one.first == number; });
  }

  TableSettings settings_;
  std::list<std::pair<uint32_t, uint64_t>> list_;
};

TEST(ConnectionTable, DoesWhatAListWouldDo) {
  std::mt19937 random(1);
  for (const Eviction eviction :
       {Eviction::kRefuse, Eviction::kLeastRecentlyUsed, Eviction::kChunks}) {
    for (const uint64_t timeout_ns : {uint64_t{0}, uint64_t{30}}) {
      const TableSettings settings{20, eviction, 7, timeout_ns};
      ConnectionTable table(settings, 1);
      SlowTable slow(settings);
      for (uint64_t now_ns = 0; now_ns < 5000; now_ns += random() % 3) {
        const auto number = static_cast<uint32_t>(random() % 40);
        const bool known = table.use(connection(number), now_ns);
        ASSERT_EQ(known, slow.use(number, now_ns));
        if (!known) {
          ASSERT_EQ(table.create(connection(number), now_ns), slow.create(number, now_ns));
        }
        if (random() % 4 == 0) table.expire(now_ns, 1);  // is only a matter of memory
        ASSERT_LE(table.size(), settings.entries);
      }
    }
  }
}

TEST(ConnectionTable, EvictsAtRandomOneForOne) {
  ConnectionTable table({1000, Eviction::kRandom, 1, 0}, 1);
  for (uint32_t i = 0; i < 2000; ++i) ASSERT_TRUE(table.create(connection(i), i));
  EXPECT_EQ(table.size(), 1000U);
  EXPECT_EQ(table.counts().evicted, 1000U);
  uint32_t of_the_first = 0;
  for (uint32_t i = 0; i < 1000; ++i) of_the_first += table.use(connection(i), 5000);
  // Each of the first thousand survives a thousand draws with probability 1/e.
  EXPECT_NEAR(of_the_first, 368, 60);
}

TEST(ConnectionTable, IsEmptyWhenAllIsRemovedAndTakesAsMuchAgain) {
  ConnectionTable table({100, Eviction::kRefuse, 1, 0}, 1);
  for (int round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < 100; ++i) ASSERT_TRUE(table.create(connection(i), i));
    EXPECT_FALSE(table.create(connection(100), 100));
    table.remove(40);
    EXPECT_FALSE(table.use(connection(39), 100));
    EXPECT_TRUE(table.use(connection(40), 100));
    table.remove(UINT64_MAX);
    EXPECT_EQ(table.size(), 0U);
  }
  EXPECT_EQ(table.counts().removed, 300U);
  EXPECT_EQ(table.counts().refused, 3U);
}

}  // namespace
}  // namespace dutperf::refdut
