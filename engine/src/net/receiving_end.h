// Whose a received frame is: whether the address at the tester's end is the one that the rest of
// the frame says. A customer edge has address and ports in its IPv6 address (MAP: RFC 7597 6, RFC
// 7599 6), one of 6rd has its IPv4 address in those of all its hosts (RFC 5969 4). A device that
// sends a frame to another end has sent it to somebody else. Of lw4o6 a table may say whose a frame
// is (RFC 7596 6.1).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "net/address.h"
#include "net/binding_table.h"

namespace dutperf::net {

// `width` bits of the end's address are those of the destination's address, or port, inside.
// Bits of an address that are those of itself may be any. An IPv4 address stands in the last 32
// bits of 128.
struct FollowingBits {
  uint8_t offset = 0;
  uint8_t width = 1;  // at most 32
  bool of_port = false;
  uint8_t of_offset = 0;

  bool operator==(const FollowingBits&) const = default;
};

struct ReceivedEnd {
  IpAddress address;   // of IPv6, or the outer header's of IPv4
  bool outer = false;  // of the outer header; the packet's own otherwise
  std::vector<FollowingBits> follows;
  const BindingTable* table = nullptr;  // says the outer address instead; outlives the trial

  bool operator==(const ReceivedEnd&) const = default;
};

class ReceivingEnd {
 public:
  // `outer_bytes`: of the headers before the IP packet, of which the outer one is the first.
  // REQUIRES: the bits lie inside their fields.
  ReceivingEnd(const ReceivedEnd& end, uint32_t outer_bytes);

  // REQUIRES: a whole test frame (kind kTest of classify) is behind tags and outer headers, which
  // are there.
  bool holds(const uint8_t* frame) const noexcept { return which_hold(&frame, 1) != 0; }

  // The same of several: a bit for each, the lowest for the first. REQUIRES: count <= 64.
  uint64_t which_hold(const uint8_t* const* frames, uint32_t count) const noexcept;

 private:
  using Words = std::array<uint64_t, 2>;

  Words address_at(const uint8_t* bytes) const noexcept;
  bool follows_in(const uint8_t* frame) const noexcept;
  uint64_t which_are_bound(const uint8_t* const* frames, uint32_t count) const noexcept;

  Words fixed_{};  // the address, where it follows nothing
  bool outer_;
  bool is_ipv4_;  // the end's address
  uint32_t outer_bytes_;
  std::vector<FollowingBits> follows_;
  const BindingTable* table_;
};

}  // namespace dutperf::net
