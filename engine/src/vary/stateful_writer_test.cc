// Streams whose frames carry the four-tuples of connections: learned ones, from a table, and drawn
// ones of an enumeration.

#include <gtest/gtest.h>

#include <algorithm>

#include "state/table_memory.h"
#include "state/tuple_table.h"
#include "vary/testing/stream.h"

namespace dutperf::vary {
namespace {

using net::testing::sample_layout;
using net::testing::udp_offset;
using testing::Bytes;
using testing::kIndexOrders;
using testing::kMax48;
using testing::kTag;
using testing::Random;
using testing::slow_frame;
using testing::Stream;

// A four-tuple as it arrived.
struct Connection {
  net::IpAddress source;
  net::IpAddress destination;
  uint16_t source_port = 0;
  uint16_t destination_port = 0;

  Bytes bytes() const {
    Bytes bytes;
    for (const net::IpAddress* address : {&source, &destination}) {
      bytes.insert(bytes.end(), address->bytes.begin(),
                   address->bytes.begin() + static_cast<std::ptrdiff_t>(address->size()));
    }
    for (const uint16_t port : {source_port, destination_port}) {
      bytes.push_back(static_cast<uint8_t>(port >> 8));
      bytes.push_back(static_cast<uint8_t>(port));
    }
    return bytes;
  }

  // The layout of what goes back.
  net::FrameLayout answered(net::FrameLayout layout) const {
    layout.src_ip = destination;
    layout.dst_ip = source;
    layout.src_port = destination_port;
    layout.dst_port = source_port;
    return layout;
  }
};

// A table, and what it should hold; an entry without a connection is empty.
class Known {
 public:
  Known(int ip_version, uint64_t entries)
      : memory_(state::TupleTable::bytes_for(ip_version, entries)),
        table_(ip_version, entries, memory_.data()),
        connections_(entries) {}

  void add(uint64_t index, const Connection& connection) {
    const Bytes bytes = connection.bytes();
    const uint8_t* const tuple = bytes.data();
    learner_.learn(&tuple, &index, 1);
    connections_[index] = connection;
  }

  const std::optional<Connection>& at(uint64_t index) const { return connections_[index]; }
  Tuples tuples(IndexOrder order, uint64_t count) const {
    return {IndexSource::kLearned, order, count, &table_};
  }

