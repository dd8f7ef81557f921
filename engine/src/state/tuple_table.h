// What a stateful trial learns: the four-tuple of each connection as it arrived, at the
// connection's own number. No hash and no search; after a trial it is known which connections are
// there.
//
// An entry is what stands in the packet from the source address to the destination port: 12 bytes
// in a row (IPv4 without options) or 36 (IPv6), followed by nothing. One that is all zero is empty.
//
//   phase 1   Learner writes entry k when frame k arrives
//   phase 2   Learner compares what arrives with what is there, and writes what has changed;
//             a sender reads entries in any order, at the same time
//
// Nobody ever sees a torn entry. The table has a sequence lock: a writer makes its count odd,
// writes, and makes it even again; a reader looks at the count before and after. It reads a burst
// at once, and entry by entry only where that shows a change. Because a writer compares first, a
// table that no longer changes is only read: its cache lines, and the lock's, stay shared between
// the cores. All words are atomic, so no access is a data race.
//
// Thread safety: any number of readers, and one writer.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "net/address.h"

namespace dutperf::state {

inline constexpr uint32_t kMaxBurst = 64;

// Entries of a burst in columns, a row for each entry. The numbers are what lies in memory: the
// packet's first byte is the lowest. Empty entries are zero.
struct Entries {
  // Leaves the columns as they are: clearing them would cost more than filling what is used.
  Entries() {}  // NOLINT(cppcoreguidelines-pro-type-member-init,modernize-use-equals-default)

  // IPv4: source and destination address in the first column. IPv6: source address in the first
  // two columns, destination address in the others.
  alignas(64) uint64_t addresses[4][kMaxBurst];
  alignas(64) uint64_t ports[kMaxBurst];  // source port, destination port; 4 bytes
};

// The lock has a cache line of its own.
class TupleTable {  // NOLINT(clang-analyzer-optin.performance.Padding)
 public:
  static constexpr uint32_t bytes_per_entry(int ip_version) { return ip_version == 4 ? 12 : 36; }
  static constexpr uint64_t bytes_for(int ip_version, uint64_t entries) {
    return entries * bytes_per_entry(ip_version);
  }

  // Where an entry's bytes begin in a frame of this version.
  static const uint8_t* tuple_of(const uint8_t* frame, int ip_version);

  // An empty table when `memory` is zero. REQUIRES: memory holds bytes_for(ip_version, entries) at
  // a multiple of 64, and outlives the table; entries >= 1.
  TupleTable(int ip_version, uint64_t entries, void* memory);
  TupleTable(const TupleTable&) = delete;
  TupleTable& operator=(const TupleTable&) = delete;

  int ip_version() const { return ip_version_; }
  uint64_t entries() const { return entries_; }

  // Starts to fetch entries that will be read, or learned, some hundred cycles later: where each
  // begins, and in a second call, best after other work, where it ends. Some entries go on in the
  // next cache line; by then their page has been looked up.
  void prefetch(const uint64_t* indices, uint32_t count) const noexcept;
  void prefetch_ends(const uint64_t* indices, uint32_t count) const noexcept;

  // out = the entries with these indices. REQUIRES: count <= kMaxBurst, indices below entries().
  void read(const uint64_t* indices, uint32_t count, Entries& out) const noexcept;

 private:
  friend class Learner;
  using Word = uint32_t;

  template <uint32_t kWords>
  Word* entry(uint64_t index) const {
    return words_ + index * kWords;
  }

  template <uint32_t kWords>
  void read_burst(const uint64_t* indices, uint32_t count, Entries& out) const noexcept;
  template <uint32_t kWords>
  void read_carefully(uint64_t index, Entries& out, uint32_t row) const noexcept;

  const int ip_version_;
  const uint64_t entries_;
  Word* const words_;
  alignas(64) std::atomic<uint64_t> lock_ = 0;
};

// Source addresses from `first` to `last`; both of the table's version.
struct ExpectedSources {
  net::IpAddress first;
  net::IpAddress last;
};

// Writes what arrives into a table, and counts. For one worker; others look when it has ended.
class Learner {
 public:
  struct Counts {
    uint64_t learned = 0;     // frames
    uint64_t filled = 0;      // entries that were empty before
    uint64_t changed = 0;     // entries that held another four-tuple
    uint64_t unexpected = 0;  // frames whose source address is none of the expected ones
    std::optional<net::IpAddress> unexpected_example;  // the first one
  };

  // `table` outlives the learner. Unexpected sources are counted and learned all the same.
  explicit Learner(TupleTable& table, const std::optional<ExpectedSources>& expected = {});

  const TupleTable& table() const { return table_; }

  // tuples[i], see tuple_of, goes to indices[i]. REQUIRES: count <= kMaxBurst, indices below
  // table().entries(), frames of the table's IP version.
  void learn(const uint8_t* const* tuples, const uint64_t* indices, uint32_t count) noexcept;

  const Counts& counts() const { return counts_; }

 private:
  template <uint32_t kWords>
  void learn_burst(const uint8_t* const* tuples, const uint64_t* indices, uint32_t count) noexcept;
  template <uint32_t kWords>
  void change(TupleTable::Word* words, const TupleTable::Word* tuple, uint64_t lock) noexcept;
  void check_sources(const uint8_t* const* tuples, uint32_t count) noexcept;

  TupleTable& table_;
  const bool checks_sources_;
  const ExpectedSources expected_;
  Counts counts_;
};

}  // namespace dutperf::state
