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
