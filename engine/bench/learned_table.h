// State tables for the benches, as phase 1 of a stateful test leaves them: full. Tables of several
// sizes share the memory of the largest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "net/byte_order.h"
#include "state/table_memory.h"
#include "state/tuple_table.h"

namespace dutperf::bench {

class LearnedTables {
 public:
  // As many entries of `sizes` as there is memory for.
  LearnedTables(const std::vector<uint64_t>& sizes, bool hugepages)
      : most_(std::min(*std::max_element(sizes.begin(), sizes.end()), affordable())),
        memory_(state::TupleTable::bytes_for(4, most_),
                hugepages ? state::Pages::kHugeIfAny : state::Pages::kSmall) {
    for (const uint64_t size : sizes) {
      tables_.push_back(
          std::make_unique<state::TupleTable>(4, std::min(size, most_), memory_.data()));
    }
    fill();
  }

  const std::vector<std::unique_ptr<state::TupleTable>>& tables() const { return tables_; }
  const state::TableMemory& memory() const { return memory_; }

 private:
  // Leaves some for the rest of the machine.
  static uint64_t affordable() {
    return state::TableMemory::available_bytes() / 10 * 9 / state::TupleTable::bytes_per_entry(4);
  }

  // 198.19.0.1 and rising ports, 198.19.0.2, to which they lead.
  void fill() {
    state::TupleTable whole(4, most_, memory_.data());
    state::Learner learner(whole);
    std::vector<net::Be32> tuples(3 * state::kMaxBurst);
    const uint8_t* pointers[state::kMaxBurst];
    uint64_t indices[state::kMaxBurst];
    for (uint64_t first = 0; first < most_; first += state::kMaxBurst) {
      const auto count = static_cast<uint32_t>(std::min<uint64_t>(state::kMaxBurst, most_ - first));
      for (uint32_t i = 0; i < count; ++i) {
        net::Be32* const tuple = &tuples[3 * i];
        tuple[0] = 0xc6130001;
        tuple[1] = 0xc6130002;
        tuple[2] = static_cast<uint32_t>(first + i);
        pointers[i] = reinterpret_cast<const uint8_t*>(tuple);
        indices[i] = first + i;
      }
      learner.learn(pointers, indices, count);
    }
  }

  uint64_t most_;
  state::TableMemory memory_;
  std::vector<std::unique_ptr<state::TupleTable>> tables_;
};

}  // namespace dutperf::bench
