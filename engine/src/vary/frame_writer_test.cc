#include "vary/frame_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <tuple>

#include "vary/testing/slow_writer.h"
#include "vary/testing/statistics.h"

namespace dutperf::vary {
namespace {

using net::testing::sample_layout;
using net::testing::udp_offset;
using testing::Bytes;
using testing::Counts;
using testing::is_uniform;
using testing::Pairs;
using testing::slow_frame;
using testing::value_in;

constexpr uint64_t kMax48 = (1ULL << 48) - 1;
constexpr net::TagIdentity kTag{0x1234, 7, net::kTagFlagBackground};
constexpr Field kFields[] = {Field::kSrcMac,  Field::kDstMac,  Field::kSrcIp,    Field::kDstIp,
                             Field::kSrcPort, Field::kDstPort, Field::kFlowLabel};

uint16_t word_at(const Bytes& frame, size_t offset) {
  return static_cast<uint16_t>(frame[offset] << 8 | frame[offset + 1]);
}

bool enumerates(const Variations& variations) {
  return std::any_of(variations.list.begin(), variations.list.end(),
                     [](const Variation& v) { return v.mode == Mode::kEnumerate; });
}

// A stream: its writer, and buffers that it has used before. Frames are written in bursts into
// buffers in any order, as a port gives them back.
class Stream {
 public:
  Stream(const net::FrameLayout& layout, const Variations& variations,
         const net::TagIdentity& tag = kTag)
      : layout_(layout),
        variations_(variations),
        tag_(tag),
        writer_(layout, tag, variations),
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
    writer_.write(frames.data(), lanes, static_cast<uint32_t>(sequences.size()), stamp_ns);
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

  std::vector<uint64_t> values_in(const Bytes& frame) const {
    std::vector<uint64_t> values;
    for (const Variation& variation : variations_.list) {
      values.push_back(value_in(frame, variation, layout_.ip_version));
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
    ASSERT_EQ(frame, slow_frame(layout_, tag_, variations_.list, values, sequence, stamp_ns))
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
      ASSERT_EQ(place_of(values), sequence);
    } else if (variations_.order == Order::kDecreasing) {
      ASSERT_EQ(place_of(values), variations_.combinations() - 1 - sequence);
    }
  }

  net::FrameLayout layout_;
  Variations variations_;
  net::TagIdentity tag_;
  FrameWriter writer_;
  std::vector<Bytes> buffers_;
  std::vector<Bytes*> order_;
  std::mt19937_64 shuffle_{5};
};

// --- against the slow twin

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}

  uint64_t below(uint64_t end) { return bits_() % end; }
  uint64_t up_to_48_bits() { return (bits_() & kMax48) >> below(48); }

  net::FrameLayout layout() {
    const int version = below(2) == 0 ? 4 : 6;
    const uint32_t least = net::minimum_frame_size(version);
    const auto more = static_cast<uint32_t>(below(10) == 0 ? below(1500) : below(40));
    net::FrameLayout layout = sample_layout(version, least + more);
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
    if (version == 6) layout.flow_label = static_cast<uint32_t>(below(1 << 20));
    return layout;
  }

  Variation variation(int version) {
    Variation v;
    v.field = kFields[below(version == 4 ? 6 : 7)];
    const uint32_t bits = bits_of(v.field, version);
    v.width = static_cast<uint8_t>(1 + below(std::min(32U, bits)));
    v.offset = static_cast<uint8_t>(below(bits - v.width + 1));
    const uint64_t end = 1ULL << v.width;
    v.min = static_cast<uint32_t>(below(3) == 0 ? 0 : below(end));
    v.max = static_cast<uint32_t>(below(3) == 0 ? end - 1 : v.min + below(end - v.min));
    v.mode = static_cast<Mode>(below(4));
    return v;
  }

  // Up to 8 that do not overlap and do not enumerate too much; often several of one address.
  Variations variations(int version) {
    Variations result;
    result.order = static_cast<Order>(below(3));
    result.seed = bits_();
    const uint64_t tries = below(12);
    for (uint64_t i = 0; i < tries && result.list.size() < 8; ++i) {
      const Variation v = variation(version);
      const bool overlaps =
          std::any_of(result.list.begin(), result.list.end(), [&](const Variation& other) {
            return other.field == v.field && other.offset < v.offset + v.width &&
                   v.offset < other.offset + other.width;
          });
      if (overlaps) continue;
      result.list.push_back(v);
      if (result.combinations() > Permutation::kMaxSize) result.list.pop_back();
    }
    return result;
  }

