// Frames beside a trial's streams, such as routing updates (see
// dutperf/protocol/trial_messages.py): parsing, and the frame as it leaves a port. Throws
// ProtocolError.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "control/json.h"
#include "dataplane/trial_spec.h"
#include "net/address.h"
#include "net/vlan.h"

namespace dutperf::control {

struct Announcement {
  dataplane::Side side = dataplane::Side::kLeft;  // whose port sends it
  std::optional<uint64_t> at_ns;  // after the start; none: before the device settles
  net::Mac dst_mac;
  std::vector<uint8_t> packet;  // from the IP header on
};

// Reads `announcements`; those before the trial come first, then by their time.
std::vector<Announcement> parse_announcements(ObjectReader& trial, uint64_t duration_ns);

// Without FCS; as long as the shortest frame, at least.
std::vector<uint8_t> frame_of(const Announcement& announcement, const net::Mac& src_mac,
                              const net::VlanTags& vlan);

}  // namespace dutperf::control
