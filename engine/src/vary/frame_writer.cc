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

// Stores into frames may alias everything else as far as the compiler knows: what the loops need is
// kept in locals.
template <typename Stored, typename Number>
void store_all(uint8_t* const* frames, uint32_t count, uint32_t offset, const Lanes& values) {
  for (uint32_t i = 0; i < count; ++i) {
    const Stored value(static_cast<Number>(values.lane[i]));
    std::memcpy(frames[i] + offset, &value, sizeof(Stored));
  }
}

}  // namespace

// The constructor leaves the lanes as they are: clearing 8 KiB would cost more than filling what is
// used.
struct FrameWriter::Burst {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  Burst(uint8_t* const* to, const Lanes& numbers, uint32_t size)
      : frames(to), sequences(numbers), count(size) {}

  uint8_t* const* frames;
  const Lanes& sequences;
  uint32_t count;
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
  plan_draws(variations.seed, tag.stream);
  if (enumerates_ && order_ == Order::kRandom) {
    permutation_.emplace(combinations_, key_of(variations.seed, tag.stream, UINT32_MAX));
  }
}

void FrameWriter::add(const Variation& variation, int ip_version) {
  Varying varying{variation.mode, variation.min, variation.max, variation.size(), 0, 0, {}};
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

// Random fields of one window share draws, two to a draw; the key depends on the window alone, so a
// field's values do not depend on what else varies.
void FrameWriter::plan_draws(uint64_t seed, uint8_t stream) {
  for (uint32_t i = 0; i < windows_.size(); ++i) {
    uint32_t halves = 0;
    for (Varying& varying : varying_) {
      if (varying.mode != Mode::kRandom || varying.targets.front().window != i) continue;
      if (halves % 2 == 0) {
        draw_keys_.push_back(key_of(seed, stream, windows_[i].offset * kMaxVarying + halves / 2));
      }
      varying.draw_group = static_cast<uint32_t>(draw_keys_.size() - 1);
      varying.draw_shift = halves % 2 == 0 ? 32 : 0;
      ++halves;
    }
    make_pair(windows_[i], i);
  }
}

void FrameWriter::make_pair(Window& window, uint32_t index) {
  const auto in_window = [&](const Varying& varying) {
    return std::any_of(varying.targets.begin(), varying.targets.end(),
                       [&](const Target& target) { return target.window == index; });
  };
  lanes::RandomPart* const parts[] = {&window.high, &window.low};
  uint32_t count = 0;
  for (Varying& varying : varying_) {
    if (!in_window(varying)) continue;
    if (varying.mode != Mode::kRandom || varying.targets.size() > 1 || count == 2) return;
    const auto shift = static_cast<uint32_t>(varying.targets[0].shift);
    *parts[count++] = {varying.min, varying.size, shift};
    window.draw_key = draw_keys_[varying.draw_group];
  }
  window.is_random_pair = true;
  for (Varying& varying : varying_) {
    if (in_window(varying)) varying.targets.clear();  // the window's own pass writes it
  }
}

void FrameWriter::enumerate(Burst& burst) const noexcept {
  switch (order_) {
    case Order::kIncreasing:
      std::copy_n(burst.sequences.lane, burst.count, burst.places.lane);
      return;
    case Order::kDecreasing:
      lanes::subtract_from(combinations_ - 1, burst.sequences, burst.places, burst.count);
      return;
    case Order::kRandom: permutation_->at_all(burst.sequences, burst.places, burst.count); return;
  }
}

void FrameWriter::values_of(const Varying& varying, Burst& burst) const noexcept {
  Lanes unused;
  switch (varying.mode) {
    case Mode::kRandom:
      lanes::draw_all(draw_keys_[varying.draw_group], burst.sequences, unused, burst.count);
      lanes::random_values(unused, varying.draw_shift, varying.min, varying.size, burst.values,
                           burst.count);
      return;
    case Mode::kIncreasing:
      lanes::digits_up(burst.sequences, varying.size, varying.min, unused, burst.values,
                       burst.count);
      return;
    case Mode::kDecreasing:
      lanes::digits_down(burst.sequences, varying.size, varying.max, unused, burst.values,
                         burst.count);
      return;
    case Mode::kEnumerate:
      lanes::digits_up(burst.places, varying.size, varying.min, burst.places, burst.values,
                       burst.count);
      return;
  }
}

void FrameWriter::fill_windows(Burst& burst) const noexcept {
  for (size_t i = 0; i < windows_.size(); ++i) {
    const Window& window = windows_[i];
    if (window.is_random_pair) {
      lanes::random_window(window.draw_key, burst.sequences, window.fixed, window.high, window.low,
                           burst.windows[i], burst.count);
    } else {
      lanes::fill(window.fixed, burst.windows[i], burst.count);
    }
  }
  if (enumerates_) enumerate(burst);
  for (const Varying& varying : varying_) {
    if (varying.targets.empty()) continue;
    values_of(varying, burst);
    for (const Target& target : varying.targets) {
      lanes::place(burst.values, target.shift, burst.windows[target.window], burst.count);
    }
  }
}

void FrameWriter::store(const Window& window, const Lanes& values, const Burst& burst) noexcept {
  if (window.bytes == 4) {
    store_all<net::Be32, uint32_t>(burst.frames, burst.count, window.offset, values);
  } else {
    store_all<net::Be64, uint64_t>(burst.frames, burst.count, window.offset, values);
  }
}

void FrameWriter::write(uint8_t* const* frames, const Lanes& sequences, uint32_t count,
                        uint64_t stamp_ns) const noexcept {
  Burst burst(frames, sequences, count);
  lanes::fill(0, burst.udp_sums, count);
  if (ipv4_addresses_vary_) lanes::fill(0, burst.ipv4_sums, count);
  fill_windows(burst);
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
  uint8_t* const* const frames = burst.frames;
  const uint32_t count = burst.count;
  for (uint32_t i = 0; i < count; ++i) {
    uint8_t* const frame = frames[i];
    std::memcpy(frame + tag, &tags.lane[i], 8);
    std::memcpy(frame + stamp_low, &stamp_low_wire, 4);
    std::memcpy(frame + udp_checksum, &checksums.lane[i], 2);
  }
  if (!ipv4_addresses_vary_) return;
  lanes::finish_ipv4(ipv4_base_, burst.ipv4_sums, checksums, count);
  constexpr uint32_t kIpv4Checksum = kIp + offsetof(net::Ipv4Header, checksum);
  store_all<uint16_t, uint16_t>(frames, count, kIpv4Checksum, checksums);  // in wire order already
}

}  // namespace dutperf::vary
