#include "damage.h"

#include <cstddef>

#include "net/checksum.h"
#include "net/tcp.h"

namespace dutperf::refdut {
namespace {

constexpr size_t kStampBytes = sizeof(net::WireTag) - net::kTagIdentityBytes;

// Of UDP, or of TCP.
net::Be16& checksum_at(uint8_t* frame, const net::Classified& classified) {
  uint8_t* const header = frame + sizeof(net::EthernetHeader) + classified.ip_headers;
  return net::is_segment(frame, classified) ? reinterpret_cast<net::TcpHeader*>(header)->checksum
                                            : reinterpret_cast<net::UdpHeader*>(header)->checksum;
}

void flip_bit_of_payload(uint64_t draw, uint8_t* payload, size_t payload_bytes) {
  const size_t before_tag = payload_bytes - sizeof(net::WireTag);
  const size_t bit = draw % (8 * (before_tag + kStampBytes));
  const size_t byte = bit / 8 < before_tag ? bit / 8 : bit / 8 + net::kTagIdentityBytes;
  payload[byte] ^= static_cast<uint8_t>(1U << (bit % 8));
}

void spoil(net::Be16& checksum) {
  const uint16_t flipped = checksum ^ 1U;
  checksum = flipped != 0 ? flipped : static_cast<uint16_t>(checksum ^ 2U);
}

// Sets the highest bit of the number and makes the checksum fit.
void renumber(uint8_t* frame, const net::Classified& classified) {
  const size_t ip_header = size_t{classified.ip_headers};
  uint8_t* const ip = frame + sizeof(net::EthernetHeader);
  uint8_t* const udp = ip + ip_header;
  ip[classified.ip_bytes - sizeof(net::WireTag) + offsetof(net::WireTag, sequence_stamp_high)] ^=
      0x80;
  net::Be16& checksum = checksum_at(frame, classified);
  checksum = 0;
  const size_t bytes = classified.ip_bytes - ip_header;
  const int version = classified.ip_version;
  checksum = net::is_segment(frame, classified)
                 ? net::finish(net::tcp_sum(version, ip, udp, bytes))
                 : net::finish_udp(net::udp_sum(version, ip, udp, bytes));
}

}  // namespace

size_t inflict(Damage damage, uint64_t draw, uint8_t* frame, size_t size,
               const net::Classified& classified) {
  const size_t ip_header = size_t{classified.ip_headers};
  uint8_t* udp = frame + sizeof(net::EthernetHeader) + ip_header;
  auto* header = reinterpret_cast<net::UdpHeader*>(udp);
  const size_t payload = net::payload_offset(frame, classified);
  switch (damage) {
    case Damage::kPayload:
      flip_bit_of_payload(draw, frame + payload,
                          sizeof(net::EthernetHeader) + classified.ip_bytes - payload);
      return size;
    case Damage::kChecksum: spoil(checksum_at(frame, classified)); return size;
    case Damage::kChecksumZero: header->checksum = 0; return size;
    case Damage::kLength: header->length = static_cast<uint16_t>(header->length + 1); return size;
    case Damage::kNumber: renumber(frame, classified); return size;
    case Damage::kTruncation: return sizeof(net::EthernetHeader) + classified.ip_bytes - 1;
  }
  return size;
}

}  // namespace dutperf::refdut
