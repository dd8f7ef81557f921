#include "state/tuple_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "net/testing/reference_frame.h"
#include "state/table_memory.h"

namespace dutperf::state {
namespace {

using Bytes = std::vector<uint8_t>;

// The slow twin: four-tuples by index.
using SlowTable = std::map<uint64_t, Bytes>;

Bytes bytes_of(uint64_t number, size_t size) {
  Bytes bytes;
  for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<uint8_t>(number >> (8 * i)));
  return bytes;
}

// A table in memory of its own, and bursts for it.
class Table {
 public:
  Table(int ip_version, uint64_t entries, std::optional<ExpectedSources> expected = {})
      : memory_(TupleTable::bytes_for(ip_version, entries)),
        table_(ip_version, entries, memory_.data()),
        learner_(table_, expected) {}

  void learn(const std::vector<uint64_t>& indices, const std::vector<Bytes>& tuples) {
    std::vector<const uint8_t*> pointers;
    for (const Bytes& tuple : tuples) pointers.push_back(tuple.data());
    learner_.learn(pointers.data(), indices.data(), static_cast<uint32_t>(indices.size()));
  }

  // What stands in the packet, or nothing but zeros.
  std::vector<Bytes> read(const std::vector<uint64_t>& indices) const {
    Entries entries;
    table_.prefetch(indices.data(), static_cast<uint32_t>(indices.size()));
    table_.prefetch_ends(indices.data(), static_cast<uint32_t>(indices.size()));
    table_.read(indices.data(), static_cast<uint32_t>(indices.size()), entries);
    std::vector<Bytes> result;
    for (size_t i = 0; i < indices.size(); ++i) {
      Bytes tuple;
      const auto append = [&](uint64_t number, size_t size) {
        const Bytes bytes = bytes_of(number, size);
        tuple.insert(tuple.end(), bytes.begin(), bytes.end());
      };
      for (size_t column = 0; column < (table_.ip_version() == 4 ? 1 : 4); ++column) {
        append(entries.addresses[column][i], 8);
      }
      append(entries.ports[i], 4);
      result.push_back(tuple);
    }
    return result;
  }

  TupleTable& operator*() { return table_; }
  const Learner::Counts& counts() const { return learner_.counts(); }

 private:
  TableMemory memory_;
  TupleTable table_;
  Learner learner_;
};

class EachVersion : public ::testing::TestWithParam<int> {
 protected:
  size_t tuple_bytes() const { return TupleTable::bytes_per_entry(GetParam()); }

  Bytes tuple() {
    Bytes bytes(tuple_bytes());
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
    return bytes;
  }

