#include "net/classify.h"

#include <optional>

#include "net/tcp.h"

namespace dutperf::net {

namespace {

uint32_t word_at(const uint8_t* bytes) { return static_cast<uint32_t>(bytes[0] << 8 | bytes[1]); }

// Of a message that begins `headers` bytes behind the IP header's first.
Classified icmp_of(size_t size, int version, size_t headers) {
  constexpr size_t kTypeAndCode = 2;
  if (sizeof(EthernetHeader) + headers + kTypeAndCode > size) return {};
  return {FrameKind::kIcmp, static_cast<uint8_t>(version), static_cast<uint16_t>(headers), 0,
          nullptr};
}

size_t segment_header_bytes(const uint8_t* tcp) {
  return size_t{reinterpret_cast<const TcpHeader*>(tcp)->data_offset} >> 4 << 2;
}

// Of a TCP segment: ours, or anybody's.
Classified of_segment(const uint8_t* frame, size_t size, int version, size_t ip_headers,
                      size_t ip_bytes) {
  const size_t at = sizeof(EthernetHeader) + ip_headers;
  if (at + sizeof(TcpHeader) > size) return {};
  const size_t headers = segment_header_bytes(frame + at);
  if (headers < sizeof(TcpHeader)) return {};
  const Classified found = detail::with_tag(frame, size, version, ip_headers, ip_bytes, headers);
  return found.tag == nullptr ? Classified{} : found;
}

// Of one that follows the IPv6 header at once, as those of neighbour discovery do.
Classified icmpv6_of(const uint8_t* frame, size_t size) {
  constexpr size_t kAt = sizeof(EthernetHeader) + sizeof(Ipv6Header);
  const bool neighbour =
      size >= kAt + kNeighbourMessageWithoutOption &&
      (frame[kAt] == kNeighbourSolicitation || frame[kAt] == kNeighbourAdvertisement);
  if (neighbour) return {FrameKind::kNeighbour};
  return icmp_of(size, 6, sizeof(Ipv6Header));
}

}  // namespace

namespace detail {

Classified cut_short(const uint8_t* frame, size_t size, int version, size_t ip_headers,
                     size_t ip_bytes) {
  Classified result{FrameKind::kTruncated, static_cast<uint8_t>(version),
                    static_cast<uint16_t>(ip_headers), static_cast<uint32_t>(ip_bytes), nullptr};
  const size_t tag_at = sizeof(EthernetHeader) + ip_bytes - sizeof(WireTag);
  if (tag_at + kTagIdentityBytes > size) return result;
  const auto* tag = reinterpret_cast<const WireTag*>(frame + tag_at);
  if (tag->magic != kTagMagic) return {};
  result.tag = tag;
  return result;
}

Classified behind_options(const uint8_t* frame, size_t size) {
  const auto* header = reinterpret_cast<const Ipv4Header*>(frame + sizeof(EthernetHeader));
  const size_t headers = size_t{header->version_ihl & 0x0fU} * 4;
  if (header->version_ihl >> 4 != 4 || headers < sizeof(Ipv4Header)) return {};
  if (header->protocol == kProtocolIcmp) return icmp_of(size, 4, headers);
  if (header->protocol == kProtocolTcp) {
    return of_segment(frame, size, 4, headers, header->total_length);
  }
  if (header->protocol != kProtocolUdp) return {};
  return with_tag(frame, size, 4, headers, header->total_length);
}

// The chain ends where UDP begins, or the first header that is none of an extension.
Classified behind_extensions(const uint8_t* frame, size_t size) {
  constexpr size_t kFirst = sizeof(EthernetHeader) + sizeof(Ipv6Header);
  const auto* header = reinterpret_cast<const Ipv6Header*>(frame + sizeof(EthernetHeader));
  uint8_t protocol = header->next_header;
  if (protocol == kProtocolTcp) {
    return of_segment(frame, size, 6, sizeof(Ipv6Header),
                      sizeof(Ipv6Header) + header->payload_length);
  }
  size_t at = kFirst;
  while (protocol != kProtocolUdp) {
    if (protocol == kProtocolIcmpv6) {
      return at == kFirst ? icmpv6_of(frame, size) : icmp_of(size, 6, at - sizeof(EthernetHeader));
    }
    if (!is_ipv6_extension(protocol)) return {};
    const bool there = at + 8 <= size;
    if (protocol == kIpv6FragmentHeader) {
      // What follows a piece is no header, unless it is the first piece and all of the packet.
      if (!there || (word_at(frame + at + 2) & kIpv6FragmentOffsetOrMore) != 0) {
        return {FrameKind::kFragment};
      }
    }
    if (!there) return {};
    const size_t length = ipv6_extension_bytes(protocol, frame[at + 1]);
    protocol = frame[at];
    at += length;
  }
  return with_tag(frame, size, 6, at - sizeof(EthernetHeader),
                  sizeof(Ipv6Header) + header->payload_length);
}

}  // namespace detail

bool segment_checksums_hold(const uint8_t* frame, const Classified& classified) {
  const std::optional<Segment> segment =
      segment_in(frame, sizeof(EthernetHeader) + classified.ip_bytes);
  return segment && checksums_hold(frame, *segment);
}

size_t payload_offset(const uint8_t* frame, const Classified& classified) {
  const size_t at = sizeof(EthernetHeader) + classified.ip_headers;
  const bool of_tcp = is_segment(frame, classified);
  return at + (of_tcp ? segment_header_bytes(frame + at) : sizeof(UdpHeader));
}

Damage damage_of(const uint8_t* frame, const Classified& classified, size_t expected_ip_bytes) {
  if (classified.ip_bytes != expected_ip_bytes) return Damage::kLength;
  if (is_segment(frame, classified)) return Damage::kChecksumWrong;
  const int version = classified.ip_version;
  const size_t ip_header = classified.ip_headers;
  const auto* header =
      reinterpret_cast<const UdpHeader*>(frame + sizeof(EthernetHeader) + ip_header);
  if (header->length != classified.ip_bytes - ip_header) return Damage::kLength;
  if (version == 6 && header->checksum == 0) return Damage::kChecksumZero;
  return Damage::kChecksumWrong;
}

}  // namespace dutperf::net
