#include "nat_settings.h"

#include <array>
#include <utility>

namespace dutperf::refdut {
namespace {

using control::ObjectReader;
using control::ProtocolError;

template <typename T, size_t N>
using Names = control::NamesOf<T, N>;

constexpr Names<NatKind, 4> kKinds = {{
    {"nat44", NatKind::k44},
    {"nat64", NatKind::k64},
    {"nat66", NatKind::k66},
    {"nat46", NatKind::k46},
}};
constexpr Names<size_t, 2> kSides = {{{"left", 0}, {"right", 1}}};
constexpr Names<Eviction, 4> kEvictions = {{
    {"refuse", Eviction::kRefuse},
    {"least_recently_used", Eviction::kLeastRecentlyUsed},
    {"chunks", Eviction::kChunks},
    {"random", Eviction::kRandom},
}};
constexpr Names<Overload, 2> kOverloads = {{
    {"drop", Overload::kDrop},
    {"forget", Overload::kForget},
}};
constexpr Names<Depends, 3> kDepends = {{
    {"endpoint", Depends::kEndpoint},
    {"address", Depends::kAddress},
    {"connection", Depends::kConnection},
}};
constexpr Names<Refusal, 3> kRefusals = {{
    {"silence", Refusal::kSilence},
    {"reset", Refusal::kReset},
    {"icmp", Refusal::kIcmp},
}};

PortSet parse_port_set(const Json& json, const std::string& where) {
  ObjectReader reader(json, where);
  PortSet set;
  set.offset = static_cast<uint8_t>(reader.number_or("psid_offset", 6, 0, 15));
  set.psid_bits = static_cast<uint8_t>(reader.number("psid_bits", 0, 16));
  if (set.offset + set.psid_bits > 16) {
    reader.refuse("psid_offset", "and psid_bits are more than the 16 bits of a port");
  }
  set.psid = static_cast<uint16_t>(reader.number("psid", 0, (1U << set.psid_bits) - 1));
  reader.finish();
  return set;
}

void parse_public(const Json& json, const std::string& where, NatSettings& nat) {
  ObjectReader reader(json, where);
  nat.first_address = reader.ip("first_address");
  nat.addresses = static_cast<uint32_t>(reader.number_or("addresses", 1, 1, 65536));
  nat.first_port = static_cast<uint16_t>(reader.number_or("first_port", nat.first_port, 1, 65535));
  nat.last_port =
      static_cast<uint16_t>(reader.number_or("last_port", nat.last_port, nat.first_port, 65535));
  if (reader.has("port_set")) {
    if (reader.has("first_port") || reader.has("last_port")) {
      reader.refuse("port_set", "does not go with first_port and last_port");
    }
    nat.port_set = parse_port_set(reader.at("port_set"), reader.path("port_set"));
  }
  reader.finish();
  if (nat.first_address.version != nat.outside_version()) {
    refuse(reader.path("first_address"),
           "is not an IPv" + std::to_string(nat.outside_version()) + " address",
           "the public side of a NATxy speaks IPvy");
  }
}

void parse_prefix(ObjectReader& reader, NatSettings& nat) {
  if (!nat.translates()) {
    if (reader.has("prefix")) reader.refuse("prefix", "belongs to nat64 and nat46");
    return;
  }
  const std::string text = reader.text("prefix");
  const std::string length = "/96";
  const bool has_length = text.size() > length.size() && text.ends_with(length);
  const auto prefix =
      net::IpAddress::parse(has_length ? text.substr(0, text.size() - length.size()) : "");
  bool plain = prefix && prefix->version == 6;
  for (size_t i = 12; plain && i < 16; ++i) plain = prefix->bytes[i] == 0;
  if (!plain) {
    refuse(reader.path("prefix"), "is not an IPv6 prefix of 96 bits",
           "for example \"64:ff9b::/96\" (RFC 6052)");
  }
  nat.prefix = *prefix;
}

TableSettings parse_table(const Json& json, const std::string& where) {
  ObjectReader reader(json, where);
  TableSettings table;
  table.entries = reader.number("entries", 1, kMaxConnections);
  table.eviction = reader.name_or("eviction", "refuse", kEvictions);
  if (table.eviction == Eviction::kChunks) {
    table.chunk = reader.number("chunk", 1, table.entries);
  } else if (reader.has("chunk")) {
    reader.refuse("chunk", "belongs to the eviction \"chunks\"");
  }
  table.timeout_ns = reader.number_or("timeout_ns", 0, 0, kMaxNs);
  reader.finish();
  return table;
}

void parse_setup(const Json& json, const std::string& where, NatSettings& nat) {
  ObjectReader reader(json, where);
  Service setup;
  setup.rate_fps = reader.number("rate_per_s", 1, kMaxRateFps);
  setup.queue_frames = reader.number("queue_frames", 0, kMaxQueueFrames);
  nat.overload = reader.name_or("overload", "drop", kOverloads);
  reader.finish();
  nat.setup = setup;
}

}  // namespace

uint64_t NatSettings::ports() const {
  if (!port_set) return uint64_t{last_port} - first_port + 1;
  const uint64_t ranges = (1ULL << port_set->offset) - (port_set->offset > 0 ? 1 : 0);
  return ranges << (16 - port_set->offset - port_set->psid_bits);
}

uint16_t NatSettings::port(uint64_t number) const {
  if (!port_set) return static_cast<uint16_t>(first_port + number);
  const int behind = 16 - port_set->offset - port_set->psid_bits;
  const uint64_t range = (number >> behind) + (port_set->offset > 0 ? 1 : 0);
  const uint64_t last = number & ((1ULL << behind) - 1);
  return static_cast<uint16_t>(range << (16 - port_set->offset) |
                               uint64_t{port_set->psid} << behind | last);
}

std::optional<uint64_t> NatSettings::number_of(uint16_t port) const {
  if (!port_set) {
    if (port < first_port || port > last_port) return std::nullopt;
    return port - first_port;
  }
  const int behind = 16 - port_set->offset - port_set->psid_bits;
  const uint64_t range = port >> (16 - port_set->offset);
  const uint64_t psid = uint64_t{port} >> behind & ((1ULL << port_set->psid_bits) - 1);
  if (psid != port_set->psid || (port_set->offset > 0 && range == 0)) return std::nullopt;
  const uint64_t first = port_set->offset > 0 ? 1 : 0;
  return (range - first) << behind | (port & ((1ULL << behind) - 1));
}

NatSettings parse_nat(const Json& json, const std::string& where) {
  ObjectReader reader(json, where);
  NatSettings nat;
  nat.kind = reader.name("kind", kKinds);
  nat.inside = reader.name_or("inside", "left", kSides);
  parse_public(reader.at("public"), reader.path("public"), nat);
  parse_prefix(reader, nat);
  nat.table = parse_table(reader.at("table"), reader.path("table"));
  if (reader.has("setup")) parse_setup(json["setup"], reader.path("setup"), nat);
  nat.refusal = reader.name_or("refusal", "silence", kRefusals);
  nat.mapping = reader.name_or("mapping", "endpoint", kDepends);
  nat.filtering = reader.name_or("filtering", "connection", kDepends);
  nat.removal_per_s = reader.number_or("removal_per_s", 0, 1, kMaxRateFps);
  reader.finish();
  return nat;
}

}  // namespace dutperf::refdut
