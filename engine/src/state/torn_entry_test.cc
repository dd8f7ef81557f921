// A writer and readers at the same table, as hard as they can: no reader ever sees an entry of
// which one half is older than the other. Runs with the other tests, and under ThreadSanitizer in a
// program of its own, where a data race fails it even if nothing was torn.

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "state/table_memory.h"
#include "state/testing/checked_tuples.h"
#include "state/tuple_table.h"

namespace dutperf::state {
namespace {

using Tuple = std::vector<uint32_t>;

// Few, so that readers and the writer meet; more than a burst, so that entries are written anew
// while others are read.
constexpr uint64_t kTornEntries = 96;

class TornEntry : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int kReaders = 2;
  // That each reader reads while the table changes. ThreadSanitizer is slow, and needs no luck.
#ifdef __SANITIZE_THREAD__
  static constexpr uint64_t kLeastBursts = 3'000;
#else
  static constexpr uint64_t kLeastBursts = 40'000;
#endif
  static constexpr uint64_t kMostBursts = 400'000;  // that the writer learns

  int ip_version() const { return GetParam(); }
  size_t words() const { return TupleTable::bytes_per_entry(ip_version()) / 4; }

  void read(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint64_t> indices(kMaxBurst);
    Entries entries;
    const auto enough = [&](uint64_t burst) {
      return burst >= kLeastBursts && writer_.written_bursts() >= kLeastBursts;
    };
    for (uint64_t burst = 0; burst < kMostBursts && !enough(burst); ++burst) {
      const auto count = static_cast<uint32_t>(1 + random() % kMaxBurst);
      for (uint64_t& index : indices) index = random() % kTornEntries;
      table_.prefetch(indices.data(), count);
      table_.read(indices.data(), count, entries);
      for (uint32_t i = 0; i < count; ++i) look_at(entries, i);
    }
    --readers_;
  }

  void look_at(const Entries& entries, uint32_t row) {
    Tuple tuple;
    for (size_t k = 0; k + 1 < words(); ++k) {
      tuple.push_back(static_cast<uint32_t>(entries.addresses[k / 2][row] >> (k % 2 * 32)));
    }
    tuple.push_back(static_cast<uint32_t>(entries.ports[row]));
    if (tuple == Tuple(words())) {
      ++empty_;
    } else {
      ++(testing::is_whole(tuple.data(), tuple.size()) ? whole_ : torn_);
    }
  }

  TableMemory memory_{TupleTable::bytes_for(ip_version(), kTornEntries)};
  TupleTable table_{ip_version(), kTornEntries, memory_.data()};
  testing::CheckedWriter writer_{table_};
  std::atomic<int> readers_ = kReaders;
  std::atomic<uint64_t> whole_ = 0;
  std::atomic<uint64_t> empty_ = 0;
  std::atomic<uint64_t> torn_ = 0;
};

TEST_P(TornEntry, IsNeverSeen) {
  std::thread writer([this] { writer_.churn(readers_, kMostBursts); });
  std::vector<std::thread> readers;
  for (uint64_t i = 0; i < kReaders; ++i) readers.emplace_back([this, i] { read(i + 2); });
  for (std::thread& reader : readers) reader.join();
  writer.join();
  EXPECT_EQ(torn_, 0U);
  EXPECT_GT(whole_, 10'000U);
  EXPECT_GT(writer_.counts().changed, 10'000U);
}

INSTANTIATE_TEST_SUITE_P(TupleTable, TornEntry, ::testing::Values(4, 6));

}  // namespace
}  // namespace dutperf::state
