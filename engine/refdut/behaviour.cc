#include "behaviour.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <tuple>

#include "dns64_server.h"
#include "nat_settings.h"

namespace dutperf::refdut {
namespace {

using control::element;
using control::ObjectReader;
using control::ProtocolError;

constexpr const char* kWhereToRead = "docs/known-answer.md describes every key";
constexpr size_t kMaxRules = 64;
constexpr size_t kMaxFreezes = 64;
constexpr size_t kMaxAddresses = 64;
constexpr uint64_t kMaxSequence = (1ULL << 48) - 1;

Match parse_match(const Json& json, const std::string& where) {
  if (json == "all") return {};
  if (json == "foreground") return {Match::Kind::kForeground};
  if (json == "background") return {Match::Kind::kBackground};
  if (json == "other") return {Match::Kind::kOther};
  if (!json.is_object()) {
    refuse(where, "is none of the matches",
           "use \"all\", \"foreground\", \"background\", {\"stream\": N} or \"other\"");
  }
  ObjectReader reader(json, where);
  const auto stream = static_cast<uint8_t>(reader.number("stream", 0, 255));
  reader.finish();
  return {Match::Kind::kStream, stream};
}

Window parse_window(const Json& json, const std::string& where) {
  ObjectReader reader(json, where);
  Window window;
  window.from_ns = reader.number_or("from_ns", 0, 0, kMaxNs);
  window.to_ns = reader.number_or("to_ns", UINT64_MAX, 0, UINT64_MAX);
  const std::string since = reader.text_or("since", "trial");
  reader.finish();
  if (since != "trial" && since != "configured") {
    refuse(reader.path("since"), "is neither \"trial\" nor \"configured\"",
           "trial: since the first test frame of each trial; configured: since the device got this "
           "behaviour");
  }
  if (window.to_ns <= window.from_ns) {
    refuse(reader.path("to_ns"), "must be greater than from_ns",
           "the window is from_ns <= t < to_ns");
  }
  window.since_configured = since == "configured";
  return window;
}

// A draw is below `threshold` with `probability`: to 2^-53 of it, as a double holds it.
uint64_t threshold_of(double probability) {
  return probability >= 1 ? UINT64_MAX : static_cast<uint64_t>(std::ldexp(probability, 64));
}

Choice parse_choice(ObjectReader& reader) {
  const bool every = reader.has("every");
  if (!reader.has("probability")) {
    return every ? Choice{Choice::Kind::kEvery, reader.number("every", 1, kMaxSequence)} : Choice{};
  }
  if (every) {
    reader.refuse("every", "and probability exclude each other: two rules can have one each");
  }
  const Json& probability = reader.at("probability");
  const double value = probability.is_number() ? probability.get<double>() : -1;
  if (!(value > 0 && value <= 1)) {
    refuse(reader.path("probability"), "must be a number above 0 and up to 1",
           "0.01 is one frame in a hundred; leave the rule out for none");
  }
  return {Choice::Kind::kRandom, 1, threshold_of(value)};
}

Action parse_delay(const Json& json, const std::string& where) {
  Action action{Action::Kind::kDelay};
  if (json.is_object()) {
    ObjectReader reader(json, where);
    action.delay_from_ns = reader.number("from", 0, kMaxNs);
    action.delay_to_ns = reader.number("to", action.delay_from_ns, kMaxNs);
    reader.finish();
    return action;
  }
  if (!json.is_number_unsigned() || json.get<uint64_t>() > kMaxNs) {
    refuse(where, "must be a whole number of nanoseconds, at most an hour, or a range",
           "1000000 is a millisecond; {\"from\": 0, \"to\": 1000000} is uniform");
  }
  action.delay_from_ns = action.delay_to_ns = json.get<uint64_t>();
  return action;
}

Action parse_reorder(const Json& json, const std::string& where) {
  ObjectReader reader(json, where);
  Action action{Action::Kind::kReorder};
  action.distance = static_cast<uint32_t>(reader.number("distance", 1, kMaxDistance));
  action.at_most_ns = reader.number_or("at_most_ns", action.at_most_ns, 1, kMaxNs);
  reader.finish();
  return action;
}

Action parse_corrupt(const Json& json, const std::string& where) {
  for (size_t i = 0; i < kDamageNames.size(); ++i) {
    if (json == kDamageNames[i]) return {Action::Kind::kCorrupt, static_cast<Damage>(i)};
  }
  refuse(where, "is not a kind of damage",
         "payload: a bit of it; checksum: UDP's is wrong; checksum_zero: IPv6 without one; length: "
         "UDP's is wrong; number: one never sent; truncation: the last byte is missing");
}

Action parse_alteration(const Json& json, const std::string& where) {
  Action action{Action::Kind::kAlter};
  if (json == "payload") {
    action.alteration.exchanges = true;
    return action;
  }
  if (!json.is_object() || json.size() != 1) {
    refuse(where, "is not an alteration",
           "{\"hops\": 0}: TTL stays as it is; {\"dscp\": 46}; \"payload\": two words of it "
           "change places");
  }
  ObjectReader reader(json, where);
  if (reader.has("hops")) {
    action.alteration.hops = static_cast<uint8_t>(reader.number("hops", 0, 254));
  } else {
    action.alteration.dscp = static_cast<uint8_t>(reader.number("dscp", 0, 63));
  }
  reader.finish();
  return action;
}

Action parse_action(const Json& json, const std::string& where) {
  if (json == "drop") return {Action::Kind::kDrop};
  if (json == "duplicate") return {Action::Kind::kDuplicate};
  if (json.is_object() && json.size() == 1) {
    ObjectReader reader(json, where);
    if (reader.has("delay_ns")) return parse_delay(json["delay_ns"], reader.path("delay_ns"));
    if (reader.has("reorder")) return parse_reorder(json["reorder"], reader.path("reorder"));
    if (reader.has("corrupt")) return parse_corrupt(json["corrupt"], reader.path("corrupt"));
    if (reader.has("alter")) return parse_alteration(json["alter"], reader.path("alter"));
  }
  refuse(where, "is not an action",
         "use \"drop\", \"duplicate\", {\"delay_ns\": N}, {\"reorder\": {\"distance\": N}}, "
         "{\"corrupt\": \"payload\"} or {\"alter\": {\"hops\": 0}}");
}

// Order and damage are told by a test frame's tag, which others have not, and only of those is it
// known what is in them.
void check_action_for_others(const Action& action, const std::string& where) {
  const char* name = nullptr;
  if (action.kind == Action::Kind::kReorder) name = "reorder";
  if (action.kind == Action::Kind::kCorrupt) name = "corrupt";
  if (action.kind == Action::Kind::kAlter) name = "alter";
  if (name == nullptr) return;
  refuse(
      where, std::string(name) + " is for test frames only",
      "with \"match\": \"other\" use \"drop\", \"duplicate\" or {\"delay_ns\": N}; a random delay "
      "changes the order, too");
}

Rule parse_rule(const Json& json, const std::string& where) {
  ObjectReader reader(json, where);
  Rule rule;
  if (reader.has("match")) rule.match = parse_match(json["match"], reader.path("match"));
  if (reader.has("when")) rule.when = parse_window(json["when"], reader.path("when"));
  rule.choice = parse_choice(reader);
  rule.action = parse_action(reader.at("do"), reader.path("do"));
  if (rule.match.kind == Match::Kind::kOther) {
    check_action_for_others(rule.action, reader.path("do"));
  }
  reader.finish();
  return rule;
}

void parse_queues(ObjectReader& reader, Service& service) {
  service.queues = static_cast<uint32_t>(reader.number_or("queues", 1, 1, kMaxQueues));
  if (service.queues == 1) {
    if (reader.has("hash")) reader.refuse("hash", "needs more than one of queues to choose from");
    return;
  }
  if (service.others) reader.refuse("others", "needs one queue: only test frames are spread");
  if (service.withhold) {
    reader.refuse("withhold", "needs one queue: a port's ring cannot be left in parts");
  }
  if (service.queues * service.queue_frames > kMaxQueueFrames) {
    refuse(reader.path("queue_frames"), "is for each of the queues, and too much for all",
           "at most " + std::to_string(kMaxQueueFrames / service.queues));
  }
  const std::string hash = reader.text("hash");
  if (hash != "addresses" && hash != "addresses_and_ports") {
    refuse(reader.path("hash"), "is neither \"addresses\" nor \"addresses_and_ports\"",
           "it says what of a frame chooses its queue");
  }
  service.hash = hash == "addresses" ? RssFields::kAddresses : RssFields::kAddressesAndPorts;
}

Service parse_service(const Json& json, const std::string& where) {
  ObjectReader reader(json, where);
  Service service;
  service.rate_fps = reader.number("rate_fps", 1, kMaxRateFps);
  service.queue_frames = reader.number("queue_frames", 0, kMaxQueueFrames);
  service.withhold = reader.flag_or("withhold", false);
  service.others = reader.flag_or("others", false);
  parse_queues(reader, service);
  reader.finish();
  return service;
}

std::vector<Freeze> parse_freezes(const Json& list, const std::string& where) {
  std::vector<Freeze> freezes;
  for (size_t i = 0; i < list.size(); ++i) {
    ObjectReader reader(list[i], element(where, i));
    const uint64_t at_ns = reader.number("at_ns", 0, kMaxNs);
    freezes.push_back({at_ns, reader.number("for_ns", 1, kMaxNs)});
    reader.finish();
  }
  std::sort(freezes.begin(), freezes.end(),
            [](const Freeze& a, const Freeze& b) { return a.at_ns < b.at_ns; });
  for (size_t i = 1; i < freezes.size(); ++i) {
    if (freezes[i].at_ns < freezes[i - 1].at_ns + freezes[i - 1].for_ns) {
      refuse(where, "overlap", "make one freeze of them");
    }
  }
  return freezes;
}

Fragments parse_fragments(const Json& json, const std::string& where,
                          const std::vector<Rule>& rules) {
  ObjectReader reader(json, where);
  Fragments fragments;
  fragments.mtu = static_cast<uint32_t>(reader.number("mtu", kMinMtu, kMaxMtu));
  if (reader.has("lose_every")) fragments.lose_every = reader.number("lose_every", 1, kMaxSequence);
  fragments.reversed = reader.flag_or("reversed", false);
  reader.finish();
  const bool copies = std::any_of(rules.begin(), rules.end(), [](const Rule& rule) {
    return rule.action.kind == Action::Kind::kDuplicate;
  });
  if (copies && reader.has("lose_every")) {
    refuse(reader.path("lose_every"), "and rules that duplicate exclude each other",
           "a copy's pieces would take the place of those that its original lacks");
  }
  return fragments;
}

DirectionBehaviour parse_direction(const Json& json, const std::string& where) {
  ObjectReader reader(json, where);
  DirectionBehaviour direction;
  if (reader.has("rules")) {
    const Json& rules = reader.array("rules", 0, kMaxRules);
    for (size_t i = 0; i < rules.size(); ++i) {
      direction.rules.push_back(parse_rule(rules[i], element(reader.path("rules"), i)));
    }
  }
  if (reader.has("service")) {
    direction.service = parse_service(json["service"], reader.path("service"));
  }
  if (reader.has("freezes")) {
    direction.freezes =
        parse_freezes(reader.array("freezes", 0, kMaxFreezes), reader.path("freezes"));
  }
  if (reader.has("fragments")) {
    direction.fragments =
        parse_fragments(json["fragments"], reader.path("fragments"), direction.rules);
  }
  reader.finish();
  return direction;
}

std::vector<net::IpAddress> parse_addresses(const Json& list, const std::string& where) {
  std::vector<net::IpAddress> addresses;
  for (size_t i = 0; i < list.size(); ++i) {
    const auto address = list[i].is_string() ? net::IpAddress::parse(list[i]) : std::nullopt;
    if (!address) {
      refuse(element(where, i), "is not an IP address",
             "list the device's own addresses on that side, without prefix length");
    }
    addresses.push_back(*address);
  }
  return addresses;
}

// One list for each port of a side but the first.
void parse_more_addresses(ObjectReader& reader, size_t side, Routing& routing) {
  const std::string key = std::string("more_") + kSideNames[side];
  if (!reader.has(key)) return;
  const Json& lists = reader.array(key, 0, kMostPairs - 1);
  for (size_t i = 0; i < lists.size(); ++i) {
    const std::string where = element(reader.path(key), i);
    if (!lists[i].is_array() || lists[i].empty() || lists[i].size() > kMaxAddresses) {
      refuse(where, "is no list of 1 to " + std::to_string(kMaxAddresses) + " addresses",
             "[[\"198.19.1.1\"]] is one port more, with one address");
    }
    routing.addresses.resize(std::max(routing.addresses.size(), port_index(side, i + 1) + 1));
    routing.addresses[port_index(side, i + 1)] = parse_addresses(lists[i], where);
  }
}

// A packet leaves by the port with the nearest address: that has to be one.
void check_apart(const Routing& routing, size_t side) {
  std::vector<net::IpAddress> seen;
  for (const auto& addresses : routing.of_side(side)) {
    for (const net::IpAddress& address : addresses) {
      if (std::find(seen.begin(), seen.end(), address) == seen.end()) continue;
      refuse(std::string("routing.more_") + kSideNames[side],
             "has " + address.text() + ", which another port of the side has, too",
             "each port needs addresses of its own, in a network of its own");
    }
    seen.insert(seen.end(), addresses.begin(), addresses.end());
  }
}

Routing parse_routing(const Json& json) {
  if (json == "off") return {};
  if (!json.is_object()) {
    refuse("routing", "is neither \"off\" nor an object",
           "\"off\" makes a wire; {\"left\": [\"198.18.0.1\"], \"right\": [\"198.19.0.1\"]} a "
           "router with these addresses");
  }
  ObjectReader reader(json, "routing");
  Routing routing{true, std::vector<std::vector<net::IpAddress>>(2)};
  for (const size_t side : {0U, 1U}) {
    const char* name = kSideNames[side];
    routing.addresses[side] =
        parse_addresses(reader.array(name, 1, kMaxAddresses), reader.path(name));
  }
  for (const size_t side : {0U, 1U}) parse_more_addresses(reader, side, routing);
  reader.finish();
  const auto missing = std::find_if(routing.addresses.begin(), routing.addresses.end(),
                                    [](const auto& list) { return list.empty(); });
  if (routing.addresses.size() % 2 != 0 || missing != routing.addresses.end()) {
    refuse("routing.more_left and more_right", "have not as many ports",
           "each list in one of them has its counterpart in the other");
  }
  for (const size_t side : {0U, 1U}) check_apart(routing, side);
  return routing;
}

std::array<net::VlanTags, 2> parse_vlan(const Json& json) {
  ObjectReader reader(json, "vlan");
  const std::array tags = {reader.vlan_or_none(kSideNames[0]), reader.vlan_or_none(kSideNames[1])};
  reader.finish();
  return tags;
}

std::array<net::Encapsulation, 2> parse_encapsulation(const Json& json) {
  ObjectReader reader(json, "encapsulation");
  const std::array tunnels = {reader.encapsulation_or_none(kSideNames[0]),
                              reader.encapsulation_or_none(kSideNames[1])};
  reader.finish();
  return tunnels;
}

// An address of IPv6 or IPv4, a slash, and how long the part before the bit is that this names.
std::pair<net::IpAddress, uint8_t> parse_length(ObjectReader& reader, const std::string& key,
                                                int version, int most_bits) {
  const std::string text = reader.text(key);
  const size_t slash = text.find('/');
  const auto address = net::IpAddress::parse(text.substr(0, slash));
  const std::string bits = slash == std::string::npos ? "" : text.substr(slash + 1);
  const bool is_number =
      !bits.empty() && bits.size() <= 3 &&
      std::all_of(bits.begin(), bits.end(), [](char c) { return c >= '0' && c <= '9'; });
  const int count = is_number ? std::stoi(bits) : INT_MAX;
  if (!address || address->version != version || count > most_bits) {
    refuse(reader.path(key), "is no prefix of IPv" + std::to_string(version),
           "write an address, a slash and a length up to " + std::to_string(most_bits));
  }
  return {*address, static_cast<uint8_t>(count)};
}

// Whether all bits from `first` on, and before `end`, are 0.
bool zero_between(const net::IpAddress& address, int first, int end) {
  for (int bit = first; bit < end; ++bit) {
    if ((address.bytes[static_cast<size_t>(bit) / 8] & (0x80U >> (bit % 8))) != 0) return false;
  }
  return true;
}

// An address and how many bits of it count, which are all that it has.
std::pair<net::IpAddress, uint8_t> parse_prefix(ObjectReader& reader, const std::string& key,
                                                int version, int most_bits) {
  const auto found = parse_length(reader, key, version, most_bits);
  if (!zero_between(found.first, found.second, version == 4 ? 32 : 128)) {
    refuse(reader.path(key), "has bits behind its length", "set them to zero");
  }
  return found;
}

// `where`: the object that has the rule's keys, perhaps others beside.
EdgeRule parse_map_rule(ObjectReader& reader, const std::string& where) {
  EdgeRule rule;
  std::tie(rule.ipv6, rule.ipv6_bits) = parse_prefix(reader, "ipv6_prefix", 6, 64);
  std::tie(rule.ipv4, rule.ipv4_bits) = parse_prefix(reader, "ipv4_prefix", 4, 32);
  rule.ea_bits = static_cast<uint8_t>(reader.number("ea_bits", 0, 48));
  rule.psid_offset = static_cast<uint8_t>(reader.number_or("psid_offset", 6, 0, 15));
  const std::string fault = rule.fault();
  if (!fault.empty()) refuse(where + ":", fault, "see RFC 7597 5");
  return rule;
}

EdgeRule parse_binding_rule(ObjectReader& reader, const std::string& where) {
  EdgeRule rule;
  if (reader.has("bindings")) {
    rule.kind = EdgeRule::Kind::kTable;
    rule.table = reader.bindings_or_none("bindings");
    if (!rule.table) refuse(reader.path("bindings"), "has no rows", "leave out binding_table");
    return rule;
  }
  rule.kind = EdgeRule::Kind::kBinding;
  uint8_t length = 0;
  std::tie(rule.ipv6, length) = parse_length(reader, "first_b4", 6, 128);
  std::tie(rule.ipv4, rule.ipv4_bits) = parse_prefix(reader, "ipv4_prefix", 4, 32);
  const auto psid_bits = static_cast<uint8_t>(reader.number("psid_length", 0, 16));
  rule.psid_offset = static_cast<uint8_t>(reader.number_or("psid_offset", 0, 0, 15));
  rule.ea_bits = static_cast<uint8_t>(32 - rule.ipv4_bits + psid_bits);
  const std::string fault = rule.fault();
  if (!fault.empty()) refuse(where + ":", fault, "see RFC 7597 5.1");
  const int first = length - rule.ea_bits;
  if (first < 0 || !zero_between(rule.ipv6, first, length)) {
    refuse(reader.path("first_b4"),
           "has no zeros for the numbers of all B4s: the last " + std::to_string(rule.ea_bits) +
               " bits before its length",
           "it is the address of B4 0, and the length of the prefix that each has of its own");
  }
  rule.ipv6_bits = static_cast<uint8_t>(first);
  return rule;
}

EdgeRule parse_domain(ObjectReader& reader, const std::string& where) {
  EdgeRule rule;
  rule.kind = EdgeRule::Kind::kSixRd;
  std::tie(rule.ipv6, rule.ipv6_bits) = parse_prefix(reader, "ipv6_prefix", 6, 64);
  std::tie(rule.ipv4, rule.ipv4_bits) = parse_prefix(reader, "ipv4_prefix", 4, 32);
  rule.ea_bits = static_cast<uint8_t>(32 - rule.ipv4_bits);
  rule.psid_offset = 0;
  const std::string fault = rule.fault();
  if (!fault.empty()) refuse(where + ":", fault, "see RFC 5969 4");
  return rule;
}

using ParseRule = EdgeRule (*)(ObjectReader&, const std::string&);

// A relay is one by its tunnel: an IP header of the other version.
void parse_edges(const Json& json, const std::string& key, ParseRule parse_rule,
                 Behaviour& behaviour) {
  ObjectReader reader(json, key);
  for (const size_t side : {0U, 1U}) {
    const char* const name = kSideNames[side];
    if (!reader.has(name)) continue;
    if (behaviour.edges[side]) {
      refuse(reader.path(name), "is beside another rule of that side", "leave out one of them");
    }
    ObjectReader own(reader.at(name), reader.path(name));
    behaviour.edges[side] = parse_rule(own, reader.path(name));
    own.finish();
    const int outer = behaviour.edges[side]->kind == EdgeRule::Kind::kSixRd ? 4 : 6;
    const bool tunnelled = behaviour.encapsulation &&
                           (*behaviour.encapsulation)[side].ends().kind == net::Tunnel::kIp &&
                           (*behaviour.encapsulation)[side].ends().local.version == outer;
    if (!tunnelled) {
      refuse(reader.path(name),
             "needs encapsulation of that side, kind ip over IPv" + std::to_string(outer),
             "local is the relay's address, remote any edge's, remote_bits what all edges' have in "
             "common");
    }
  }
  reader.finish();
}

std::array<std::optional<MapTranslation>, 2> parse_translation(const Json& json) {
  ObjectReader reader(json, "translation");
  std::array<std::optional<MapTranslation>, 2> found;
  for (const size_t side : {0U, 1U}) {
    const char* const name = kSideNames[side];
    if (!reader.has(name)) continue;
    ObjectReader own(reader.at(name), reader.path(name));
    MapTranslation translation;
    translation.rule = parse_map_rule(own, reader.path(name));
    std::tie(translation.prefix, translation.prefix_bits) = parse_prefix(own, "prefix", 6, 96);
    if (translation.prefix_bits != 64 && translation.prefix_bits != 96) {
      refuse(own.path("prefix"), "must have 64 or 96 bits",
             "it is the default mapping rule's (RFC 7599 5.1): where IPv4 addresses stand in IPv6");
    }
    own.finish();
    found[side] = translation;
  }
  if (found[0] && found[1]) {
    refuse("translation", "is of both sides", "customer edges are on one of them");
  }
  reader.finish();
  return found;
}

AgentBehaviour parse_agent(const Json& json) {
  ObjectReader reader(json, "agent");
  const AgentBehaviour agent{reader.number("unanswered_every", 1, kMaxSequence)};
  reader.finish();
  return agent;
}

Behaviour parse(const Json& json) {
  if (!json.is_object()) refuse("a behaviour", "must be a JSON object", kWhereToRead);
  ObjectReader reader(json, "");
  Behaviour behaviour;
  reader.text_or("about", "");  // for people
  behaviour.seed = reader.number_or("seed", 1, 0, UINT64_MAX);
  if (reader.has("routing")) behaviour.routing = parse_routing(json["routing"]);
  if (reader.has("vlan")) behaviour.vlan = parse_vlan(json["vlan"]);
  if (reader.has("encapsulation")) {
    behaviour.encapsulation = parse_encapsulation(json["encapsulation"]);
  }
  if (reader.has("map")) parse_edges(json["map"], "map", parse_map_rule, behaviour);
  if (reader.has("binding_table")) {
    parse_edges(json["binding_table"], "binding_table", parse_binding_rule, behaviour);
  }
  if (reader.has("sixrd")) parse_edges(json["sixrd"], "sixrd", parse_domain, behaviour);
  if (reader.has("translation")) behaviour.translation = parse_translation(json["translation"]);
  if (reader.has("nat")) {
    const bool off = json["nat"] == "off";
    behaviour.nat =
        off ? nullptr : std::make_shared<const NatSettings>(parse_nat(json["nat"], "nat"));
    const bool routes = !behaviour.routing || behaviour.routing->on;
    if (!off && !routes) refuse("nat", "needs routing", "a wire cannot translate");
  }
  if (reader.has("dns64")) {
    const bool off = json["dns64"] == "off";
    behaviour.dns64 =
        off ? nullptr : std::make_shared<const Dns64Settings>(parse_dns64(json["dns64"], "dns64"));
    const bool routes = !behaviour.routing || behaviour.routing->on;
    if (!off && !routes) refuse("dns64", "needs routing", "a wire answers no queries");
  }
  if (behaviour.routing && behaviour.routing->on) {
    require_pairs(behaviour, behaviour.routing->pairs());
  }
  if (reader.has("agent")) {
    behaviour.agent = parse_agent(json["agent"]);
    const bool wire = behaviour.routing && !behaviour.routing->on;
    if (wire) refuse("agent", "needs routing", "a wire answers no queries");
  }
  for (const Direction d : {kForward, kReverse}) {
    const char* name = kDirectionNames[d];
    if (reader.has(name)) behaviour.directions[d] = parse_direction(json[name], name);
  }
  reader.finish();
  return behaviour;
}

}  // namespace

std::vector<std::vector<net::IpAddress>> Routing::of_side(size_t side) const {
  std::vector<std::vector<net::IpAddress>> result;
  for (size_t number = 0; number < pairs(); ++number) {
    result.push_back(addresses[port_index(side, number)]);
  }
  return result;
}

void require_pairs(const Behaviour& behaviour, size_t pairs) {
  const auto told = [](size_t count) {
    return count == 1 ? "one pair" : std::to_string(count) + " pairs";
  };
  if (behaviour.routing && behaviour.routing->on && behaviour.routing->pairs() != pairs) {
    refuse("routing",
           "has addresses for " + told(behaviour.routing->pairs()) + " of ports; the device has " +
               told(pairs),
           "left and right are for the first pair of ports, more_left and more_right list the "
           "addresses of each further one");
  }
  const bool is_server = behaviour.dns64 && *behaviour.dns64 != nullptr;
  if (((behaviour.nat && *behaviour.nat != nullptr) || is_server) && pairs > 1) {
    refuse(is_server ? "dns64" : "nat", "needs a device with one pair of ports",
           "leave it out, or start the device with one --left and one --right");
  }
}

void refuse(const std::string& where, const std::string& what, const std::string& hint) {
  throw ProtocolError(control::kInvalidParams, where + " " + what, hint);
}

Behaviour parse_behaviour(const Json& json) {
  try {
    return parse(json);
  } catch (const ProtocolError& error) {
    if (!error.hint().empty()) throw;
    throw ProtocolError(error.code(), error.what(), kWhereToRead);
  }
}

}  // namespace dutperf::refdut
