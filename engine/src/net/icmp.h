// What a device answers instead of forwarding: ICMP and ICMPv6 messages, by type and code.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dutperf::net {

struct IcmpKind {
  uint8_t ip_version = 0;
  uint8_t type = 0;
  uint8_t code = 0;
  bool operator==(const IcmpKind&) const = default;
};

// Messages by their kind, in the order in which the kinds came first. Beyond so many kinds, which
// no device sends, nothing is told apart any more.
class IcmpCounts {
 public:
  struct Count {
    IcmpKind kind;
    uint64_t frames = 0;
    bool operator==(const Count&) const = default;
  };

  void count(IcmpKind kind, uint64_t frames = 1) noexcept {
    const auto end = counts_.begin() + used_;
    const auto found =
        std::find_if(counts_.begin(), end, [&](const Count& each) { return each.kind == kind; });
    if (found != end) {
      found->frames += frames;
    } else if (used_ < counts_.size()) {
      counts_[used_++] = {kind, frames};
    }
  }

  void add(const IcmpCounts& other) {
    for (const Count& each : other.each()) count(each.kind, each.frames);
  }

  std::span<const Count> each() const { return {counts_.data(), used_}; }

 private:
  std::array<Count, 16> counts_{};
  size_t used_ = 0;
};

}  // namespace dutperf::net