 private:
  std::mt19937_64 bits_;
};

class FrameWriterTwin : public ::testing::TestWithParam<uint64_t> {};

TEST_P(FrameWriterTwin, WritesTheSameFrames) {
  Random random(GetParam());
  for (int i = 0; i < 250; ++i) {
    const net::FrameLayout layout = random.layout();
    const Variations variations = random.variations(layout.ip_version);
    const uint64_t frames = enumerates(variations) ? variations.combinations() : kMax48 + 1;
    Stream stream(layout, variations);
    for (int burst = 0; burst < 4; ++burst) {
      std::vector<uint64_t> sequences(1 + random.below(kMaxBurst));
      for (uint64_t& sequence : sequences) sequence = random.up_to_48_bits() % frames;
      sequences.front() = frames - 1;
      const uint64_t stamp_ns = random.up_to_48_bits();
      const std::vector<Bytes> written = stream.write(sequences, stamp_ns);
      for (size_t k = 0; k < written.size(); ++k) {
        stream.expect_right(written[k], sequences[k], stamp_ns);
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RandomStreams, FrameWriterTwin, ::testing::Range<uint64_t>(0, 8));

// Every window of every field, also those that cross the writer's own words.
class EveryWindow : public ::testing::TestWithParam<std::tuple<int, Field, Mode>> {};

TEST_P(EveryWindow, IsWrittenAndNothingBesideIt) {
  const auto [version, field, mode] = GetParam();
  const uint32_t bits = bits_of(field, version);
  for (uint32_t offset = 0; offset < bits; ++offset) {
    for (uint32_t width = 1; width <= std::min(32U, bits - offset); ++width) {
      const Variation variation{field,
                                static_cast<uint8_t>(offset),
                                static_cast<uint8_t>(width),
                                0,
                                static_cast<uint32_t>((1ULL << width) - 1),
                                mode};
      Stream stream(sample_layout(version, offset % 2 == 0 ? 128 : 129), {{variation}});
      const std::vector<uint64_t> sequences = {0, 1, (1ULL << width) - 1};
      const std::vector<Bytes> frames = stream.write(sequences, offset);
      for (size_t i = 0; i < frames.size(); ++i) {
        stream.expect_right(frames[i], sequences[i], offset);
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ipv4, EveryWindow,
                         ::testing::Combine(::testing::Values(4),
                                            ::testing::ValuesIn(kFields, kFields + 6),
                                            ::testing::Values(Mode::kDecreasing, Mode::kRandom)));
INSTANTIATE_TEST_SUITE_P(Ipv6, EveryWindow,
                         ::testing::Combine(::testing::Values(6), ::testing::ValuesIn(kFields),
                                            ::testing::Values(Mode::kDecreasing, Mode::kRandom)));

class EveryFrameSize : public ::testing::TestWithParam<int> {};

TEST_P(EveryFrameSize, IsWrittenAsIfAnew) {
  constexpr std::pair<uint64_t, uint64_t> kExtremes[] = {
      {0, 0},          {kMax48, kMax48}, {0, kMax48},     {kMax48, 0},
      {1, 1ULL << 32}, {1ULL << 32, 1},  {0x8000, 0xffff}};
  const Variations ports{{{Field::kSrcPort, 0, 16, 1024, 65535, Mode::kRandom},
                          {Field::kDstPort, 0, 16, 1, 49151, Mode::kRandom}}};
  const auto check = [&](uint32_t size) {
    for (const Variations& variations : {Variations{}, ports}) {
      Stream stream(sample_layout(GetParam(), size), variations);
      for (const auto& [sequence, stamp_ns] : kExtremes) {
        const Bytes frame = stream.write({sequence}, stamp_ns).front();
        stream.expect_right(frame, sequence, stamp_ns);
      }
    }
  };
  for (uint32_t size = net::minimum_frame_size(GetParam()); size <= 600; ++size) {
    check(size);
    if (HasFatalFailure()) return;
  }
  for (const uint32_t size : {1499U, 1500U, 1517U, 1518U, 1522U, 2048U, 9216U, 9719U, 9720U}) {
    check(size);
  }
}

INSTANTIATE_TEST_SUITE_P(BothVersions, EveryFrameSize, ::testing::Values(4, 6));

TEST(FrameWriter, Writes64BytesOfIpv4AsSpeltOutHere) {
  const Bytes expected = {
      0x02, 0x00, 0x00, 0x00, 0x00, 0xfe,              // destination
      0x02, 0x00, 0x00, 0x00, 0x00, 0x01,              // source
      0x08, 0x00,                                      // IPv4
      0x45, 0x00, 0x00, 0x2e, 0x00, 0x00, 0x00, 0x00,  // 46 bytes, not fragmented
      0x0a, 0x11, 0x24, 0x96,                          // TTL 10, UDP, checksum
      198,  18,   0,    2,    198,  19,   0,    2,     //
      0xc0, 0x20, 0x00, 0x07, 0x00, 0x1a, 0xc8, 0xae,  // ports, length, checksum
      0xd0, 0x7f, 0x12, 0x34, 0x07, 0x01,              // tag: magic, trial, stream, background
      0x00, 0x00, 0x00, 0x00, 0x00, 0x05,              // sequence number
      0x00, 0x00, 0x00, 0x00, 0x01, 0x00,              // stamp
  };
  Stream stream(sample_layout(4, 64), {});
  EXPECT_EQ(stream.write({5}, 256).front(), expected);
}

// --- checksums

class ZeroChecksum : public ::testing::TestWithParam<std::tuple<int, uint32_t>> {};

TEST_P(ZeroChecksum, IsSentAsFfff) {
  const auto [version, size] = GetParam();
  const net::FrameLayout layout = sample_layout(version, size);
  Stream stream(layout, {});
  int hits = 0;
  // The stamp's last 16 bits alone reach every checksum, so some stamp below 2^16 - 1 makes zero.
  for (uint64_t stamp_ns = 0; stamp_ns < 0x10000; ++stamp_ns) {
    const Bytes frame = stream.write({0}, stamp_ns).front();
    const uint16_t checksum = word_at(frame, udp_offset(version) + 6);
    ASSERT_NE(checksum, 0);
    if (checksum != 0xffff) continue;
    ++hits;
    stream.expect_right(frame, 0, stamp_ns);
  }
  EXPECT_GE(hits, 1);
}

TEST_P(ZeroChecksum, IsNeverMadeByVaryingFields) {
  const auto [version, size] = GetParam();
  Stream stream(sample_layout(version, size), {{{Field::kSrcPort, 0, 16, 0, 65535, Mode::kRandom},
                                                {Field::kDstIp, 16, 16, 0, 65535, Mode::kRandom}}});
  int hits = 0;
  stream.write_many(0, 300'000, [&](uint64_t sequence, const Bytes& frame) {
    const uint16_t checksum = word_at(frame, udp_offset(version) + 6);
    ASSERT_NE(checksum, 0) << sequence;
    hits += checksum == 0xffff ? 1 : 0;
  });
  EXPECT_GE(hits, 1);
  EXPECT_LE(hits, 30);  // about 5: FFFF stands for zero alone
}

// 65 and 85: the tag stands at an odd offset.
INSTANTIATE_TEST_SUITE_P(BothVersionsAndParities, ZeroChecksum,
                         ::testing::Values(std::tuple{4, 64U}, std::tuple{4, 65U},
                                           std::tuple{6, 84U}, std::tuple{6, 85U}));

// --- random fields

const Variation kSrcPort{Field::kSrcPort, 0, 16, 1024, 65535, Mode::kRandom};
const Variation kDstPort{Field::kDstPort, 0, 16, 1, 49151, Mode::kRandom};
const Variation kSrcHost{Field::kSrcIp, 24, 8, 2, 254, Mode::kRandom};
const Variation kSrcNetwork{Field::kSrcIp, 16, 8, 0, 255, Mode::kRandom};
const Variation kDstHost{Field::kDstIp, 24, 8, 2, 254, Mode::kRandom};
const Variation kDstNetwork{Field::kDstIp, 16, 8, 0, 255, Mode::kRandom};
const std::vector<Variation> kAllRandom = {kSrcPort,    kDstPort, kSrcHost,
                                           kSrcNetwork, kDstHost, kDstNetwork};

TEST(RandomFields, TakeEachOfTheirValuesEquallyOften) {
  Stream stream(sample_layout(4, 64), {kAllRandom});
  std::vector<Counts> counts;
  for (const Variation& v : kAllRandom) counts.emplace_back(v.size());
  stream.write_many(0, 1'500'000, [&](uint64_t, const Bytes& frame) {
    for (size_t i = 0; i < kAllRandom.size(); ++i) {
      ++counts[i][value_in(frame, kAllRandom[i], 4) - kAllRandom[i].min];
    }
  });
  for (const Counts& count : counts) {
    EXPECT_TRUE(is_uniform(count)) << testing::chi_square_deviation(count);
  }
  EXPECT_GT(counts[0].back(), 0U) << "65535 is a source port, too: no half range";
}

TEST(RandomFields, SayNothingAboutEachOther) {
  constexpr uint64_t kCells = 16;
  Stream stream(sample_layout(4, 64), {kAllRandom});
  const size_t fields = kAllRandom.size();
  std::vector<Pairs> pairs(fields * fields, Pairs(kCells));
  stream.write_many(0, 200'000, [&](uint64_t, const Bytes& frame) {
    const std::vector<uint64_t> values = stream.values_in(frame);
    std::vector<uint64_t> cells;
    for (size_t i = 0; i < fields; ++i) {
      cells.push_back((values[i] - kAllRandom[i].min) * kCells / kAllRandom[i].size());
    }
    for (size_t a = 0; a < fields; ++a) {
      for (size_t b = 0; b < a; ++b) pairs[a * fields + b].add(cells[a], cells[b]);
    }
  });
  for (size_t a = 0; a < fields; ++a) {
    for (size_t b = 0; b < a; ++b) {
      // Cells of 253 values are not quite equal in size; that alone is 1 % here.
      EXPECT_LT(testing::chi_square_deviation(pairs[a * fields + b].counts()), 2 * testing::kFair)
          << a << " and " << b;
    }
  }
}

TEST(RandomFields, DependOnSeedStreamAndNumberAlone) {
  Stream stream(sample_layout(4, 64), {kAllRandom, Order::kRandom, 9});
  Stream other_size(sample_layout(4, 1518), {kAllRandom, Order::kRandom, 9});
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    std::vector<uint64_t> sequences(1 + random() % kMaxBurst);
    for (uint64_t& sequence : sequences) sequence = random() & kMax48;
    const std::vector<Bytes> burst = stream.write(sequences, 0);
    for (size_t k = 0; k < burst.size(); k += 5) {
      const Bytes alone = other_size.write_one(sequences[k]);
      ASSERT_EQ(stream.values_in(burst[k]), stream.values_in(alone));
    }
  }
}

TEST(RandomFields, AreOthersWithAnotherSeedAndInAnotherStream) {
  const auto values = [](uint64_t seed, uint8_t id) {
    Stream stream(sample_layout(4, 64), {kAllRandom, Order::kRandom, seed}, {1, id, 0});
    std::vector<uint64_t> ports;
    stream.write_many(0, 10'000, [&](uint64_t, const Bytes& frame) {
      ports.push_back(value_in(frame, kSrcPort, 4));
    });
    return ports;
  };
  const auto equal = [](const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
    size_t count = 0;
    for (size_t i = 0; i < a.size(); ++i) count += a[i] == b[i] ? 1 : 0;
    return count;
  };
  EXPECT_EQ(equal(values(1, 0), values(1, 0)), 10'000U);
  EXPECT_LT(equal(values(1, 0), values(2, 0)), 5U);  // one in 64,512 by chance
  EXPECT_LT(equal(values(1, 0), values(1, 1)), 5U);
}

// --- enumerations

struct Space {
  int ip_version;
  std::vector<Variation> list;
};

Variation enumerated(Field field, uint8_t offset, uint8_t width, uint32_t min, uint32_t max) {
  return {field, offset, width, min, max, Mode::kEnumerate};
}

const Space kSpaces[] = {
    {4, {enumerated(Field::kSrcPort, 0, 16, 1024, 1123)}},
    {4,
     {enumerated(Field::kSrcPort, 0, 16, 65530, 65535), enumerated(Field::kDstPort, 0, 16, 1, 7),
      enumerated(Field::kSrcIp, 16, 8, 0, 4), enumerated(Field::kDstIp, 24, 8, 2, 12)}},
    {6,
     {enumerated(Field::kSrcPort, 0, 16, 1, 3), enumerated(Field::kDstIp, 56, 8, 0, 255),
      enumerated(Field::kDstIp, 112, 16, 2, 9)}},
    {6, {enumerated(Field::kSrcIp, 60, 8, 250, 255), enumerated(Field::kFlowLabel, 3, 5, 0, 31)}},
    {4, {enumerated(Field::kDstPort, 0, 1, 0, 1), enumerated(Field::kSrcPort, 3, 2, 1, 1)}},
};

class Enumeration : public ::testing::TestWithParam<std::tuple<Space, Order>> {};

TEST_P(Enumeration, VisitsEachCombinationExactlyOnce) {
  const auto& [space, order] = GetParam();
  Stream stream(sample_layout(space.ip_version, 90), {space.list, order, 3});
  const uint64_t combinations = Variations{space.list}.combinations();
  std::set<std::vector<uint64_t>> seen;
  stream.write_many(0, combinations, [&](uint64_t sequence, const Bytes& frame) {
    stream.expect_right(frame, sequence, 0);
    EXPECT_TRUE(seen.insert(stream.values_in(frame)).second) << sequence;
  });
  EXPECT_EQ(seen.size(), combinations);
}

INSTANTIATE_TEST_SUITE_P(Spaces, Enumeration,
                         ::testing::Combine(::testing::ValuesIn(kSpaces),
                                            ::testing::Values(Order::kIncreasing,
                                                              Order::kDecreasing, Order::kRandom)));

TEST(Enumeration, ChangesTheSourcePortFastestAndTheDestinationAddressSlowest) {
  Stream stream(
      sample_layout(4, 64),
      {{enumerated(Field::kSrcPort, 0, 16, 10, 11), enumerated(Field::kDstPort, 0, 16, 20, 21),
        enumerated(Field::kSrcIp, 24, 8, 30, 31), enumerated(Field::kDstIp, 24, 8, 40, 41)},
       Order::kIncreasing});
  const std::vector<std::vector<uint64_t>> expected = {
      {10, 20, 30, 40}, {11, 20, 30, 40}, {10, 21, 30, 40}, {11, 21, 30, 40}, {10, 20, 31, 40},
      {11, 20, 31, 40}, {10, 21, 31, 40}, {11, 21, 31, 40}, {10, 20, 30, 41}, {11, 20, 30, 41}};
  for (uint64_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(stream.values_in(stream.write_one(i)), expected[i]) << i;
  }
  EXPECT_EQ(stream.values_in(stream.write_one(15)), (std::vector<uint64_t>{11, 21, 31, 41}));
}

TEST(Enumeration, StartsAnywhereInTwoToThe48Combinations) {
  const std::vector<Variation> all = {enumerated(Field::kSrcPort, 0, 16, 0, 65535),
                                      enumerated(Field::kDstIp, 0, 32, 0, UINT32_MAX)};
  for (const Order order : {Order::kIncreasing, Order::kDecreasing, Order::kRandom}) {
    Stream stream(sample_layout(4, 64), {all, order});
    std::set<uint64_t> places;
    for (const uint64_t sequence : {uint64_t{0}, uint64_t{1}, kMax48 / 2, kMax48 - 1, kMax48}) {
      const Bytes frame = stream.write_one(sequence);
      stream.expect_right(frame, sequence, 0);
      places.insert(stream.place_of(stream.values_in(frame)));
    }
    EXPECT_EQ(places.size(), 5U);
  }
}

// Sides of the enumeration's rectangle that are one field and several, at either end.
TEST(Enumeration, OfManyCombinationsNeverRepeatsOne) {
  const Variation src = enumerated(Field::kSrcPort, 0, 16, 1024, 65535);
  const Variation dst = enumerated(Field::kDstPort, 0, 16, 1, 49151);
  const Variation src_net = enumerated(Field::kSrcIp, 16, 8, 0, 255);
  const Variation dst_net = enumerated(Field::kDstIp, 12, 12, 7, 4000);
  const std::vector<std::vector<Variation>> spaces = {
      {src, dst}, {src, dst, dst_net}, {src_net, dst_net, dst}, {dst_net, src_net}, {dst, src_net}};
  for (const std::vector<Variation>& list : spaces) {
    Stream stream(sample_layout(4, 64), {list, Order::kRandom, 5});
    const uint64_t frames = std::min<uint64_t>(Variations{list}.combinations(), 300'000);
    std::set<uint64_t> places;
    stream.write_many(0, frames, [&](uint64_t sequence, const Bytes& frame) {
      if (sequence % 1000 == 0) stream.expect_right(frame, sequence, 0);
      places.insert(stream.place_of(stream.values_in(frame)));
    });
    EXPECT_EQ(places.size(), frames);
  }
}

TEST(Enumeration, LeavesRandomFieldsRandom) {
  Stream stream(sample_layout(4, 64),
                {{enumerated(Field::kSrcPort, 0, 16, 0, 65535), kDstPort}, Order::kIncreasing});
  Counts counts(16);
  stream.write_many(0, 65536, [&](uint64_t sequence, const Bytes& frame) {
    ASSERT_EQ(value_in(frame, kSrcPort, 4), sequence);
    ++counts[(value_in(frame, kDstPort, 4) - 1) * 16 / 49151];
  });
  EXPECT_TRUE(is_uniform(counts));
}

}  // namespace
}  // namespace dutperf::vary
