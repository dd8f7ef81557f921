// What becomes of a frame where the link that it leaves by has a smaller MTU: an IPv4 packet leaves
// in pieces (RFC 791 3.2, RFC 1812 4.2.2.7), one with DF set and an IPv6 one (RFC 8200 5) do not
// leave; but an IPv6 one that was an IPv4 packet without DF does, in pieces (RFC 7915 4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace dutperf::refdut {

// A view into a frame, by its packet's own header. VLAN tags may stand before that; a packet behind
// anything else, MPLS labels for one, is no IP packet here. Of a frame that ends before its packet
// does, so does the last piece.
class Cut {
 public:
  enum class Passage : uint8_t { kWhole, kInPieces, kNone };

  // `id`: of an IPv6 packet that may be cut, what its pieces are called (RFC 7915 4.1).
  Cut(const uint8_t* frame, size_t size, uint32_t mtu, std::optional<uint16_t> id);

  Passage passage() const { return passage_; }
  // Of a frame that leaves in some.
  uint32_t pieces() const { return pieces_; }
  // Writes a piece, by its place in the packet, as a frame of its own; returns its size, which is
  // at most that of the header of a piece above the frame's. REQUIRES: `piece` < pieces().
  size_t write(uint32_t piece, uint8_t* out) const;

 private:
  void look_at_ipv4(uint32_t mtu);
  void look_at_ipv6(uint32_t mtu, std::optional<uint16_t> id);
  void divide(uint32_t ip_bytes, uint32_t mtu, uint32_t more_bytes);

  const uint8_t* frame_;
  size_t size_;
  Passage passage_ = Passage::kWhole;
  uint32_t ip_offset_ = 0;
  uint32_t header_bytes_ = 0;
  uint32_t payload_bytes_ = 0;  // by the header
  uint32_t carried_bytes_ = 0;  // of it in the frame
  uint32_t room_bytes_ = 0;     // for payload in a packet of the MTU
  uint32_t step_bytes_ = 0;     // the payload of all pieces but the last
  uint32_t pieces_ = 0;
  int version_ = 4;
  uint16_t id_ = 0;  // of IPv6
};

}  // namespace dutperf::refdut
