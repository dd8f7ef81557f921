#include "net/reassembly.h"

#include <algorithm>
#include <cstring>

#include "net/checksum.h"

namespace dutperf::net {
namespace {

constexpr size_t kMostIpHeader = 60;
constexpr size_t kPayloadAt = sizeof(EthernetHeader) + kMostIpHeader;
constexpr uint16_t kMoreFragments = 0x2000;
constexpr uint16_t kOffset = 0x1fff;

}  // namespace

Reassembly::Reassembly(size_t most_ip_bytes)
    : most_payload_bytes_(most_ip_bytes),
      words_((most_payload_bytes_ / kBlock + 64) / 64),
      bits_(kPlaces * words_),
      frames_((kPlaces + kKept) * (kPayloadAt + most_payload_bytes_)),
      places_(kPlaces) {
  const auto frame_at = [&](size_t i) {
    return frames_.data() + i * (kPayloadAt + most_payload_bytes_);
  };
  for (size_t i = 0; i < kPlaces; ++i) {
    places_[i].there = bits_.data() + i * words_;
    places_[i].frame = frame_at(i);
  }
  for (size_t i = 0; i < kKept; ++i) kept_[i] = frame_at(kPlaces + i);
}

std::span<const uint8_t> Reassembly::add(const uint8_t* frame, size_t size) noexcept {
  if (size < sizeof(EthernetHeader) + sizeof(Ipv4Header)) return {};
  const uint8_t* const ip = frame + sizeof(EthernetHeader);
  const auto* header = reinterpret_cast<const Ipv4Header*>(ip);
  const size_t header_bytes = size_t{4} * (header->version_ihl & 0xf);
  const size_t ip_bytes = header->total_length;
  if (header->version_ihl >> 4 != 4 || header_bytes < sizeof(Ipv4Header)) return {};
  if (ip_bytes <= header_bytes || sizeof(EthernetHeader) + ip_bytes > size) return {};
  if (!native::holds(native::sum(ip, header_bytes))) return {};
  const size_t bytes = ip_bytes - header_bytes;
  const size_t offset = kBlock * (header->flags_fragment & kOffset);
  const bool last = (header->flags_fragment & kMoreFragments) == 0;
  if (offset + bytes > most_payload_bytes_ || (!last && bytes % kBlock != 0)) return {};

  Key key{{}, header->id, header->protocol};
  std::memcpy(key.addresses.data(), header->src, key.addresses.size());
  Packet& packet = places_[key.id % kPlaces];
  if (!packet.open || packet.key != key) {
    ++begun_;
    packet.key = key;
    packet.open = true;
    packet.header_bytes = packet.payload_bytes = packet.blocks = 0;
    std::fill_n(packet.there, words_, 0);
  }
  if (!take(packet, offset / kBlock, (bytes + kBlock - 1) / kBlock)) return {};
  std::memcpy(packet.frame + kPayloadAt + offset, ip + header_bytes, bytes);
  if (offset == 0) {
    packet.header_bytes = static_cast<uint32_t>(header_bytes);
    std::memcpy(packet.frame + kPayloadAt - header_bytes, ip, header_bytes);
  }
  if (last) packet.payload_bytes = static_cast<uint32_t>(offset + bytes);
  return is_whole(packet) ? finish(packet) : std::span<const uint8_t>{};
}

// False if all or some of the blocks are there already.
bool Reassembly::take(Packet& packet, size_t first_block, size_t blocks) noexcept {
  for (size_t block = first_block; block < first_block + blocks; ++block) {
    if (packet.has(block)) return false;
  }
  for (size_t block = first_block; block < first_block + blocks; ++block) {
    packet.there[block / 64] |= uint64_t{1} << (block % 64);
  }
  packet.blocks += static_cast<uint32_t>(blocks);
  return true;
}

// What lies behind the last piece is no part of any packet: with it none is whole.
bool Reassembly::is_whole(const Packet& packet) noexcept {
  const size_t needed = (packet.payload_bytes + kBlock - 1) / kBlock;
  if (packet.payload_bytes == 0 || packet.header_bytes == 0 || packet.blocks != needed)
    return false;
  for (size_t block = 0; block < needed; ++block) {
    if (!packet.has(block)) return false;
  }
  return true;
}

std::span<const uint8_t> Reassembly::finish(Packet& packet) noexcept {
  ++whole_;
  packet.open = false;
  std::swap(packet.frame, kept_[next_kept_]);
  uint8_t* const whole = kept_[next_kept_];
  next_kept_ = (next_kept_ + 1) % kKept;
  uint8_t* const ip = whole + kPayloadAt - packet.header_bytes;
  auto* header = reinterpret_cast<Ipv4Header*>(ip);
  header->total_length = static_cast<uint16_t>(packet.header_bytes + packet.payload_bytes);
  header->flags_fragment = 0;
  header->checksum = 0;
  header->checksum = net::finish(sum_words(ip, packet.header_bytes));
  uint8_t* const frame = ip - sizeof(EthernetHeader);
  auto* ethernet = reinterpret_cast<EthernetHeader*>(frame);
  *ethernet = {};
  ethernet->ether_type = kEtherTypeIpv4;
  return {frame, sizeof(EthernetHeader) + packet.header_bytes + packet.payload_bytes};
}

}  // namespace dutperf::net
