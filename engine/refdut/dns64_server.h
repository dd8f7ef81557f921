// The device as a DNS64 server (RFC 6147) that does as it is told: docs/known-answer.md, "A DNS64
// server", describes the JSON.
//
//   query for an AAAA ──> authority, AAAA? ──> there is one: it is the answer
//                                        └──> there is none: authority, A? ──> an AAAA made of it
//   query for an A ─────> authority, A? ─────> it is the answer
//
// A query is one buffer all the way: what leaves is written over what came in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "behaviour.h"
#include "net/address.h"
#include "net/dns.h"
#include "net/udp.h"
#include "translation.h"

namespace dutperf::refdut {

struct Dns64Settings {
  size_t clients = 0;  // their side: 0 left, 1 right; the authority is on the other
  net::IpAddress authority;
  std::array<uint8_t, 12> prefix{};
  uint8_t prefix_bits = 96;  // one of net::kPrefixBits
  bool caches = false;       // all that it was ever told
  // Of the queries that it would answer: SERVFAIL, another AAAA than it made, no answer at all.
  uint64_t refuse_every = UINT64_MAX;
  uint64_t wrong_every = UINT64_MAX;
  uint64_t empty_every = UINT64_MAX;
};

// Throws control::ProtocolError.
Dns64Settings parse_dns64(const Json& json, const std::string& where);

class Dns64Server {
 public:
  // `own`: the router's addresses, of one pair of ports. Throws control::ProtocolError when it has
  // none of the authority's version on that side.
  Dns64Server(const Dns64Settings& settings, const Routing& own);

  enum class Verdict : uint8_t {
    kNotOurs,  // the frame is as it was
    kOnward,   // to the other side, as a packet that a router forwards
    kBack,     // to where it came from
    kDrop,
  };

  // What to do with a frame that came in on `side`; of kOnward and kBack it has bytes() then.
  Verdict handle(size_t side, uint8_t* frame, size_t size, size_t room);
  size_t bytes() const { return bytes_; }

  Json report() const;

 private:
  // Who waits for an answer; a slot is taken again when all others have been.
  struct Asker {
    Endpoint client;
    Endpoint server;  // whom it asked
    uint16_t id = 0;
    uint8_t version = 6;
    net::DnsType wants = net::DnsType::kAaaa;
    bool waits = false;
    bool asked_a = false;
  };
  struct Counts {
    uint64_t queries = 0;
    uint64_t not_understood = 0;  // no question for an AAAA or A, or damaged
    uint64_t refused = 0;
    uint64_t from_cache = 0;
    uint64_t asked_aaaa = 0;
    uint64_t asked_a = 0;
    uint64_t own = 0;          // answered by a record of the name's own
    uint64_t synthesised = 0;  // by one that was made
    uint64_t wrong = 0;        // of all these by another address than that
    uint64_t empty = 0;
    uint64_t unasked = 0;    // answers that nobody waits for
    uint64_t forgotten = 0;  // who waited when their slot was taken
    uint64_t no_room = 0;
  };
  struct Address {
    std::array<uint8_t, 16> bytes{};
    uint8_t size = 16;

    std::span<const uint8_t> data() const { return {bytes.data(), size}; }
  };

  Verdict take_query(const net::Datagram& datagram, const Flow& flow, uint8_t* frame, size_t room);
  Verdict take_answer(const net::Datagram& datagram, const Flow& flow, uint8_t* frame, size_t room);
  Verdict ask(Asker& asker, uint32_t slot, uint16_t type, std::span<const uint8_t> question,
              uint8_t* frame);
  Verdict reply(const Asker& asker, uint16_t rcode, const std::optional<Address>& address,
                std::span<const uint8_t> question, uint8_t* frame, size_t room);
  // As it is to be told: every so many-th otherwise.
  std::optional<Address> told(std::optional<Address> address);
  bool is_own(size_t side, int version, const uint8_t* address) const;

  const Dns64Settings settings_;
  std::array<std::vector<net::IpAddress>, 2> own_;  // by side
  net::IpAddress asks_from_;
  std::vector<Asker> askers_;
  uint32_t next_ = 0;
  uint64_t answers_ = 0;
  std::unordered_map<std::string, Address> cache_;  // by question
  size_t bytes_ = 0;
  Counts counts_;
};

}  // namespace dutperf::refdut
