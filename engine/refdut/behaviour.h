// What the known-answer device is told to do: docs/known-answer.md describes the JSON.
//
//   arrival -> rules, in order -> service -> delays -> departure        one of these per direction
//              (drop, copy, displace,  (rate, queue,   (the sum of what   (in pieces)
//               damage, alter, delay)   freezes)        the rules said)
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "alteration.h"
#include "border_relay.h"
#include "control/json.h"
#include "net/address.h"
#include "net/vlan.h"
#include "ports.h"

namespace dutperf::refdut {

using control::Json;

// The index of all that exists once per direction.
enum Direction : uint8_t { kForward = 0, kReverse = 1 };  // left to right, right to left
inline constexpr std::array<const char*, 2> kDirectionNames = {"forward", "reverse"};

// Which frames a rule is about: test frames, or the IP packets that are none (kOther).
struct Match {
  enum class Kind : uint8_t { kAll, kForeground, kBackground, kStream, kOther };
  Kind kind = Kind::kAll;
  uint8_t stream = 0;
};

// When: [from_ns, to_ns) since the trial's first frame, or since the device was configured. Packets
// that are no test frames belong to no trial: theirs is always since it was configured.
struct Window {
  uint64_t from_ns = 0;
  uint64_t to_ns = UINT64_MAX;
  bool since_configured = false;
};

// Which of the frames that reach a rule, match it and come in its window.
struct Choice {
  enum class Kind : uint8_t { kAll, kEvery, kRandom };
  Kind kind = Kind::kAll;
  uint64_t every = 1;      // the every-th, twice the every-th, ...
  uint64_t threshold = 0;  // a 64-bit draw below it chooses
};

enum class Damage : uint8_t { kPayload, kChecksum, kTruncation, kChecksumZero, kLength, kNumber };
inline constexpr std::array<const char*, 6> kDamageNames = {
    "payload", "checksum", "truncation", "checksum_zero", "length", "number"};

struct Action {
  enum class Kind : uint8_t { kDrop, kDuplicate, kReorder, kCorrupt, kAlter, kDelay };
  Kind kind = Kind::kDrop;
  Damage damage = Damage::kPayload;
  Alteration alteration;
  uint32_t distance = 1;             // reorder: leaves behind so many frames that came later
  uint64_t at_most_ns = 10'000'000;  // reorder: leaves then if fewer have come
  uint64_t delay_from_ns = 0;        // delay: uniform in [from, to]
  uint64_t delay_to_ns = 0;
};

struct Rule {
  Match match;
  Window when;
  Choice choice;
  Action action;
};

enum class RssFields : uint8_t { kAddresses, kAddressesAndPorts };

// `rate_fps` one after the other; so many may wait, the next is dropped, or left in the port's
// ring. With several queues each has a server and room of its own, and a hash chooses.
struct Service {
  uint64_t rate_fps = 1;
  uint64_t queue_frames = 0;
  bool withhold = false;
  uint32_t queues = 1;
  RssFields hash = RssFields::kAddresses;
  bool others = false;  // IP packets that are no test frames, too
};

// Nothing leaves in [at, at + length) since the trial's first frame.
struct Freeze {
  uint64_t at_ns = 0;
  uint64_t for_ns = 0;
};

// The link that frames leave by is narrower: longer IPv4 packets leave in pieces, and IPv6 ones
// that were such.
struct Fragments {
  uint32_t mtu = 1500;
  uint64_t lose_every = UINT64_MAX;  // the so many-th piece, twice the so many-th, ...
  bool reversed = false;             // of a frame the last piece first
};

struct DirectionBehaviour {
  std::vector<Rule> rules;
  std::optional<Service> service;
  std::vector<Freeze> freezes;  // rising, none overlaps the next
  std::optional<Fragments> fragments;
};

// On: a router with the given addresses. Off: a wire.
struct Routing {
  bool on = false;
  std::vector<std::vector<net::IpAddress>> addresses;  // of each port, by port_index()

  size_t pairs() const { return addresses.size() / 2; }
  // Of the ports of one side, by their numbers.
  std::vector<std::vector<net::IpAddress>> of_side(size_t side) const;
};

// The router's SNMP agent: which queries it leaves unanswered.
struct AgentBehaviour {
  uint64_t unanswered_every = UINT64_MAX;  // the so many-th, twice the so many-th, ...
};

struct NatSettings;
struct Dns64Settings;

struct Behaviour {
  uint64_t seed = 1;
  std::optional<Routing> routing;  // none: stays as it is
  // The gateway that the router is: none: stays as it is, with its table; null: it is none.
  std::optional<std::shared_ptr<const NatSettings>> nat;
  // The DNS64 server that the router is, likewise.
  std::optional<std::shared_ptr<const Dns64Settings>> dns64;
  // That the frames of each side carry, left and right; none: stay as they are.
  std::optional<std::array<net::VlanTags, 2>> vlan;
  // The tunnels of each side, as the device's end has them, likewise.
  std::optional<std::array<net::Encapsulation, 2>> encapsulation;
  // Of the tunnels that `encapsulation` has.
  std::array<std::optional<EdgeRule>, 2> edges;
  // Of each side's customer edges, likewise.
  std::optional<std::array<std::optional<MapTranslation>, 2>> translation;
  std::array<DirectionBehaviour, 2> directions;
  AgentBehaviour agent;
};

inline constexpr uint32_t kMaxDistance = 100'000;
inline constexpr uint64_t kMaxQueueFrames = 10'000'000;
inline constexpr uint32_t kMaxQueues = 128;
inline constexpr uint64_t kMaxRateFps = 1'000'000'000;
inline constexpr uint32_t kMinMtu = 68;  // RFC 791 3.2: the longest header and eight bytes more
inline constexpr uint32_t kMaxMtu = 9702;
inline constexpr uint64_t kMaxNs = 3'600'000'000'000;  // an hour

// Throws control::ProtocolError, of what is at `where`.
[[noreturn]] void refuse(const std::string& where, const std::string& what,
                         const std::string& hint);

// Throws control::ProtocolError, whose hint is never empty.
Behaviour parse_behaviour(const Json& json);

// Throws the same when a device with so many pairs of ports cannot behave so.
void require_pairs(const Behaviour& behaviour, size_t pairs);

}  // namespace dutperf::refdut
