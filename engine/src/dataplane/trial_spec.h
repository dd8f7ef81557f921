// One trial as the workers see it: complete and immutable before the first of them starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/frame.h"
#include "vary/variation.h"

namespace dutperf::dataplane {

enum class Side : uint8_t { kLeft = 0, kRight = 1 };
inline constexpr size_t kSides = 2;

constexpr Side other(Side side) { return side == Side::kLeft ? Side::kRight : Side::kLeft; }
constexpr size_t index_of(Side side) { return static_cast<size_t>(side); }

struct StreamSpec {
  uint8_t id = 0;
  net::FrameLayout layout;
  net::TagIdentity tag;
  vary::Variations variations;
  uint32_t received_frame_size = 64;
  uint64_t frames = 0;
};

// What one side sends. A side without streams only answers neighbours.
struct DirectionSpec {
  uint64_t rate_fps = 0;
  std::vector<StreamSpec> streams;

  bool active() const { return !streams.empty(); }
};

struct TrialSpec {
  uint16_t trial_id = 0;
  uint64_t duration_ns = 0;
  uint64_t residual_wait_ns = 0;
  uint64_t lag_limit_ns = 0;
  uint32_t burst_limit = 32;
  bool verify_checksums = true;
  DirectionSpec from[kSides];  // by sending side
};

}  // namespace dutperf::dataplane
