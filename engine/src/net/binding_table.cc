#include "net/binding_table.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "net/byte_order.h"

namespace dutperf::net {
namespace {

constexpr uint32_t kPortBits = 16;
constexpr uint32_t kSystemPorts = 1024;

[[noreturn]] void refuse(size_t row, const std::string& what) {
  throw std::invalid_argument("row " + std::to_string(row) + " " + what);
}

}  // namespace

struct BindingTable::Row {
  Address b4;
  uint32_t ipv4;
  uint32_t psid;
  uint32_t length;
  uint32_t offset;

  // Of a port, behind its PSID.
  uint32_t behind() const { return kPortBits - offset - length; }
  uint32_t first_port() const { return psid << behind(); }
  uint16_t mask() const { return static_cast<uint16_t>(((1U << length) - 1) << behind()); }
};

BindingTable::BindingTable(const std::string& rows) : size_(rows.size() / kRowBytes) {
  if (rows.empty() || rows.size() % kRowBytes != 0 || size_ > kMaxRows) {
    throw std::invalid_argument("must be rows of " + std::to_string(kRowBytes) + " bytes, 1 to " +
                                std::to_string(kMaxRows));
  }
  std::vector<Row> all;
  for (size_t number = 0; number < size_; ++number) {
    const auto* const at = reinterpret_cast<const uint8_t*>(rows.data()) + number * kRowBytes;
    const Address b4{*reinterpret_cast<const Be64*>(at), *reinterpret_cast<const Be64*>(at + 8)};
    const Row row{b4, *reinterpret_cast<const Be32*>(at + 16),
                  *reinterpret_cast<const Be16*>(at + 20), at[22], at[23]};
    if (row.offset >= kPortBits || row.offset + row.length > kPortBits) {
      refuse(number, "has more bits before and in its PSID than a port");
    }
    if (row.psid >> row.length != 0) refuse(number, "has a PSID that is longer than it says");
    all.push_back(row);
  }
  psid_offset_ = all[0].offset;
  const size_t slots = std::bit_ceil(std::max<size_t>(2 * size_, 2));
  shift_ = 64 - static_cast<uint32_t>(std::countr_zero(slots));
  slots_.resize(slots);
  for (const Row& row : all) {
    const auto is_known = [&](const Kind& kind) { return kind.number == row.length; };
    if (std::none_of(kinds_.begin(), kinds_.end(), is_known)) {
      kinds_.push_back({row.length, row.mask()});
    }
  }
  // The shortest PSIDs first: of two sets in each other it is the larger one that is found.
  std::sort(kinds_.begin(), kinds_.end(),
            [](const Kind& one, const Kind& other) { return one.number < other.number; });
  std::vector<size_t> order(size_);
  for (size_t i = 0; i < size_; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t one, size_t other) { return all[one].length < all[other].length; });
  for (const size_t number : order) add(all[number], number);
  add_senders(all);
}

void BindingTable::add(const Row& row, size_t number) {
  if (row.offset != psid_offset_) refuse(number, "has another psid_offset than the first one");
  // Any port of the set, with the bits before the PSID not all 0.
  const uint32_t before = row.offset > 0 ? 1U << (kPortBits - row.offset) : 0;
  const auto port = static_cast<uint16_t>(before | row.first_port());
  if (find(row.ipv4, port) != nullptr) refuse(number, "has ports of its address that another has");
  const Kind own{row.length, row.mask()};
  const uint64_t key = key_of(own, row.ipv4, port);
  size_t slot = place_of(key);
  while (slots_[slot].key != kEmpty) slot = (slot + 1) & mask();
  slots_[slot] = {key, row.b4};
}

void BindingTable::add_senders(std::vector<Row>& rows) {
  std::sort(rows.begin(), rows.end(), [](const Row& one, const Row& other) {
    return std::pair(one.ipv4, one.first_port()) < std::pair(other.ipv4, other.first_port());
  });
  for (const Row& row : rows) {
    uint32_t first = row.first_port();
    const uint32_t last = first + (1U << row.behind()) - 1;
    if (row.offset == 0) first = std::max(first, kSystemPorts);
    if (first > last) continue;
    senders_.push_back(
        {row.b4, row.ipv4, 0, static_cast<uint16_t>(first), static_cast<uint16_t>(last - first)});
  }
  if (senders_.empty()) throw std::invalid_argument("no row has ports from 1024 on");
  // Backwards, twice round: each row knows which row behind it has another B4.
  const auto count = static_cast<uint32_t>(senders_.size());
  uint32_t other = 0;
  for (uint32_t i = 2 * count; i-- > 0;) {
    const uint32_t here = i % count;
    const uint32_t next = (here + 1) % count;
    if (senders_[next].b4 != senders_[here].b4) other = next;
    senders_[here].other = senders_[other].b4 != senders_[here].b4 ? other : here;
  }
}

}  // namespace dutperf::net
