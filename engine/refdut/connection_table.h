// Which connections the gateway knows: a table of set size that forgets what was not used for a
// time, and what its policy chooses when it is full. It never does either late: a connection whose
// time is over is unknown, whether it was removed already or not.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "nat_settings.h"
#include "net/headers.h"
#include "vary/draw.h"

namespace dutperf::refdut {

struct Endpoint {
  std::array<uint8_t, 16> address{};  // as in net::IpAddress
  uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;
};

enum class Protocol : uint8_t { kTcp = net::kProtocolTcp, kUdp = net::kProtocolUdp };

// As the outside knows the remote end.
struct Connection {
  Endpoint inside;
  Endpoint remote;
  Protocol protocol = Protocol::kUdp;

  bool operator==(const Connection&) const = default;
};

struct EndpointHash {
  size_t operator()(const Endpoint& endpoint) const noexcept;
};
struct ConnectionHash {
  size_t operator()(const Connection& connection) const noexcept {
    return vary::mix64(EndpointHash{}(connection.inside) +
                       vary::kDrawStep * EndpointHash{}(connection.remote));
  }
};

class ConnectionTable {
 public:
  struct Counts {
    uint64_t created = 0;
    uint64_t refused = 0;  // no room
    uint64_t evicted = 0;
    uint64_t expired = 0;
    uint64_t removed = 0;  // on demand
  };

  ConnectionTable(const TableSettings& settings, uint64_t seed);

  // Whether it is known; then it was used just now. REQUIRES: `now_ns` never goes back.
  bool use(const Connection& connection, uint64_t now_ns);

  // Stores one that is not known; false when the policy refuses.
  bool create(const Connection& connection, uint64_t now_ns);

  // Removes at most `limit` whose time is over.
  void expire(uint64_t now_ns, uint64_t limit);

  // Removes at most `limit` of those that were not used for longest.
  void remove(uint64_t limit);

  uint64_t size() const { return places_.size(); }
  const Counts& counts() const { return counts_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Entry {
    Connection connection;
    uint64_t used_ns = 0;
    uint32_t older = kNone;
    uint32_t newer = kNone;
  };

  bool is_over(const Entry& entry, uint64_t now_ns) const {
    return settings_.timeout_ns != 0 && now_ns >= entry.used_ns + settings_.timeout_ns;
  }
  bool make_room();
  void erase(uint32_t place);
  void take_out(uint32_t place);
  void put_last(uint32_t place);

  TableSettings settings_;
  uint64_t seed_;
  std::unordered_map<Connection, uint32_t, ConnectionHash> places_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  uint32_t oldest_ = kNone;  // by the last use
  uint32_t newest_ = kNone;
  uint64_t draws_ = 0;
  Counts counts_;
};

}  // namespace dutperf::refdut
