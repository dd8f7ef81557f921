// Statistics for the tests of randomness. Seeds are fixed, so a verdict never changes by chance.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace dutperf::vary::testing {

using Counts = std::vector<uint64_t>;

// Pearson's chi-square of `counts` against equal shares, in standard deviations from what chance
// makes of it. Far above: some values are preferred. Far below: too even to be random.
inline double chi_square_deviation(const Counts& counts) {
  uint64_t total = 0;
  for (const uint64_t count : counts) total += count;
  const double expected = static_cast<double>(total) / static_cast<double>(counts.size());
  double sum = 0;
  for (const uint64_t count : counts) {
    const double difference = static_cast<double>(count) - expected;
    sum += difference * difference / expected;
  }
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

// One in 10^6 fair series would be called unfair.
inline constexpr double kFair = 5;

inline bool is_uniform(const Counts& counts) {
  return std::abs(chi_square_deviation(counts)) < kFair;
}

// Whether `ones` of `total` is what fair coins show: five standard deviations at most.
inline bool is_half(uint64_t ones, uint64_t total) {
  const double excess = static_cast<double>(ones) - static_cast<double>(total) / 2;
  return std::abs(excess) < kFair * std::sqrt(static_cast<double>(total)) / 2;
}

// Counts pairs of numbers below `cells`, to tell whether one says something about the other.
class Pairs {
 public:
  explicit Pairs(uint64_t cells) : cells_(cells), counts_(cells * cells) {}
  void add(uint64_t a, uint64_t b) { ++counts_[a * cells_ + b]; }
  const Counts& counts() const { return counts_; }

 private:
  uint64_t cells_;
  Counts counts_;
};

}  // namespace dutperf::vary::testing
