// IPv4 packets that arrive in pieces (RFC 791 3.2), put together again: what a device does to
// frames that are longer than the link behind it carries (RFC 2544 9.4).
//
// A packet has a place by its identification. There is no timer: the packet that needs the place
// next takes it, and what lies there is given up. So it is whole only if its pieces come before
// kPlaces others begin, and of a packet that lacks a piece nothing arrives. All memory is taken at
// construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/headers.h"

namespace dutperf::net {

class Reassembly {
 public:
  static constexpr size_t kPlaces = 2048;
  // A whole packet stays where it is until so many others have become whole.
  static constexpr size_t kKept = 32;

  // Of packets of up to `most_ip_bytes`; longer ones are not put together.
  explicit Reassembly(size_t most_ip_bytes);
  Reassembly(const Reassembly&) = delete;
  Reassembly& operator=(const Reassembly&) = delete;

  // A frame of which classify says kFragment, IPv4, without VLAN tags and labels. Returns the frame
  // that it completes: an Ethernet header without addresses, the IP header of its first piece as of
  // a whole packet, its payload. Empty: it completes none. A piece that ends before its IP packet
  // does, whose header checksum does not hold or that brings nothing new is as if it had not come.
  std::span<const uint8_t> add(const uint8_t* frame, size_t size) noexcept;

  // Packets of which some pieces came and others did not, or have not yet.
  uint64_t incomplete() const { return begun_ - whole_; }
  uint64_t whole() const { return whole_; }

 private:
  static constexpr size_t kBlock = 8;  // offsets count these (RFC 791 3.1)

  struct Key {
    std::array<uint8_t, 8> addresses;
    uint16_t id;
    uint8_t protocol;
    bool operator==(const Key&) const = default;
  };
  struct Packet {
    Key key{};
    bool open = false;
    uint32_t header_bytes = 0;   // of the first piece; 0: it has not come
    uint32_t payload_bytes = 0;  // by the last piece; 0: it has not come
    uint32_t blocks = 0;         // that are there
    uint64_t* there = nullptr;   // a bit for each block
    uint8_t* frame = nullptr;    // with room for the longest IP header before the payload

    bool has(size_t block) const { return (there[block / 64] >> (block % 64) & 1) != 0; }
  };

  bool take(Packet& packet, size_t first_block, size_t blocks) noexcept;
  static bool is_whole(const Packet& packet) noexcept;
  std::span<const uint8_t> finish(Packet& packet) noexcept;

  size_t most_payload_bytes_;
  size_t words_;  // of each packet's bits
  std::vector<uint64_t> bits_;
  std::vector<uint8_t> frames_;
  std::vector<Packet> places_;
  std::array<uint8_t*, kKept> kept_;
  size_t next_kept_ = 0;
  uint64_t begun_ = 0;
  uint64_t whole_ = 0;
};

}  // namespace dutperf::net
