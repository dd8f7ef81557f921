#include "fragmentation.h"

#include <algorithm>
#include <cstring>

#include "net/checksum.h"
#include "net/headers.h"
#include "net/vlan.h"

namespace dutperf::refdut {
namespace {

constexpr uint32_t kUnitBytes = 8;  // of a piece's offset
constexpr uint16_t kMoreFragments = 0x2000;
constexpr uint16_t kOffset = 0x1fff;

constexpr uint32_t up(uint32_t dividend, uint32_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

}  // namespace

Cut::Cut(const uint8_t* frame, size_t size, uint32_t mtu, std::optional<uint16_t> id)
    : frame_(frame), size_(size) {
  size_t type_offset = offsetof(net::EthernetHeader, ether_type);
  net::Be16 type = 0;
  for (size_t tags = 0; tags <= net::VlanTags::kMax; ++tags) {
    if (size < type_offset + sizeof(type)) return;
    std::memcpy(&type, frame + type_offset, sizeof(type));
    if (!net::is_vlan_type(type)) break;
    type_offset += sizeof(net::VlanHeader);
  }
  ip_offset_ = static_cast<uint32_t>(type_offset + sizeof(type));
  if (type == net::kEtherTypeIpv4 && size >= ip_offset_ + sizeof(net::Ipv4Header)) {
    look_at_ipv4(mtu);
  } else if (type == net::kEtherTypeIpv6 && size >= ip_offset_ + sizeof(net::Ipv6Header)) {
    look_at_ipv6(mtu, id);
  }
}

void Cut::look_at_ipv4(uint32_t mtu) {
  const auto* ip = reinterpret_cast<const net::Ipv4Header*>(frame_ + ip_offset_);
  header_bytes_ = (ip->version_ihl & 0x0fU) * 4;
  const bool sound = header_bytes_ >= sizeof(net::Ipv4Header) && header_bytes_ < ip->total_length &&
                     ip_offset_ + header_bytes_ < size_;
  if (!sound || ip->total_length <= mtu) return;
  if ((ip->flags_fragment & net::kDontFragment) != 0) {
    passage_ = Passage::kNone;
    return;
  }
  divide(ip->total_length, mtu, 0);
}

void Cut::look_at_ipv6(uint32_t mtu, std::optional<uint16_t> id) {
  const auto* ip = reinterpret_cast<const net::Ipv6Header*>(frame_ + ip_offset_);
  header_bytes_ = sizeof(net::Ipv6Header);
  const uint32_t ip_bytes = header_bytes_ + ip->payload_length;
  if (ip_bytes <= mtu) return;
  if (!id) {
    passage_ = Passage::kNone;
    return;
  }
  if (ip_offset_ + header_bytes_ >= size_) return;
  version_ = 6;
  id_ = *id;
  divide(ip_bytes, mtu, sizeof(net::Ipv6FragmentHeader));
}

// Into pieces that have so many bytes more than the packet's header.
void Cut::divide(uint32_t ip_bytes, uint32_t mtu, uint32_t more_bytes) {
  passage_ = Passage::kInPieces;
  payload_bytes_ = ip_bytes - header_bytes_;
  carried_bytes_ =
      std::min(payload_bytes_, static_cast<uint32_t>(size_) - ip_offset_ - header_bytes_);
  room_bytes_ = mtu - header_bytes_ - more_bytes;
  step_bytes_ = room_bytes_ / kUnitBytes * kUnitBytes;
  pieces_ =
      std::min(1 + up(payload_bytes_ - room_bytes_, step_bytes_), up(carried_bytes_, step_bytes_));
}

size_t Cut::write(uint32_t piece, uint8_t* out) const {
  const uint32_t offset = piece * step_bytes_;
  const bool last = payload_bytes_ - offset <= room_bytes_;
  const uint32_t bytes = last ? payload_bytes_ - offset : step_bytes_;
  const uint32_t carried = std::min(bytes, carried_bytes_ - offset);
  const uint32_t headers_bytes = ip_offset_ + header_bytes_;
  // All IP options go into each piece, whatever their copied flag says (RFC 791 3.1): no receiver
  // minds those of later pieces.
  std::memcpy(out, frame_, headers_bytes);
  const uint8_t* const payload = frame_ + headers_bytes + offset;
  if (version_ == 6) {
    auto* header = reinterpret_cast<net::Ipv6Header*>(out + ip_offset_);
    auto* own = reinterpret_cast<net::Ipv6FragmentHeader*>(out + headers_bytes);
    *own = {};
    own->next_header = header->next_header;
    own->offset_more =
        static_cast<uint16_t>(offset | (last ? uint16_t{0} : net::kIpv6MoreFragments));
    own->id = id_;
    header->next_header = net::kIpv6FragmentHeader;
    header->payload_length = static_cast<uint16_t>(sizeof(*own) + bytes);
    std::memcpy(out + headers_bytes + sizeof(*own), payload, carried);
    return headers_bytes + sizeof(*own) + carried;
  }
  std::memcpy(out + headers_bytes, payload, carried);
  auto* ip = reinterpret_cast<net::Ipv4Header*>(out + ip_offset_);
  // The packet may be a piece itself: its offset goes on, and its last piece has more behind it.
  const uint16_t flags_fragment = ip->flags_fragment;
  const auto at = static_cast<uint16_t>((flags_fragment + offset / kUnitBytes) & kOffset);
  const uint16_t more = last ? uint16_t{0} : kMoreFragments;
  ip->flags_fragment = static_cast<uint16_t>((flags_fragment & ~kOffset) | more | at);
  ip->total_length = static_cast<uint16_t>(header_bytes_ + bytes);
  ip->checksum = 0;
  ip->checksum = net::finish(net::sum_words(out + ip_offset_, header_bytes_));
  return headers_bytes + carried;
}

}  // namespace dutperf::refdut
