// Four-tuples that tell when they are torn: the last word is a checksum over the others. And a
// writer that fills a table with ever new ones while others read.
#pragma once

#include <atomic>
#include <cstdint>
#include <random>
#include <vector>

#include "state/tuple_table.h"

namespace dutperf::state::testing {

inline uint32_t checksum(const uint32_t* words, size_t count) {
  uint32_t sum = 1;
  for (size_t i = 0; i < count; ++i) sum = (sum ^ words[i]) * 0x01000193;
  return sum;
}

// Whether a tuple of so many words is one that was written.
inline bool is_whole(const uint32_t* words, size_t count) {
  return words[count - 1] == checksum(words, count - 1);
}

class CheckedWriter {
 public:
  explicit CheckedWriter(TupleTable& table)
      : entries_(table.entries()),
        words_(TupleTable::bytes_per_entry(table.ip_version()) / 4),
        learner_(table),
        tuples_(kMaxBurst, std::vector<uint32_t>(words_)) {
    for (const auto& tuple : tuples_) {
      pointers_.push_back(reinterpret_cast<const uint8_t*>(tuple.data()));
    }
  }

  // Every entry once.
  void fill() {
    for (uint64_t first = 0; first < entries_; first += kMaxBurst) {
      std::vector<uint64_t> indices;
      for (uint64_t i = first; i < entries_ && i < first + kMaxBurst; ++i) indices.push_back(i);
      learn(indices);
    }
  }

  // Entries at random as long as somebody reads, but no more than `most_bursts`.
  void churn(const std::atomic<int>& readers, uint64_t most_bursts) {
    std::vector<uint64_t> indices(kMaxBurst);
    for (; written_ < most_bursts && readers > 0; ++written_) {
      for (uint64_t& index : indices) index = random_() % entries_;
      learn(indices);
    }
  }

  uint64_t written_bursts() const { return written_; }  // so far; for any thread
  const Learner::Counts& counts() const { return learner_.counts(); }

 private:
  void learn(const std::vector<uint64_t>& indices) {
    for (auto& tuple : tuples_) {
      for (uint32_t& word : tuple) word = static_cast<uint32_t>(random_());
      tuple.back() = checksum(tuple.data(), words_ - 1);
    }
    learner_.learn(pointers_.data(), indices.data(), static_cast<uint32_t>(indices.size()));
  }

  const uint64_t entries_;
  const size_t words_;
  Learner learner_;
  std::mt19937_64 random_{1};
  std::vector<std::vector<uint32_t>> tuples_;
  std::vector<const uint8_t*> pointers_;
  std::atomic<uint64_t> written_ = 0;
};

}  // namespace dutperf::state::testing
