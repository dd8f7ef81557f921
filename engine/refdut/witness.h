// What the device says of itself by nothing that it has in common with the tester: times by
// CLOCK_MONOTONIC_RAW instead of the time stamp counter, exact sums instead of histograms, and now
// and then a frame read byte by byte instead of by the tester's headers, checksums and tag. A
// mistake in what both share would cancel; here it shows (docs/known-answer.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "control/json.h"

namespace dutperf::refdut {

// Since any moment that stays.
uint64_t monotonic_raw_ns();

// How long frames were in the device.
struct WitnessedTimes {
  uint64_t frames = 0;
  uint64_t sum_ns = 0;
  uint64_t least_ns = 0;
  uint64_t most_ns = 0;

  void add(uint64_t ns) {
    least_ns = frames == 0 ? ns : std::min(least_ns, ns);
    most_ns = std::max(most_ns, ns);
    sum_ns += ns;
    ++frames;
  }
  control::Json to_json() const;
};

// A test frame as its bytes are. None of one that is no plain UDP packet of IPv4 or IPv6.
struct PlainFrame {
  uint16_t trial = 0;
  uint8_t stream = 0;
  uint64_t sequence = 0;
  bool sums_hold = false;  // of the IPv4 header, and of UDP
};
std::optional<PlainFrame> read_plainly(const uint8_t* frame, size_t size);

// One in so many frames that came is read so.
struct PlainReadings {
  static constexpr uint64_t kEvery = 64;

  uint64_t came = 0;
  uint64_t read = 0;
  uint64_t unreadable = 0;
  uint64_t wrong_sums = 0;
  uint64_t other_tags = 0;  // than the tester's code read

  void look(const uint8_t* frame, size_t size, uint16_t trial, uint8_t stream, uint64_t sequence);
  control::Json to_json() const;
};

}  // namespace dutperf::refdut
