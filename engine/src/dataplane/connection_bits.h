#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace dutperf::dataplane {

// A bit for each connection, or name.
class ConnectionBits {
 public:
  explicit ConnectionBits(uint64_t connections = 0) : words_((connections + 63) / 64) {}

  // Whether it was not there before.
  bool add(uint64_t connection) {
    uint64_t& word = words_[connection / 64];
    const uint64_t bit = uint64_t{1} << (connection % 64);
    const bool is_new = (word & bit) == 0;
    // The other end's worker may look, see below.
    std::atomic_ref(word).store(word | bit, std::memory_order_relaxed);
    return is_new;
  }
  // For any thread.
  bool has(uint64_t connection) const {
    auto& word = const_cast<uint64_t&>(words_[connection / 64]);  // atomic_ref<const> is C++26
    return (std::atomic_ref(word).load(std::memory_order_relaxed) >> (connection % 64) & 1) != 0;
  }
  // Whether it was there. Of none at all nobody was.
  bool remove(uint64_t connection) {
    if (words_.empty()) return false;
    uint64_t& word = words_[connection / 64];
    const uint64_t bit = uint64_t{1} << (connection % 64);
    const bool was_there = (word & bit) != 0;
    word &= ~bit;
    return was_there;
  }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace dutperf::dataplane
