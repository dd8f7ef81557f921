// MPLS label stacks (RFC 3032): what may stand between a frame's VLAN tags and its IP packet.
//
// A port has a stack, outermost label first, and all its test frames carry it; ARP and neighbour
// discovery go without, as nobody has bound labels to them. The EtherType says that there are
// labels, and none says what is behind them: of an IP packet its version does. So a frame is like
// one without a stack `bytes()` further on, but for the EtherType.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/headers.h"
#include "net/vlan.h"

namespace dutperf::net {

inline constexpr uint16_t kEtherTypeMpls = 0x8847;  // RFC 5332 2; 0x8848: labels bound upstream

struct MplsLabel {
  static constexpr uint32_t kMinLabel = 16;  // those below are reserved
  static constexpr uint32_t kMaxLabel = (1U << 20) - 1;

  uint32_t label = kMinLabel;
  uint8_t tc = 0;  // traffic class
  uint8_t ttl = 64;

  bool operator==(const MplsLabel&) const = default;
};

class LabelStack {
 public:
  static constexpr size_t kMax = 3;
  static constexpr size_t kEntryBytes = sizeof(uint32_t);

  LabelStack() = default;
  // REQUIRES: at most kMax, within their ranges.
  explicit LabelStack(std::span<const MplsLabel> labels);

  bool operator==(const LabelStack&) const = default;

  std::span<const MplsLabel> list() const { return {labels_.data(), bytes_ / kEntryBytes}; }
  uint32_t bytes() const { return bytes_; }

  // Writes the stack and its EtherType. REQUIRES: bytes() behind the EtherType may be written.
  void write(uint8_t* ether_type) const noexcept;

  // Whether it stands there: labels and the end of the stack; traffic class and TTL are the
  // device's to change. REQUIRES: bytes() behind the EtherType may be read.
  bool stands_at(const uint8_t* ether_type) const noexcept;

 private:
  std::array<MplsLabel, kMax> labels_{};
  uint32_t bytes_ = 0;
};

}  // namespace dutperf::net
