// A count that one thread raises and others may read meanwhile, at the price of a plain one.
#pragma once

#include <atomic>
#include <cstdint>

namespace dutperf::measure {

class PublishedCount {
 public:
  PublishedCount() = default;
  PublishedCount(const PublishedCount& other) : value_(other.value()) {}
  PublishedCount& operator=(const PublishedCount& other) {
    value_.store(other.value(), std::memory_order_relaxed);
    return *this;
  }

  // For the one that counts. No read-modify-write: nobody else writes.
  void add(uint64_t count) { value_.store(value() + count, std::memory_order_relaxed); }

  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace dutperf::measure
