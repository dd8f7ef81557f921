// The device as a stateful NAT44, NAT64, NAT66 or NAT46 gateway (RFC 9693 2): what comes from
// inside opens a connection or belongs to one, what comes from outside has to belong to one.
//
// An inside endpoint has one public endpoint, for all whom it talks to or, by `mapping`, for each
// of them, from its first connection until the table is cleared; these are given out in order. The
// table holds connections, that is pairs of an inside and a remote endpoint. One of TCP is opened
// by a SYN and by nothing else; it ends as any other does, by its timeout.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "connection_table.h"
#include "server.h"
#include "translation.h"

namespace dutperf::refdut {

class Gateway {
 public:
  Gateway(const NatSettings& settings, uint64_t seed);

  // What to do with a frame that came in on `side`.
  struct Decision {
    enum class Kind : uint8_t {
      kPass,       // not ours: forwarded as it is
      kTranslate,  // `flow` becomes `other`
      kDrop,
      kRefuse,  // dropped, and who sent `flow` is told so
    };
    Kind kind = Kind::kPass;
    Flow flow;
    Flow other;
  };
  // REQUIRES: `frame` has an Ethernet header; `now_ns` never goes back.
  Decision decide(size_t side, const uint8_t* frame, size_t size, uint64_t now_ns);

  // Does what time brings: some of what is over is removed, and some of what is being deleted.
  void tick(uint64_t now_ns);

  uint64_t connections(uint64_t now_ns);
  // All connections at once, and all public endpoints.
  void clear();
  // All connections, at the speed that the settings say; tick() does it.
  void start_removal(uint64_t now_ns);
  bool removing() const { return removing_; }

  Json report(uint64_t now_ns);
  Refusal refusal() const { return settings_.refusal; }

 private:
  Decision from_inside(const Flow& flow, uint64_t now_ns);
  Decision from_outside(const Flow& flow, uint64_t now_ns);
  Decision no_connection(const Flow& flow) const;
  bool may_enter(const Connection& connection, uint64_t now_ns);
  bool know(const Connection& connection, bool may_open, uint64_t now_ns);
  bool is_for_us(const Flow& flow) const;
  // How the outside sees a remote end, and the other way round.
  Endpoint outside_form(const Endpoint& remote) const;
  Endpoint inside_form(const Endpoint& remote) const;
  bool has_prefix(const Endpoint& endpoint) const;
  uint32_t distance_from_first(const Endpoint& endpoint) const;
  bool is_public(const Endpoint& endpoint) const;
  // Of a public address: the endpoint's number; public_endpoints() when its port is not for us.
  uint64_t number_of(const Endpoint& endpoint) const;
  Endpoint public_endpoint(uint64_t number) const;

  const NatSettings settings_;
  ConnectionTable table_;
  Server setup_;
  // Of the public endpoints, by whom they are for: the remote end as far as the mapping depends on
  // it.
  std::unordered_map<Connection, uint64_t, ConnectionHash> numbers_;
  std::unordered_set<Connection, ConnectionHash> met_;  // as far as the filtering depends on it
  std::vector<Endpoint> inside_of_;                     // by that number
  bool removing_ = false;
  uint64_t removal_began_ns_ = 0;
  uint64_t removed_so_far_ = 0;
  uint64_t unknown_ = 0;
  uint64_t too_fast_ = 0;
  uint64_t forgotten_ = 0;
  uint64_t no_public_endpoint_ = 0;
  uint64_t endpoints_grown_ = 0;
};

}  // namespace dutperf::refdut
