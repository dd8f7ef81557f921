#include "vary/testing/slow_writer.h"

#include <algorithm>

namespace dutperf::vary::testing {
namespace {

// RFC 791, RFC 8200, RFC 768: bits before each field of a frame that has nothing more than it must.
size_t first_bit(Field field, int ip_version) {
  switch (field) {
    case Field::kOuterSrc: return 112 + 64;
    case Field::kOuterSrcPort: return 112;  // and the outer IP header
    case Field::kOuterFlowLabel: return 112 + 12;
    case Field::kDstMac: return 0;
    case Field::kSrcMac: return 48;
    case Field::kVlanId: return 96 + 20;
    case Field::kFlowLabel: return 112 + 12;
    case Field::kSrcIp: return ip_version == 4 ? 112 + 96 : 112 + 64;
    case Field::kDstIp: return ip_version == 4 ? 112 + 128 : 112 + 192;
    case Field::kSrcPort: return ip_version == 4 ? 112 + 160 : 112 + 320;
    case Field::kDstPort: return ip_version == 4 ? 112 + 176 : 112 + 336;
  }
  return 0;
}

bool bit_of(uint64_t value, size_t width, size_t from_left) {
  return (value >> (width - 1 - from_left)) % 2 == 1;
}

// A number as bits, the most significant one first, and back.
using Bits = std::vector<bool>;

Bits bits_of_number(uint64_t number, size_t width) {
  Bits bits;
  for (size_t i = 0; i < width; ++i) bits.push_back(bit_of(number, width, i));
  return bits;
}

uint64_t number_of(const Bits& bits) {
  uint64_t number = 0;
  for (const bool bit : bits) number = number * 2 + (bit ? 1 : 0);
  return number;
}

template <typename Array>
void set_bit(Array& bytes, size_t index, bool bit) {
  const auto mask = static_cast<uint8_t>(128 >> (index % 8));
  if (bit) {
    bytes[index / 8] = static_cast<uint8_t>(bytes[index / 8] | mask);
  } else {
    bytes[index / 8] = static_cast<uint8_t>(bytes[index / 8] & ~mask);
  }
}

template <typename Number>
void set_number_bit(Number& number, size_t width, size_t index, bool bit) {
  Bits bits = bits_of_number(number, width);
  bits[index] = bit;
  number = static_cast<Number>(number_of(bits));
}

void set_id_bit(net::VlanTags& vlan, size_t index, bool bit) {
  std::vector<net::VlanTag> tags(vlan.list().begin(), vlan.list().end());
  set_number_bit(tags.at(0).id, 12, index, bit);
  vlan = net::VlanTags(tags);
}

// IPv4's address is the field's last 32 bits.
size_t in_outer_src(const net::Encapsulation& outer, size_t index) {
  return outer.ends().local.version == 4 ? index - 96 : index;
}

void set_outer_bit(net::Encapsulation& outer, Field field, size_t index, bool bit) {
  net::TunnelEnds ends = outer.ends();
  if (field == Field::kOuterSrc) {
    set_bit(ends.local.bytes, in_outer_src(outer, index), bit);
  } else if (field == Field::kOuterFlowLabel) {
    set_number_bit(ends.flow_label, 20, index, bit);
  } else {
    set_number_bit(ends.src_port, 16, index, bit);
  }
  outer = net::Encapsulation(ends);
}

bool bit_in(const net::FrameLayout& layout, Field field, size_t index) {
  const auto in = [&](const auto& bytes) { return (bytes[index / 8] >> (7 - index % 8)) % 2 == 1; };
  switch (field) {
    case Field::kDstMac: return in(layout.dst_mac.bytes);
    case Field::kSrcMac: return in(layout.src_mac.bytes);
    case Field::kSrcIp: return in(layout.src_ip.bytes);
    case Field::kDstIp: return in(layout.dst_ip.bytes);
    case Field::kVlanId: return bit_of(layout.vlan.list()[0].id, 12, index);
    case Field::kFlowLabel: return bit_of(layout.flow_label, 20, index);
    case Field::kSrcPort: return bit_of(layout.src_port, 16, index);
    case Field::kDstPort: return bit_of(layout.dst_port, 16, index);
    case Field::kOuterSrc:
      index = in_outer_src(layout.outer, index);
      return in(layout.outer.ends().local.bytes);
    case Field::kOuterSrcPort: return bit_of(layout.outer.ends().src_port, 16, index);
    case Field::kOuterFlowLabel: return bit_of(layout.outer.ends().flow_label, 20, index);
  }
  return false;
}

void set_field_bit(net::FrameLayout& layout, Field field, size_t index, bool bit) {
  switch (field) {
    case Field::kOuterSrc:
    case Field::kOuterSrcPort:
    case Field::kOuterFlowLabel: set_outer_bit(layout.outer, field, index, bit); return;
    case Field::kDstMac: set_bit(layout.dst_mac.bytes, index, bit); return;
    case Field::kSrcMac: set_bit(layout.src_mac.bytes, index, bit); return;
    case Field::kSrcIp: set_bit(layout.src_ip.bytes, index, bit); return;
    case Field::kDstIp: set_bit(layout.dst_ip.bytes, index, bit); return;
    case Field::kVlanId: set_id_bit(layout.vlan, index, bit); return;
    case Field::kFlowLabel: set_number_bit(layout.flow_label, 20, index, bit); return;
    case Field::kSrcPort: set_number_bit(layout.src_port, 16, index, bit); return;
    case Field::kDstPort: set_number_bit(layout.dst_port, 16, index, bit); return;
  }
}

void identify(Bytes& frame, const net::FrameLayout& layout, uint64_t id) {
  const size_t ip = 14 + layout.vlan.bytes() + layout.labels.bytes() + layout.outer.bytes();
  const auto put = [&](size_t at, uint64_t word) {
    frame[ip + at] = static_cast<uint8_t>(word >> 8);
    frame[ip + at + 1] = static_cast<uint8_t>(word);
  };
  put(4, id);
  put(10, 0);
  const auto header = frame.begin() + static_cast<std::ptrdiff_t>(ip);
  const auto words = std::ptrdiff_t{4} * (frame[ip] % 16);
  put(10, 0xffff - net::testing::reference_sum(Bytes(header, header + words)));
}

}  // namespace

Bytes slow_frame(const net::FrameLayout& layout, const net::TagIdentity& tag,
                 const std::vector<Variation>& list, const std::vector<uint64_t>& values,
                 uint64_t sequence, uint64_t stamp_ns, const std::vector<Copy>& copies) {
  net::FrameLayout varied = layout;
  for (size_t i = 0; i < list.size(); ++i) {
    for (size_t bit = 0; bit < list[i].width; ++bit) {
      set_field_bit(varied, list[i].field, list[i].offset + bit,
                    bit_of(values[i], list[i].width, bit));
    }
  }
  for (const Copy& copy : copies) {
    for (size_t bit = 0; bit < copy.width; ++bit) {
      set_field_bit(varied, copy.to, copy.to_offset + bit,
                    bit_in(varied, copy.from, copy.from_offset + bit));
    }
  }
  Bytes frame = net::testing::reference_frame(
      varied, net::testing::tagged_payload(varied, tag, sequence, stamp_ns));
  if (layout.outer.ends().kind == net::Tunnel::kVxlan) {
    // Of MAC addresses those of the wire vary, not those in the tunnel.
    const size_t inner = 14 + layout.vlan.bytes() + layout.outer.bytes() - 8;
    std::copy(layout.src_mac.bytes.begin(), layout.src_mac.bytes.end(),
              frame.begin() + static_cast<std::ptrdiff_t>(inner));
  }
  if (layout.identified) identify(frame, layout, sequence);
  return frame;
}

uint64_t value_in(const Bytes& frame, const Variation& variation, int ip_version) {
  net::FrameLayout layout;
  layout.ip_version = ip_version;
  return value_in(frame, variation, layout);
}

uint64_t value_in(const Bytes& frame, const Variation& variation, const net::FrameLayout& layout) {
  size_t first = first_bit(variation.field, layout.ip_version) + variation.offset;
  const size_t tags = layout.vlan.bytes() + layout.labels.bytes();
  switch (variation.field) {
    case Field::kDstMac:
    case Field::kSrcMac:
    case Field::kVlanId: break;
    case Field::kOuterSrc:
      first += 8 * tags;
      if (layout.outer.ends().local.version == 4)
        first = 8 * (14 + tags + 12) + variation.offset - 96;
      break;
    case Field::kOuterFlowLabel: first += 8 * tags; break;
    case Field::kOuterSrcPort:
      first += 8 * (tags + (layout.outer.ends().local.version == 4 ? 20 : 40));
      break;
    case Field::kSrcPort:
    case Field::kDstPort: first += 8 * layout.extra.bytes.size(); [[fallthrough]];
    default: first += 8 * (tags + layout.outer.bytes());
  }
  uint64_t value = 0;
  for (size_t bit = first; bit < first + variation.width; ++bit) {
    value = value * 2 + (frame[bit / 8] >> (7 - bit % 8)) % 2;
  }
  return value;
}

}  // namespace dutperf::vary::testing
