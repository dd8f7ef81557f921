// The binding table of an lwAFTR (RFC 7596 6.1): which B4 has an IPv4 address and a set of ports.
//
// A set is that of a PSID (RFC 7597 5.1), whose bits stand behind the first `psid_offset` of a
// port, which are not all 0. The sets of a table may have any lengths of their PSIDs, one offset,
// and have no port of an address in common.
//
// Both directions of a trial ask it for each frame, and it may be larger than any cache: what is
// sent next is a row, what has arrived is looked up by a hash; either is half a cache line, which
// can be fetched before. Immutable after construction; shared by any number of threads.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dutperf::net {

class BindingTable {
 public:
  // As bytes in a row, as on the wire: the B4's IPv6 address, the IPv4 address, the PSID (16 bits),
  // its length and its offset in a port (8 bits each).
  static constexpr size_t kRowBytes = 24;
  static constexpr size_t kMaxRows = 1UL << 20;

  using Address = std::array<uint64_t, 2>;

  // What frames of a B4 carry. Of ports without an offset (RFC 7597 5.1) those below 1024 are
  // nobody's to send (RFC 6335 6).
  struct alignas(32) Sender {
    Address b4;
    uint32_t ipv4;
    uint32_t other;       // the next row that has another B4; itself if none has
    uint16_t first_port;  // with zeros before the PSID
    uint16_t last_step;   // how many ports more there are from it on in a range
  };

  // Throws std::invalid_argument, which says what of which row is wrong.
  explicit BindingTable(const std::string& rows);

  size_t size() const { return size_; }
  // Those that have ports to send from; at least one. In the order of addresses and ports.
  const std::vector<Sender>& senders() const { return senders_; }
  // Whether there are two B4s.
  bool can_be_spoofed() const { return senders_[0].other != 0; }
  uint32_t psid_offset() const { return psid_offset_; }

  // The address of the B4 that has an address and port; null: none has.
  const Address* find(uint32_t ipv4, uint16_t port) const noexcept {
    if (psid_offset_ > 0 && port >> (16 - psid_offset_) == 0) return nullptr;
    for (const Kind& kind : kinds_) {
      const uint64_t key = key_of(kind, ipv4, port);
      for (size_t slot = place_of(key); slots_[slot].key != kEmpty; slot = (slot + 1) & mask()) {
        if (slots_[slot].key == key) return &slots_[slot].b4;
      }
    }
    return nullptr;
  }

  // Starts to fetch what `find` will look at, where all sets are of one size.
  void prefetch(uint32_t ipv4, uint16_t port) const noexcept {
    __builtin_prefetch(&slots_[place_of(key_of(kinds_[0], ipv4, port))]);
  }

 private:
  struct Row;
  // The sets of one length of the PSID.
  struct Kind {
    uint64_t number;  // in the key
    uint16_t mask;    // of the PSID in a port
  };
  struct alignas(32) Slot {
    uint64_t key = kEmpty;
    Address b4{};
  };
  static constexpr uint64_t kEmpty = UINT64_MAX;

  static uint64_t key_of(const Kind& kind, uint32_t ipv4, uint16_t port) {
    return kind.number << 48 | uint64_t{ipv4} << 16 | (port & kind.mask);
  }
  size_t mask() const { return slots_.size() - 1; }
  // The product's upper bits depend on all of the key.
  size_t place_of(uint64_t key) const { return key * 0x9e3779b97f4a7c15 >> shift_; }

  void add(const Row& row, size_t number);
  void add_senders(std::vector<Row>& rows);

  size_t size_;
  uint32_t psid_offset_ = 0;
  std::vector<Kind> kinds_;
  std::vector<Slot> slots_;  // a power of 2, at least half of them empty
  uint32_t shift_;
  std::vector<Sender> senders_;
};

}  // namespace dutperf::net
