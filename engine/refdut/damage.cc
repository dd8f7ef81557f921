#include "damage.h"

#include <cstddef>

#include "net/checksum.h"

namespace dutperf::refdut {
namespace {

constexpr size_t kStampBytes = sizeof(net::WireTag) - net::kTagIdentityBytes;

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
void renumber(uint8_t* ip, const net::Classified& classified) {
  const size_t ip_header = size_t{classified.ip_headers};
  uint8_t* udp = ip + ip_header;
  ip[classified.ip_bytes - sizeof(net::WireTag) + offsetof(net::WireTag, sequence_stamp_high)] ^=
      0x80;
  auto* header = reinterpret_cast<net::UdpHeader*>(udp);
  header->checksum = 0;
  const size_t datagram_bytes = classified.ip_bytes - ip_header;
  header->checksum = net::finish_udp(net::udp_sum(classified.ip_version, ip, udp, datagram_bytes));
}

}  // namespace

size_t inflict(Damage damage, uint64_t draw, uint8_t* frame, size_t size,
               const net::Classified& classified) {
  uint8_t* ip = frame + sizeof(net::EthernetHeader);
  const size_t ip_header = size_t{classified.ip_headers};
  uint8_t* udp = ip + ip_header;
  auto* header = reinterpret_cast<net::UdpHeader*>(udp);
  switch (damage) {
    case Damage::kPayload:
      flip_bit_of_payload(draw, udp + sizeof(net::UdpHeader),
                          classified.ip_bytes - ip_header - sizeof(net::UdpHeader));
      return size;
    case Damage::kChecksum: spoil(header->checksum); return size;
    case Damage::kChecksumZero: header->checksum = 0; return size;
    case Damage::kLength: header->length = static_cast<uint16_t>(header->length + 1); return size;
    case Damage::kNumber: renumber(ip, classified); return size;
    case Damage::kTruncation: return sizeof(net::EthernetHeader) + classified.ip_bytes - 1;
  }
  return size;
}

}  // namespace dutperf::refdut
