#include "net/reassembly.h"

#include <algorithm>
#include <cstring>

#include "net/checksum.h"
#include "net/extra_headers.h"

namespace dutperf::net {
namespace {

constexpr size_t kPayloadAt = sizeof(EthernetHeader) + Reassembly::kMostHeaderBytes;
constexpr uint16_t kMoreFragments = 0x2000;
constexpr uint16_t kOffset = 0x1fff;

}  // namespace

Reassembly::Reassembly(size_t most_ip_bytes)
    : most_payload_bytes_(most_ip_bytes),
      words_((most_payload_bytes_ / kBlock + 64) / 64),
      bits_(kPlaces * 2 * words_),
      frames_((kPlaces + kKept) * (kPayloadAt + most_payload_bytes_)),
      places_(kPlaces) {
  const auto frame_at = [&](size_t i) {
    return frames_.data() + i * (kPayloadAt + most_payload_bytes_);
  };
  for (size_t i = 0; i < kPlaces; ++i) {
    places_[i].there = bits_.data() + i * 2 * words_;
    places_[i].begin = places_[i].there + words_;
    places_[i].frame = frame_at(i);
  }
  for (size_t i = 0; i < kKept; ++i) kept_[i] = frame_at(kPlaces + i);
}

std::span<const uint8_t> Reassembly::add(const uint8_t* frame, size_t size) noexcept {
  if (size < sizeof(EthernetHeader) + sizeof(Ipv4Header)) return {};
  const uint8_t* const ip = frame + sizeof(EthernetHeader);
  const bool is_ipv4 = *ip >> 4 == 4;
  Piece piece;
  if (!(is_ipv4 ? read_ipv4 : read_ipv6)(ip, size - sizeof(EthernetHeader), piece)) return {};
  if (piece.end() > most_payload_bytes_ || (!piece.last && piece.bytes % kBlock != 0)) return {};
  Packet& packet = packet_of(piece.key);
  if (packet.spoiled) return {};
  if (contradicts(packet, piece)) {
    packet.spoiled = !is_ipv4 && !is_copy(packet, piece);
    return {};
  }
  take(packet, piece, ip);
  return is_whole(packet) ? finish(packet) : std::span<const uint8_t>{};
}

bool Reassembly::read_ipv4(const uint8_t* ip, size_t size, Piece& piece) noexcept {
  const auto* header = reinterpret_cast<const Ipv4Header*>(ip);
  const size_t header_bytes = size_t{4} * (header->version_ihl & 0xf);
  const size_t ip_bytes = header->total_length;
  if (header_bytes < sizeof(Ipv4Header) || ip_bytes <= header_bytes || ip_bytes > size) {
    return false;
  }
  if (!native::holds(native::sum(ip, header_bytes))) return false;
  piece.key.id = header->id;
  piece.key.version = 4;
  piece.key.protocol = header->protocol;
  std::memcpy(piece.key.addresses.data(), header->src, 2 * sizeof(header->src));
  piece.header_bytes = header_bytes;
  piece.payload = ip + header_bytes;
  piece.bytes = ip_bytes - header_bytes;
  piece.offset = kBlock * (header->flags_fragment & kOffset);
  piece.last = (header->flags_fragment & kMoreFragments) == 0;
  return true;
}

// The headers before that of the piece are those of the packet; one that is all of its packet is
// passed over.
bool Reassembly::read_ipv6(const uint8_t* ip, size_t size, Piece& piece) noexcept {
  if (size < sizeof(Ipv6Header)) return false;
  const auto* header = reinterpret_cast<const Ipv6Header*>(ip);
  const size_t ip_bytes = sizeof(Ipv6Header) + header->payload_length;
  if (*ip >> 4 != 6 || ip_bytes > size) return false;
  const Ipv6FragmentHeader* own = nullptr;
  size_t said_at = offsetof(Ipv6Header, next_header);
  size_t at = sizeof(Ipv6Header);
  while (own == nullptr) {
    const uint8_t protocol = ip[said_at];
    if (!is_ipv6_extension(protocol) || at > kMostHeaderBytes) return false;
    if (at + sizeof(Ipv6FragmentHeader) >= ip_bytes) return false;
    const auto* found = reinterpret_cast<const Ipv6FragmentHeader*>(ip + at);
    if (protocol == kIpv6FragmentHeader && (found->offset_more & kIpv6FragmentOffsetOrMore) != 0) {
      own = found;
    } else {
      said_at = at;
      at += ipv6_extension_bytes(protocol, ip[at + 1]);
    }
  }
  piece.key.id = own->id;
  piece.key.version = 6;
  std::memcpy(piece.key.addresses.data(), header->src, 2 * sizeof(header->src));
  piece.header_bytes = at;
  piece.payload = ip + at + sizeof(*own);
  piece.bytes = ip_bytes - at - sizeof(*own);
  piece.offset = own->offset_more & kIpv6FragmentOffset;
  piece.last = (own->offset_more & kIpv6MoreFragments) == 0;
  piece.next_header_at = said_at;
  piece.next_header = own->next_header;
  return true;
}

Reassembly::Packet& Reassembly::packet_of(const Key& key) noexcept {
  Packet& packet = places_[key.id % kPlaces];
  if (packet.open && packet.key == key) return packet;
  ++begun_;
  packet.key = key;
  packet.open = true;
  packet.spoiled = false;
  packet.header_bytes = packet.payload_bytes = packet.end_bytes = packet.blocks = 0;
  std::fill_n(packet.there, 2 * words_, 0);
  return packet;
}

// Some of it is there already, or it lies behind the packet's end, or that before what is there.
bool Reassembly::contradicts(const Packet& packet, const Piece& piece) noexcept {
  if (packet.payload_bytes > 0 && piece.end() > packet.payload_bytes) return true;
  if (piece.last && packet.end_bytes > piece.end()) return true;
  for (size_t block = piece.first_block(); block < piece.end_block(); ++block) {
    if (packet.has(block)) return true;
  }
  return false;
}

// The same piece has come before.
bool Reassembly::is_copy(const Packet& packet, const Piece& piece) noexcept {
  if (!packet.begins(piece.first_block())) return false;
  if (piece.last != (packet.payload_bytes == piece.end())) return false;
  for (size_t block = piece.first_block(); block < piece.end_block(); ++block) {
    if (!packet.has(block)) return false;
    if (block > piece.first_block() && packet.begins(block)) return false;
  }
  const bool goes_on = piece.end() < packet.end_bytes && packet.has(piece.end_block());
  if (goes_on && !packet.begins(piece.end_block())) return false;
  return std::memcmp(packet.frame + kPayloadAt + piece.offset, piece.payload, piece.bytes) == 0;
}

void Reassembly::take(Packet& packet, const Piece& piece, const uint8_t* ip) noexcept {
  const auto set = [](uint64_t* bits, size_t i) { bits[i / 64] |= uint64_t{1} << (i % 64); };
  set(packet.begin, piece.first_block());
  for (size_t block = piece.first_block(); block < piece.end_block(); ++block) {
    set(packet.there, block);
  }
  packet.blocks += static_cast<uint32_t>(piece.end_block() - piece.first_block());
  packet.end_bytes = std::max(packet.end_bytes, static_cast<uint32_t>(piece.end()));
  std::memcpy(packet.frame + kPayloadAt + piece.offset, piece.payload, piece.bytes);
  if (piece.last) packet.payload_bytes = static_cast<uint32_t>(piece.end());
  if (piece.offset > 0) return;
  packet.header_bytes = static_cast<uint32_t>(piece.header_bytes);
  uint8_t* const headers = packet.frame + kPayloadAt - piece.header_bytes;
  std::memcpy(headers, ip, piece.header_bytes);
  if (piece.key.version == 6) headers[piece.next_header_at] = piece.next_header;
}

bool Reassembly::is_whole(const Packet& packet) noexcept {
  if (packet.payload_bytes == 0 || packet.header_bytes == 0) return false;
  return packet.blocks == (packet.payload_bytes + kBlock - 1) / kBlock;
}

std::span<const uint8_t> Reassembly::finish(Packet& packet) noexcept {
  ++whole_;
  packet.open = false;
  std::swap(packet.frame, kept_[next_kept_]);
  uint8_t* const whole = kept_[next_kept_];
  next_kept_ = (next_kept_ + 1) % kKept;
  uint8_t* const ip = whole + kPayloadAt - packet.header_bytes;
  const size_t ip_bytes = packet.header_bytes + packet.payload_bytes;
  uint8_t* const frame = ip - sizeof(EthernetHeader);
  auto* ethernet = reinterpret_cast<EthernetHeader*>(frame);
  *ethernet = {};
  if (packet.key.version == 4) {
    ethernet->ether_type = kEtherTypeIpv4;
    auto* header = reinterpret_cast<Ipv4Header*>(ip);
    header->total_length = static_cast<uint16_t>(ip_bytes);
    header->flags_fragment = 0;
    header->checksum = 0;
    header->checksum = net::finish(sum_words(ip, packet.header_bytes));
  } else {
    ethernet->ether_type = kEtherTypeIpv6;
    auto* header = reinterpret_cast<Ipv6Header*>(ip);
    header->payload_length = static_cast<uint16_t>(ip_bytes - sizeof(Ipv6Header));
  }
  return {frame, sizeof(EthernetHeader) + ip_bytes};
}

}  // namespace dutperf::net
