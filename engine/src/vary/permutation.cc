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

Feistel network(uint64_t rows, uint64_t columns, uint64_t key) {
  return Feistel(rows, columns, {draw(key, 0), draw(key, 1), draw(key, 2), draw(key, 3)});
}

Feistel square_network(uint64_t size, uint64_t key) {
  const uint64_t columns = square_root_up(size);
  return network((size + columns - 1) / columns, columns, key);
}

}  // namespace

Permutation::Permutation(uint64_t size, uint64_t key)
    : size_(size), feistel_(square_network(size, key)), columns_(feistel_.columns) {}

Permutation::Permutation(uint64_t rows, uint64_t columns, uint64_t key)
    : size_(rows * columns), feistel_(network(rows, columns, key)), columns_(columns) {}

uint64_t Permutation::at(uint64_t index) const {
  uint64_t value = encrypt(index);
  while (value >= size_) value = encrypt(value);
  return value;
}

void Permutation::at_all(const Lanes& indices, Lanes& out, uint32_t count) const {
  Lanes left;
  lanes::encrypt(feistel_, indices, left, out, count);
  lanes::join(left, feistel_.columns, out, count);
  uint64_t largest = 0;
  for (uint32_t i = 0; i < count; ++i) largest = std::max(largest, out.lane[i]);
  if (largest < size_) return;
  for (uint32_t i = 0; i < count; ++i) {
    while (out.lane[i] >= size_) out.lane[i] = encrypt(out.lane[i]);
  }
}

void Permutation::pairs_at(const Lanes& indices, Lanes& left, Lanes& right, uint32_t count) const {
  lanes::encrypt(feistel_, indices, left, right, count);
}

uint64_t Permutation::place_of(uint64_t value) const {
  uint64_t index = decrypt(value);
  while (index >= size_) index = decrypt(index);
  return index;
}

uint64_t Permutation::encrypt(uint64_t number) const {
  const auto [left, right] = columns_.divide(number);
  const feistel::Pair image = feistel::encrypt(feistel_, {left, right});
  return image.left * columns_.value() + image.right;
}

uint64_t Permutation::decrypt(uint64_t number) const {
  const auto [left, right] = columns_.divide(number);
  const feistel::Pair origin = feistel::decrypt(feistel_, {left, right});
  return origin.left * columns_.value() + origin.right;
}

}  // namespace dutperf::vary
