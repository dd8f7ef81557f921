// A writer and readers at the same table, as hard as they can: no reader ever sees an entry of
// which one half is older than the other. Every four-tuple written ends in a checksum over the rest
// of it, so a torn one is seen. Runs with the other tests, and under ThreadSanitizer in a program
// of its own, where a data race fails it even if nothing was torn.

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "state/table_memory.h"
#include "state/tuple_table.h"

namespace dutperf::state {
namespace {

using Tuple = std::vector<uint32_t>;

// Few, so that readers and the writer meet; more than a burst, so that entries are written anew
// while others are read.
constexpr uint64_t kEntries = 96;

uint32_t checksum(const uint32_t* words, size_t count) {
  uint32_t sum = 1;
  for (size_t i = 0; i < count; ++i) sum = (sum ^ words[i]) * 0x01000193;
  return sum;
}

class TornEntry : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int kReaders = 2;
  static constexpr uint64_t kLeastBursts = 3'000;  // that each reader reads while the table changes
  static constexpr uint64_t kMostBursts = 400'000;  // that the writer learns

  int ip_version() const { return GetParam(); }
  size_t words() const { return TupleTable::bytes_per_entry(ip_version()) / 4; }

  void write() {
    std::mt19937_64 random(1);
    std::vector<Tuple> tuples(kMaxBurst, Tuple(words()));
    std::vector<const uint8_t*> pointers;
    for (const Tuple& tuple : tuples) {
      pointers.push_back(reinterpret_cast<const uint8_t*>(tuple.data()));
    }
    std::vector<uint64_t> indices(kMaxBurst);
    Learner learner(table_);
    for (uint64_t burst = 0; burst < kMostBursts && readers_ > 0; ++burst) {
      written_ = burst;
      for (uint32_t i = 0; i < kMaxBurst; ++i) {
        indices[i] = random() % kEntries;
        for (uint32_t& word : tuples[i]) word = static_cast<uint32_t>(random());
        tuples[i].back() = checksum(tuples[i].data(), words() - 1);
      }
      learner.learn(pointers.data(), indices.data(), kMaxBurst);
    }
    changed_ = learner.counts().changed;
  }

  void read(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint64_t> indices(kMaxBurst);
    Entries entries;
    const auto enough = [&](uint64_t burst) {
      return burst >= kLeastBursts && written_ >= kLeastBursts;
    };
    for (uint64_t burst = 0; burst < kMostBursts && !enough(burst); ++burst) {
      const auto count = static_cast<uint32_t>(1 + random() % kMaxBurst);
      for (uint64_t& index : indices) index = random() % kEntries;
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
    const auto last = static_cast<uint32_t>(entries.ports[row]);
    if (last == 0 && tuple == Tuple(words() - 1)) {
      ++empty_;
    } else {
      ++(last == checksum(tuple.data(), tuple.size()) ? whole_ : torn_);
    }
  }

  TableMemory memory_{TupleTable::bytes_for(ip_version(), kEntries)};
  TupleTable table_{ip_version(), kEntries, memory_.data()};
  std::atomic<int> readers_ = kReaders;
  std::atomic<uint64_t> written_ = 0;
  std::atomic<uint64_t> whole_ = 0;
  std::atomic<uint64_t> empty_ = 0;
  std::atomic<uint64_t> torn_ = 0;
  uint64_t changed_ = 0;
};

TEST_P(TornEntry, IsNeverSeen) {
  std::thread writer([this] { write(); });
  std::vector<std::thread> readers;
  for (uint64_t i = 0; i < kReaders; ++i) readers.emplace_back([this, i] { read(i + 2); });
  for (std::thread& reader : readers) reader.join();
  writer.join();
  EXPECT_EQ(torn_, 0U);
  EXPECT_GT(whole_, 10'000U);
  EXPECT_GT(changed_, 10'000U);
}

INSTANTIATE_TEST_SUITE_P(TupleTable, TornEntry, ::testing::Values(4, 6));

}  // namespace
}  // namespace dutperf::state
