// DNS (RFC 1035) as far as a tester of DNS64 servers needs it (RFC 8219 9): it asks for the AAAA of
// names that say their number, and is the authority for these names.
//
//   TTTT-NNNNNNNN.dutperf.test    trial and number, hexadecimal
//
// All of a name's records follow from its number, so nothing is stored: each has one A; a share of
// the names has an AAAA, too. A server that has none for a name makes one of the A (RFC
// 6147 5.1.7).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "net/address.h"
#include "net/headers.h"

namespace dutperf::net {

struct DnsHeader {
  Be16 id;
  Be16 flags;
  Be16 questions;
  Be16 answers;
  Be16 authorities;
  Be16 additionals;
};
static_assert(sizeof(DnsHeader) == 12);

inline constexpr uint16_t kDnsPort = 53;
inline constexpr size_t kDnsNameBytes = 1 + 13 + 1 + 7 + 1 + 4 + 1;
inline constexpr size_t kDnsQueryBytes = sizeof(DnsHeader) + kDnsNameBytes + 4;
// From the header on: where the eight digits of a name's number stand.
inline constexpr size_t kDnsNumberAt = sizeof(DnsHeader) + 1 + 5;
// And the four of the trial.
inline constexpr size_t kDnsTrialAt = sizeof(DnsHeader) + 1;
// What an authority adds to a query, at most: the SOA record that goes with no answer (RFC 2308).
inline constexpr size_t kMostDnsAnswerBytes = 36;

enum class DnsType : uint16_t { kA = 1, kSoa = 6, kAaaa = 28 };

// The lengths that a prefix may have before an IPv4 address, and the address behind it: the eighth
// byte stays 0 (RFC 6052 2.2). REQUIRES: `bits` is one of these.
inline constexpr std::array<uint8_t, 6> kPrefixBits = {32, 40, 48, 56, 64, 96};
std::array<uint8_t, 16> ipv4_behind(const std::array<uint8_t, 12>& prefix, uint8_t bits,
                                    std::span<const uint8_t, 4> ipv4);

// A query's, of its name's number.
constexpr uint16_t dns_id(uint32_t number) { return static_cast<uint16_t>(number ^ number >> 16); }

// A datagram's question about a name of ours; its letters may be of any case.
struct DnsQuestion {
  uint16_t id;
  uint16_t flags;
  uint16_t trial;
  uint32_t number;
  uint16_t type;
};

// What a query is about, and its id.
struct DnsName {
  uint16_t trial;
  uint32_t number;
  uint16_t id;
};

// Names of another trial, which a server has in its cache; a share of the queries asks for them,
// one after the other, over and over.
struct DnsCached {
  uint16_t trial = 0;
  uint32_t names = 0;    // REQUIRES: at least 2^16th of the queries
  uint32_t percent = 0;  // of each hundred queries; 0: none

  bool operator==(const DnsCached&) const = default;
};

// What the names of a trial have.
struct DnsZone {
  uint16_t trial = 0;                // in its names
  uint32_t aaaa_percent = 0;         // of each hundred names, in the order of their numbers
  std::array<uint8_t, 12> prefix{};  // which a DNS64 server puts before an A
  DnsCached cached;
  DnsType record = DnsType::kAaaa;  // what queries ask for; or an A, which each name has
  uint8_t prefix_bits = 96;         // one of kPrefixBits

  bool operator==(const DnsZone&) const = default;

  // The hundreds are turned against each other, so that of 10,000 queries those of cached names
  // have an AAAA as often as the others: the two shares are orthogonal (RFC 8219 9.2).
  bool is_cached(uint32_t query) const {
    const uint32_t place = (query % 100 + query / 100) % 100;
    return (place + 1) * cached.percent / 100 > place * cached.percent / 100;
  }
  // Of names that are asked for often the id tells which time it is.
  DnsName asked_by(uint32_t query) const {
    if (!is_cached(query)) return {trial, query, dns_id(query)};
    return {cached.trial, query % cached.names, static_cast<uint16_t>(query / cached.names)};
  }
  bool has_cached(const DnsQuestion& question) const {
    return cached.percent > 0 && question.trial == cached.trial && question.number < cached.names;
  }
  // None: no query of the trial asks so.
  std::optional<uint32_t> query_of(const DnsQuestion& question) const {
    const bool is_own = question.trial == trial;
    if (!is_own && !has_cached(question)) return std::nullopt;
    const uint64_t query =
        is_own ? question.number : uint64_t{question.id} * cached.names + question.number;
    if (query > UINT32_MAX || is_cached(static_cast<uint32_t>(query)) == is_own)
      return std::nullopt;
    return static_cast<uint32_t>(query);
  }

  bool has_aaaa(uint32_t number) const {
    const uint64_t percent = aaaa_percent;
    return (uint64_t{number} + 1) * percent / 100 > uint64_t{number} * percent / 100;
  }
  // From 10.0.0.0 on, each name's its own up to 2^30 of them.
  static uint32_t a_of(uint32_t number) { return (10U << 24) + (number & 0x3fffffff); }
  // Its own if it has one; else that which is made of its A.
  std::array<uint8_t, 16> aaaa_of(uint32_t number) const;
};

// For the AAAA of a name, or its A; recursion is desired (RFC 1035 4.1.1).
void write_dns_query(uint8_t* out, const DnsName& name, DnsType type = DnsType::kAaaa);

inline constexpr uint16_t kDnsResponse = 0x8000;
inline constexpr uint16_t kDnsAuthoritative = 0x0400;
inline constexpr uint16_t kDnsTruncated = 0x0200;
inline constexpr uint16_t kDnsOpcode = 0x7800;
inline constexpr uint16_t kDnsRcode = 0x000f;

// None: it has not exactly one question, that of class IN about such a name.
std::optional<DnsQuestion> dns_question_in(std::span<const uint8_t> message);

// Makes the authority's answer of a query, whose additional records it leaves out. Returns the
// message's size. REQUIRES: `question` is its, and kDnsQueryBytes + kMostDnsAnswerBytes fit.
size_t write_dns_answer(uint8_t* message, const DnsQuestion& question, const DnsZone& zone);

// The one question of a message, of class IN, about whatever name: how a server reads it.
struct DnsPlainQuestion {
  uint16_t id;
  uint16_t flags;
  uint16_t type;
  std::span<const uint8_t> text;  // name, type and class, as they stand behind the header
};
std::optional<DnsPlainQuestion> dns_plain_question_in(std::span<const uint8_t> message);

// The data of the first answer of that type, class IN, if it has so many bytes; none: there is no
// such answer. `at`: behind the question.
std::optional<std::span<const uint8_t>> dns_data_in(std::span<const uint8_t> message, size_t at,
                                                    DnsType type, size_t bytes);

// An answer to the question of its message, which stands right before it.
constexpr size_t dns_record_bytes(size_t data_bytes) { return 12 + data_bytes; }
void write_dns_record(uint8_t* out, DnsType type, std::span<const uint8_t> data);

// What a server's answer is. REQUIRES: `question` is its, and that of `query`.
enum class DnsReply : uint8_t {
  kValid,
  kRefused,       // by its response code
  kTruncated,     // as its flags say
  kEmpty,         // no AAAA, or A
  kWrongAddress,  // another than the name's
  kMalformed,     // no such answer to such a question, or its records are not whole
};
inline constexpr size_t kDnsReplies = 6;
DnsReply dns_reply(std::span<const uint8_t> message, const DnsQuestion& question, uint32_t query,
                   const DnsZone& zone);

}  // namespace dutperf::net
