#include "vary/frame_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <tuple>

#include "net/classify.h"
#include "net/inspection.h"
#include "net/udp.h"
#include "vary/testing/slow_writer.h"
#include "vary/testing/statistics.h"
#include "vary/testing/stream.h"

namespace dutperf::vary {
namespace {

using net::testing::sample_layout;
using net::testing::udp_offset;
using net::testing::word_at;
using testing::Bytes;
using testing::Counts;
using testing::enumerates;
using testing::is_uniform;
using testing::kFields;
using testing::kIndexOrders;
using testing::kMax48;
using testing::kTag;
using testing::Pairs;
using testing::Random;
using testing::slow_frame;
using testing::Stream;
using testing::value_in;

// --- against the slow twin

class FrameWriterTwin : public ::testing::TestWithParam<uint64_t> {};

TEST_P(FrameWriterTwin, WritesTheSameFrames) {
  Random random(GetParam());
  for (int i = 0; i < 250; ++i) {
    const net::FrameLayout layout = random.layout();
    const Variations variations = random.variations(layout);
    const bool ends = enumerates(variations) && variations.order == Order::kRandom;
    const uint64_t frames = ends ? variations.combinations() : kMax48 + 1;
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

// A segment has the four-tuple that the UDP frame of its number would have; all else is its own.
TEST_P(FrameWriterTwin, SegmentsHaveTheFourTuplesOfUdpFrames) {
  constexpr net::Step kSent[] = {net::Step::kSyn, net::Step::kAck, net::Step::kRequest,
                                 net::Step::kFin, net::Step::kLastAck};
  constexpr uint8_t kFlags[] = {net::kTcpSyn, net::kTcpAck, net::kTcpAck | net::kTcpPsh,
                                net::kTcpAck | net::kTcpFin, net::kTcpAck};
  Random random(GetParam() + 100);
  for (int i = 0; i < 100; ++i) {
    net::FrameLayout udp = random.layout();
    udp.extra = {};
    udp.labels = {};
    udp.outer = {};
    udp.identified = false;
    udp.frame_size = 200;
    net::FrameLayout tcp = udp;
    const net::SequenceNumbers numbers(random.up_to_48_bits());
    const auto step = static_cast<size_t>(i % 5);
    const bool opens = kSent[step] == net::Step::kSyn;
    const uint32_t own = kSent[step] == net::Step::kLastAck ? 2 : 1;  // numbers of SYN and FIN
    tcp.tcp = net::SegmentLayout{kSent[step], numbers, 1400, opens ? 0U : 49U, opens ? 0U : 108U};
    tcp.frame_size = net::segment_frame_size(udp.ip_version, *tcp.tcp);
    const Variations variations = random.variations(udp);
    const bool ends = enumerates(variations) && variations.order == Order::kRandom;
    const uint64_t frames = ends ? variations.combinations() : kMax48 + 1;
    Stream of_udp(udp, variations);
    Stream of_tcp(tcp, variations);
    std::vector<uint64_t> sequences(1 + random.below(kMaxBurst));
    for (uint64_t& number : sequences) number = (random.up_to_48_bits() & 0xffffffff) % frames;
    const uint64_t stamp_ns = random.up_to_48_bits();
    const std::vector<Bytes> expected = of_udp.write(sequences, stamp_ns);
    const std::vector<Bytes> written = of_tcp.write(sequences, stamp_ns);
    const size_t tags = udp.vlan.bytes();
    for (size_t k = 0; k < written.size(); ++k) {
      const auto segment = net::segment_in(written[k].data() + tags, written[k].size() - tags);
      ASSERT_TRUE(segment);
      EXPECT_TRUE(net::checksums_hold(written[k].data() + tags, *segment));
      EXPECT_EQ(segment->flags, kFlags[step]);
      const uint32_t first = numbers.of(sequences[k]);
      EXPECT_EQ(segment->sequence, opens ? first : first + own + 49);
      EXPECT_EQ(segment->acknowledgment,
                opens ? 0 : net::SequenceNumbers::answer_to(first) + own + 108);
      const size_t payload_bytes = segment->payload_bytes();
      ASSERT_EQ(payload_bytes > 0, kSent[step] == net::Step::kRequest);
      if (payload_bytes > 0) {
        const std::span<const uint8_t> text(written[k].end() - static_cast<long>(payload_bytes),
                                            payload_bytes);
        EXPECT_EQ(net::number_in_http_request(text), sequences[k]);
      }
      EXPECT_EQ(segment->stamp, net::tcp_stamp(stamp_ns));
      EXPECT_EQ(segment->echo, 0U);
      const size_t addresses = tags + 14 + (udp.ip_version == 4 ? 12 : 8);
      const size_t ports_end = tags + 14 + segment->ip_headers + 4;
      EXPECT_TRUE(std::equal(written[k].begin() + static_cast<long>(addresses),
                             written[k].begin() + static_cast<long>(ports_end),
                             expected[k].begin() + static_cast<long>(addresses)));
      EXPECT_TRUE(std::equal(written[k].begin(), written[k].begin() + static_cast<long>(tags + 12),
                             expected[k].begin()));
    }
  }
}

// Of each query the name and the id that its zone says, as if it had been written alone.
TEST_P(FrameWriterTwin, QueriesAskForTheNamesOfTheirZone) {
  Random random(GetParam() + 300);
  for (int i = 0; i < 100; ++i) {
    net::FrameLayout layout = random.layout();
    layout.extra = {};
    layout.labels = {};
    layout.outer = {};
    layout.identified = false;
    layout.frame_size = net::query_frame_size(layout.ip_version);
    const net::DnsCached cached{static_cast<uint16_t>(random.below(1 << 16)),
                                static_cast<uint32_t>(100 + random.below(10'000)),
                                static_cast<uint32_t>(random.below(101))};
    layout.query = net::DnsZone{.trial = static_cast<uint16_t>(cached.trial + 1), .cached = cached};
    Stream stream(layout, {});
    std::vector<uint64_t> sequences(1 + random.below(kMaxBurst));
    for (uint64_t& number : sequences) number = random.below(6'553'600);
    const std::vector<Bytes> written = stream.write(sequences, random.up_to_48_bits());
    const size_t tags = layout.vlan.bytes();
    for (size_t k = 0; k < written.size(); ++k) {
      const uint8_t* const frame = written[k].data() + tags;
      const auto datagram = net::datagram_in(frame, written[k].size() - tags);
      ASSERT_TRUE(datagram);
      const net::Classified whole{net::FrameKind::kTest, datagram->ip_version, datagram->ip_headers,
                                  datagram->ip_bytes, nullptr};
      EXPECT_TRUE(net::checksums_hold(frame, whole));
      std::array<uint8_t, net::kDnsQueryBytes> alone;
      net::write_dns_query(alone.data(),
                           layout.query->asked_by(static_cast<uint32_t>(sequences[k])));
      const std::span<const uint8_t> message = datagram->payload(frame);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), message.begin(), message.end()));
    }
  }
}

// Data has them, too, and carries a tag; its numbers are its connection's, of either end.
TEST_P(FrameWriterTwin, DataHasTheTupleOfItsConnectionAndTheTagOfItsFrame) {
  Random random(GetParam() + 200);
  for (int i = 0; i < 100; ++i) {
    net::FrameLayout udp = random.layout();
    udp.extra = {};
    udp.labels = {};
    udp.outer = {};
    udp.identified = false;
    const net::SequenceNumbers numbers(random.up_to_48_bits());
    const bool by_responder = i % 2 == 1;
    net::FrameLayout tcp = udp;
    tcp.tcp = net::SegmentLayout{
        .step = net::Step::kAck, .numbers = numbers, .is_data = true, .by_responder = by_responder};
    udp.frame_size = tcp.frame_size = net::segment_frame_size(udp.ip_version, *tcp.tcp) +
                                      static_cast<uint32_t>(random.below(i % 5 == 0 ? 1400 : 30));
    Variations variations = random.variations(udp);
    const uint64_t combinations = variations.combinations();
    std::optional<Tuples> tuples;
    if (enumerates(variations) && random.below(3) > 0) {
      const uint64_t count = 1 + random.below(std::min<uint64_t>(combinations, 1U << 20));
      tuples = Tuples{IndexSource::kGenerated, kIndexOrders[random.below(std::size(kIndexOrders))],
                      count, nullptr, random.below(combinations - count + 1)};
    }
    const bool ends = enumerates(variations) && variations.order == Order::kRandom;
    uint64_t frames = ends ? std::min<uint64_t>(combinations, 1ULL << 32) : 1ULL << 32;
    if (tuples) frames = tuples->order == IndexOrder::kOnce ? tuples->count : kMax48 + 1;
    Stream of_udp(udp, variations, kTag, tuples);
    Stream of_tcp(tcp, variations, kTag, tuples);
    std::vector<uint64_t> sequences(1 + random.below(kMaxBurst));
    for (uint64_t& number : sequences) number = random.up_to_48_bits() % frames;
    const uint64_t stamp_ns = random.up_to_48_bits();
    const std::vector<Bytes> expected = of_udp.write(sequences, stamp_ns);
    const std::vector<Bytes> written = of_tcp.write(sequences, stamp_ns);
    const size_t tags = udp.vlan.bytes();
    for (size_t k = 0; k < written.size(); ++k) {
      const uint8_t* const frame = written[k].data() + tags;
      const size_t size = written[k].size() - tags;
      const net::Classified classified = net::classify(frame, size);
      ASSERT_EQ(classified.kind, net::FrameKind::kTest);
      EXPECT_TRUE(net::checksums_hold(frame, classified));
      EXPECT_EQ(classified.tag->sequence(), sequences[k]);
      EXPECT_EQ(classified.tag->stamp_ns(), stamp_ns);
      net::Inspected found;
      net::inspect(frame, {tcp.ttl, tcp.dscp}, found);
      EXPECT_EQ(found.payload + found.ttl + found.dscp, 0U);
      EXPECT_EQ(found.frames, 1U);

      const auto segment = net::segment_in(frame, size);
      ASSERT_TRUE(segment);
      EXPECT_EQ(segment->flags, net::kTcpAck | net::kTcpPsh);
      EXPECT_EQ(segment->stamp, net::tcp_stamp(stamp_ns));
      uint64_t connection = sequences[k];
      if (tuples && tuples->order != IndexOrder::kOnce) {
        connection =
            IndexDraw(tuples->order, tuples->count, tuples->source, variations.seed, kTag.stream)
                .at(sequences[k]);
      }
      const uint32_t own = numbers.of(connection);
      const uint32_t others = net::SequenceNumbers::answer_to(own);
      const uint32_t from = 1 + (by_responder ? others : own);
      EXPECT_EQ(segment->acknowledgment, 1 + (by_responder ? own : others));
      EXPECT_LE(segment->sequence - from + segment->payload_bytes(), net::kTcpWindow);
      EXPECT_EQ((segment->sequence - from) % 1460, 0U);
      EXPECT_EQ((segment->sequence - from) / 1460, sequences[k] % 32);
      const size_t addresses = tags + 14 + (udp.ip_version == 4 ? 12 : 8);
      const size_t ports_end = tags + 14 + segment->ip_headers + 4;
      EXPECT_TRUE(std::equal(written[k].begin() + static_cast<long>(addresses),
                             written[k].begin() + static_cast<long>(ports_end),
                             expected[k].begin() + static_cast<long>(addresses)));
      EXPECT_TRUE(std::equal(written[k].begin(), written[k].begin() + static_cast<long>(tags + 12),
                             expected[k].begin()));
    }
  }
}

constexpr net::VlanTag kTwoTags[] = {{0x88a8, 1365, 5}, {0x8100, 100, 1}};

const net::TunnelEnds kVxlan = {net::Tunnel::kVxlan, *net::IpAddress::parse("2001:2::2"),
                                *net::IpAddress::parse("2001:2::1")};

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
      net::FrameLayout layout = sample_layout(version, offset % 2 == 0 ? 128 : 129);
      if (field == Field::kVlanId) layout.vlan = net::VlanTags(kTwoTags);
      if (field >= Field::kOuterSrc) layout.outer = net::Encapsulation(kVxlan);
      Stream stream(layout, {{variation}});
      const std::vector<uint64_t> sequences = {0, 1, (1ULL << width) - 1};
      const std::vector<Bytes> frames = stream.write(sequences, offset);
      for (size_t i = 0; i < frames.size(); ++i) {
        stream.expect_right(frames[i], sequences[i], offset);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Outer headers of IPv4: the address and the checksum over it, by each width of the address.
TEST(FrameWriter, WritesTheSourceOfAnOuterIpv4HeaderAndItsChecksum) {
  const net::IpAddress inner = *net::IpAddress::parse("2001:db8::1");
  for (const net::Tunnel kind : {net::Tunnel::kIp, net::Tunnel::kGre, net::Tunnel::kVxlan}) {
    for (uint32_t offset = 96; offset < 128; ++offset) {
      for (uint32_t width = 1; width <= 128 - offset; ++width) {
        net::TunnelEnds ends = kVxlan;
        ends.kind = kind;
        ends.local = *net::IpAddress::parse("198.18.255.255");
        ends.remote = *net::IpAddress::parse("198.18.0.1");
        net::FrameLayout layout = sample_layout(6, 128);
        layout.src_ip = inner;
        layout.outer = net::Encapsulation(ends);
        const auto most = static_cast<uint32_t>((1ULL << width) - 1);
        Variations vary{{{Field::kSrcIp, 32, static_cast<uint8_t>(width), 0, most, Mode::kRandom}}};
        vary.copies = {{Field::kSrcIp, 32, Field::kOuterSrc, static_cast<uint8_t>(offset),
                        static_cast<uint8_t>(width)}};
        Stream stream(layout, vary);
        const std::vector<uint64_t> sequences = {0, 1, 2, 3};
        const std::vector<Bytes> frames = stream.write(sequences, 5);
        for (size_t i = 0; i < frames.size(); ++i) {
          stream.expect_right(frames[i], sequences[i], 5);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ipv4, EveryWindow,
                         ::testing::Combine(::testing::Values(4),
                                            ::testing::ValuesIn(kFields, kFields + 9),
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

TEST(RandomFields, DoNotDependOnTheOrderInWhichTheyAreListed) {
  for (const std::vector<Variation>& some : {kAllRandom, {kSrcPort, kDstPort, kDstHost}}) {
    Stream stream(sample_layout(4, 64), {some, Order::kRandom, 9});
    Stream turned(sample_layout(4, 64), {{some.rbegin(), some.rend()}, Order::kRandom, 9});
    for (uint64_t sequence = 0; sequence < 100; ++sequence) {
      std::vector<uint64_t> values = turned.values_in(turned.write_one(sequence));
      std::reverse(values.begin(), values.end());
      ASSERT_EQ(stream.values_in(stream.write_one(sequence)), values);
    }
  }
}

TEST(RandomFields, DoNotDependOnWhatVariesInOtherWindows) {
  Stream stream(sample_layout(4, 64), {kAllRandom, Order::kRandom, 9});
  Stream fewer(sample_layout(4, 64), {{kDstPort, kSrcPort, kDstHost}, Order::kRandom, 9});
  for (uint64_t sequence = 0; sequence < 100; ++sequence) {
    const Bytes all = stream.write_one(sequence);
    const Bytes some = fewer.write_one(sequence);
    ASSERT_EQ(value_in(all, kSrcPort, 4), value_in(some, kSrcPort, 4));
    ASSERT_EQ(value_in(all, kDstPort, 4), value_in(some, kDstPort, 4));
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
