// Which bits of a stream's frames vary, over which values, in which order.
#pragma once

#include <cstdint>
#include <vector>

#include "net/binding_table.h"
#include "net/headers.h"

namespace dutperf::vary {

enum class Field : uint8_t {
  kSrcMac,
  kDstMac,
  kVlanId,  // of the outermost tag; of frames that have one
  kFlowLabel,
  kSrcIp,
  kDstIp,
  kSrcPort,
  kDstPort,
  kOuterSrc,        // of frames with an outer header; IPv4's address is its last 32 bits
  kOuterSrcPort,    // of frames in VXLAN
  kOuterFlowLabel,  // of frames with an outer header of IPv6
};

enum class Mode : uint8_t { kIncreasing, kDecreasing, kRandom, kEnumerate };

// How the combinations of all enumerated variations follow each other. Up and down they go round;
// at random each comes once, and there may be no more frames.
enum class Order : uint8_t { kIncreasing, kDecreasing, kRandom };

// `width` bits of `field`, `offset` bits from its most significant one, take the values min..max.
struct Variation {
  Field field = Field::kSrcPort;
  uint8_t offset = 0;
  uint8_t width = 16;
  uint32_t min = 0;
  uint32_t max = 0;
  Mode mode = Mode::kRandom;

  uint64_t size() const { return uint64_t{max} - min + 1; }
  bool operator==(const Variation&) const = default;
};

// Bits of a field that are, in each frame, those of another one: so an address says which ports may
// stand beside it (MAP: RFC 7597 6), and a tunnel whose packets are in it.
struct Copy {
  Field from = Field::kSrcIp;
  uint8_t from_offset = 0;
  Field to = Field::kOuterSrc;
  uint8_t to_offset = 0;
  uint8_t width = 1;  // at most 32

  bool operator==(const Copy&) const = default;
};

// An end that is, in each frame, a B4 of a table (RFC 7596): each of those that have ports to send
// from is as likely as any other one, and so is each port of its set. The frame has its IPv4
// address and the port; of the source the outer header has the B4's own address.
struct BoundEnd {
  const net::BindingTable* table = nullptr;  // outlives the trial
  bool is_source = true;
  bool spoofed = false;  // the outer header has another B4's

  bool operator==(const BoundEnd&) const = default;
};

// All that varies in a stream. In an enumeration the first variation changes fastest; the order of
// significance is destination IP > source IP > destination port > source port (methodology of
// stateful tests, RFC 9693 4.4), so callers list the source port first.
struct Variations {
  std::vector<Variation> list;
  Order order = Order::kRandom;
  uint64_t seed = 1;
  std::vector<Copy> copies;  // none of what another one writes
  std::vector<BoundEnd> bound;

  // Whether the frames are numbered by an enumeration.
  bool enumerates() const;
  // Number of combinations of the enumerated variations; 1 when none is. Saturates at 2^64 - 1.
  uint64_t combinations() const;
  bool operator==(const Variations&) const = default;
};

// Bits in a field: 48, 12, 20, 32 or 128, 16, 128, 16, 20.
uint32_t bits_of(Field field, int ip_version);

}  // namespace dutperf::vary
