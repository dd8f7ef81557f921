// The device as a stateful gateway: docs/known-answer.md, "A gateway", describes the JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "behaviour.h"

namespace dutperf::refdut {

enum class Eviction : uint8_t { kRefuse, kLeastRecentlyUsed, kChunks, kRandom };

// What the table holds, for how long, and what happens when it is full.
struct TableSettings {
  uint64_t entries = 1;
  Eviction eviction = Eviction::kRefuse;
  uint64_t chunk = 1;       // of Eviction::kChunks: so many of the oldest at a time
  uint64_t timeout_ns = 0;  // since the last frame; 0: for ever
};

// What happens to a frame that asks for a connection while the device is too busy to make one.
enum class Overload : uint8_t {
  kDrop,
  kForget,  // it is forwarded, and nothing remembers it
};

enum class NatKind : uint8_t { k44, k64, k66, k46 };

// What the host gets back that asks for a connection and is given none.
enum class Refusal : uint8_t {
  kSilence,
  kReset,  // of TCP; a UDP frame is dropped
  kIcmp,   // administratively prohibited
};

// How much of the remote end counts (RFC 4787 4.1, 5): for which of its ends an inside endpoint
// has one public endpoint, and who of the outside may send to that.
enum class Depends : uint8_t { kEndpoint, kAddress, kConnection };

// The ports of a customer edge that shares its address with others (MAP: RFC 7597 5.1): of all
// ports those whose bits behind the first `offset`, which are not all 0, are the PSID.
struct PortSet {
  uint8_t offset = 6;
  uint8_t psid_bits = 0;
  uint16_t psid = 0;
};

struct NatSettings {
  NatKind kind = NatKind::k44;
  size_t inside = 0;  // the initiator's side: 0 left, 1 right
  // The public addresses follow each other, and each has these ports.
  net::IpAddress first_address;
  uint32_t addresses = 1;
  uint16_t first_port = 1024;
  uint16_t last_port = 65535;
  std::optional<PortSet> port_set;  // instead of first to last port
  net::IpAddress prefix;  // k64, k46: an IPv4 address in IPv6 follows these 96 bits (RFC 6052)
  TableSettings table;
  std::optional<Service> setup;  // how fast connections are made
  Overload overload = Overload::kDrop;
  Refusal refusal = Refusal::kSilence;
  Depends mapping = Depends::kEndpoint;
  Depends filtering = Depends::kConnection;
  uint64_t removal_per_s = 0;  // of a bulk delete; 0: at once

  int inside_version() const { return kind == NatKind::k44 || kind == NatKind::k46 ? 4 : 6; }
  int outside_version() const { return kind == NatKind::k44 || kind == NatKind::k64 ? 4 : 6; }
  bool translates() const { return inside_version() != outside_version(); }
  // Of one address, numbered from 0 on in rising order.
  uint64_t ports() const;
  uint16_t port(uint64_t number) const;
  // None: the port is not one of them.
  std::optional<uint64_t> number_of(uint16_t port) const;
  uint64_t public_endpoints() const { return addresses * ports(); }
};

inline constexpr uint64_t kMaxConnections = 100'000'000;

// Throws control::ProtocolError.
NatSettings parse_nat(const Json& json, const std::string& where);

}  // namespace dutperf::refdut
