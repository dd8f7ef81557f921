// Streams for the tests of FrameWriter: random ones, and bursts of their frames.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <vector>

#include "vary/frame_writer.h"
#include "vary/testing/slow_writer.h"

namespace dutperf::vary::testing {

inline constexpr uint64_t kMax48 = (1ULL << 48) - 1;
inline constexpr net::TagIdentity kTag{0x1234, 7, net::kTagFlagBackground};
// The last one is not IPv4's.
inline constexpr Field kFields[] = {Field::kSrcMac,    Field::kDstMac,        Field::kSrcIp,
                                    Field::kDstIp,     Field::kSrcPort,       Field::kDstPort,
                                    Field::kVlanId,    Field::kOuterSrc,      Field::kOuterSrcPort,
                                    Field::kFlowLabel, Field::kOuterFlowLabel};
inline constexpr IndexOrder kIndexOrders[] = {IndexOrder::kOnce,       IndexOrder::kFirst,
                                              IndexOrder::kIncreasing, IndexOrder::kDecreasing,
                                              IndexOrder::kRandom,     IndexOrder::kShuffled};

inline bool enumerates(const Variations& variations) {
  return std::any_of(variations.list.begin(), variations.list.end(),
                     [](const Variation& v) { return v.mode == Mode::kEnumerate; });
}

// A stream: its writer, and buffers that it has used before. Frames are written in bursts into
// buffers in any order, as a port gives them back.
class Stream {
 public:
  Stream(const net::FrameLayout& layout, const Variations& variations,
         const net::TagIdentity& tag = kTag, const std::optional<Tuples>& tuples = {})
      : layout_(layout),
        variations_(variations),
        tag_(tag),
        writer_(layout, tag, variations, tuples),
        buffers_(kMaxBurst, writer_.template_bytes()) {
    for (Bytes& buffer : buffers_) order_.push_back(&buffer);
  }

  // The frames with these numbers.
  std::vector<Bytes> write(const std::vector<uint64_t>& sequences, uint64_t stamp_ns) {
    Lanes lanes;
    lanes::fill(0, lanes, kMaxBurst);
    std::copy(sequences.begin(), sequences.end(), lanes.lane);
    std::shuffle(order_.begin(), order_.end(), shuffle_);
    std::array<uint8_t*, kMaxBurst> frames;
    std::transform(order_.begin(), order_.end(), frames.begin(),
                   [](Bytes* buffer) { return buffer->data(); });
    FrameWriter::Burst burst;
    writer_.compose(lanes, static_cast<uint32_t>(sequences.size()), stamp_ns, burst);
    writer_.store(burst, frames.data(), 0);
    unlearned_ += burst.unlearned();
    std::vector<Bytes> result;
    for (size_t i = 0; i < sequences.size(); ++i) result.push_back(*order_[i]);
    return result;
  }
  Bytes write_one(uint64_t sequence) { return write({sequence}, 0).front(); }

  // Frames first, first + 1, ... in bursts; calls back with each frame's number and bytes.
  template <typename Function>
  void write_many(uint64_t first, uint64_t count, Function&& look) {
    for (uint64_t done = 0; done < count; done += kMaxBurst) {
      std::vector<uint64_t> sequences;
      for (uint64_t i = done; i < std::min<uint64_t>(count, done + kMaxBurst); ++i) {
        sequences.push_back(first + i);
      }
      const std::vector<Bytes> frames = write(sequences, 0);
      for (size_t i = 0; i < frames.size(); ++i) look(sequences[i], frames[i]);
    }
  }

  // Frames so far whose four-tuple nobody had learned.
  uint64_t unlearned() const { return unlearned_; }

  std::vector<uint64_t> values_in(const Bytes& frame) const {
    std::vector<uint64_t> values;
    for (const Variation& variation : variations_.list) {
      values.push_back(value_in(frame, variation, layout_));
    }
    return values;
  }

  // All of the frame is what the twin makes of the values that it carries; the values are in their
  // ranges, and those that count up or down are the right ones.
  void expect_right(const Bytes& frame, uint64_t sequence, uint64_t stamp_ns) const {
    const std::vector<uint64_t> values = values_in(frame);
    for (size_t i = 0; i < values.size(); ++i) {
      const Variation& v = variations_.list[i];
      ASSERT_GE(values[i], v.min);
      ASSERT_LE(values[i], v.max);
      if (v.mode == Mode::kIncreasing) {
        ASSERT_EQ(values[i], v.min + sequence % v.size());
      } else if (v.mode == Mode::kDecreasing) {
        ASSERT_EQ(values[i], v.max - sequence % v.size());
      }
    }
    expect_enumerated(values, sequence);
    ASSERT_EQ(frame, slow_frame(layout_, tag_, variations_.list, values, sequence, stamp_ns,
                                variations_.copies))
        << "IPv" << layout_.ip_version << ", " << layout_.frame_size << " bytes, frame "
        << sequence;
  }

