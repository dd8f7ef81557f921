// Damage to a test frame, of which the receiver must notice that there is some.
#pragma once

#include <cstdint>

#include "behaviour.h"
#include "net/classify.h"

namespace dutperf::refdut {

// Damages `frame`, of `size` bytes; returns its new size.
//
// payload: one bit after the headers flips; never one of the tag's identity (trial, stream,
// number), so that the frame stays attributable. `draw` chooses the bit. checksum: that of UDP
// or TCP is wrong, but not 0. truncation: the IP packet's last byte is missing. checksum_zero:
// there is none. length: UDP's is one more than there is. number: it is one that no stream reaches,
// and the checksum fits. REQUIRES: `classified` came from classify(frame, size) with kind kTest.
//
// REQUIRES: does_damage(damage, classified).
size_t inflict(Damage damage, uint64_t draw, uint8_t* frame, size_t size,
               const net::Classified& classified);

// IPv4 may do without a UDP checksum (RFC 768): a frame without one is whole. TCP has no length of
// its own, and 0 is a checksum as any other.
inline bool does_damage(Damage damage, const uint8_t* frame, const net::Classified& classified) {
  if (net::is_segment(frame, classified)) {
    return damage != Damage::kChecksumZero && damage != Damage::kLength;
  }
  return damage != Damage::kChecksumZero || classified.ip_version == 6;
}

}  // namespace dutperf::refdut
