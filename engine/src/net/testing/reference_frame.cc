#include "net/testing/reference_frame.h"

#include <algorithm>

namespace dutperf::net::testing {
namespace {

void put(Bytes& out, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void put(Bytes& out, const Bytes& more) { out.insert(out.end(), more.begin(), more.end()); }

Bytes address_bytes(const IpAddress& address) {
  return {address.bytes.begin(), address.bytes.begin() + (address.version == 4 ? 4 : 16)};
}

uint16_t complement(uint16_t sum) { return static_cast<uint16_t>(0xffff - sum); }

Bytes ipv4_header(const FrameLayout& layout, size_t datagram_bytes) {
  const size_t words = 5 + layout.extra.bytes.size() / 4;
  const auto with_checksum = [&](uint16_t checksum) {
    Bytes header;
    put(header, 0x40 + words, 1);
    put(header, layout.dscp * 4U, 1);
    put(header, 4 * words + datagram_bytes, 2);
    put(header, 0, 2);
    put(header, layout.df ? 0x4000 : 0, 2);
    put(header, layout.ttl, 1);
    put(header, 17, 1);
    put(header, checksum, 2);
    put(header, address_bytes(layout.src_ip));
    put(header, address_bytes(layout.dst_ip));
    put(header, layout.extra.bytes);
    return header;
  };
  return with_checksum(complement(reference_sum(with_checksum(0))));
}

// The length of what a pseudo-header is of, and the protocol (RFC 8200 8.1).
Bytes ipv6_pseudo_header(const FrameLayout& layout, size_t bytes, int protocol) {
  Bytes header = address_bytes(layout.src_ip);
  put(header, address_bytes(layout.dst_ip));
  put(header, bytes, 4);
  put(header, static_cast<uint64_t>(protocol), 4);
  return header;
}

Bytes with_checksums_of_mobility(const FrameLayout& layout) {
  Bytes extensions = layout.extra.bytes;
  for (const uint32_t at : layout.extra.mobility) {
    const auto header = extensions.begin() + at;
    Bytes covered = ipv6_pseudo_header(layout, 8, 135);
    covered.insert(covered.end(), header, header + 8);
    const uint16_t checksum = complement(reference_sum(covered));
    header[4] = static_cast<uint8_t>(checksum >> 8);
    header[5] = static_cast<uint8_t>(checksum);
  }
  return extensions;
}

Bytes ipv6_header(const FrameLayout& layout, size_t datagram_bytes) {
  const unsigned traffic_class = layout.dscp * 4U;
  Bytes header;
  put(header, 0x60 + traffic_class / 16, 1);
  put(header, traffic_class % 16 * 16 + layout.flow_label / 65536, 1);
  put(header, layout.flow_label % 65536, 2);
  put(header, layout.extra.bytes.size() + datagram_bytes, 2);
  put(header, layout.extra.first_protocol, 1);
  put(header, layout.ttl, 1);
  put(header, address_bytes(layout.src_ip));
  put(header, address_bytes(layout.dst_ip));
  put(header, with_checksums_of_mobility(layout));
  return header;
}

Bytes pseudo_header(const FrameLayout& layout, size_t datagram_bytes) {
  if (layout.ip_version == 6) return ipv6_pseudo_header(layout, datagram_bytes, 17);
  Bytes header = address_bytes(layout.src_ip);
  put(header, address_bytes(layout.dst_ip));
  put(header, 17, 2);
  put(header, datagram_bytes, 2);
  return header;
}

Bytes datagram(const FrameLayout& layout, const Bytes& payload) {
  const auto with_checksum = [&](uint16_t checksum) {
    Bytes bytes;
    put(bytes, layout.src_port, 2);
    put(bytes, layout.dst_port, 2);
    put(bytes, 8 + payload.size(), 2);
    put(bytes, checksum, 2);
    put(bytes, payload);
    return bytes;
  };
  Bytes covered = pseudo_header(layout, 8 + payload.size());
  put(covered, with_checksum(0));
  const uint16_t checksum = complement(reference_sum(covered));
  return with_checksum(checksum == 0 ? 0xffff : checksum);
}

// RFC 2473 and RFC 4213, RFC 2784, RFC 7348, RFC 8754; from the outer IP header on.
Bytes outer_headers(const FrameLayout& layout, size_t inner_bytes) {
  const TunnelEnds& ends = layout.outer.ends();
  const uint64_t type = layout.ip_version == 4 ? 0x0800 : 0x86dd;
  Bytes behind;
  int protocol = layout.ip_version == 4 ? 4 : 41;
  IpAddress destination = ends.remote;
  if (ends.kind == Tunnel::kGre) {
    protocol = 47;
    put(behind, 0, 2);
    put(behind, type, 2);
  } else if (ends.kind == Tunnel::kVxlan) {
    protocol = 17;
    put(behind, ends.src_port, 2);
    put(behind, 4789, 2);
    put(behind, 8 + 8 + 14 + inner_bytes, 2);
    put(behind, 0, 2);
    put(behind, 8, 1);
    put(behind, 0, 3);
    put(behind, ends.vni, 3);
    put(behind, 0, 1);
    put(behind, Bytes(ends.inner_mac.bytes.begin(), ends.inner_mac.bytes.end()));
    put(behind, Bytes(layout.src_mac.bytes.begin(), layout.src_mac.bytes.end()));
    put(behind, type, 2);
  } else if (ends.kind == Tunnel::kSrv6) {
    std::vector<IpAddress> segments = ends.sent.segments;
    std::reverse(segments.begin(), segments.end());
    destination = segments.at(ends.sent.left);
    if (ends.sent.reduced) segments.pop_back();
    if (!segments.empty()) {
      put(behind, static_cast<uint64_t>(protocol), 1);
      protocol = 43;
      put(behind, 2 * segments.size(), 1);
      put(behind, 4, 1);
      put(behind, ends.sent.left, 1);
      put(behind, segments.size() - 1, 1);
      put(behind, 0, 1);
      put(behind, ends.sent.tag, 2);
    }
    for (const IpAddress& segment : segments) put(behind, address_bytes(segment));
  }
  const auto ip_header = [&](uint16_t checksum) {
    Bytes header;
    if (ends.local.version == 4) {
      put(header, 0x4500, 2);
      put(header, 20 + behind.size() + inner_bytes, 2);
      put(header, 0x4000, 4);
      put(header, ends.ttl, 1);
      put(header, static_cast<uint64_t>(protocol), 1);
      put(header, checksum, 2);
    } else {
      put(header, 0x60000000 + ends.flow_label, 4);
      put(header, behind.size() + inner_bytes, 2);
      put(header, static_cast<uint64_t>(protocol), 1);
      put(header, ends.ttl, 1);
    }
    put(header, address_bytes(ends.local));
    put(header, address_bytes(destination));
    return header;
  };
  Bytes all = ip_header(complement(reference_sum(ip_header(0))));
  put(all, behind);
  return all;
}

}  // namespace

uint16_t reference_sum(const Bytes& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    const uint32_t low = i + 1 < bytes.size() ? bytes[i + 1] : 0;
    sum += bytes[i] * 256U + low;
    if (sum > 0xffff) sum -= 0xffff;  // the carry comes round the end
  }
  return static_cast<uint16_t>(sum);
}

Bytes reference_frame(const FrameLayout& layout, const Bytes& payload) {
  const size_t datagram_bytes = 8 + payload.size();
  Bytes frame(layout.dst_mac.bytes.begin(), layout.dst_mac.bytes.end());
  frame.insert(frame.end(), layout.src_mac.bytes.begin(), layout.src_mac.bytes.end());
  for (const VlanTag& tag : layout.vlan.list()) {
    put(frame, tag.tpid, 2);
    put(frame, tag.pcp * 8192U + tag.id, 2);
  }
  const auto labels = layout.labels.list();
  const Bytes ip = layout.ip_version == 4 ? ipv4_header(layout, datagram_bytes)
                                          : ipv6_header(layout, datagram_bytes);
  const bool tunnelled = layout.outer.ends().kind != Tunnel::kNone;
  const int version = tunnelled ? layout.outer.ends().local.version : layout.ip_version;
  if (labels.empty()) {
    put(frame, version == 4 ? 0x0800 : 0x86dd, 2);
  } else {
    put(frame, 0x8847, 2);
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    put(frame, labels[i].label * 16U + labels[i].tc * 2U + (i + 1 == labels.size()), 3);
    put(frame, labels[i].ttl, 1);
  }
  if (tunnelled) put(frame, outer_headers(layout, ip.size() + datagram_bytes));
  put(frame, ip);
  put(frame, datagram(layout, payload));
  return frame;
}

bool reference_whole(const Bytes& frame, int ip_version, size_t ip_bytes, size_t extra_bytes) {
  const auto at = [&](size_t offset) { return frame.begin() + static_cast<ptrdiff_t>(offset); };
  const auto number = [&](size_t offset) { return frame[offset] * 256U + frame[offset + 1]; };
  const size_t ip_end = udp_offset(ip_version);  // without options
  const size_t udp = ip_end + extra_bytes;
  const size_t end = 14 + ip_bytes;
  if (ip_version == 4 && reference_sum(Bytes(at(14), at(udp))) != 0xffff) return false;
  const uint8_t protocol = frame[ip_version == 4 ? 23 : 20];
  if (protocol != 6) {
    if (number(udp + 4) != end - udp) return false;
    if (number(udp + 6) == 0) return ip_version == 4;
  }
  const size_t addresses_bytes = ip_version == 4 ? 8 : 32;
  Bytes covered(at(ip_end - addresses_bytes), at(ip_end));
  put(covered, protocol == 6 ? 6 : 17, 2);
  put(covered, end - udp, 2);
  covered.insert(covered.end(), at(udp), at(end));
  return reference_sum(covered) == 0xffff;
}

Bytes counting_payload(const FrameLayout& layout) {
  Bytes payload(layout.frame_size - 4 - udp_offset(layout.ip_version) - layout.extra.bytes.size() -
                8);
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<uint8_t>(i % 256);
  return payload;
}

Bytes tagged_payload(const FrameLayout& layout, const TagIdentity& tag, uint64_t sequence,
                     uint64_t stamp_ns) {
  Bytes payload = counting_payload(layout);
  payload.erase(payload.end() - 18, payload.end());
  put(payload, 0xd07f, 2);
  put(payload, tag.trial, 2);
  put(payload, tag.stream, 1);
  put(payload, tag.flags, 1);
  put(payload, sequence, 6);
  put(payload, stamp_ns, 6);
  return payload;
}

Bytes tagged_frame(const FrameLayout& layout, uint64_t sequence) {
  return reference_frame(layout, tagged_payload(layout, kTag, sequence, 77));
}

FrameLayout sample_layout(int ip_version, uint32_t frame_size) {
  FrameLayout layout;
  layout.ip_version = ip_version;
  layout.frame_size = frame_size;
  layout.src_mac = *Mac::parse("02:00:00:00:00:01");
  layout.dst_mac = *Mac::parse("02:00:00:00:00:fe");
  layout.src_ip = *IpAddress::parse(ip_version == 4 ? "198.18.0.2" : "2001:2::2");
  layout.dst_ip = *IpAddress::parse(ip_version == 4 ? "198.19.0.2" : "2001:2:0:8000::2");
  return layout;
}

namespace {

Bytes numbered(const FrameLayout& layout, const TagIdentity& tag) {
  const SegmentLayout& segment = *layout.tcp;
  const FrameTemplate made(layout, tag);
  Bytes frame = made.bytes();
  auto* const tcp = reinterpret_cast<TcpHeader*>(frame.data() + made.udp_offset());
  const uint32_t number = segment.numbers.of(0);
  tcp->sequence = segment.step == Step::kSyn ? number : number + 1 + segment.sent_before;
  if (segment.step != Step::kSyn) {
    tcp->acknowledgment = SequenceNumbers::answer_to(number) + 1 + segment.answered_before;
  }
  const size_t bytes = frame.size() - made.udp_offset();
  tcp->checksum = finish(tcp_sum(layout.ip_version, frame.data() + made.ip_offset(),
                                 frame.data() + made.udp_offset(), bytes));
  return frame;
}

}  // namespace

Bytes segment_of(FrameLayout layout, const SegmentLayout& segment) {
  layout.tcp = segment;
  layout.frame_size = segment_frame_size(layout.ip_version, segment);
  return numbered(layout, {});
}

Bytes data_of(const FrameLayout& layout, const TagIdentity& tag) { return numbered(layout, tag); }

size_t udp_offset(int ip_version) { return ip_version == 4 ? 34 : 54; }

}  // namespace dutperf::net::testing
