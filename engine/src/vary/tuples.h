// Where a stateful stream's four-tuples come from.
#pragma once

#include <cstdint>
#include <optional>

#include "net/address.h"
#include "state/tuple_table.h"
#include "vary/index_draw.h"

namespace dutperf::vary {

// Frame k carries four-tuple number i(k), an index draw over `count`: of the enumeration of what
// varies, there counted from `first` on, or of a table's entries, in which it stands as it arrived
// and is sent with its ends swapped: of a table that was learned, or that came with the request.
struct Tuples {
  IndexSource source = IndexSource::kGenerated;
  IndexOrder order = IndexOrder::kOnce;
  uint64_t count = 1;
  const state::TupleTable* table = nullptr;  // none: generated ones; outlives the trial
  uint64_t first = 0;                        // of generated ones
  // Of learned ones: their responder is another one, whose port and address are so much higher.
  uint16_t port_added = 0;
  std::optional<net::IpAddress> address_added;

  bool is_elsewhere() const { return port_added > 0 || address_added; }

  bool are_of_table() const { return source != IndexSource::kGenerated; }

  bool operator==(const Tuples&) const = default;
};

}  // namespace dutperf::vary
