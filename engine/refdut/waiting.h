// A frame in the device, and what is known of it.
#pragma once

#include <cstdint>
#include <optional>

#include "behaviour.h"

namespace dutperf::refdut {

// How a frame goes through: the numbers of the ports by which it comes and leaves, and the receive
// queue that takes it, of a test frame. Of an IPv6 packet that was an IPv4 one without DF, the
// identification of its pieces, if it needs some (RFC 7915 4).
struct Way {
  uint8_t in = 0;
  uint8_t out = 0;
  uint8_t queue = 0;
  std::optional<uint16_t> id;
};

// In an outbox: whether it is a piece, and which of those that leave. A frame that lacks one is
// incomplete.
enum class Piece : uint8_t { kNone, kNotLast, kLast, kLastOfIncomplete };

template <typename Frame>
struct Waiting {
  Frame frame{};
  uint64_t run = 0;  // 0: not a test frame
  uint64_t arrival_ns = 0;
  uint64_t arrival_raw_ns = 0;  // by the witness's clock
  uint64_t due_ns = 0;
  uint64_t sequence = 0;
  uint64_t delay_ns = 0;
  uint64_t ahead = 0;     // of a displaced one: the frames in order that go before it
  uint32_t distance = 0;  // how many more it is told to let go; 0: it is in order
  uint32_t copies = 0;
  uint8_t stream = 0;
  Way way;
  Damage damage = Damage::kPayload;
  bool background = false;
  bool in_order = false;  // and served
  bool copy = false;
  bool corrupted = false;
  bool kept = false;
  Piece piece = Piece::kNone;
};

}  // namespace dutperf::refdut
