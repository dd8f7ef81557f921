#include "net/classify.h"

namespace dutperf::net {

namespace detail {

Classified cut_short(const uint8_t* frame, size_t size, int version, size_t ip_bytes) {
  Classified result{FrameKind::kTruncated, static_cast<uint8_t>(version),
                    static_cast<uint32_t>(ip_bytes), nullptr};
  const size_t tag_at = sizeof(EthernetHeader) + ip_bytes - sizeof(WireTag);
  if (tag_at + kTagIdentityBytes > size) return result;
  const auto* tag = reinterpret_cast<const WireTag*>(frame + tag_at);
  if (tag->magic != kTagMagic) return {};
  result.tag = tag;
  return result;
}

}  // namespace detail

bool checksums_hold(const uint8_t* frame, const Classified& classified) {
  const uint8_t* ip = frame + sizeof(EthernetHeader);
  const int version = classified.ip_version;
  if (version == 4 && fold(sum_words(ip, sizeof(Ipv4Header))) != 0xffff) return false;
  const uint8_t* udp = ip + ip_header_bytes(version);
  const auto* header = reinterpret_cast<const UdpHeader*>(udp);
  const size_t datagram_bytes = classified.ip_bytes - ip_header_bytes(version);
  if (header->length != datagram_bytes) return false;
  if (header->checksum == 0) return version == 4;
  return fold(udp_sum(version, ip, udp, datagram_bytes)) == 0xffff;
}

Damage damage_of(const uint8_t* frame, const Classified& classified, size_t expected_ip_bytes) {
  if (classified.ip_bytes != expected_ip_bytes) return Damage::kLength;
  const int version = classified.ip_version;
  const size_t ip_header = ip_header_bytes(version);
  const auto* header =
      reinterpret_cast<const UdpHeader*>(frame + sizeof(EthernetHeader) + ip_header);
  if (header->length != classified.ip_bytes - ip_header) return Damage::kLength;
  if (version == 6 && header->checksum == 0) return Damage::kChecksumZero;
  return Damage::kChecksumWrong;
}

}  // namespace dutperf::net
