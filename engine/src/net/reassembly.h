// IP packets that arrive in pieces (IPv4: RFC 791 3.2, IPv6: RFC 8200 4.5), put together again:
// what a router does to frames that are longer than the link behind it carries (RFC 2544 9.4), and
// a translator to those that would be too long as IPv6 (RFC 7915 4).
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
  // Of IP with options or extension headers, before the payload of the whole packet.
  static constexpr size_t kMostHeaderBytes = 128;

  // Of packets of up to `most_ip_bytes`; longer ones are not put together.
  explicit Reassembly(size_t most_ip_bytes);
  Reassembly(const Reassembly&) = delete;
  Reassembly& operator=(const Reassembly&) = delete;

  // A frame of which classify says kFragment, without VLAN tags and labels. Returns the frame that
  // it completes: an Ethernet header without addresses, the IP header of its first piece as of a
  // whole packet, its payload. Empty: it completes none.
  //
  // A piece that ends before its IP packet does or whose header checksum does not hold is as if it
  // had not come, and so is one that brings nothing new. Of IPv4 that is also one that overlaps
  // others; of IPv6 that ends its packet, of which nothing arrives then (RFC 8200 4.5, RFC 5722).
  std::span<const uint8_t> add(const uint8_t* frame, size_t size) noexcept;

  // Packets of which some pieces came and others did not, or have not yet.
  uint64_t incomplete() const { return begun_ - whole_; }
  uint64_t whole() const { return whole_; }

 private:
  static constexpr size_t kBlock = 8;  // offsets count these (RFC 791 3.1)

  struct Key {
    std::array<uint8_t, 32> addresses{};  // of IPv4 the first 8
    uint32_t id = 0;
    uint8_t version = 0;
    uint8_t protocol = 0;  // of IPv4 alone (RFC 8200 4.5)
    bool operator==(const Key&) const = default;
  };
  struct Piece {
    Key key;
    size_t header_bytes = 0;  // from the IP header on, those of the whole packet
    const uint8_t* payload = nullptr;
    size_t bytes = 0;
    size_t offset = 0;
    bool last = false;
    // Of IPv6: where the headers say what follows them, and what follows without the piece's own.
    size_t next_header_at = 0;
    uint8_t next_header = 0;

    size_t end() const { return offset + bytes; }
    size_t first_block() const { return offset / kBlock; }
    size_t end_block() const { return (end() + kBlock - 1) / kBlock; }
  };
  struct Packet {
    Key key{};
    bool open = false;
    bool spoiled = false;        // pieces overlap
    uint32_t header_bytes = 0;   // of the first piece; 0: it has not come
    uint32_t payload_bytes = 0;  // by the last piece; 0: it has not come
    uint32_t end_bytes = 0;      // of the piece that lies furthest
    uint32_t blocks = 0;         // that are there
    uint64_t* there = nullptr;   // a bit for each block
    uint64_t* begin = nullptr;   // likewise: with which a piece begins
    uint8_t* frame = nullptr;    // with room for the longest headers before the payload

    bool has(size_t block) const { return bit(there, block); }
    bool begins(size_t block) const { return bit(begin, block); }
    static bool bit(const uint64_t* bits, size_t i) { return (bits[i / 64] >> (i % 64) & 1) != 0; }
  };

  static bool read_ipv4(const uint8_t* ip, size_t size, Piece& piece) noexcept;
  static bool read_ipv6(const uint8_t* ip, size_t size, Piece& piece) noexcept;
  Packet& packet_of(const Key& key) noexcept;
  static bool contradicts(const Packet& packet, const Piece& piece) noexcept;
  static bool is_copy(const Packet& packet, const Piece& piece) noexcept;
  static void take(Packet& packet, const Piece& piece, const uint8_t* ip) noexcept;
  static bool is_whole(const Packet& packet) noexcept;
  std::span<const uint8_t> finish(Packet& packet) noexcept;

  size_t most_payload_bytes_;
  size_t words_;  // of each packet's bits, either kind
  std::vector<uint64_t> bits_;
  std::vector<uint8_t> frames_;
  std::vector<Packet> places_;
  std::array<uint8_t*, kKept> kept_;
  size_t next_kept_ = 0;
  uint64_t begun_ = 0;
  uint64_t whole_ = 0;
};

}  // namespace dutperf::net
