// Frames written the slow and obvious way, byte after byte from RFC 2544 C.2.6.4: the twin that the
// tests compare FrameTemplate, classify() and checksums_hold() with. Shares no code with them.
#pragma once

#include <cstdint>
#include <vector>

#include "net/frame.h"

namespace dutperf::net::testing {

using Bytes = std::vector<uint8_t>;

// Of the frames that a test takes for its own, where it says nothing else.
inline constexpr TagIdentity kTag{0x0102, 3, 0};

// The end-around-carry loop of RFC 1071; not yet complemented.
uint16_t reference_sum(const Bytes& bytes);

// A frame without FCS whose UDP payload is `payload`; layout.frame_size is not looked at.
Bytes reference_frame(const FrameLayout& layout, const Bytes& payload);

// Both checksums, and the length of UDP, of a frame whose IP packet has `ip_bytes`, read byte after
// byte; `extra_bytes` of options or extension headers stand before UDP or TCP. REQUIRES: the IP
// packet lies in the frame, with that header.
bool reference_whole(const Bytes& frame, int ip_version, size_t ip_bytes, size_t extra_bytes = 0);

// 00 01 02 ... as RFC 2544 C.2.6.4 has it, as much as a frame of layout.frame_size carries.
Bytes counting_payload(const FrameLayout& layout);

// The same, its last 18 bytes replaced by the wire tag.
Bytes tagged_payload(const FrameLayout& layout, const TagIdentity& tag, uint64_t sequence,
                     uint64_t stamp_ns);

// A whole test frame of the stream kTag, sent at 77 ns.
Bytes tagged_frame(const FrameLayout& layout, uint64_t sequence = 5);

// A segment of connection 0, of whatever size that has; sent at 0 ns.
Bytes segment_of(FrameLayout layout, const SegmentLayout& segment);

// Data of connection 0 with the tag of the stream's first frame. REQUIRES: layout.tcp is of data.
Bytes data_of(const FrameLayout& layout, const TagIdentity& tag);

// One pair of addresses of the benchmarking ranges, version and size as given.
FrameLayout sample_layout(int ip_version, uint32_t frame_size);

size_t udp_offset(int ip_version);

inline uint16_t word_at(const Bytes& frame, size_t offset) {
  return static_cast<uint16_t>(frame[offset] << 8 | frame[offset + 1]);
}

}  // namespace dutperf::net::testing
