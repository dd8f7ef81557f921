// Which connection frame k of a stream belongs to: its index in [0, count), a pure function of
// (seed, stream, frame number). So a sender can fetch entries of a table ahead, and a receiver
// knows the index of what arrives.
#pragma once

#include <cstdint>
#include <optional>

#include "vary/lanes.h"
#include "vary/permutation.h"

namespace dutperf::vary {

enum class IndexOrder : uint8_t {
  kOnce,        // k itself; REQUIRES: k < count
  kFirst,       // always 0
  kIncreasing,  // 0, 1, ... count-1, 0, ...
  kDecreasing,  // count-1, ... 1, 0, count-1, ...
  kRandom,      // uniform draws
  kShuffled,    // each once in random order, then the same order again
};

// Two streams' draws have nothing to do with each other, nor have those of the generating and the
// reading one, whatever their numbers; nor those of the ends that a binding table has.
enum class IndexSource : uint8_t {
  kGenerated,
  kLearned,
  kGiven,
  kBoundSource,
  kBoundDestination,
  kBoundSourcePort,
  kBoundDestinationPort,
};

// Beside the groups of the fields and of the enumeration (see frame_writer.cc).
constexpr uint64_t group_of(IndexSource source) {
  return UINT32_MAX - 1 - static_cast<uint64_t>(source);
}

class IndexDraw {
 public:
  static constexpr uint64_t kMaxCount = 1ULL << 40;

  // REQUIRES: 1 <= count <= kMaxCount.
  IndexDraw(IndexOrder order, uint64_t count, IndexSource source, uint64_t seed, uint64_t stream);

  uint64_t count() const { return count_; }

  // REQUIRES: number < 2^48.
  uint64_t at(uint64_t number) const;

  // out = at(number) for a burst. `out` is another array than `numbers`.
  void at_all(const Lanes& numbers, Lanes& out, uint32_t count) const noexcept;

 private:
  IndexOrder order_;
  uint64_t count_;
  uint64_t key_;
  std::optional<Permutation> permutation_;
};

}  // namespace dutperf::vary
