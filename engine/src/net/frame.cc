#include "net/frame.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace dutperf::net {
namespace {

// As far as it counts before it begins again.
constexpr std::array<uint8_t, 256> kPayload = [] {
  std::array<uint8_t, 256> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  return bytes;
}();

void write_ethernet(const FrameLayout& layout, uint8_t* frame) {
  auto* header = reinterpret_cast<EthernetHeader*>(frame);
  std::copy(layout.dst_mac.bytes.begin(), layout.dst_mac.bytes.end(), header->dst);
  std::copy(layout.src_mac.bytes.begin(), layout.src_mac.bytes.end(), header->src);
  header->ether_type = layout.ip_version == 4 ? kEtherTypeIpv4 : kEtherTypeIpv6;
}

void write_ipv4(const FrameLayout& layout, uint16_t datagram_bytes, uint8_t* ip) {
  auto* header = reinterpret_cast<Ipv4Header*>(ip);
  const size_t header_bytes = sizeof(Ipv4Header) + layout.extra.bytes.size();
  header->version_ihl = static_cast<uint8_t>(0x40 | header_bytes / 4);
  header->tos = static_cast<uint8_t>(layout.dscp << 2);
  header->total_length = static_cast<uint16_t>(header_bytes + datagram_bytes);
  header->flags_fragment = layout.df ? kDontFragment : 0;
  header->ttl = layout.ttl;
  header->protocol = layout.tcp ? kProtocolTcp : kProtocolUdp;
  std::memcpy(header->src, layout.src_ip.bytes.data(), 4);
  std::memcpy(header->dst, layout.dst_ip.bytes.data(), 4);
  header->checksum = finish(sum_words(ip, header_bytes));
}

void write_ipv6(const FrameLayout& layout, uint16_t datagram_bytes, uint8_t* ip) {
  auto* header = reinterpret_cast<Ipv6Header*>(ip);
  header->version_class_flow = (6U << 28) | (uint32_t{layout.dscp} << 22) | layout.flow_label;
  header->payload_length = static_cast<uint16_t>(layout.extra.bytes.size() + datagram_bytes);
  header->next_header = layout.tcp ? kProtocolTcp : layout.extra.first_protocol;
  header->hop_limit = layout.ttl;
  std::memcpy(header->src, layout.src_ip.bytes.data(), 16);
  std::memcpy(header->dst, layout.dst_ip.bytes.data(), 16);
}

}  // namespace

void write_payload(uint8_t* out, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kPayload.size()) {
    std::memcpy(out + at, kPayload.data(), std::min(kPayload.size(), bytes - at));
  }
}

bool is_payload(const uint8_t* found, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kPayload.size()) {
    const size_t part = std::min(kPayload.size(), bytes - at);
    if (std::memcmp(found + at, kPayload.data(), part) != 0) return false;
  }
  return true;
}

uint64_t udp_sum(int ip_version, const uint8_t* ip_header, const uint8_t* udp, size_t udp_length) {
  const uint64_t addresses =
      ip_version == 4 ? sum_words(reinterpret_cast<const Ipv4Header*>(ip_header)->src, 8)
                      : sum_words(reinterpret_cast<const Ipv6Header*>(ip_header)->src, 32);
  return addresses + kProtocolUdp + udp_length + sum_words(udp, udp_length);
}

FrameTemplate::FrameTemplate(const FrameLayout& layout, const TagIdentity& tag)
    : bytes_(layout.frame_size - kFcsBytes + layout.vlan.bytes() + layout.labels.bytes() +
             layout.outer.bytes()),
      ip_offset_(static_cast<uint32_t>(sizeof(EthernetHeader)) + layout.vlan.bytes() +
                 layout.labels.bytes() + layout.outer.bytes()),
      outer_bytes_(layout.outer.bytes()),
      outer_ip_version_(outer_bytes_ > 0 ? layout.outer.ends().local.version : 0),
      outer_udp_offset_(layout.outer.udp_offset()),
      udp_offset_(ip_offset_ + static_cast<uint32_t>(ip_header_bytes(layout.ip_version) +
                                                     layout.extra.bytes.size())),
      tag_offset_(static_cast<uint32_t>(bytes_.size() - sizeof(WireTag))),
      tag_is_odd_((tag_offset_ - udp_offset_) % 2 != 0) {
  const auto datagram_bytes = static_cast<uint16_t>(bytes_.size() - udp_offset_);

  uint8_t* frame = bytes_.data();
  write_ethernet(layout, frame);
  const size_t tagged = layout.vlan.put_in(frame, sizeof(EthernetHeader));
  layout.labels.write(frame + tagged - sizeof(EthernetHeader::ether_type));
  layout.outer.write(frame + tagged - sizeof(EthernetHeader::ether_type), layout.ip_version,
                     bytes_.size() - ip_offset_, layout.src_mac);
  std::copy(layout.extra.bytes.begin(), layout.extra.bytes.end(),
            frame + udp_offset_ - layout.extra.bytes.size());
  if (layout.ip_version == 4) {
    write_ipv4(layout, datagram_bytes, frame + ip_offset_);
    const uint16_t checksum = reinterpret_cast<Ipv4Header*>(frame + ip_offset_)->checksum;
    // The words' sum and the checksum together are 0xffff.
    ipv4_sum_ = static_cast<uint16_t>(~checksum);
  } else {
    write_ipv6(layout, datagram_bytes, frame + ip_offset_);
  }
  for (const uint32_t at : layout.extra.mobility) {
    const uint32_t offset = ip_offset_ + static_cast<uint32_t>(sizeof(Ipv6Header)) + at;
    mobility_offsets_.push_back(offset);
    reinterpret_cast<MobilityHeader*>(frame + offset)->checksum =
        mobility_checksum(frame + ip_offset_, frame + offset);
  }
  if (layout.tcp) {
    write_segment(frame + udp_offset_, layout.src_port, layout.dst_port, *layout.tcp);
    if (layout.tcp->is_data) write_tagged(udp_offset_ + layout.tcp->header_bytes(), tag);
    udp_sum_ = tcp_sum(layout.ip_version, frame + ip_offset_, frame + udp_offset_, datagram_bytes);
    return;
  }
  write_udp(layout);
  if (layout.query) {
    write_dns_query(frame + udp_offset_ + sizeof(UdpHeader), {layout.query->trial, 0, 0},
                    layout.query->record);
  } else {
    write_tagged(udp_offset_ + sizeof(UdpHeader), tag);
  }
  udp_sum_ =
      net::udp_sum(layout.ip_version, frame + ip_offset_, frame + udp_offset_, datagram_bytes);
  reinterpret_cast<UdpHeader*>(frame + udp_offset_)->checksum = finish_udp(udp_sum_);
}

void FrameTemplate::write_udp(const FrameLayout& layout) {
  auto* udp = reinterpret_cast<UdpHeader*>(bytes_.data() + udp_offset_);
  udp->src_port = layout.src_port;
  udp->dst_port = layout.dst_port;
  udp->length = static_cast<uint16_t>(bytes_.size() - udp_offset_);
}

void FrameTemplate::write_tagged(size_t offset, const TagIdentity& tag) {
  uint8_t* const frame = bytes_.data();
  write_payload(frame + offset, tag_offset_ - offset);
  auto* wire_tag = reinterpret_cast<WireTag*>(frame + tag_offset_);
  wire_tag->magic = kTagMagic;
  wire_tag->trial = tag.trial;
  wire_tag->stream = tag.stream;
  wire_tag->flags = tag.flags;
}

}  // namespace dutperf::net
