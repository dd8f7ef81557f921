#include "vary/permutation.h"

#include <algorithm>
#include <cmath>

#include "vary/draw.h"

namespace dutperf::vary {
namespace {

uint64_t square_root_up(uint64_t size) {
  auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(size)));
  while (root * root < size) ++root;
  return root;
}

Feistel network(uint64_t size, uint64_t key) {
  Feistel result{};
  result.columns = square_root_up(size);
  result.rows = (size + result.columns - 1) / result.columns;
  for (uint64_t i = 0; i < 4; ++i) result.key[i] = draw(key, i);
  return result;
}

}  // namespace

Permutation::Permutation(uint64_t size, uint64_t key)
    : size_(size), feistel_(network(size, key)), columns_(feistel_.columns) {}

uint64_t Permutation::at(uint64_t index) const {
  uint64_t value = encrypt(index);
  while (value >= size_) value = encrypt(value);
  return value;
}

void Permutation::at_all(const Lanes& indices, Lanes& out, uint32_t count) const {
  lanes::encrypt(feistel_, indices, out, count);
  uint64_t largest = 0;
  for (uint32_t i = 0; i < count; ++i) largest = std::max(largest, out.lane[i]);
  if (largest < size_) return;
  for (uint32_t i = 0; i < count; ++i) {
    while (out.lane[i] >= size_) out.lane[i] = encrypt(out.lane[i]);
  }
}

uint64_t Permutation::place_of(uint64_t value) const {
  uint64_t index = decrypt(value);
  while (index >= size_) index = decrypt(index);
  return index;
}

uint64_t Permutation::encrypt(uint64_t number) const {
  const auto [left, right] = columns_.divide(number);
  return feistel::encrypt(feistel_, left, right);
}

uint64_t Permutation::decrypt(uint64_t number) const {
  const auto [left, right] = columns_.divide(number);
  return feistel::decrypt(feistel_, left, right);
}

}  // namespace dutperf::vary
