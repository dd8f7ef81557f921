// Frames that wait, in the order in which they are due; those due at the same time leave in the
// order in which they came. A binary heap of fixed size: nothing is allocated per frame.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dutperf::refdut {

template <typename Item>
class DelayLine {
 public:
  explicit DelayLine(size_t capacity) : capacity_(capacity) { heap_.reserve(capacity); }

  size_t size() const { return heap_.size(); }
  size_t capacity() const { return capacity_; }
  // UINT64_MAX when nothing waits.
  uint64_t next_due_ns() const { return heap_.empty() ? UINT64_MAX : heap_.front().due_ns; }

  // REQUIRES: not full.
  void put(uint64_t due_ns, const Item& item) {
    heap_.push_back({due_ns, arrivals_++, item});
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }

  // REQUIRES: not empty.
  const Item& next() const { return heap_.front().item; }
  Item take() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    const Item item = heap_.back().item;
    heap_.pop_back();
    return item;
  }

 private:
  struct Entry {
    uint64_t due_ns;
    uint64_t arrival;
    Item item;
  };

  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.due_ns != b.due_ns ? a.due_ns > b.due_ns : a.arrival > b.arrival;
    }
  };

  size_t capacity_;
  uint64_t arrivals_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace dutperf::refdut
