#include "vary/frame_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "vary/draw.h"

namespace dutperf::vary {
namespace {

constexpr uint32_t kMaxWindows = 8;
constexpr uint32_t kMaxVarying = 8;
constexpr uint32_t kMaxDrawGroups = kMaxVarying / 2;

constexpr uint32_t kIp = sizeof(net::EthernetHeader);
constexpr uint32_t kIpv4Addresses = kIp + offsetof(net::Ipv4Header, src);
constexpr uint32_t kIpv4Ports = kIp + sizeof(net::Ipv4Header);
constexpr uint32_t kIpv6Addresses = kIp + offsetof(net::Ipv6Header, src);
constexpr uint32_t kIpv6Ports = kIp + sizeof(net::Ipv6Header);

// The headers' variable places, cut into windows that do not overlap. Those that a checksum covers
// start at an even offset of what it covers, so that their words are the checksum's words.
struct Tile {
  uint32_t offset;
  uint32_t bytes;
  bool in_ipv4_checksum;
  bool in_udp_checksum;
};
constexpr Tile kIpv4Tiles[] = {
    {0, 8, false, false},  // both MAC addresses
    {8, 4, false, false},
    {kIpv4Addresses, 8, true, true},
    {kIpv4Ports, 4, false, true},
};
constexpr Tile kIpv6Tiles[] = {
    {0, 8, false, false},
    {8, 4, false, false},
    {kIp, 4, false, false},  // version, traffic class, flow label
    {kIpv6Addresses, 8, false, true},
    {kIpv6Addresses + 8, 8, false, true},
    {kIpv6Addresses + 16, 8, false, true},
    {kIpv6Addresses + 24, 8, false, true},
    {kIpv6Ports, 4, false, true},
};
static_assert(std::size(kIpv6Tiles) <= kMaxWindows);

std::span<const Tile> tiles_of(int ip_version) {
  return ip_version == 4 ? std::span<const Tile>(kIpv4Tiles) : std::span<const Tile>(kIpv6Tiles);
}

// First bit of a field, counted from the start of the frame.
uint32_t first_bit_of(Field field, int ip_version) {
  const bool v4 = ip_version == 4;
  switch (field) {
    case Field::kDstMac: return 0;
    case Field::kSrcMac: return 8 * offsetof(net::EthernetHeader, src);
    case Field::kFlowLabel: return 8 * kIp + 12;
    case Field::kSrcIp: return 8 * (v4 ? kIpv4Addresses : kIpv6Addresses);
    case Field::kDstIp: return 8 * (v4 ? kIpv4Addresses + 4 : kIpv6Addresses + 16);
    case Field::kSrcPort: return 8 * (v4 ? kIpv4Ports : kIpv6Ports);
    case Field::kDstPort: return 8 * (v4 ? kIpv4Ports : kIpv6Ports) + 16;
  }
  return 0;
}

uint64_t shifted(uint64_t value, int shift) { return shift < 0 ? value >> -shift : value << shift; }

uint64_t read_bytes(const uint8_t* bytes, uint32_t count) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < count; ++i) value = (value << 8) | bytes[i];
  return value;
}

// What has to be added to a sum to take `window` out of it: each word's complement (RFC 1624).
uint64_t without(uint64_t window, uint32_t bytes) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < bytes / 2; ++i) sum += 0xffff - ((window >> (16 * i)) & 0xffff);
  return sum;
}

}  // namespace

struct FrameWriter::Burst {
  uint8_t* const* frames;
  const Lanes& sequences;
  uint32_t count;
  Lanes draws[kMaxDrawGroups];
  Lanes places;  // in the enumeration; consumed field by field, fastest first
  Lanes values;  // of the field at hand
  Lanes windows[kMaxWindows];
  Lanes ipv4_sums;
  Lanes udp_sums;
};

