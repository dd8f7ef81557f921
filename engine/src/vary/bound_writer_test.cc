// Frames of the B4s of a binding table: each is one of a row, whole, and all rows have their turn.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "net/byte_order.h"
#include "net/testing/bindings.h"
#include "net/testing/reference_frame.h"
#include "vary/testing/statistics.h"
#include "vary/testing/stream.h"

namespace dutperf::vary {
namespace {

using net::testing::BindingRow;
using net::testing::ip;
using net::testing::rows_of;
using net::testing::sample_layout;
using testing::Bytes;
using testing::slow_frame;
using testing::Stream;
using testing::value_in;

Variation all_of(Field field, uint8_t offset, uint8_t width) {
  return {field, offset, width, 0, static_cast<uint32_t>((1ULL << width) - 1), Mode::kRandom};
}

const std::vector<Variation> kSource = {
    all_of(Field::kSrcIp, 0, 32),     all_of(Field::kSrcPort, 0, 16),
    all_of(Field::kOuterSrc, 0, 32),  all_of(Field::kOuterSrc, 32, 32),
    all_of(Field::kOuterSrc, 64, 32), all_of(Field::kOuterSrc, 96, 32)};
const std::vector<Variation> kDestination = {all_of(Field::kDstIp, 0, 32),
                                             all_of(Field::kDstPort, 0, 16)};

net::FrameLayout tunnelled() {
  net::FrameLayout layout = sample_layout(4, 128);
  net::TunnelEnds ends;
  ends.kind = net::Tunnel::kIp;
  ends.local = ip("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff");
  ends.remote = ip("2001:2::1");
  layout.outer = net::Encapsulation(ends);
  return layout;
}

std::vector<uint64_t> carried(const Bytes& frame, const std::vector<Variation>& fields,
                              const net::FrameLayout& layout) {
  std::vector<uint64_t> values;
  for (const Variation& field : fields) values.push_back(value_in(frame, field, layout));
  return values;
}

std::vector<uint64_t> words_of(const net::IpAddress& address) {
  std::vector<uint64_t> words;
  for (size_t i = 0; i < 16; i += 4) {
    words.push_back(*reinterpret_cast<const net::Be32*>(address.bytes.data() + i));
  }
  return words;
}

size_t row_of(const std::vector<BindingRow>& rows, uint64_t ipv4, uint64_t port) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].ipv4 == ipv4 && rows[i].has(static_cast<uint32_t>(port))) return i;
  }
  return rows.size();
}

class BoundEnds : public ::testing::TestWithParam<uint32_t> {};

TEST_P(BoundEnds, AreThoseOfARowInEachFrame) {
  const std::vector<BindingRow> rows = net::testing::random_bindings(GetParam(), 11);
  const net::BindingTable table(rows_of(rows));
  const net::FrameLayout layout = tunnelled();
  for (const bool spoofed : {false, true}) {
    Stream stream(layout, {{}, Order::kRandom, 3, {}, {{&table, true, spoofed}}});
    std::map<size_t, uint64_t> frames_of;
    stream.write_many(1000, 8'000, [&](uint64_t sequence, const Bytes& frame) {
      const std::vector<uint64_t> values = carried(frame, kSource, layout);
      ASSERT_EQ(frame, slow_frame(layout, testing::kTag, kSource, values, sequence, 0));
      const size_t row = row_of(rows, values[0], values[1]);
      ASSERT_LT(row, rows.size());
      ASSERT_GE(values[1], GetParam() == 0 ? 1024U : 0U);
      const std::vector<uint64_t> outer(values.begin() + 2, values.end());
      ASSERT_EQ(outer == words_of(rows[row].b4), !spoofed);
      ++frames_of[row];
    });
    EXPECT_EQ(frames_of.size(), table.senders().size());
    std::vector<uint64_t> counts;
    for (const auto& [row, frames] : frames_of) counts.push_back(frames);
    EXPECT_TRUE(testing::is_uniform(counts));
  }
}

INSTANTIATE_TEST_SUITE_P(Offsets, BoundEnds, ::testing::Values(0, 4, 6, 13));

TEST(BoundFrames, HaveEachPortOfTheirSetEquallyOften) {
  for (const uint32_t offset : {0U, 2U}) {
    const std::vector<BindingRow> rows = {{ip("::1"), 1, 3, 6 - offset, offset}};
    const net::BindingTable table(rows_of(rows));
    std::map<uint64_t, uint64_t> ports;
    Stream stream(sample_layout(4, 64), {{}, Order::kRandom, 3, {}, {{&table, false, false}}});
    stream.write_many(0, 60'000, [&](uint64_t, const Bytes& frame) {
      ++ports[value_in(frame, kDestination[1], 4)];
    });
    uint64_t of_set = 0;
    for (uint32_t port = 0; port < 65536; ++port) of_set += rows[0].has(port) ? 1 : 0;
    EXPECT_EQ(ports.size(), of_set);
    std::vector<uint64_t> counts;
    for (const auto& [port, frames] : ports) counts.push_back(frames);
    EXPECT_TRUE(testing::is_uniform(counts));
  }
}

// Frames to B4s, beside a source port that is drawn in the same window.
TEST(BoundFrames, LeaveWhatElseVariesToItself) {
  const std::vector<BindingRow> rows = net::testing::random_bindings(6, 5);
  const net::BindingTable table(rows_of(rows));
  const net::FrameLayout layout = sample_layout(4, 64);
  const Variation source{Field::kSrcPort, 0, 16, 1024, 65535, Mode::kRandom};
  const Variation host{Field::kSrcIp, 24, 8, 2, 254, Mode::kRandom};
  Stream alone(layout, {{source, host}, Order::kRandom, 3});
  Stream both(layout, {{source, host}, Order::kRandom, 3, {}, {{&table, false, false}}});
  const std::vector<Variation> all = {source, host, kDestination[0], kDestination[1]};
  for (uint64_t sequence = 0; sequence < 2000; ++sequence) {
    const Bytes frame = both.write_one(sequence);
    const std::vector<uint64_t> values = carried(frame, all, layout);
    ASSERT_EQ(frame, slow_frame(layout, testing::kTag, all, values, sequence, 0));
    ASSERT_LT(row_of(rows, values[2], values[3]), rows.size());
    const Bytes same = alone.write_one(sequence);
    ASSERT_EQ(values[0], value_in(same, source, layout));
    ASSERT_EQ(values[1], value_in(same, host, layout));
  }
}

}  // namespace
}  // namespace dutperf::vary
