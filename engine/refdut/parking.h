// Frames that a reorder rule took out of their order: each waits until so many later frames have
// reached the rule, or for at most a time. A ring, as all wait for the same number.
#pragma once

#include <cstdint>
#include <vector>

namespace dutperf::refdut {

template <typename Item>
class Parking {
 public:
  struct Parked {
    Item item;
    uint64_t until_number;
    uint64_t until_ns;
  };

  Parking() = default;
  // For `distance` frames and the one that is just being asked about.
  explicit Parking(uint32_t distance) : ring_(distance + 1U) {}

  bool empty() const { return size_ == 0; }
  const Parked& front() const { return ring_[first_]; }

  // REQUIRES: the front's number, if there is one, has not been passed.
  void put(const Item& item, uint64_t until_number, uint64_t until_ns) {
    ring_[(first_ + size_) % ring_.size()] = {item, until_number, until_ns};
    ++size_;
  }

  // REQUIRES: not empty.
  Item take() {
    const Item item = ring_[first_].item;
    first_ = (first_ + 1) % ring_.size();
    --size_;
    return item;
  }

 private:
  std::vector<Parked> ring_;
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace dutperf::refdut