  std::mt19937_64 random_{9693};
};
INSTANTIATE_TEST_SUITE_P(TupleTable, EachVersion, ::testing::Values(4, 6));

TEST(TupleTable, Takes12BytesOrIPv6sThreefold) {
  EXPECT_EQ(TupleTable::bytes_per_entry(4), 12U);
  EXPECT_EQ(TupleTable::bytes_per_entry(6), 36U);
  EXPECT_EQ(TupleTable::bytes_for(4, 400'000'000), 4'800'000'000U);
}

TEST_P(EachVersion, IsEmptyAtFirst) {
  Table table(GetParam(), 100);
  EXPECT_EQ(table.read({0, 99, 50}), std::vector<Bytes>(3, Bytes(tuple_bytes())));
  EXPECT_EQ((*table).entries(), 100U);
  EXPECT_EQ((*table).ip_version(), GetParam());
}

TEST_P(EachVersion, HoldsWhatItsSlowTwinHolds) {
  constexpr uint64_t kEntries = 5000;  // several times around the locks
  Table table(GetParam(), kEntries);
  SlowTable slow;
  uint64_t learned = 0;
  uint64_t filled = 0;
  uint64_t changed = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint64_t> indices(random_() % (kMaxBurst + 1));
    std::vector<Bytes> tuples;
    for (uint64_t& index : indices) {
      index = random_() % 8 == 0 ? kEntries - 1 : random_() % kEntries;
      const auto known = slow.find(index);
      // Some connections are refreshed, some have changed in one byte, some altogether.
      Bytes arrived = known == slow.end() || random_() % 3 == 0 ? tuple() : known->second;
      if (random_() % 3 == 0) arrived[random_() % arrived.size()] ^= 1;
      filled += known == slow.end() ? 1 : 0;
      changed += known != slow.end() && known->second != arrived ? 1 : 0;
      slow[index] = arrived;
      tuples.push_back(arrived);
    }
    learned += indices.size();
    table.learn(indices, tuples);

    std::vector<uint64_t> asked(random_() % (kMaxBurst + 1));
    std::vector<Bytes> expected;
    for (uint64_t& index : asked) {
      index = random_() % kEntries;
      expected.push_back(slow.contains(index) ? slow[index] : Bytes(tuple_bytes()));
    }
    ASSERT_EQ(table.read(asked), expected);
  }
  EXPECT_EQ(table.counts().learned, learned);
  EXPECT_EQ(table.counts().filled, filled);
  EXPECT_EQ(table.counts().filled, slow.size());
  EXPECT_EQ(table.counts().changed, changed);
  EXPECT_EQ(table.counts().unexpected, 0U);
}

TEST_P(EachVersion, TakesTheTupleOutOfAFrame) {
  const net::FrameLayout layout = net::testing::sample_layout(GetParam(), 100);
  const Bytes frame =
      net::testing::reference_frame(layout, net::testing::tagged_payload(layout, {1, 0, 0}, 0, 0));
  Bytes expected;
  const auto size = static_cast<std::ptrdiff_t>(layout.src_ip.size());
  for (const net::IpAddress* address : {&layout.src_ip, &layout.dst_ip}) {
    expected.insert(expected.end(), address->bytes.begin(), address->bytes.begin() + size);
  }
  for (const uint16_t port : {layout.src_port, layout.dst_port}) {
    expected.push_back(static_cast<uint8_t>(port >> 8));
    expected.push_back(static_cast<uint8_t>(port));
  }
  const uint8_t* const tuple = TupleTable::tuple_of(frame.data(), GetParam());
  EXPECT_EQ(Bytes(tuple, tuple + tuple_bytes()), expected);
}

TEST_P(EachVersion, KeepsToItsMemory) {
  constexpr uint64_t kEntries = 33;
  const uint64_t bytes = TupleTable::bytes_for(GetParam(), kEntries);
  alignas(64) std::array<uint8_t, 36 * kEntries + 64> memory{};
  TupleTable table(GetParam(), kEntries, memory.data());
  Learner learner(table);
  const Bytes last(tuple_bytes(), 0xff);
  const uint8_t* const pointer = last.data();
  const uint64_t index = kEntries - 1;
  learner.learn(&pointer, &index, 1);
  EXPECT_TRUE(std::all_of(memory.begin(), memory.begin() + bytes - tuple_bytes(),
                          [](uint8_t byte) { return byte == 0; }));
  EXPECT_TRUE(std::all_of(memory.begin() + bytes - tuple_bytes(), memory.begin() + bytes,
                          [](uint8_t byte) { return byte == 0xff; }));
  EXPECT_TRUE(
      std::all_of(memory.begin() + bytes, memory.end(), [](uint8_t byte) { return byte == 0; }));
}

// A tuple from this source.
Bytes from(const char* source, size_t bytes) {
  Bytes tuple(bytes, 1);
  const net::IpAddress address = *net::IpAddress::parse(source);
  std::copy_n(address.bytes.begin(), address.size(), tuple.begin());
  return tuple;
}

TEST(Learner, CountsSourcesBesideTheExpectedRangeAndLearnsThemAllTheSame) {
  const ExpectedSources range{*net::IpAddress::parse("198.19.0.1"),
                              *net::IpAddress::parse("198.19.1.0")};
  Table table(4, 10, range);
  const std::vector<Bytes> tuples = {
      from("198.19.0.1", 12), from("198.19.1.0", 12), from("198.19.0.77", 12),
      from("198.19.0.0", 12), from("198.19.1.1", 12), from("10.0.0.1", 12),
  };
  table.learn({0, 1, 2, 3, 4, 5}, tuples);
  EXPECT_EQ(table.counts().unexpected, 3U);
  EXPECT_EQ(table.counts().unexpected_example->text(), "198.19.0.0");
  EXPECT_EQ(table.counts().filled, 6U);
  EXPECT_EQ(table.read({0, 1, 2, 3, 4, 5}), tuples);
}

TEST(Learner, ComparesWholeIpv6Addresses) {
  const ExpectedSources range{*net::IpAddress::parse("2001:2::ff"),
                              *net::IpAddress::parse("2001:2::1:0")};
  Table table(6, 10, range);
  table.learn({0, 1, 2, 3}, {from("2001:2::ff", 36), from("2001:2::fe", 36),
                             from("2001:2::1:1", 36), from("2001:2::1:0", 36)});
  EXPECT_EQ(table.counts().unexpected, 2U);
  EXPECT_EQ(table.counts().unexpected_example->text(), "2001:2::fe");
}

// --- memory

TEST(TableMemory, IsZeroAndBeginsAtAPage) {
  for (const Pages pages : {Pages::kHugeIfAny, Pages::kSmall}) {
    const TableMemory memory(5'000'000, pages);
    EXPECT_GE(memory.bytes(), 5'000'000U);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 4096, 0U);
    EXPECT_GT(memory.allocation_ns(), 0U);
    const auto* bytes = static_cast<const uint8_t*>(memory.data());
    EXPECT_TRUE(std::all_of(bytes, bytes + memory.bytes(), [](uint8_t b) { return b == 0; }));
  }
  EXPECT_FALSE(TableMemory(1, Pages::kSmall).hugepages());
}

TEST(TableMemory, IsRefusedWhenThereIsLess) {
  const uint64_t more = TableMemory::available_bytes() + (uint64_t{64} << 30);
  EXPECT_THROW(TableMemory{more}, std::bad_alloc);
}

}  // namespace
}  // namespace dutperf::state
