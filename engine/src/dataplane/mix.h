// Foreground and background of one direction: m of n consecutive frames are foreground, spread
// evenly (RFC 8219 5.3): frame i is foreground iff (i * m) mod n < m.
#pragma once

#include <cstdint>

namespace dutperf::dataplane {

class Mix {
 public:
  // REQUIRES: 1 <= foreground <= of.
  constexpr Mix(uint64_t foreground, uint64_t of) : foreground_(foreground), of_(of) {}

  // Of the first `total` frames of the direction.
  constexpr uint64_t foreground_among(uint64_t total) const {
    if (total == 0) return 0;
    return static_cast<uint64_t>((unsigned __int128){total - 1} * foreground_ / of_) + 1;
  }

  // Which frame of the direction is number `k` of its foreground, and of its background. REQUIRES:
  // it has a background.
  constexpr uint64_t place_of_foreground(uint64_t k) const {
    return static_cast<uint64_t>(((unsigned __int128){k} * of_ + foreground_ - 1) / foreground_);
  }
  constexpr uint64_t place_of_background(uint64_t k) const {
    return static_cast<uint64_t>((unsigned __int128){k} * of_ / (of_ - foreground_)) + 1;
  }

  // Whether the next frame is foreground; steps through frames 0, 1, 2, ... without division.
  class Walk {
   public:
    bool next(const Mix& mix) {
      const bool foreground = remainder_ < mix.foreground_;
      remainder_ += mix.foreground_;
      if (remainder_ >= mix.of_) remainder_ -= mix.of_;
      return foreground;
    }

   private:
    uint64_t remainder_ = 0;  // (i * m) mod n
  };

 private:
  uint64_t foreground_;
  uint64_t of_;
};

}  // namespace dutperf::dataplane
