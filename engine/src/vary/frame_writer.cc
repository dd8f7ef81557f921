#include "vary/frame_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "net/digits.h"
#include "vary/draw.h"

namespace dutperf::vary {
namespace {

constexpr uint32_t kUdp = 0;  // the UDP header's tile and window; that window is always there
constexpr uint32_t kMaxVarying = 8;

constexpr uint32_t kIp = sizeof(net::EthernetHeader);
constexpr uint32_t kIpv4Addresses = kIp + offsetof(net::Ipv4Header, src);
constexpr uint32_t kIpv4Ports = kIp + sizeof(net::Ipv4Header);
constexpr uint32_t kIpv6Addresses = kIp + offsetof(net::Ipv6Header, src);
constexpr uint32_t kIpv6Ports = kIp + sizeof(net::Ipv6Header);

constexpr uint32_t kTag = offsetof(net::EthernetHeader, ether_type);  // VLAN's, where it has any
// Of outer headers, where it has any: behind all that a frame without them has.
constexpr uint32_t kOuterSrc = 1024;
constexpr uint32_t kSrcInIpv6 = offsetof(net::Ipv6Header, src);
constexpr uint32_t kEndOfSrcInIpv4 = offsetof(net::Ipv4Header, dst);
constexpr uint64_t kOuterChecksum = 0xffffULL << 32;  // in the window that ends there
constexpr uint32_t kOuterPorts = kOuterSrc + 16;
constexpr uint32_t kOuterIpv6 = kOuterPorts + 4;  // version, traffic class, flow label

// The headers' variable places, cut into windows that do not overlap. Those that a checksum covers
// start at an even offset of what it covers, so that their words are the checksum's words. Offsets
// are those of a frame that has no more headers than it must: they name the places, and the
// template knows where the headers are (see offset_of).
struct Tile {
  uint32_t offset;
  uint32_t bytes;
  bool is_address;  // covered by the UDP checksum's pseudo-header and by the IPv4 checksum
};
constexpr Tile kIpv4Tiles[] = {
    {kIpv4Ports, sizeof(net::UdpHeader), false},
    {0, 8, false},  // both MAC addresses
    {8, 4, false},
    {kTag, sizeof(net::VlanHeader), false},
    {kIpv4Addresses, 8, true},
    {kOuterSrc, 8, false},
    {kOuterSrc + 8, 8, false},
    {kOuterPorts, 4, false},
    {kOuterIpv6, 4, false},
};
constexpr Tile kIpv6Tiles[] = {
    {kIpv6Ports, sizeof(net::UdpHeader), false},
    {0, 8, false},
    {8, 4, false},
    {kTag, sizeof(net::VlanHeader), false},
    {kIp, 4, false},  // version, traffic class, flow label
    {kIpv6Addresses, 8, true},
    {kIpv6Addresses + 8, 8, true},
    {kIpv6Addresses + 16, 8, true},
    {kIpv6Addresses + 24, 8, true},
    {kOuterSrc, 8, false},
    {kOuterSrc + 8, 8, false},
    {kOuterPorts, 4, false},
    {kOuterIpv6, 4, false},
};

std::span<const Tile> tiles_of(int ip_version) {
  return ip_version == 4 ? std::span<const Tile>(kIpv4Tiles) : std::span<const Tile>(kIpv6Tiles);
}

// First bit of a field, counted from the start of the frame.
uint32_t first_bit_of(Field field, int ip_version) {
  const bool v4 = ip_version == 4;
  switch (field) {
    case Field::kDstMac: return 0;
    case Field::kSrcMac: return 8 * offsetof(net::EthernetHeader, src);
    case Field::kVlanId: return 8 * kTag + 20;
    case Field::kFlowLabel: return 8 * kIp + 12;
    case Field::kSrcIp: return 8 * (v4 ? kIpv4Addresses : kIpv6Addresses);
    case Field::kDstIp: return 8 * (v4 ? kIpv4Addresses + 4 : kIpv6Addresses + 16);
    case Field::kSrcPort: return 8 * (v4 ? kIpv4Ports : kIpv6Ports);
    case Field::kDstPort: return 8 * (v4 ? kIpv4Ports : kIpv6Ports) + 16;
    case Field::kOuterSrc: return 8 * kOuterSrc;
    case Field::kOuterSrcPort: return 8 * kOuterPorts;
    case Field::kOuterFlowLabel: return 8 * kOuterIpv6 + 12;
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
void store_all(uint8_t* const* buffers, uint32_t count, uint32_t offset, const Lanes& values) {
  for (uint32_t i = 0; i < count; ++i) {
    const Stored value(static_cast<Number>(values.lane[i]));
    std::memcpy(buffers[i] + offset, &value, sizeof(Stored));
  }
}

constexpr Lanes kNoSums{};

}  // namespace

FrameWriter::FrameWriter(const net::FrameLayout& layout, const net::TagIdentity& tag,
                         const Variations& variations, const std::optional<Tuples>& tuples)
    : template_(layout, tag),
      combinations_(variations.combinations()),
      udp_base_(template_.udp_sum()),
      ipv4_base_(template_.ipv4_sum()),
      segments_(layout.tcp),
      order_(variations.order),
      identified_(layout.identified),
      queries_(layout.query) {
  window_at(kUdp, layout.ip_version);
  lanes::fill(windows_[kUdp].fixed, fixed_ports_, kMaxBurst);
  for (const Variation& variation : variations.list) add(variation, layout.ip_version);
  for (const Copy& copy : variations.copies) add(copy, layout.ip_version);
  for (const BoundEnd& end : variations.bound) add(end, variations.seed, tag.stream);
  plan_draws(variations.seed, tag.stream);
  if (enumerates_ && order_ == Order::kRandom) {
    plan_enumeration(key_of(variations.seed, tag.stream, UINT32_MAX));
  }
  if (tuples) plan_tuples(*tuples, variations.seed, tag.stream, layout.ip_version);
  if (segments_) plan_segments();
}

// Both ends' numbers follow from the connection's (net/tcp.h).
void FrameWriter::plan_segments() {
  const net::SequenceNumbers& numbers = segments_->numbers;
  constexpr uint32_t kFactor = net::SequenceNumbers::kAnswerFactor;
  const bool opens = segments_->step == net::Step::kSyn;
  // Both FINs have a number.
  const uint32_t ends = segments_->step == net::Step::kLastAck ? 1 : 0;
  sequence_ = {numbers.factor, numbers.first + (opens ? 0 : 1 + segments_->sent_before + ends)};
  if (opens) return;
  acknowledgment_ = {numbers.factor * kFactor, net::SequenceNumbers::answer_to(numbers.first) + 1 +
                                                   segments_->answered_before + ends};
  if (segments_->by_responder) std::swap(sequence_, acknowledgment_);
}

void FrameWriter::add(const Variation& variation, int ip_version) {
  Varying varying{};
  varying.mode = variation.mode;
  varying.width = variation.width;
  varying.min = variation.min;
  varying.max = variation.max;
  varying.size = variation.size();
  const uint32_t first = first_bit_of(variation.field, ip_version) + variation.offset;
  const uint32_t end = first + variation.width;
  const std::span<const Tile> tiles = tiles_of(ip_version);
  const bool of_tag = variation.field == Field::kVlanId;
  for (uint32_t i = 0; i < tiles.size(); ++i) {
    // Where a tag would stand is the IP header of frames without.
    if ((tiles[i].offset == kTag) != of_tag) continue;
    const uint32_t tile_first = 8 * tiles[i].offset;
    const uint32_t tile_end = tile_first + 8 * tiles[i].bytes;
    if (end <= tile_first || first >= tile_end) continue;
    const int shift = static_cast<int>(tile_end) - static_cast<int>(end);
    const uint32_t window = window_at(i, ip_version);
    windows_[window].fixed &= ~shifted((1ULL << variation.width) - 1, shift);
    varying.targets.push_back({window, shift});
    varies(window, ip_version);
  }
  varying_.push_back(varying);
  enumerates_ = enumerates_ || variation.mode == Mode::kEnumerate;
}

void FrameWriter::varies(uint32_t window, int ip_version) {
  const bool is_address = windows_[window].is_address;
  ports_vary_ = ports_vary_ || window == kUdp;
  addresses_vary_ = addresses_vary_ || is_address;
  if (ip_version == 4 && is_address) {
    ipv4_addresses_vary_ = true;
    ipv4_addresses_ = window;
  }
}

FrameWriter::Place FrameWriter::place_of(Field field, uint32_t bit, int ip_version) {
  const uint32_t at = first_bit_of(field, ip_version) + bit;
  const std::span<const Tile> tiles = tiles_of(ip_version);
  uint32_t tile = 0;
  const bool of_tag = field == Field::kVlanId;
  const auto holds = [&](const Tile& one) {
    return (one.offset == kTag) == of_tag && 8 * one.offset <= at &&
           at < 8 * (one.offset + one.bytes);
  };
  while (!holds(tiles[tile])) ++tile;
  return {tile, 8 * (tiles[tile].offset + tiles[tile].bytes) - at};
}

// Piece by piece, where a window ends. Windows that are read must be made, and what they cover
// summed, as if they varied.
void FrameWriter::add(const Copy& copy, int ip_version) {
  for (uint32_t done = 0; done < copy.width;) {
    const Place from = place_of(copy.from, copy.from_offset + done, ip_version);
    const Place to = place_of(copy.to, copy.to_offset + done, ip_version);
    const uint32_t width = std::min({copy.width - done, from.bits, to.bits});
    const uint64_t mask = (1ULL << width) - 1;
    const uint32_t from_window = window_at(from.tile, ip_version);
    const uint32_t to_window = window_at(to.tile, ip_version);
    windows_[to_window].fixed &= ~(mask << (to.bits - width));
    varies(from_window, ip_version);
    varies(to_window, ip_version);
    copied_.push_back({from_window, from.bits - width, to_window, to.bits - width, mask});
    done += width;
  }
}

// The place of bits that lie in one window, which they have to themselves.
FrameWriter::Target FrameWriter::whole(Field field, uint32_t bit, uint32_t width) {
  constexpr int kVersion = 4;
  const Place place = place_of(field, bit, kVersion);
  const uint32_t window = window_at(place.tile, kVersion);
  const uint32_t shift = place.bits - width;
  const uint64_t mask = (width == 64 ? 0 : 1ULL << width) - 1;
  windows_[window].fixed &= ~(mask << shift);
  varies(window, kVersion);
  return {window, static_cast<int>(shift)};
}

void FrameWriter::add(const BoundEnd& end, uint64_t seed, uint8_t stream) {
  const bool is_source = end.is_source;
  const auto source = is_source ? IndexSource::kBoundSource : IndexSource::kBoundDestination;
  const auto ports = is_source ? IndexSource::kBoundSourcePort : IndexSource::kBoundDestinationPort;
  Bound bound{end.table,
              IndexDraw(IndexOrder::kRandom, end.table->senders().size(), source, seed, stream),
              key_of(seed, stream, group_of(ports)),
              end.spoofed,
              whole(is_source ? Field::kSrcIp : Field::kDstIp, 0, 32),
              whole(is_source ? Field::kSrcPort : Field::kDstPort, 0, 16),
              {kNoWindow, kNoWindow},
              end.table->psid_offset()};
  if (is_source) {
    for (const uint32_t half : {0U, 1U}) {
      bound.outer_windows[half] = whole(Field::kOuterSrc, 64 * half, 64).window;
    }
  }
  bound_.push_back(bound);
}

// Where a tile is in this stream's frames: MAC addresses and tags stand first in all.
uint32_t FrameWriter::offset_of(uint32_t tile_index, int ip_version) const {
  const uint32_t offset = tiles_of(ip_version)[tile_index].offset;
  if (offset < kIp) return offset;
  if (offset >= kOuterIpv6) return template_.outer_offset() + offset - kOuterIpv6;
  if (offset >= kOuterPorts) {
    return template_.outer_offset() + template_.outer_udp_offset() + offset - kOuterPorts;
  }
  if (offset >= kOuterSrc) {
    const bool is_ipv4 = template_.outer_ip_version() == 4;
    const uint32_t src = is_ipv4 ? kEndOfSrcInIpv4 - 16 : kSrcInIpv6;
    return template_.outer_offset() + offset - kOuterSrc + src;
  }
  const uint32_t udp = ip_version == 4 ? kIpv4Ports : kIpv6Ports;
  return offset < udp ? template_.ip_offset() + offset - kIp
                      : template_.udp_offset() + offset - udp;
}

// The window of a tile, made when it is first needed; what it covers leaves the template's sums.
uint32_t FrameWriter::window_at(uint32_t tile_index, int ip_version) {
  const Tile& tile = tiles_of(ip_version)[tile_index];
  for (uint32_t i = 0; i < windows_.size(); ++i) {
    if (windows_[i].place == tile.offset) return i;
  }
  const uint32_t offset = offset_of(tile_index, ip_version);
  uint64_t bits = read_bytes(template_.bytes().data() + offset, tile.bytes);
  if (tile_index == kUdp) {
    bits &= ~0xffffULL;  // the checksum itself
    udp_base_ += without(bits >> 32, 4);
  } else if (tile.is_address) {
    udp_base_ += without(bits, tile.bytes);
    ipv4_base_ += without(bits, tile.bytes);
  } else if (tile.offset == kOuterSrc + 8 && template_.outer_ip_version() == 4) {
    bits &= ~kOuterChecksum;
    plan_outer(static_cast<uint32_t>(windows_.size()));
  }
  windows_.push_back({tile.offset, offset, tile.bytes, bits, tile.is_address});
  return static_cast<uint32_t>(windows_.size() - 1);
}

// The checksum of an outer IPv4 header whose source varies: of the header's other words the sum.
void FrameWriter::plan_outer(uint32_t window) {
  outer_ipv4_ = window;
  const uint8_t* const header = template_.bytes().data() + template_.outer_offset();
  constexpr uint32_t kBefore = offsetof(net::Ipv4Header, ttl);
  for (uint32_t at = 0; at < sizeof(net::Ipv4Header); at += 2) {
    if (at < kBefore || at >= kEndOfSrcInIpv4) {
      outer_base_ += static_cast<uint32_t>(read_bytes(header + at, 2));
    }
  }
}

// The random fields that begin in one window share draws, two to a draw, in the order in which they
// stand in the frame. So a field's values depend neither on the order in which fields are listed
// nor on what varies in other windows, nor on what headers the frames have beside. A field's window
// is that of its first bit.
void FrameWriter::plan_draws(uint64_t seed, uint8_t stream) {
  for (uint32_t i = 0; i < windows_.size(); ++i) {
    std::vector<Varying*> fields;
    for (Varying& varying : varying_) {
      // A field without targets is done: an earlier window's own pass writes it.
      const bool is_here = !varying.targets.empty() && varying.targets.front().window == i;
      if (varying.mode == Mode::kRandom && is_here) fields.push_back(&varying);
    }
    std::sort(fields.begin(), fields.end(), [](const Varying* left, const Varying* right) {
      return left->targets.front().shift > right->targets.front().shift;
    });
    for (uint32_t place = 0; place < fields.size(); ++place) {
      if (place % 2 == 0) {
        draw_keys_.push_back(key_of(seed, stream, windows_[i].place * kMaxVarying + place / 2));
      }
      fields[place]->draw_group = static_cast<uint32_t>(draw_keys_.size() - 1);
      fields[place]->draw_shift = place % 2 == 0 ? 32 : 0;
    }
    make_random(i);
  }
}

void FrameWriter::make_random(uint32_t window) {
  const auto in_window = [&](const Varying& varying) {
    return std::any_of(varying.targets.begin(), varying.targets.end(),
                       [&](const Target& target) { return target.window == window; });
  };
  lanes::RandomWindow made;
  made.place = window;
  made.fixed = windows_[window].fixed;
  lanes::RandomPart* const parts[] = {&made.high, &made.low};
  uint32_t count = 0;
  for (const Varying& varying : varying_) {
    if (!in_window(varying)) continue;
    if (varying.mode != Mode::kRandom || varying.targets.size() > 1 || count == 2) return;
    if (varying.size == 1ULL << 32) return;  // too large a factor
    const auto shift = static_cast<uint32_t>(varying.targets[0].shift);
    *parts[varying.draw_shift == 32 ? 0 : 1] = {varying.size, varying.width, shift};
    ++count;
    made.fixed += uint64_t{varying.min} << shift;
    made.key = draw_keys_[varying.draw_group];
  }
  if (count == 0) return;
  random_windows_.push_back(made);
  windows_[window].is_random = true;
  for (Varying& varying : varying_) {
    if (in_window(varying)) varying.targets.clear();  // the window's own pass writes it
  }
}

// All combinations are a rectangle: the fastest fields, by the others. The permutation takes the
// one that is nearest to a square and delivers both sides; a side that is one field is its value,
// without division.
void FrameWriter::plan_enumeration(uint64_t key) {
  std::vector<Varying*> fields;
  for (Varying& varying : varying_) {
    if (varying.mode == Mode::kEnumerate) fields.push_back(&varying);
  }
  uint64_t columns = 1;
  uint64_t shorter_side = 0;
  size_t fast_fields = 0;
  for (uint64_t product = 1, i = 0; i + 1 < fields.size(); ++i) {
    product *= fields[i]->size;
    const uint64_t shorter = std::min(product, combinations_ / product);
    if (shorter <= shorter_side) continue;
    shorter_side = shorter;
    columns = product;
    fast_fields = i + 1;
  }
  const uint64_t rows = combinations_ / columns;
  in_pairs_ = shorter_side >= Permutation::kMinSide && rows <= Permutation::kMaxSide &&
              columns <= Permutation::kMaxSide;
  if (!in_pairs_) {
    permutation_.emplace(combinations_, key);
    return;
  }
  permutation_.emplace(rows, columns, key);
  for (size_t i = fast_fields; i < fields.size(); ++i) fields[i]->side = 1;
  fields[fast_fields - 1]->is_whole_side = true;
  fields.back()->is_whole_side = true;
}

// What a table has is all of the windows of addresses and ports but the UDP length.
void FrameWriter::plan_tuples(const Tuples& tuples, uint64_t seed, uint8_t stream, int ip_version) {
  if (tuples.order != IndexOrder::kOnce || tuples.are_of_table()) {
    index_draw_.emplace(tuples.order, tuples.count, tuples.source, seed, stream);
  }
  if (!tuples.are_of_table()) {
    first_tuple_ = tuples.first;
    return;
  }
  table_ = tuples.table;
  ports_vary_ = true;
  addresses_vary_ = true;
  windows_[kUdp].is_learned = true;
  const std::span<const Tile> tiles = tiles_of(ip_version);
  for (uint32_t tile = 0, part = 0; tile < tiles.size(); ++tile) {
    if (!tiles[tile].is_address) continue;
    const uint32_t window = window_at(tile, ip_version);
    windows_[window].is_learned = true;
    learned_.address_windows[part] = window;
    learned_.fixed_addresses[part] = windows_[window].fixed;
    ++part;
    ipv4_addresses_ = window;
  }
  ipv4_addresses_vary_ = ip_version == 4;
  learned_.fixed_udp = windows_[kUdp].fixed;
}

void FrameWriter::swap_learned(const Lanes& sequences, Burst& burst) const noexcept {
  const uint32_t count = burst.count_;
  Lanes later;
  lanes::add(kPrefetchFrames, sequences, later, count);
  index_draw_->at_all(later, burst.later_, count);
  table_->prefetch(burst.later_.lane, count);
  index_draw_->at_all(sequences, burst.indices_, count);
  table_->read(burst.indices_.lane, count, burst.entries_);
  const auto swap = ipv4_addresses_vary_ ? lanes::swap_ipv4 : lanes::swap_ipv6;
  burst.unlearned_ = swap(burst.entries_, learned_, burst.windows_, count);
}

// Whose frames they are, after they were drawn.
const Lanes& FrameWriter::connections(const Lanes& sequences, const Burst& burst) const noexcept {
  return index_draw_ ? burst.indices_ : sequences;
}

// Which of the enumeration's four-tuples the frames carry.
const Lanes& FrameWriter::tuple_numbers(const Lanes& sequences, Burst& burst) const noexcept {
  if (index_draw_) index_draw_->at_all(sequences, burst.indices_, burst.count_);
  const Lanes& drawn = connections(sequences, burst);
  if (first_tuple_ == 0) return drawn;
  lanes::add(first_tuple_, drawn, burst.values_, burst.count_);
  return burst.values_;
}

void FrameWriter::enumerate(const Lanes& numbers, Burst& burst) const noexcept {
  const uint32_t count = burst.count_;
  Lanes* const places = burst.places_;
  switch (order_) {
    case Order::kIncreasing:
    case Order::kDecreasing:  // the digits count down
      std::copy_n(numbers.lane, count, places[0].lane);
      return;
    case Order::kRandom:
      if (in_pairs_) {
        permutation_->pairs_at(numbers, places[1], places[0], count);
      } else {
        permutation_->at_all(numbers, places[0], count);
      }
      return;
  }
}

FrameWriter::Values FrameWriter::values_of(const Varying& varying, const Lanes& sequences,
                                           Burst& burst) const noexcept {
  Lanes unused;
  Lanes& places = burst.places_[varying.side];
  Lanes& values = burst.values_;
  const uint32_t count = burst.count_;
  switch (varying.mode) {
    case Mode::kRandom:
      lanes::draw_all(draw_keys_[varying.draw_group], sequences, unused, count);
      lanes::random_values(unused, varying.draw_shift, varying.min, varying.size, values, count);
      break;
    case Mode::kIncreasing:
      lanes::digits_up(sequences, varying.size, varying.min, unused, values, count);
      break;
    case Mode::kDecreasing:
      lanes::digits_down(sequences, varying.size, varying.max, unused, values, count);
      break;
    case Mode::kEnumerate:
      if (varying.is_whole_side) return {places, varying.min};
      if (order_ == Order::kDecreasing) {
        lanes::digits_down(places, varying.size, varying.max, places, values, count);
      } else {
        lanes::digits_up(places, varying.size, varying.min, places, values, count);
      }
      break;
  }
  return {values, 0};
}

void FrameWriter::fill_windows(const Lanes& sequences, Burst& burst) const noexcept {
  if (!random_windows_.empty()) {
    lanes::random_windows(random_windows_.data(), static_cast<uint32_t>(random_windows_.size()),
                          sequences, burst.windows_, burst.count_);
  }
  for (size_t i = ports_vary_ ? kUdp : kUdp + 1; i < windows_.size(); ++i) {
    if (windows_[i].is_random || windows_[i].is_learned) continue;
    lanes::fill(windows_[i].fixed, burst.windows_[i], burst.count_);
  }
  if (table_ != nullptr) {
    swap_learned(sequences, burst);
  } else if (enumerates_) {
    enumerate(tuple_numbers(sequences, burst), burst);
  }
  for (const Varying& varying : varying_) {
    if (varying.targets.empty()) continue;
    const Values values = values_of(varying, sequences, burst);
    for (const Target& target : varying.targets) {
      lanes::place(values.lanes, values.first, target.shift, burst.windows_[target.window],
                   burst.count_);
    }
  }
  for (const Copied& copied : copied_) {
    lanes::copy_bits(burst.windows_[copied.from_window], copied.from_shift, copied.mask,
                     copied.to_shift, burst.windows_[copied.to_window], burst.count_);
  }
  for (const Bound& bound : bound_) choose(bound, sequences, burst);
}

void FrameWriter::choose(const Bound& bound, const Lanes& sequences, Burst& burst) const noexcept {
  const uint32_t count = burst.count_;
  const net::BindingTable::Sender* const senders = bound.table->senders().data();
  Lanes chosen;
  Lanes draws;
  lanes::add(kPrefetchFrames, sequences, draws, count);
  bound.draw.at_all(draws, chosen, count);
  for (uint32_t i = 0; i < count; ++i) __builtin_prefetch(&senders[chosen.lane[i]]);
  bound.draw.at_all(sequences, chosen, count);
  lanes::draw_all(bound.port_key, sequences, draws, count);
  // The bits before the PSID are not all 0, where there are any.
  const uint32_t least = bound.offset > 0 ? 1 : 0;
  const uint64_t values = (1ULL << bound.offset) - least;
  const uint32_t to_place = 16 - bound.offset;
  uint64_t* const addresses = burst.windows_[bound.address.window].lane;
  uint64_t* const ports = burst.windows_[bound.port.window].lane;
  for (uint32_t i = 0; i < count; ++i) {
    const net::BindingTable::Sender& own = senders[chosen.lane[i]];
    const auto low = static_cast<uint32_t>(draws.lane[i]);
    const auto high = static_cast<uint32_t>(draws.lane[i] >> 32);
    const uint64_t port = (own.first_port + to_range(low, own.last_step + 1ULL)) |
                          uint64_t{least + to_range(high, values)} << to_place;
    addresses[i] |= uint64_t{own.ipv4} << bound.address.shift;
    ports[i] |= port << bound.port.shift;
  }
  if (bound.outer_windows[0] == kNoWindow) return;
  if (bound.spoofed) {
    for (uint32_t i = 0; i < count; ++i) chosen.lane[i] = senders[chosen.lane[i]].other;
  }
  for (const uint32_t half : {0U, 1U}) {
    uint64_t* const outer = burst.windows_[bound.outer_windows[half]].lane;
    for (uint32_t i = 0; i < count; ++i) outer[i] = senders[chosen.lane[i]].b4[half];
  }
}

void FrameWriter::sum_addresses(Burst& burst) const noexcept {
  bool summed = false;
  for (size_t i = kUdp + 1; i < windows_.size(); ++i) {
    if (!windows_[i].is_address) continue;
    (summed ? lanes::add_words : lanes::sum_words)(burst.windows_[i], burst.address_sums_,
                                                   burst.count_);
    summed = true;
  }
}

void FrameWriter::sum_outer(Burst& burst) const noexcept {
  uint64_t* const lane = burst.windows_[outer_ipv4_].lane;
  const uint32_t base = outer_base_;
  for (uint32_t i = 0; i < burst.count_; ++i) {
    const uint64_t held = lane[i];
    uint64_t sum = base + (held >> 48) + ((held >> 16) & 0xffff) + (held & 0xffff);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    lane[i] = held | (~sum & 0xffff) << 32;
  }
}

void FrameWriter::compose(const Lanes& sequences, uint32_t count, uint64_t stamp_ns,
                          Burst& burst) const noexcept {
  static_assert(std::size(kIpv6Tiles) <= Burst::kMaxWindows);
  burst.count_ = count;
  burst.stamp_low_ = net::byte_swap(static_cast<uint32_t>(stamp_ns));
  if (identified_ || segments_ || queries_) {
    for (uint32_t i = 0; i < count; ++i) {
      burst.ids_[i] = static_cast<uint32_t>(sequences.lane[i]);
    }
  }
  fill_windows(sequences, burst);
  if (outer_ipv4_ != kNoWindow) sum_outer(burst);
  if (addresses_vary_) sum_addresses(burst);
  const Lanes& sums = addresses_vary_ ? burst.address_sums_ : kNoSums;
  const Lanes& ports = ports_vary_ ? burst.windows_[kUdp] : fixed_ports_;
  if (segments_) {
    const uint32_t stamp = net::tcp_stamp(stamp_ns);
    burst.tcp_stamp_ = net::byte_swap(stamp);
    if (segments_->is_data) {
      lanes::finish_data(sequences, connections(sequences, burst),
                         {sequence_, acknowledgment_, stamp_ns, stamp, template_.tag_is_odd()},
                         udp_base_, sums, ports, burst.udps_, burst.acks_, burst.tags_, count);
    } else {
      lanes::finish_segment(sequences, sequence_, acknowledgment_, stamp, udp_base_, sums, ports,
                            burst.udps_, burst.acks_, count);
    }
  } else {
    lanes::finish(sequences, stamp_ns, template_.tag_is_odd(), udp_base_, sums, ports, burst.udps_,
                  burst.tags_, count);
  }
  if (!ipv4_addresses_vary_) return;
  lanes::finish_ipv4(ipv4_base_, burst.address_sums_, burst.windows_[ipv4_addresses_],
                     burst.ipv4_checksums_, burst.ipv4_addresses_, count);
}

// All of a frame at once: the CPU joins stores to a cache line that follow each other.
template <bool kIpv4AddressesVary, bool kTcp, bool kTag>
void FrameWriter::store_frames(const Burst& burst, uint8_t* const* buffers,
                               uint32_t lead) const noexcept {
  const uint32_t ipv4_checksum = lead + template_.ip_offset() + offsetof(net::Ipv4Header, checksum);
  const uint32_t ipv4_addresses = lead + template_.ip_offset() + offsetof(net::Ipv4Header, src);
  const uint32_t udp = lead + windows_[kUdp].offset;
  const uint32_t tag = lead + template_.tag_offset();
  const uint32_t tag_high = tag + offsetof(net::WireTag, sequence_stamp_high);
  const uint32_t tag_low = tag + offsetof(net::WireTag, stamp_low);
  const uint32_t acknowledgment = udp + offsetof(net::TcpHeader, acknowledgment);
  const uint32_t checksum = udp + offsetof(net::TcpHeader, checksum);
  const auto tcp_stamp_at = kTcp ? udp + static_cast<uint32_t>(segments_->stamp_at()) : 0;
  const uint32_t tcp_stamp = burst.tcp_stamp_;
  const uint32_t stamp_low = burst.stamp_low_;
  const uint32_t count = burst.count_;
#pragma GCC unroll 4
  for (uint32_t i = 0; i < count; ++i) {
    uint8_t* const buffer = buffers[i];
    if constexpr (kIpv4AddressesVary) {
      std::memcpy(buffer + ipv4_checksum, &burst.ipv4_checksums_.lane[i], 2);
      std::memcpy(buffer + ipv4_addresses, &burst.ipv4_addresses_.lane[i], 8);
    }
    std::memcpy(buffer + udp, &burst.udps_.lane[i], 8);
    if constexpr (kTcp) {
      std::memcpy(buffer + acknowledgment, &burst.acks_.lane[i], 4);
      std::memcpy(buffer + checksum, reinterpret_cast<const uint8_t*>(&burst.acks_.lane[i]) + 4, 2);
      std::memcpy(buffer + tcp_stamp_at, &tcp_stamp, 4);
    }
    if constexpr (kTag) {
      std::memcpy(buffer + tag_high, &burst.tags_.lane[i], 8);
      std::memcpy(buffer + tag_low, &stamp_low, 4);
    }
  }
}

template <bool kTcp, bool kTag>
void FrameWriter::store_rest(const Burst& burst, uint8_t* const* buffers,
                             uint32_t lead) const noexcept {
  if (ipv4_addresses_vary_) {
    store_frames<true, kTcp, kTag>(burst, buffers, lead);
  } else {
    store_frames<false, kTcp, kTag>(burst, buffers, lead);
  }
}

// A pass of its own: each request names its connection, which its checksum does not know yet.
void FrameWriter::name_requests(const Burst& burst, uint8_t* const* buffers,
                                uint32_t lead) const noexcept {
  constexpr uint32_t kText = sizeof(net::TcpHeader) + sizeof(net::TcpTimestamps);
  constexpr uint32_t kDigits = kText + net::kHttpNumberAt;
  constexpr uint32_t kLow = kDigits + net::kHttpNumberDigits - 8;
  static_assert(kLow % 2 == 1);  // its words count byte-swapped
  for (uint32_t i = 0; i < burst.count_; ++i) {
    uint8_t* const tcp = buffers[i] + lead + template_.udp_offset();
    auto* const header = reinterpret_cast<net::TcpHeader*>(tcp);
    const uint64_t text = net::digits::text_of(burst.ids_[i]);
    std::memcpy(tcp + kLow, &text, sizeof(text));
    // Beside the template's zeros.
    const uint64_t more = net::fold(text - net::digits::kZeros);
    header->checksum = net::finish(static_cast<uint16_t>(~header->checksum) + more);
  }
}

// Another one: of a query its name, its id, and a checksum without the tag that it has not.
template <bool kCached>
void FrameWriter::name_queries(const Burst& burst, uint8_t* const* buffers,
                               uint32_t lead) const noexcept {
  constexpr uint32_t kText = sizeof(net::UdpHeader) + net::kDnsNumberAt;
  constexpr uint32_t kId = sizeof(net::UdpHeader) + offsetof(net::DnsHeader, id);
  constexpr uint32_t kTrial = sizeof(net::UdpHeader) + net::kDnsTrialAt;
  static_assert(kText % 2 == 0 && kId % 2 == 0 && kTrial % 2 == 1);
  // At an odd place bytes are swapped. Buffers come back with the digits of whatever trial.
  [[maybe_unused]] const auto text_of = [](uint16_t trial) {
    return static_cast<uint32_t>(net::digits::text_of(trial) >> 32);
  };
  [[maybe_unused]] const uint32_t trials[] = {text_of(queries_->trial),
                                              text_of(queries_->cached.trial)};
  [[maybe_unused]] const uint64_t cached_sum =
      net::native::add(net::byte_swap(net::fold(trials[1])),
                       static_cast<uint16_t>(~net::byte_swap(net::fold(trials[0]))));
  for (uint32_t i = 0; i < burst.count_; ++i) {
    uint8_t* const udp = buffers[i] + lead + template_.udp_offset();
    const net::DnsName name =
        kCached ? queries_->asked_by(burst.ids_[i])
                : net::DnsName{queries_->trial, burst.ids_[i], net::dns_id(burst.ids_[i])};
    const uint64_t text = net::digits::text_of(name.number);
    const uint16_t id = net::byte_swap(name.id);
    std::memcpy(udp + kText, &text, sizeof(text));
    std::memcpy(udp + kId, &id, sizeof(id));
    uint16_t checksum;
    std::memcpy(&checksum, udp + offsetof(net::UdpHeader, checksum), sizeof(checksum));
    uint64_t sum = static_cast<uint16_t>(~checksum);
    sum = net::native::add(sum, ~burst.tags_.lane[i]);
    sum = net::native::add(sum, ~burst.stamp_low_);
    sum = net::native::add(sum, text - net::digits::kZeros);
    if constexpr (kCached) {
      const bool is_cached = name.trial != queries_->trial;
      std::memcpy(udp + kTrial, &trials[is_cached], sizeof(trials[0]));
      sum = net::native::add(sum, is_cached ? cached_sum : 0);
    }
    checksum = net::finish_udp(net::native::add(sum, id));
    std::memcpy(udp + offsetof(net::UdpHeader, checksum), &checksum, sizeof(checksum));
  }
}

// A pass of its own: only frames that a device may cut into pieces have an identification.
void FrameWriter::identify(const Burst& burst, uint8_t* const* buffers,
                           uint32_t lead) const noexcept {
  for (uint32_t i = 0; i < burst.count_; ++i) {
    auto* const header =
        reinterpret_cast<net::Ipv4Header*>(buffers[i] + lead + template_.ip_offset());
    // Of the header without: the complement of its checksum.
    const uint64_t sum =
        ipv4_addresses_vary_ ? static_cast<uint16_t>(~header->checksum) : template_.ipv4_sum();
    const auto id = static_cast<uint16_t>(burst.ids_[i]);
    header->id = id;
    header->checksum = net::finish(sum + id);
  }
}

// Another one, for few streams have mobility headers: the checksums anew, of what the frames hold.
void FrameWriter::sum_mobility(const Burst& burst, uint8_t* const* buffers,
                               uint32_t lead) const noexcept {
  for (const uint32_t offset : template_.mobility_offsets()) {
    for (uint32_t i = 0; i < burst.count_; ++i) {
      uint8_t* const frame = buffers[i] + lead;
      reinterpret_cast<net::MobilityHeader*>(frame + offset)->checksum =
          net::mobility_checksum(frame + template_.ip_offset(), frame + offset);
    }
  }
}

void FrameWriter::store(const Burst& burst, uint8_t* const* buffers, uint32_t lead) const noexcept {
  for (size_t i = kUdp + 1; i < windows_.size(); ++i) {
    const Window& window = windows_[i];
    if (ipv4_addresses_vary_ && i == ipv4_addresses_) continue;
    if (window.bytes == 4) {
      store_all<net::Be32, uint32_t>(buffers, burst.count_, lead + window.offset,
                                     burst.windows_[i]);
    } else {
      store_all<net::Be64, uint64_t>(buffers, burst.count_, lead + window.offset,
                                     burst.windows_[i]);
    }
  }
  if (queries_) {
    store_rest<false, false>(burst, buffers, lead);
    if (queries_->cached.percent > 0) {
      name_queries<true>(burst, buffers, lead);
    } else {
      name_queries<false>(burst, buffers, lead);
    }
  } else if (!segments_) {
    store_rest<false, true>(burst, buffers, lead);
  } else if (segments_->is_data) {
    store_rest<true, true>(burst, buffers, lead);
  } else {
    store_rest<true, false>(burst, buffers, lead);
  }
  if (segments_ && segments_->step == net::Step::kRequest) name_requests(burst, buffers, lead);
  if (identified_) identify(burst, buffers, lead);
  if (addresses_vary_) sum_mobility(burst, buffers, lead);
  if (table_ != nullptr) table_->prefetch_ends(burst.later_.lane, burst.count_);
}

void FrameWriter::write(uint8_t* const* buffers, const Lanes& sequences, uint32_t count,
                        uint64_t stamp_ns, uint32_t lead) const noexcept {
  Burst burst;
  compose(sequences, count, stamp_ns, burst);
  store(burst, buffers, lead);
}

}  // namespace dutperf::vary
