// The slow twin of FrameWriter: changes one bit of an address after the other and writes the whole
// frame anew, all checksums by the plain loop. Shares no code with it.
#pragma once

#include <cstdint>
#include <vector>

#include "net/testing/reference_frame.h"
#include "vary/variation.h"

namespace dutperf::vary::testing {

using net::testing::Bytes;

// Frame without FCS: `layout` with variation i of `list` set to values[i], then the copies made,
// its tag filled in.
Bytes slow_frame(const net::FrameLayout& layout, const net::TagIdentity& tag,
                 const std::vector<Variation>& list, const std::vector<uint64_t>& values,
                 uint64_t sequence, uint64_t stamp_ns, const std::vector<Copy>& copies = {});

// What `frame` of this layout, or of one that has nothing beside its IP version, carries where
// `variation` has its bits.
uint64_t value_in(const Bytes& frame, const Variation& variation, const net::FrameLayout& layout);
uint64_t value_in(const Bytes& frame, const Variation& variation, int ip_version);

}  // namespace dutperf::vary::testing
