// State tables for the benches, as phase 1 of a stateful test leaves them: full. Tables of several
// sizes share the memory of the largest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "net/byte_order.h"
#include "state/table_memory.h"
#include "state/tuple_table.h"

namespace dutperf::bench {

class LearnedTables {
 public:
  // One table of each size; where there is less memory, one that takes all there is for those that
  // are too large.
  LearnedTables(const std::vector<uint64_t>& sizes, bool hugepages)
      : asked_(*std::max_element(sizes.begin(), sizes.end())),
        most_(std::min(asked_, available_bytes_ / state::TupleTable::bytes_per_entry(kIpVersion))),
        memory_(state::TupleTable::bytes_for(kIpVersion, most_),
                hugepages ? state::Pages::kHugeIfAny : state::Pages::kSmall) {
    std::set<uint64_t> reached;
    for (const uint64_t size : sizes) reached.insert(std::min(size, most_));
    for (const uint64_t size : reached) {
      tables_.push_back(std::make_unique<state::TupleTable>(kIpVersion, size, memory_.data()));
    }
    fill();
  }

  const std::vector<std::unique_ptr<state::TupleTable>>& tables() const { return tables_; }

  nlohmann::json report() const {
    return {{"asked_entries", asked_},
            {"entries", most_},
            {"bytes_per_entry", state::TupleTable::bytes_per_entry(kIpVersion)},
            {"available_bytes", available_bytes_},
            {"memory_bytes", memory_.bytes()},
            {"hugepages", memory_.hugepages()},
            {"allocation_ns", memory_.allocation_ns()}};
  }

 private:
  static constexpr int kIpVersion = 4;

  // 198.19.0.1 and rising ports, 198.19.0.2, to which they lead.
  void fill() {
    state::TupleTable whole(kIpVersion, most_, memory_.data());
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

  // Leaves some for the rest of the machine, as the engine does.
  const uint64_t available_bytes_ = state::TableMemory::available_bytes() / 10 * 9;
  const uint64_t asked_;  // entries
  const uint64_t most_;
  state::TableMemory memory_;
  std::vector<std::unique_ptr<state::TupleTable>> tables_;
};

}  // namespace dutperf::bench