FrameWriter::FrameWriter(const net::FrameLayout& layout, const net::TagIdentity& tag,
                         const Variations& variations)
    : template_(layout, tag),
      order_(variations.order),
      combinations_(variations.combinations()),
      udp_base_(template_.udp_sum()),
      ipv4_base_(template_.ipv4_sum()) {
  for (const Variation& variation : variations.list) add(variation, layout.ip_version);
  place_draws(variations.seed, tag.stream);
  if (enumerates_ && order_ == Order::kRandom) {
    permutation_.emplace(combinations_, key_of(variations.seed, tag.stream, UINT32_MAX));
  }
}

void FrameWriter::add(const Variation& variation, int ip_version) {
  Varying varying{variation.mode, variation.min, variation.max, Divisor(variation.size()), 0, 0, {}};
  const uint32_t first = first_bit_of(variation.field, ip_version) + variation.offset;
  const uint32_t end = first + variation.width;
  const std::span<const Tile> tiles = tiles_of(ip_version);
  for (uint32_t i = 0; i < tiles.size(); ++i) {
    const uint32_t tile_first = 8 * tiles[i].offset;
    const uint32_t tile_end = tile_first + 8 * tiles[i].bytes;
    if (end <= tile_first || first >= tile_end) continue;
    const int shift = static_cast<int>(tile_end) - static_cast<int>(end);
    const uint32_t window = window_at(i, ip_version);
    windows_[window].fixed &= ~shifted((1ULL << variation.width) - 1, shift);
    varying.targets.push_back({window, shift});
  }
  varying_.push_back(varying);
  enumerates_ = enumerates_ || variation.mode == Mode::kEnumerate;
}

// The window of a tile, made when it is first needed; its bits leave the template's sums.
uint32_t FrameWriter::window_at(uint32_t tile_index, int ip_version) {
  const Tile& tile = tiles_of(ip_version)[tile_index];
  for (uint32_t i = 0; i < windows_.size(); ++i) {
    if (windows_[i].offset == tile.offset) return i;
  }
  const uint64_t bits = read_bytes(template_.bytes().data() + tile.offset, tile.bytes);
  windows_.push_back({tile.offset, tile.bytes, bits, tile.in_ipv4_checksum, tile.in_udp_checksum});
  if (tile.in_udp_checksum) udp_base_ += without(bits, tile.bytes);
  if (tile.in_ipv4_checksum) ipv4_base_ += without(bits, tile.bytes);
  ipv4_addresses_vary_ = ipv4_addresses_vary_ || tile.in_ipv4_checksum;
  return static_cast<uint32_t>(windows_.size() - 1);
}

void FrameWriter::place_draws(uint64_t seed, uint8_t stream) {
  uint32_t halves = 0;
  for (Varying& varying : varying_) {
    if (varying.mode != Mode::kRandom) continue;
    varying.draw_group = halves / 2;
    varying.draw_shift = halves % 2 == 0 ? 32 : 0;
    ++halves;
  }
  for (uint32_t group = 0; group < (halves + 1) / 2; ++group) {
    draw_keys_.push_back(key_of(seed, stream, group));
  }
}

void FrameWriter::enumerate(Burst& burst) const noexcept {
  const uint64_t* const numbers = burst.sequences.lane;
  uint64_t* const places = burst.places.lane;
  switch (order_) {
    case Order::kIncreasing: std::copy_n(numbers, burst.count, places); return;
    case Order::kDecreasing:
      for (uint32_t i = 0; i < burst.count; ++i) places[i] = combinations_ - 1 - numbers[i];
      return;
    case Order::kRandom:
      for (uint32_t i = 0; i < burst.count; ++i) places[i] = permutation_->at(numbers[i]);
      return;
  }
}

