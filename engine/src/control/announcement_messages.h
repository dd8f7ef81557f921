// Frames beside a trial's streams, such as routing updates and management queries (see
// dutperf/protocol/announcement.py): parsing, and the frame as it leaves a port; what is answered.
// Throws ProtocolError.
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
  std::optional<uint64_t> at_ns;          // after the start; none: before the device settles
  std::optional<net::Mac> dst_mac;        // none: of the neighbour that the packet is for
  std::vector<uint8_t> packet;            // from the IP header on
  std::optional<uint16_t> answered_from;  // what comes back from this UDP port is kept

  net::IpAddress destination() const;
};

// Reads `announcements`; those before the trial come first, then by their time.
std::vector<Announcement> parse_announcements(ObjectReader& trial, uint64_t duration_ns);

// What of a side's frames is kept, so that it holds two answers to each. REQUIRES: they were
// parsed.
dataplane::AnswerSpec answers_to(const std::vector<Announcement>& announcements,
                                 dataplane::Side side);
Json to_json(const dataplane::AnswerLog& log);

// Without FCS; as long as the shortest frame, at least.
std::vector<uint8_t> frame_of(const Announcement& announcement, const net::Mac& dst_mac,
                              const net::Mac& src_mac, const net::VlanTags& vlan);

}  // namespace dutperf::control
