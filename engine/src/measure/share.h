// One of `of` equal shares of a direction's work: frame k belongs to share k mod `of`, and has the
// number k / `of` there.
#pragma once

#include <cstdint>

namespace dutperf::measure {

struct Share {
  uint64_t index = 0;
  uint64_t of = 1;

  bool operator==(const Share&) const = default;

  // How many of the first `total` frames are this share's.
  uint64_t frames_among(uint64_t total) const {
    return total <= index ? 0 : (total - index - 1) / of + 1;
  }
  // Of a rate, rounded up: what it may send at once is not told too low.
  uint64_t part_of(uint64_t rate_fps) const { return (rate_fps + of - 1) / of; }
  // Which frame of all is its frame `number`.
  uint64_t frame_of(uint64_t number) const { return number * of + index; }
};

// Says whose a frame is, without a division. Frame numbers have 48 bits, so the product's upper
// half is the quotient for up to 65,535 shares.
class Owners {
 public:
  explicit Owners(uint64_t shares) : shares_(shares), inverse_(UINT64_MAX / shares + 1) {}

  // REQUIRES: several shares; frame < 2^48.
  uint64_t number_of(uint64_t frame) const {
    return static_cast<uint64_t>(((unsigned __int128){frame} * inverse_) >> 64);
  }
  uint64_t owner_of(uint64_t frame) const { return frame - number_of(frame) * shares_; }

 private:
  uint64_t shares_;
  uint64_t inverse_;
};

}  // namespace dutperf::measure
