#include "net/inspection.h"

#include <algorithm>

#include "net/classify.h"
#include "net/frame.h"

namespace dutperf::net {

void inspect(const uint8_t* frame, const Expected& expected, Inspected& found) noexcept {
  const uint8_t* const ip = frame + sizeof(EthernetHeader);
  // It is known to be all there; behind labels it has no EtherType.
  const Classified classified = classify_as(ether_type_of(ip), frame, SIZE_MAX);
  if (classified.kind != FrameKind::kTest) return;  // another version than its EtherType's
  uint8_t ttl = 0;
  uint8_t dscp = 0;
  if (classified.ip_version == 4) {
    const auto* header = reinterpret_cast<const Ipv4Header*>(ip);
    ttl = header->ttl;
    dscp = header->tos >> 2;
  } else {
    const auto* header = reinterpret_cast<const Ipv6Header*>(ip);
    ttl = header->hop_limit;
    dscp = header->version_class_flow >> 22 & 0x3f;
  }
  const uint8_t* const payload = frame + payload_offset(frame, classified);
  const uint8_t* const tag = ip + classified.ip_bytes - sizeof(WireTag);
  ++found.frames;
  found.ttl += expected.ttl.value_or(ttl) != ttl;
  found.dscp += expected.dscp != dscp;
  found.payload += !is_payload(payload, static_cast<size_t>(tag - payload));
  found.least_ttl = std::min(found.least_ttl.value_or(ttl), ttl);
  found.most_ttl = std::max(found.most_ttl.value_or(ttl), ttl);
  if (expected.dscp != dscp) found.other_dscp = dscp;
}

}  // namespace dutperf::net
