#include "net/receiving_end.h"

#include "net/byte_order.h"
#include "net/classify.h"
#include "net/headers.h"

namespace dutperf::net {
namespace {

constexpr uint32_t kWordBits = 64;

uint64_t load(const uint8_t* bytes) { return *reinterpret_cast<const Be64*>(bytes); }

// Bits, the last of which stands at the place, over one word or both.
void put(std::array<uint64_t, 2>& words, uint32_t end, uint64_t bits) {
  if (end <= kWordBits) {
    words[0] |= bits << (kWordBits - end);
    return;
  }
  words[1] |= bits << (2 * kWordBits - end);
  const uint32_t behind = end - kWordBits;
  if (behind < kWordBits) words[0] |= bits >> behind;
}

}  // namespace

ReceivingEnd::ReceivingEnd(const ReceivedEnd& end, uint32_t outer_bytes)
    : outer_(end.outer),
      is_ipv4_(end.address.version == 4),
      outer_bytes_(outer_bytes),
      follows_(end.follows),
      table_(end.table) {
  Words all{};
  for (const FollowingBits& each : follows_) {
    put(all, uint32_t{each.offset} + each.width, (1ULL << each.width) - 1);
  }
  const Words given = address_at(end.address.bytes.data());
  for (size_t i = 0; i < all.size(); ++i) fixed_[i] = given[i] & ~all[i];
}

ReceivingEnd::Words ReceivingEnd::address_at(const uint8_t* bytes) const noexcept {
  if (is_ipv4_) return {0, *reinterpret_cast<const Be32*>(bytes)};
  return {load(bytes), load(bytes + sizeof(uint64_t))};
}

uint64_t ReceivingEnd::which_hold(const uint8_t* const* frames, uint32_t count) const noexcept {
  if (table_ != nullptr) return which_are_bound(frames, count);
  uint64_t result = 0;
  for (uint32_t i = 0; i < count; ++i) result |= uint64_t{follows_in(frames[i])} << i;
  return result;
}

// All are fetched before the first is looked at: a table is larger than a cache.
uint64_t ReceivingEnd::which_are_bound(const uint8_t* const* frames,
                                       uint32_t count) const noexcept {
  constexpr uint32_t kMost = 64;
  std::array<uint32_t, kMost> addresses;
  std::array<uint16_t, kMost> ports;
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* const ip = frames[i] + sizeof(EthernetHeader);
    const uint32_t header_bytes = *ip % 16U * 4;
    addresses[i] = *reinterpret_cast<const Be32*>(ip + offsetof(Ipv4Header, dst));
    ports[i] = *reinterpret_cast<const Be16*>(ip + header_bytes + offsetof(UdpHeader, dst_port));
    table_->prefetch(addresses[i], ports[i]);
  }
  uint64_t result = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* const outer = frames[i] + sizeof(EthernetHeader) - outer_bytes_;
    const BindingTable::Address* const b4 = table_->find(addresses[i], ports[i]);
    const bool is_ipv4 = frames[i][sizeof(EthernetHeader)] >> 4 == 4;
    const bool is_right =
        is_ipv4 && b4 != nullptr && *b4 == address_at(outer + offsetof(Ipv6Header, dst));
    result |= uint64_t{is_right} << i;
  }
  return result;
}

bool ReceivingEnd::follows_in(const uint8_t* frame) const noexcept {
  const uint8_t* const ip = frame + sizeof(EthernetHeader);
  const Classified classified = classify_as(ether_type_of(ip), frame, SIZE_MAX);
  const uint8_t* const address =
      ip + (classified.ip_version == 4 ? offsetof(Ipv4Header, dst) : offsetof(Ipv6Header, dst));
  const uint8_t* const port = ip + classified.ip_headers + offsetof(UdpHeader, dst_port);
  // Behind both there are eight bytes more, in which to read bits that reach over some.
  Words expected = fixed_;
  for (const FollowingBits& each : follows_) {
    const uint8_t* const field = each.of_port ? port : address;
    const uint64_t word = load(field + each.of_offset / 8) << (each.of_offset % 8);
    put(expected, uint32_t{each.offset} + each.width, word >> (kWordBits - each.width));
  }
  const size_t in_outer = is_ipv4_ ? offsetof(Ipv4Header, dst) : offsetof(Ipv6Header, dst);
  return expected == address_at(outer_ ? ip - outer_bytes_ + in_outer : address);
}

}  // namespace dutperf::net
