// What checksums say nothing of: whether TTL or hop limit fell as they should, whether the DSCP is
// the one that was sent, and whether the payload is (RFC 2544 10). A whole frame is a long way for
// the receive loop, so it has every k-th looked at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace dutperf::net {

// Of a stream's frames where they arrive; the payload is the same in all.
struct Expected {
  std::optional<uint8_t> ttl;  // or hop limit; none: whatever arrives
  uint8_t dscp = 0;

  bool operator==(const Expected&) const = default;
};

struct Inspected {
  uint64_t frames = 0;
  // Of these, those that have another than expected.
  uint64_t ttl = 0;
  uint64_t dscp = 0;
  uint64_t payload = 0;
  // Of all: the lowest and the highest; none: no frame.
  std::optional<uint8_t> least_ttl;
  std::optional<uint8_t> most_ttl;
  std::optional<uint8_t> other_dscp;  // the last one that was not expected

  void add(const Inspected& other) {
    frames += other.frames;
    ttl += other.ttl;
    dscp += other.dscp;
    payload += other.payload;
    if (other.frames > 0) {
      least_ttl = std::min(least_ttl.value_or(UINT8_MAX), other.least_ttl.value_or(UINT8_MAX));
      most_ttl = std::max(most_ttl.value_or(0), other.most_ttl.value_or(0));
    }
    if (other.other_dscp) other_dscp = other.other_dscp;
  }

  bool operator==(const Inspected&) const = default;
};

// REQUIRES: `frame`, behind VLAN tags and labels, is a whole test frame (kind kTest of classify).
[[gnu::cold, gnu::noinline]] void inspect(const uint8_t* frame, const Expected& expected,
                                          Inspected& found) noexcept;

}  // namespace dutperf::net
