// In which ways a test frame may arrive damaged, and how many did.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace dutperf::net {

enum class Damage : uint8_t {
  kChecksumZero,   // IPv6 without a UDP checksum, which every host drops (RFC 8200 8.1)
  kChecksumWrong,  // that of UDP, or of the IPv4 header
  kLength,         // of the IP packet, or UDP's own
  kTruncated,      // the frame ends before the IP packet does
  kNeverSent,      // a number that the stream has not, in a frame that looks whole
};

inline constexpr std::array<const char*, 5> kDamageNames = {"checksum_zero", "checksum_wrong",
                                                            "length", "truncated", "never_sent"};

// Frames by their damage.
class DamageCounts {
 public:
  uint64_t& operator[](Damage damage) { return counts_[static_cast<size_t>(damage)]; }
  uint64_t operator[](Damage damage) const { return counts_[static_cast<size_t>(damage)]; }
  DamageCounts& operator+=(const DamageCounts& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    return *this;
  }
  uint64_t total() const { return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0}); }
  bool operator==(const DamageCounts&) const = default;

 private:
  std::array<uint64_t, kDamageNames.size()> counts_{};
};

}  // namespace dutperf::net
