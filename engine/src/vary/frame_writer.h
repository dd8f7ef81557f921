// Makes frame k of a stream out of a buffer that holds the stream's template: varying fields, tag
// and checksums, a burst at a time.
//
// The work is arranged in passes over the burst: first the values of each varying field, gathered
// in windows of 4 or 8 bytes of the frame, then the stores, last the tag and the checksums. What a
// field needs is decided once per burst and each inner loop is short and straight. Checksums are
// never summed over the frame: the template's sum with all varying bits zero is known, each window
// adds what it holds. All is computed before the first buffer is touched: a caller may fetch its
// buffers in between, and the CPU does both at a time.
//
// A stream may carry four-tuples that another trial has learned. The table is far larger than any
// cache, but which entry frame k takes is known before (see index_draw.h): each burst fetches what
// is due kPrefetchFrames later, whether frames leave in bursts or one at a time.
//
// Immutable after construction; shared by any number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "net/frame.h"
#include "state/tuple_table.h"
#include "vary/index_draw.h"
#include "vary/lanes.h"
#include "vary/permutation.h"
#include "vary/tuples.h"
#include "vary/variation.h"

namespace dutperf::vary {

class FrameWriter {
 public:
  // REQUIRES: variations and copies lie inside their fields, which the layout has, and do not
  // overlap; no copy is of what another one writes; of a bound end nothing else varies, and it is
  // IPv4, inside outer headers of IPv6 where it is the source; min <= max < 2^width; an
  // enumeration has at most Permutation::kMaxSize combinations. Generated tuples: something is
  // enumerated, and first + count is not more than its combinations. Those of a table: no
  // address and no port varies or is copied to, the table is of the layout's IP version, and count
  // is not more than its entries.
  FrameWriter(const net::FrameLayout& layout, const net::TagIdentity& tag,
              const Variations& variations, const std::optional<Tuples>& tuples = {});

  // A frame without FCS with all varying bits zero; what buffers must hold before `write`.
  const std::vector<uint8_t>& template_bytes() const { return template_.bytes(); }

  // What changes from frame to frame, of up to kMaxBurst frames.
  class Burst;

  // Frames number sequences[0..count), all with the same send stamp. REQUIRES: count <= kMaxBurst.
  void compose(const Lanes& sequences, uint32_t count, uint64_t stamp_ns,
               Burst& burst) const noexcept;

  // Writes the composed frames into as many buffers, `lead` bytes behind their start.
  // REQUIRES: every frame there holds template_bytes(), possibly written before.
  void store(const Burst& burst, uint8_t* const* buffers, uint32_t lead) const noexcept;

  // Both in one.
  void write(uint8_t* const* buffers, const Lanes& sequences, uint32_t count, uint64_t stamp_ns,
             uint32_t lead = 0) const noexcept;

  // How far ahead entries of a table are fetched: long enough for memory, few enough to be in the
  // first-level cache still.
  static constexpr uint32_t kPrefetchFrames = 64;

 private:
  // Where a variation's value goes: it may lie across two windows.
  struct Target {
    uint32_t window;
    int shift;
  };
  struct Varying {
    Mode mode;
    uint32_t width;
    uint32_t min;
    uint32_t max;
    uint64_t size;        // number of values
    uint32_t draw_group;  // two random fields share the 64 bits of a draw
    uint32_t draw_shift;  // 0 or 32
    uint32_t side;        // of the enumeration's rectangle that the field is a digit of
    bool is_whole_side;   // or what is left of it
    std::vector<Target> targets;
  };
  // Bits of one window that another one takes over.
  struct Copied {
    uint32_t from_window;
    uint32_t from_shift;
    uint32_t to_window;
    uint32_t to_shift;
    uint64_t mask;
  };
  // An end of which each frame has a random B4's.
  struct Bound {
    const net::BindingTable* table;
    IndexDraw draw;
    uint64_t port_key;
    bool spoofed;
    Target address;
    Target port;
    uint32_t outer_windows[2];  // of the source, in two
    uint32_t offset;            // bits of a port before its PSID
  };
  // Where a bit of a field is, and how many more bits there are from it on in its tile.
  struct Place {
    uint32_t tile;
    uint32_t bits;
  };
  struct Window {
    uint32_t place;   // names its tile
    uint32_t offset;  // in the frame
    uint32_t bytes;   // 4 or 8
    uint64_t fixed;   // the template's bits where nothing varies
    bool is_address;
    bool is_random = false;   // one or two fields, all random: made in one pass
    bool is_learned = false;  // comes from a table
  };
  static constexpr uint32_t kNoWindow = UINT32_MAX;
  struct Values {
    const Lanes& lanes;
    uint64_t first;  // to be added
  };

