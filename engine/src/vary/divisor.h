// Division by a number that is known before the trial: a multiplication and a correction.
#pragma once

#include <cstdint>

namespace dutperf::vary {

class Divisor {
 public:
  struct Result {
    uint64_t quotient;
    uint64_t remainder;
  };

  // REQUIRES: divisor >= 1.
  explicit constexpr Divisor(uint64_t divisor)
      : divisor_(divisor), reciprocal_(divisor == 1 ? UINT64_MAX : ~0ULL / divisor) {}

  constexpr uint64_t value() const { return divisor_; }

  // Exact for every 64-bit number: the estimate is at most one too small.
  constexpr Result divide(uint64_t number) const {
    const auto estimate = static_cast<uint64_t>(((unsigned __int128){number} * reciprocal_) >> 64);
    const uint64_t rest = number - estimate * divisor_;
    const bool short_by_one = rest >= divisor_;
    return {estimate + short_by_one, short_by_one ? rest - divisor_ : rest};
  }

 private:
  uint64_t divisor_;
  uint64_t reciprocal_;
};

}  // namespace dutperf::vary
