#include "state/tuple_table.h"

#include <cstring>

#include "net/headers.h"

namespace dutperf::state {
namespace {

using Word = uint32_t;

constexpr uint32_t kIpv4Words = TupleTable::bytes_per_entry(4) / sizeof(Word);
constexpr uint32_t kIpv6Words = TupleTable::bytes_per_entry(6) / sizeof(Word);

// An entry is one piece of the packet.
static_assert(sizeof(net::Ipv4Header) - offsetof(net::Ipv4Header, src) + 4 ==
              TupleTable::bytes_per_entry(4));
static_assert(sizeof(net::Ipv6Header) - offsetof(net::Ipv6Header, src) + 4 ==
              TupleTable::bytes_per_entry(6));
static_assert(offsetof(net::UdpHeader, src_port) == 0 && offsetof(net::UdpHeader, dst_port) == 2);

// Words are read and written in the lock's order: whoever sees a new word sees the lock's count
// before it, and whoever sees the count behind the words sees all of them (Boehm 2012). On x86 this
// costs nothing.
Word load(Word* word) { return std::atomic_ref(*word).load(std::memory_order_acquire); }
void store(Word* word, Word value) {
  std::atomic_ref(*word).store(value, std::memory_order_release);
}

template <uint32_t kWords>
[[gnu::always_inline]] inline void copy(Word* words, Entries& out, uint32_t row) {
#pragma GCC unroll 4
  for (uint32_t k = 0; k + 1 < kWords; k += 2) {
    out.addresses[k / 2][row] = load(words + k) | uint64_t{load(words + k + 1)} << 32;
  }
  out.ports[row] = load(words + kWords - 1);
}

// Starts to fetch word `kWord` of each entry. (Inlined, because the compiler takes calls of what
// only fetches for useless. Few instructions an entry: a fetch leaves the CPU's window only when
// its page is looked up, and as many look-ups as fit into the window are under way together.)
template <uint32_t kWords, uint32_t kWord>
[[gnu::always_inline]] inline void fetch(const Word* words, const uint64_t* indices,
                                         uint32_t count) {
#pragma GCC unroll 8
  for (uint32_t i = 0; i < count; ++i) __builtin_prefetch(words + indices[i] * kWords + kWord);
}

// The version's number of words as a constant.
template <typename Function>
void for_version(int ip_version, Function&& function) {
  if (ip_version == 4) {
    function.template operator()<kIpv4Words>();
  } else {
    function.template operator()<kIpv6Words>();
  }
}

}  // namespace

const uint8_t* TupleTable::tuple_of(const uint8_t* frame, int ip_version) {
  return frame + sizeof(net::EthernetHeader) +
         (ip_version == 4 ? offsetof(net::Ipv4Header, src) : offsetof(net::Ipv6Header, src));
}

TupleTable::TupleTable(int ip_version, uint64_t entries, void* memory)
    : ip_version_(ip_version), entries_(entries), words_(static_cast<Word*>(memory)) {}

void TupleTable::prefetch(const uint64_t* indices, uint32_t count) const noexcept {
  if (ip_version_ == 4) {
    fetch<kIpv4Words, 0>(words_, indices, count);
  } else {
    fetch<kIpv6Words, 0>(words_, indices, count);
  }
}

void TupleTable::prefetch_ends(const uint64_t* indices, uint32_t count) const noexcept {
  if (ip_version_ == 4) {
    fetch<kIpv4Words, kIpv4Words - 1>(words_, indices, count);
  } else {
    fetch<kIpv6Words, kIpv6Words - 1>(words_, indices, count);
  }
}

void TupleTable::read(const uint64_t* indices, uint32_t count, Entries& out) const noexcept {
  for_version(ip_version_, [&]<uint32_t kWords>() { read_burst<kWords>(indices, count, out); });
}

template <uint32_t kWords>
void TupleTable::read_burst(const uint64_t* indices, uint32_t count, Entries& out) const noexcept {
  Word* const words = words_;
  const uint64_t before = lock_.load(std::memory_order_acquire);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < count; ++i) copy<kWords>(words + indices[i] * kWords, out, i);
  const uint64_t after = lock_.load(std::memory_order_relaxed);
  if (before % 2 == 0 && before == after) [[likely]]
    return;
  for (uint32_t i = 0; i < count; ++i) read_carefully<kWords>(indices[i], out, i);
}

// Waits while the writer is at it: a dozen cycles.
template <uint32_t kWords>
void TupleTable::read_carefully(uint64_t index, Entries& out, uint32_t row) const noexcept {
  while (true) {
    const uint64_t before = lock_.load(std::memory_order_acquire);
    if (before % 2 != 0) continue;
    copy<kWords>(entry<kWords>(index), out, row);
    if (lock_.load(std::memory_order_relaxed) == before) return;
  }
}

// --- Learner

Learner::Learner(TupleTable& table, const std::optional<ExpectedSources>& expected)
    : table_(table),
      checks_sources_(expected.has_value()),
      expected_(expected.value_or(ExpectedSources{})) {}

void Learner::learn(const uint8_t* const* tuples, const uint64_t* indices,
                    uint32_t count) noexcept {
  counts_.learned += count;
  if (checks_sources_) check_sources(tuples, count);
  for_version(table_.ip_version(),
              [&]<uint32_t kWords>() { learn_burst<kWords>(tuples, indices, count); });
}

template <uint32_t kWords>
[[gnu::always_inline]] inline void Learner::change(Word* words, const Word* tuple,
                                                   uint64_t lock) noexcept {
  table_.lock_.store(lock + 1, std::memory_order_relaxed);
#pragma GCC unroll 9
  for (uint32_t k = 0; k < kWords; ++k) store(words + k, tuple[k]);
  table_.lock_.store(lock + 2, std::memory_order_release);
}

template <uint32_t kWords>
void Learner::learn_burst(const uint8_t* const* tuples, const uint64_t* indices,
                          uint32_t count) noexcept {
  // Nobody else counts it up: loaded once, so that no entry waits for the one before.
  const uint64_t lock = table_.lock_.load(std::memory_order_relaxed);
  uint64_t written = 0;
  uint64_t filled = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Word tuple[kWords];
    std::memcpy(tuple, tuples[i], sizeof(tuple));
    Word* const words = table_.entry<kWords>(indices[i]);
    Word difference = 0;
    Word old = 0;
#pragma GCC unroll 9
    for (uint32_t k = 0; k < kWords; ++k) {
      const Word word = std::atomic_ref(words[k]).load(std::memory_order_relaxed);
      difference |= word ^ tuple[k];
      old |= word;
    }
    if (difference == 0) continue;
    filled += old == 0 ? 1 : 0;
    change<kWords>(words, tuple, lock + 2 * written++);
  }
  counts_.filled += filled;
  counts_.changed += written - filled;
}

void Learner::check_sources(const uint8_t* const* tuples, uint32_t count) noexcept {
  const size_t size = expected_.first.size();
  for (uint32_t i = 0; i < count; ++i) {
    if (std::memcmp(tuples[i], expected_.first.bytes.data(), size) >= 0 &&
        std::memcmp(tuples[i], expected_.last.bytes.data(), size) <= 0) {
      continue;
    }
    if (counts_.unexpected++ == 0) {
      counts_.unexpected_example = net::IpAddress::from_bytes(table_.ip_version(), tuples[i]);
    }
  }
}

}  // namespace dutperf::state