 private:
  state::TableMemory memory_;
  state::TupleTable table_;
  state::Learner learner_{table_};
  std::vector<std::optional<Connection>> connections_;
};

Connection random_connection(Random& random, int ip_version) {
  Connection connection;
  for (net::IpAddress* address : {&connection.source, &connection.destination}) {
    address->version = ip_version;
    for (size_t i = 0; i < address->size(); ++i) {
      address->bytes[i] = static_cast<uint8_t>(random.below(3) == 0 ? 0xff : random.below(256));
    }
  }
  connection.source_port = static_cast<uint16_t>(random.below(1 << 16));
  connection.destination_port = static_cast<uint16_t>(random.below(1 << 16));
  return connection;
}

// What may vary beside learned four-tuples.
Variations variations_of_other_fields(Random& random, const net::FrameLayout& layout) {
  Variations variations = random.variations(layout);
  const auto is_learned = [](Field field) {
    return field == Field::kSrcIp || field == Field::kDstIp || field == Field::kSrcPort ||
           field == Field::kDstPort;
  };
  std::erase_if(variations.list, [&](const Variation& v) {
    return v.mode == Mode::kEnumerate || is_learned(v.field);
  });
  std::erase_if(variations.copies, [&](const Copy& copy) { return is_learned(copy.to); });
  return variations;
}

class LearnedStreams : public ::testing::TestWithParam<uint64_t> {};

// The number of an entry is its connection's.
TEST_P(LearnedStreams, OfTcpHaveTheNumbersOfTheirEntries) {
  Random random(GetParam());
  for (const int version : {4, 6}) {
    net::FrameLayout layout = sample_layout(version, 200);
    const net::SequenceNumbers numbers(random.up_to_48_bits());
    layout.tcp = net::SegmentLayout{
        .step = net::Step::kAck, .numbers = numbers, .is_data = true, .by_responder = true};
    Known table(version, 50);
    for (uint64_t index = 0; index < 50; ++index) {
      table.add(index, random_connection(random, version));
    }
    const IndexDraw draw(IndexOrder::kRandom, 50, IndexSource::kLearned, 1, kTag.stream);
    Stream stream(layout, {.seed = 1}, kTag, table.tuples(IndexOrder::kRandom, 50));
    for (uint64_t sequence = 0; sequence < 200; ++sequence) {
      const Bytes frame = stream.write_one(sequence);
      const auto segment = net::segment_in(frame.data(), frame.size());
      ASSERT_TRUE(segment);
      EXPECT_TRUE(net::checksums_hold(frame.data(), *segment));
      const uint64_t index = draw.at(sequence);
      EXPECT_EQ(segment->acknowledgment, numbers.of(index) + 1);
      const Bytes tuple = table.at(index)->bytes();
      const auto destination_port = static_cast<long>(udp_offset(version) + 2);
      EXPECT_TRUE(std::equal(tuple.end() - 4, tuple.end() - 2, frame.begin() + destination_port));
    }
  }
}

TEST_P(LearnedStreams, CarryWhatTheirSlowTwinCarries) {
  Random random(GetParam());
  for (int i = 0; i < 60; ++i) {
    const net::FrameLayout layout = random.layout();
    const Variations variations = variations_of_other_fields(random, layout);
    const uint64_t count = 1 + random.below(300);
    Known table(layout.ip_version, count + random.below(3));
    const bool has_holes = random.below(2) == 0;
    for (uint64_t index = 0; index < count; ++index) {
      if (has_holes && random.below(4) == 0) continue;
      table.add(index, random_connection(random, layout.ip_version));
    }
    const IndexOrder order = kIndexOrders[random.below(std::size(kIndexOrders))];
    const IndexDraw draw(order, count, IndexSource::kLearned, variations.seed, kTag.stream);
    Stream stream(layout, variations, kTag, table.tuples(order, count));
    uint64_t unlearned = 0;
    for (int burst = 0; burst < 4; ++burst) {
      std::vector<uint64_t> sequences(1 + random.below(kMaxBurst));
      for (uint64_t& sequence : sequences) {
        sequence = random.up_to_48_bits() % (order == IndexOrder::kOnce ? count : kMax48);
      }
      const uint64_t stamp_ns = random.up_to_48_bits();
      const std::vector<Bytes> written = stream.write(sequences, stamp_ns);
      for (size_t k = 0; k < written.size(); ++k) {
        const std::optional<Connection>& connection = table.at(draw.at(sequences[k]));
        unlearned += connection ? 0 : 1;
        const net::FrameLayout expected = connection ? connection->answered(layout) : layout;
        ASSERT_EQ(written[k],
                  slow_frame(expected, kTag, variations.list, stream.values_in(written[k]),
                             sequences[k], stamp_ns, variations.copies))
            << "IPv" << layout.ip_version << ", " << layout.frame_size << " bytes, frame "
            << sequences[k];
      }
    }
    ASSERT_EQ(stream.unlearned(), unlearned);
  }
}

INSTANTIATE_TEST_SUITE_P(RandomStreams, LearnedStreams, ::testing::Range<uint64_t>(0, 8));

class BothVersions : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(StatefulStreams, BothVersions, ::testing::Values(4, 6));

// Every sum that a checksum can have, so also those at which it must not be 0.
TEST_P(BothVersions, NeverCarryAZeroUdpChecksum) {
  constexpr uint64_t kPorts = 1 << 16;
  const net::FrameLayout layout = sample_layout(GetParam(), 100);
  const size_t checksum = udp_offset(GetParam()) + 6;
  Known table(GetParam(), kPorts);
  for (uint64_t port = 0; port < kPorts; ++port) {
    table.add(port, {layout.dst_ip, layout.src_ip, static_cast<uint16_t>(port), 7});
  }
  Stream stream(layout, {}, kTag, table.tuples(IndexOrder::kIncreasing, kPorts));
  uint64_t inverted = 0;
  stream.write_many(0, kPorts, [&](uint64_t, const Bytes& frame) {
    const int sum = frame[checksum] << 8 | frame[checksum + 1];
    inverted += sum == 0xffff ? 1 : 0;
    ASSERT_NE(sum, 0);
  });
  EXPECT_GE(inverted, 1U);
}

// Where the DUT gives a connection another address, its next frame takes that.
TEST_P(BothVersions, FollowATableThatChanges) {
  Random random(7);
  const net::FrameLayout layout = sample_layout(GetParam(), 128);
  Known table(GetParam(), 10);
  Stream stream(layout, {}, kTag, table.tuples(IndexOrder::kFirst, 10));
  EXPECT_EQ(stream.write_one(0), slow_frame(layout, kTag, {}, {}, 0, 0));
  for (uint64_t frame = 1; frame < 10; ++frame) {
    const Connection connection = random_connection(random, GetParam());
    table.add(0, connection);
    ASSERT_EQ(stream.write_one(frame),
              slow_frame(connection.answered(layout), kTag, {}, {}, frame, 0));
  }
  EXPECT_EQ(stream.unlearned(), 1U);
}

// --- generated ones

// In phase 2 frame k carries the tuple that frame i(k) of phase 1 carried.
TEST_P(BothVersions, CarryTheEnumerationsTuplesInAnyOrder) {
  const net::FrameLayout layout = sample_layout(GetParam(), 100);
  for (const Order enumeration : {Order::kIncreasing, Order::kDecreasing, Order::kRandom}) {
    const Variations variations{{{Field::kSrcPort, 0, 16, 10'000, 13'999, Mode::kEnumerate},
                                 {Field::kDstPort, 0, 16, 80, 179, Mode::kEnumerate},
                                 {Field::kSrcMac, 40, 8, 0, 255, Mode::kRandom}},
                                enumeration,
                                11};
    Stream once(layout, variations);
    for (const IndexOrder order : kIndexOrders) {
      constexpr uint64_t kCount = 300'001;  // not all of the combinations
      const IndexDraw draw(order, kCount, IndexSource::kGenerated, variations.seed, kTag.stream);
      Stream drawn(layout, variations, kTag, Tuples{IndexSource::kGenerated, order, kCount});
      drawn.write_many(0, 500, [&](uint64_t frame, const Bytes& bytes) {
        std::vector<uint64_t> values = once.values_in(once.write_one(draw.at(frame)));
        values[2] = drawn.values_in(bytes)[2];  // an ordinary draw goes by the frame's own number
        ASSERT_EQ(values[2], once.values_in(once.write_one(frame))[2]);
        ASSERT_EQ(bytes, slow_frame(layout, kTag, variations.list, values, frame, 0));
      });
      EXPECT_EQ(drawn.unlearned(), 0U);
    }
  }
}

// Further on in the same enumeration: none of what the tests before had.
TEST_P(BothVersions, GoOnInTheEnumerationWhereOthersEnded) {
  const net::FrameLayout layout = sample_layout(GetParam(), 100);
  for (const Order enumeration : {Order::kIncreasing, Order::kDecreasing, Order::kRandom}) {
    // As one number, and as pairs of long sides.
    for (const uint32_t last_port : {10'099U, 49'999U}) {
      const Variations variations{{{Field::kSrcPort, 0, 16, 10'000, last_port, Mode::kEnumerate},
                                   {Field::kDstPort, 0, 16, 80, 10'079, Mode::kEnumerate},
                                   {Field::kSrcMac, 40, 8, 0, 255, Mode::kRandom}},
                                  enumeration,
                                  11};
      const uint64_t combinations = variations.combinations();
      Stream once(layout, variations);
      for (const uint64_t first : {uint64_t{1}, uint64_t{123'457}, combinations - 301}) {
        for (const IndexOrder order : kIndexOrders) {
          constexpr uint64_t kCount = 301;
          const IndexDraw draw(order, kCount, IndexSource::kGenerated, variations.seed,
                               kTag.stream);
          Stream drawn(layout, variations, kTag,
                       Tuples{IndexSource::kGenerated, order, kCount, nullptr, first});
          drawn.write_many(0, kCount, [&](uint64_t frame, const Bytes& bytes) {
            std::vector<uint64_t> values = once.values_in(once.write_one(first + draw.at(frame)));
            values[2] = drawn.values_in(bytes)[2];
            ASSERT_EQ(values[2], once.values_in(once.write_one(frame))[2]);
            ASSERT_EQ(bytes, slow_frame(layout, kTag, variations.list, values, frame, 0));
          });
        }
      }
    }
  }
}

}  // namespace
}  // namespace dutperf::vary
