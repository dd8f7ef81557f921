#include "vary/permutation.h"

#include <cmath>

namespace dutperf::vary {
namespace {

uint64_t square_root_up(uint64_t size) {
  auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(size)));
  while (root * root < size) ++root;
  return root;
}

}  // namespace

Permutation::Permutation(uint64_t size, uint64_t key)
    : size_(size),
      rows_((size + square_root_up(size) - 1) / square_root_up(size)),
      columns_(square_root_up(size)) {
  for (int i = 0; i < kRounds; ++i) keys_[i] = draw(key, static_cast<uint64_t>(i));
}

}  // namespace dutperf::vary
