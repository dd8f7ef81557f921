// The arithmetic of a burst, on arrays of 64-bit lanes: one lane per frame.
//
// These loops are where the cycles of varying fields go. They have no branches and no calls, the
// arrays are aligned and the lane count is a multiple of 8, so the compiler turns them into SIMD;
// each is built for several CPU generations, and the best one is chosen when the program starts.
// Lanes beyond the burst are computed too; nobody looks at them.
#pragma once

#include <cstdint>

#include "state/tuple_table.h"
#include "vary/feistel.h"

namespace dutperf::vary {

using state::kMaxBurst;

struct alignas(64) Lanes {
  uint64_t lane[kMaxBurst];
};

// Lanes to compute for `count` frames.
constexpr uint32_t padded(uint32_t count) { return (count + 7) & ~7U; }

namespace lanes {

// out = first, first + step, ...
void count_up(uint64_t first, Lanes& out, uint32_t count, uint32_t step = 1);

// out = draw(key, number)
void draw_all(uint64_t key, const Lanes& numbers, Lanes& out, uint32_t count);

// out = value
void fill(uint64_t value, Lanes& out, uint32_t count);

// to_range(32 bits, size) << shift: the product's upper half, turned to its place.
// REQUIRES: size < 2^32; the field's `width` bits lie inside the window.
struct RandomPart {
  RandomPart() = default;
  RandomPart(uint64_t values, uint32_t width, uint32_t shift)
      : size(values), turn((shift + 32) % 64), mask(((1ULL << width) - 1) << shift) {}

  uint64_t size = 0;
  uint64_t turn = 0;  // to the left
  uint64_t mask = 0;
};

// out[place] = fixed + (high's value | low's value), from the halves of the key's draw.
struct RandomWindow {
  uint32_t place = 0;
  uint64_t key = 0;
  uint64_t fixed = 0;
  RandomPart high;
  RandomPart low;
};

// The commonest case (two random ports, two random IPv4 addresses), each window in one pass.
void random_windows(const RandomWindow* windows, uint32_t window_count, const Lanes& numbers,
                    Lanes* out, uint32_t count);

// out = min + to_range(32 bits of draw, size)
void random_values(const Lanes& draws, uint32_t draw_shift, uint64_t min, uint64_t size, Lanes& out,
                   uint32_t count);

// out = the upper half of draw(key, number) * size. REQUIRES: size <= 2^40.
void draw_indices(uint64_t key, uint64_t size, const Lanes& numbers, Lanes& out, uint32_t count);

// quotients = numbers / size, out = first + numbers mod size, or first - numbers mod size.
// REQUIRES: numbers below 2^49, size 1 .. 2^48. `quotients` may be `numbers`.
void digits_up(const Lanes& numbers, uint64_t size, uint64_t first, Lanes& quotients, Lanes& out,
               uint32_t count);
void digits_down(const Lanes& numbers, uint64_t size, uint64_t first, Lanes& quotients, Lanes& out,
                 uint32_t count);

// left, right = the network's images of numbers / columns and numbers mod columns.
// REQUIRES: numbers below rows * columns, that below 2^49.
void encrypt(const Feistel& network, const Lanes& numbers, Lanes& left, Lanes& right,
             uint32_t count);

// number = left * columns + number
void join(const Lanes& left, uint64_t columns, Lanes& number, uint32_t count);

// out = number + numbers
void add(uint64_t number, const Lanes& numbers, Lanes& out, uint32_t count);

// window |= first + values, shifted left (or right, when shift is negative)
void place(const Lanes& values, uint64_t first, int shift, Lanes& window, uint32_t count);

// window |= the bits `mask` of from >> from_shift, shifted left by to_shift
void copy_bits(const Lanes& from, uint32_t from_shift, uint64_t mask, uint32_t to_shift,
               Lanes& window, uint32_t count);

// sums = the four 16-bit words of window, unfolded, or += them
void sum_words(const Lanes& window, Lanes& sums, uint32_t count);
void add_words(const Lanes& window, Lanes& sums, uint32_t count);

// As they stand on the wire: checksum = IPv4 header checksum of base + sums; addresses = window
void finish_ipv4(uint64_t base, const Lanes& sums, const Lanes& window, Lanes& checksums,
                 Lanes& addresses, uint32_t count);

// As they stand on the wire: udp = the UDP header (`ports`: with the checksum zero) and its
// checksum of base + sums + the ports + the tag; tag_high = sequence and upper stamp.
// REQUIRES: base, sums below 2^62; sequences and the stamp below 2^48.
void finish(const Lanes& sequences, uint64_t stamp_ns, bool tag_is_odd, uint64_t base,
            const Lanes& sums, const Lanes& ports, Lanes& udp, Lanes& tag_high, uint32_t count);

// A 32-bit number that follows from another one: number * factor + first.
struct Following {
  uint32_t factor = 0;
  uint32_t first = 0;
};

// As they stand on the wire: heads = the TCP header's first 8 bytes, the ports and the sequence
// number that follows from each of `numbers`; acks = 4 bytes of acknowledgment, which follows, too,
// and 2 of the segment's checksum, of base + sums + these + the stamp. REQUIRES: as above; the
// numbers below 2^32.
void finish_segment(const Lanes& numbers, const Following& sequence,
                    const Following& acknowledgment, uint32_t stamp, uint64_t base,
                    const Lanes& sums, const Lanes& ports, Lanes& heads, Lanes& acks,
                    uint32_t count);

// The same of data that ends in the wire tag: what a segment carries lies in the window, wherever
// its frame's number says. REQUIRES: as above, and of `finish`.
struct DataNumbers {
  Following sequence;
  Following acknowledgment;
  uint64_t stamp_ns = 0;
  uint32_t tcp_stamp = 0;
  bool tag_is_odd = false;
};
inline constexpr uint32_t kWindowSegments = 32;  // of kSegmentBytes, all in a window of 65,531
inline constexpr uint32_t kSegmentBytes = 1460;
void finish_data(const Lanes& sequences, const Lanes& connections, const DataNumbers& numbers,
                 uint64_t base, const Lanes& sums, const Lanes& ports, Lanes& heads, Lanes& acks,
                 Lanes& tag_high, uint32_t count);

// Where a learned four-tuple goes, and what stands there when there is none.
struct Learned {
  // IPv4: both addresses in the first. IPv6: two for the source, two for the destination.
  uint32_t address_windows[4] = {};
  uint64_t fixed_addresses[4] = {};
  uint64_t fixed_udp = 0;  // the UDP header with the checksum zero
};

// The first window, and those of the addresses = the entries with their ends swapped, `fixed` where
// an entry is empty. Returns how many are.
uint32_t swap_ipv4(const state::Entries& entries, const Learned& learned, Lanes* windows,
                   uint32_t count);
uint32_t swap_ipv6(const state::Entries& entries, const Learned& learned, Lanes* windows,
                   uint32_t count);

}  // namespace lanes
}  // namespace dutperf::vary