  // The place of a frame in the enumeration, the first variation changing fastest.
  uint64_t place_of(const std::vector<uint64_t>& values) const {
    uint64_t place = 0;
    for (size_t i = values.size(); i-- > 0;) {
      const Variation& v = variations_.list[i];
      if (v.mode == Mode::kEnumerate) place = place * v.size() + values[i] - v.min;
    }
    return place;
  }

 private:
  void expect_enumerated(const std::vector<uint64_t>& values, uint64_t sequence) const {
    if (!enumerates(variations_)) return;
    if (variations_.order == Order::kIncreasing) {
      ASSERT_EQ(place_of(values), sequence % variations_.combinations());
    } else if (variations_.order == Order::kDecreasing) {
      ASSERT_EQ(place_of(values),
                variations_.combinations() - 1 - sequence % variations_.combinations());
    }
  }

  net::FrameLayout layout_;
  Variations variations_;
  net::TagIdentity tag_;
  FrameWriter writer_;
  std::vector<Bytes> buffers_;
  std::vector<Bytes*> order_;
  uint64_t unlearned_ = 0;
  std::mt19937_64 shuffle_{5};
};

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}

  uint64_t below(uint64_t end) { return bits_() % end; }
  uint64_t up_to_48_bits() { return (bits_() & kMax48) >> below(48); }

  net::FrameLayout layout() {
    const int version = below(2) == 0 ? 4 : 6;
    const uint32_t least = net::minimum_frame_size(version);
    const auto more = static_cast<uint32_t>(below(10) == 0 ? below(1500) : below(40));
    net::FrameLayout layout = net::testing::sample_layout(version, least + more);
    for (uint8_t& byte : layout.src_mac.bytes) byte = static_cast<uint8_t>(bits_());
    for (uint8_t& byte : layout.dst_mac.bytes) byte = static_cast<uint8_t>(bits_());
    for (size_t i = 0; i < layout.src_ip.size(); ++i) {
      layout.src_ip.bytes[i] = static_cast<uint8_t>(bits_());
      layout.dst_ip.bytes[i] = static_cast<uint8_t>(below(3) == 0 ? 0xff : bits_());
    }
    layout.src_port = static_cast<uint16_t>(bits_());
    layout.dst_port = static_cast<uint16_t>(bits_());
    layout.ttl = static_cast<uint8_t>(1 + below(255));
    layout.dscp = static_cast<uint8_t>(below(64));
    layout.df = version == 4 && below(2) == 0;
    layout.identified = version == 4 && below(3) == 0;
    if (version == 6) layout.flow_label = static_cast<uint32_t>(below(1 << 20));
    layout.vlan = vlan();
    layout.extra = extra(version);
    layout.frame_size += static_cast<uint32_t>(layout.extra.bytes.size());
    layout.labels = labels();
    if (layout.labels.bytes() == 0) layout.outer = outer();
    return layout;
  }

  net::LabelStack labels() {
    std::vector<net::MplsLabel> labels(below(2) * below(net::LabelStack::kMax + 1));
    for (net::MplsLabel& label : labels) {
      label = {static_cast<uint32_t>(16 + below(1'000'000)), static_cast<uint8_t>(below(8)),
               static_cast<uint8_t>(1 + below(255))};
    }
    return net::LabelStack(labels);
  }

  net::Encapsulation outer() {
    net::TunnelEnds ends;
    ends.kind = static_cast<net::Tunnel>(below(2) * below(5));
    for (net::IpAddress* end : {&ends.local, &ends.remote}) {
      for (uint8_t& byte : end->bytes) byte = static_cast<uint8_t>(bits_());
    }
    ends.local.version = ends.remote.version = below(3) == 0 ? 4 : 6;
    if (ends.kind == net::Tunnel::kSrv6) {
      ends.local.version = ends.remote.version = 6;
      ends.sent = path();
      ends.received = path();
    }
    ends.ttl = static_cast<uint8_t>(1 + below(255));
    if (ends.local.version == 6) ends.flow_label = static_cast<uint32_t>(below(1 << 20));
    ends.vni = static_cast<uint32_t>(below(1 << 24));
    ends.src_port = static_cast<uint16_t>(bits_());
    for (uint8_t& byte : ends.inner_mac.bytes) byte = static_cast<uint8_t>(bits_());
    return net::Encapsulation(ends);
  }

  net::SegmentPath path() {
    net::SegmentPath path;
    path.segments.resize(1 + below(net::SegmentPath::kMost), net::IpAddress{6, {}});
    for (net::IpAddress& segment : path.segments) {
      for (uint8_t& byte : segment.bytes) byte = static_cast<uint8_t>(bits_());
    }
    path.left = static_cast<uint8_t>(below(path.segments.size()));
    path.reduced = below(2) == 0;
    path.tag = static_cast<uint16_t>(bits_());
    return path;
  }

  net::VlanTags vlan() {
    constexpr uint16_t kTypes[] = {0x8100, 0x88a8};
    std::vector<net::VlanTag> tags(below(3));
    for (net::VlanTag& tag : tags) {
      tag = {kTypes[below(2)], static_cast<uint16_t>(below(4095)), static_cast<uint8_t>(below(8))};
    }
    return net::VlanTags(tags);
  }

  net::ExtraHeaders extra(int version) {
    const uint64_t count = below(2) * below(4);
    if (version == 4) {
      std::vector<net::Ipv4Option> options(count);
      for (net::Ipv4Option& option : options) option = static_cast<net::Ipv4Option>(below(2));
      return net::ipv4_options(options);
    }
    std::vector<net::Ipv6Extension> extensions(count);
    for (net::Ipv6Extension& extension : extensions) {
      extension = static_cast<net::Ipv6Extension>(below(6));
    }
    return net::ipv6_extensions(extensions);
  }

  static bool has(const net::FrameLayout& layout, Field field) {
    const net::TunnelEnds& ends = layout.outer.ends();
    switch (field) {
      case Field::kFlowLabel: return layout.ip_version == 6;
      case Field::kVlanId: return layout.vlan.bytes() > 0;
      case Field::kOuterSrc: return ends.kind != net::Tunnel::kNone;
      case Field::kOuterSrcPort: return ends.kind == net::Tunnel::kVxlan;
      case Field::kOuterFlowLabel:
        return ends.kind != net::Tunnel::kNone && ends.local.version == 6;
      default: return true;
    }
  }

  // Of a field that not all outer headers have whole.
  static uint32_t first_bit_there(const net::FrameLayout& layout, Field field) {
    return field == Field::kOuterSrc && layout.outer.ends().local.version == 4 ? 96 : 0;
  }

  Field field_of(const net::FrameLayout& layout) {
    while (true) {
      const Field field = kFields[below(std::size(kFields))];
      if (has(layout, field)) return field;
    }
  }

  Variation variation(const net::FrameLayout& layout) {
    Variation v;
    v.field = field_of(layout);
    const uint32_t bits = bits_of(v.field, layout.ip_version);
    const uint32_t first = first_bit_there(layout, v.field);
    v.width = static_cast<uint8_t>(1 + below(std::min(32U, bits - first)));
    v.offset = static_cast<uint8_t>(first + below(bits - first - v.width + 1));
    const uint64_t end = 1ULL << v.width;
    v.min = static_cast<uint32_t>(below(3) == 0 ? 0 : below(end));
    v.max = static_cast<uint32_t>(below(3) == 0 ? end - 1 : v.min + below(end - v.min));
    v.mode = static_cast<Mode>(below(4));
    return v;
  }

  // As many as asked for that overlap neither each other nor what varies. What is copied may vary,
  // but is not copied from elsewhere.
  std::vector<Copy> copies(const net::FrameLayout& layout, const std::vector<Variation>& list,
                           uint64_t count) {
    std::vector<Copy> result;
    for (uint64_t i = 0; i < count; ++i) {
      Copy copy;
      copy.from = field_of(layout);
      copy.to = field_of(layout);
      const uint32_t from_bits = bits_of(copy.from, layout.ip_version);
      const uint32_t to_bits = bits_of(copy.to, layout.ip_version);
      copy.width = static_cast<uint8_t>(1 + below(std::min({32U, from_bits, to_bits})));
      const auto offset = [&](Field field, uint32_t bits) {
        const uint32_t first = first_bit_there(layout, field);
        return static_cast<uint8_t>(first + below(bits - first - copy.width + 1));
      };
      copy.from_offset = offset(copy.from, from_bits);
      copy.to_offset = offset(copy.to, to_bits);
      const auto meets = [](Field a, uint32_t a_first, uint32_t a_width, Field b, uint32_t b_first,
                            uint32_t b_width) {
        return a == b && a_first < b_first + b_width && b_first < a_first + a_width;
      };
      bool free =
          !meets(copy.from, copy.from_offset, copy.width, copy.to, copy.to_offset, copy.width);
      for (const Variation& v : list) {
        free &= !meets(v.field, v.offset, v.width, copy.to, copy.to_offset, copy.width);
      }
      for (const Copy& other : result) {
        free &= !meets(other.to, other.to_offset, other.width, copy.to, copy.to_offset, copy.width);
        free &=
            !meets(other.to, other.to_offset, other.width, copy.from, copy.from_offset, copy.width);
        free &=
            !meets(other.from, other.from_offset, other.width, copy.to, copy.to_offset, copy.width);
      }
      if (free) result.push_back(copy);
    }
    return result;
  }

  // Up to 8 that do not overlap and do not enumerate too much; often several of one address.
  Variations variations(const net::FrameLayout& layout) {
    Variations result;
    result.order = static_cast<Order>(below(3));
    result.seed = bits_();
    const uint64_t tries = below(12);
    for (uint64_t i = 0; i < tries && result.list.size() < 8; ++i) {
      const Variation v = variation(layout);
      const bool overlaps =
          std::any_of(result.list.begin(), result.list.end(), [&](const Variation& other) {
            return other.field == v.field && other.offset < v.offset + v.width &&
                   v.offset < other.offset + other.width;
          });
      if (overlaps) continue;
      result.list.push_back(v);
      if (result.combinations() > Permutation::kMaxSize) result.list.pop_back();
    }
    result.copies = copies(layout, result.list, below(2) * below(5));
    return result;
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace dutperf::vary::testing