  uint32_t offset_of(uint32_t tile, int ip_version) const;
  void add(const Variation& variation, int ip_version);
  void add(const Copy& copy, int ip_version);
  void add(const BoundEnd& end, uint64_t seed, uint8_t stream);
  Target whole(Field field, uint32_t bit, uint32_t width);
  void choose(const Bound& bound, const Lanes& sequences, Burst& burst) const noexcept;
  static Place place_of(Field field, uint32_t bit, int ip_version);
  void varies(uint32_t window, int ip_version);
  uint32_t window_at(uint32_t tile, int ip_version);
  void plan_outer(uint32_t window);
  void plan_draws(uint64_t seed, uint8_t stream);
  void plan_enumeration(uint64_t key);
  void make_random(uint32_t window);
  void plan_tuples(const Tuples& tuples, uint64_t seed, uint8_t stream, int ip_version);
  void swap_learned(const Lanes& sequences, Burst& burst) const noexcept;
  void fill_windows(const Lanes& sequences, Burst& burst) const noexcept;
  const Lanes& connections(const Lanes& sequences, const Burst& burst) const noexcept;
  const Lanes& tuple_numbers(const Lanes& sequences, Burst& burst) const noexcept;
  void enumerate(const Lanes& numbers, Burst& burst) const noexcept;
  Values values_of(const Varying& varying, const Lanes& sequences, Burst& burst) const noexcept;
  void plan_segments();
  void sum_addresses(Burst& burst) const noexcept;
  void sum_outer(Burst& burst) const noexcept;
  void sum_mobility(const Burst& burst, uint8_t* const* buffers, uint32_t lead) const noexcept;
  void identify(const Burst& burst, uint8_t* const* buffers, uint32_t lead) const noexcept;
  void name_requests(const Burst& burst, uint8_t* const* buffers, uint32_t lead) const noexcept;
  template <bool kCached>
  void name_queries(const Burst& burst, uint8_t* const* buffers, uint32_t lead) const noexcept;
  template <bool kIpv4AddressesVary, bool kTcp, bool kTag>
  void store_frames(const Burst& burst, uint8_t* const* buffers, uint32_t lead) const noexcept;
  template <bool kTcp, bool kTag>
  void store_rest(const Burst& burst, uint8_t* const* buffers, uint32_t lead) const noexcept;

  Lanes fixed_ports_;  // the UDP headers of a burst when no port varies
  net::FrameTemplate template_;
  std::vector<Window> windows_;
  std::vector<Varying> varying_;
  std::vector<Copied> copied_;
  std::vector<Bound> bound_;
  std::vector<uint64_t> draw_keys_;
  std::vector<lanes::RandomWindow> random_windows_;
  uint64_t combinations_;
  std::optional<Permutation> permutation_;
  std::optional<IndexDraw> index_draw_;
  uint64_t first_tuple_ = 0;                  // of generated four-tuples
  const state::TupleTable* table_ = nullptr;  // learned four-tuples
  lanes::Learned learned_;
  uint64_t udp_base_;  // the template's sums without the ports and the windows of addresses
  uint64_t ipv4_base_;
  uint32_t outer_base_ = 0;          // of the outer IPv4 header, what its window does not have
  uint32_t outer_ipv4_ = kNoWindow;  // from its TTL to its source address
  std::optional<net::SegmentLayout> segments_;  // the frames are of TCP
  lanes::Following sequence_;                   // of the connection's number
  lanes::Following acknowledgment_;
  uint32_t ipv4_addresses_ = 0;  // their window
  Order order_;
  bool in_pairs_ = false;  // the permutation is one of pairs, each side a field's or several
  bool enumerates_ = false;
  bool ports_vary_ = false;
  bool addresses_vary_ = false;
  bool ipv4_addresses_vary_ = false;
  bool identified_ = false;
  std::optional<net::DnsZone> queries_;  // the frames are of DNS
};

class FrameWriter::Burst {
 public:
  // Leaves the lanes as they are: clearing 8 KiB would cost more than filling what is used.
  Burst() {}  // NOLINT(cppcoreguidelines-pro-type-member-init,modernize-use-equals-default)

  // Frames for which the table had no four-tuple: they carry the template's.
  uint32_t unlearned() const { return unlearned_; }

 private:
  friend FrameWriter;
  static constexpr uint32_t kMaxWindows = 13;

  uint32_t count_ = 0;
  uint32_t unlearned_ = 0;
  uint32_t stamp_low_ = 0;  // here and below: as on the wire
  uint32_t tcp_stamp_ = 0;
  Lanes udps_;                           // UDP headers; of segments ports and sequence numbers
  Lanes acks_;                           // of segments: acknowledgments and checksums
  Lanes tags_;                           // sequence numbers and upper stamps
  std::array<uint32_t, kMaxBurst> ids_;  // the frames' numbers
  Lanes ipv4_checksums_;
  Lanes ipv4_addresses_;
  Lanes windows_[kMaxWindows];  // as numbers
  // While they are made:
  Lanes indices_;
  Lanes later_;  // of the entries to fetch
  state::Entries entries_;
  Lanes places_[2];  // in the enumeration's sides; consumed field by field, fastest first
  Lanes values_;     // of the field at hand
  Lanes address_sums_;
};

}  // namespace dutperf::vary
