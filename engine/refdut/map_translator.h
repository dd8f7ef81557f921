// The border relay of MAP-T (RFC 7599): IPv6 packets of customer edges become IPv4 packets, and
// back. Stateless: rule and port say all (RFC 7599 8.3, 8.4).
#pragma once

#include <optional>

#include "border_relay.h"
#include "translation.h"

namespace dutperf::refdut {

class MapTranslator {
 public:
  // REQUIRES: the rule has no fault.
  explicit MapTranslator(const MapTranslation& translation);

  // As the other side knows it; none: not of the edge that it says, or to nobody.
  std::optional<Flow> from_edges(const Flow& flow) const;
  std::optional<Flow> to_edges(const Flow& flow) const;

 private:
  const BorderRelay relay_;
  const net::IpAddress prefix_;
  const size_t ipv4_at_;  // byte in an address
};

}  // namespace dutperf::refdut