void FrameWriter::values_of(const Varying& varying, Burst& burst) const noexcept {
  uint64_t* const values = burst.values.lane;
  const uint64_t* const numbers = burst.sequences.lane;
  switch (varying.mode) {
    case Mode::kRandom:
      lanes::random_values(burst.draws[varying.draw_group], varying.draw_shift, varying.min,
                           varying.size.value(), burst.values, burst.count);
      return;
    case Mode::kIncreasing:
      for (uint32_t i = 0; i < burst.count; ++i) {
        values[i] = varying.min + varying.size.divide(numbers[i]).remainder;
      }
      return;
    case Mode::kDecreasing:
      for (uint32_t i = 0; i < burst.count; ++i) {
        values[i] = varying.max - varying.size.divide(numbers[i]).remainder;
      }
      return;
    case Mode::kEnumerate:
      for (uint32_t i = 0; i < burst.count; ++i) {
        const auto [quotient, remainder] = varying.size.divide(burst.places.lane[i]);
        values[i] = varying.min + remainder;
        burst.places.lane[i] = quotient;
      }
      return;
  }
}

void FrameWriter::store(const Window& window, const Lanes& values, const Burst& burst) noexcept {
  if (window.bytes == 4) {
    for (uint32_t i = 0; i < burst.count; ++i) {
      *reinterpret_cast<net::Be32*>(burst.frames[i] + window.offset) =
          static_cast<uint32_t>(values.lane[i]);
    }
  } else {
    for (uint32_t i = 0; i < burst.count; ++i) {
      *reinterpret_cast<net::Be64*>(burst.frames[i] + window.offset) = values.lane[i];
    }
  }
}

void FrameWriter::write(uint8_t* const* frames, const Lanes& sequences, uint32_t count,
                        uint64_t stamp_ns) const noexcept {
  Burst burst{frames, sequences, count};  // NOLINT: lanes are filled as far as they are used
  lanes::fill(0, burst.udp_sums, count);
  if (ipv4_addresses_vary_) lanes::fill(0, burst.ipv4_sums, count);
  for (size_t i = 0; i < draw_keys_.size(); ++i) {
    lanes::draw_all(draw_keys_[i], sequences, burst.draws[i], count);
  }
  if (enumerates_) enumerate(burst);
  for (size_t i = 0; i < windows_.size(); ++i) {
    lanes::fill(windows_[i].fixed, burst.windows[i], count);
  }
  for (const Varying& varying : varying_) {
    values_of(varying, burst);
    for (const Target& target : varying.targets) {
      lanes::place(burst.values, target.shift, burst.windows[target.window], count);
    }
  }
  for (size_t i = 0; i < windows_.size(); ++i) {
    store(windows_[i], burst.windows[i], burst);
    if (windows_[i].in_udp_checksum) lanes::add_words(burst.windows[i], burst.udp_sums, count);
    if (windows_[i].in_ipv4_checksum) lanes::add_words(burst.windows[i], burst.ipv4_sums, count);
  }
  finish(burst, stamp_ns);
}

void FrameWriter::finish(Burst& burst, uint64_t stamp_ns) const noexcept {
  Lanes& tags = burst.values;
  Lanes& checksums = burst.places;
  lanes::finish(burst.sequences, stamp_ns, udp_base_, template_.tag_is_odd(), burst.udp_sums, tags,
                checksums, burst.count);
  const uint32_t tag = template_.tag_offset() + offsetof(net::WireTag, sequence_stamp_high);
  const uint32_t stamp_low = template_.tag_offset() + offsetof(net::WireTag, stamp_low);
  const uint32_t udp_checksum = template_.udp_checksum_offset();
  const auto stamp_low_wire = net::byte_swap(static_cast<uint32_t>(stamp_ns));
  for (uint32_t i = 0; i < burst.count; ++i) {
    std::memcpy(burst.frames[i] + tag, &tags.lane[i], 8);
    std::memcpy(burst.frames[i] + stamp_low, &stamp_low_wire, 4);
    std::memcpy(burst.frames[i] + udp_checksum, &checksums.lane[i], 2);
  }
  if (!ipv4_addresses_vary_) return;
  lanes::finish_ipv4(ipv4_base_, burst.ipv4_sums, checksums, burst.count);
  constexpr uint32_t kIpv4Checksum = kIp + offsetof(net::Ipv4Header, checksum);
  for (uint32_t i = 0; i < burst.count; ++i) {
    std::memcpy(burst.frames[i] + kIpv4Checksum, &checksums.lane[i], 2);
  }
}

}  // namespace dutperf::vary
