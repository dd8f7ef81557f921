#include "behaviour.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "net/testing/source_tree.h"

namespace dutperf::refdut {
namespace {

using Kind = Action::Kind;

Behaviour parse(const std::string& text) { return parse_behaviour(Json::parse(text)); }

// One forward rule.
Rule rule(const std::string& text) {
  return parse(R"({"forward": {"rules": [)" + text + "]}}").directions[kForward].rules.at(0);
}

TEST(Behaviour, OfNothingIsAWireThatKeepsItsRouting) {
  const Behaviour behaviour = parse("{}");
  EXPECT_EQ(behaviour.seed, 1U);
  EXPECT_FALSE(behaviour.routing.has_value());
  for (const DirectionBehaviour& direction : behaviour.directions) {
    EXPECT_TRUE(direction.rules.empty());
    EXPECT_FALSE(direction.service.has_value());
    EXPECT_TRUE(direction.freezes.empty());
    EXPECT_FALSE(direction.fragments.has_value());
  }
}

TEST(Behaviour, HasWhatTheFileSaysForEachDirection) {
  const Behaviour behaviour = parse(R"({
    "about": "a comment", "seed": 18446744073709551615,
    "forward": {"service": {"rate_fps": 1000, "queue_frames": 0}},
    "reverse": {"freezes": [{"at_ns": 500, "for_ns": 100}, {"at_ns": 0, "for_ns": 500}]}
  })");
  EXPECT_EQ(behaviour.seed, UINT64_MAX);
  EXPECT_EQ(behaviour.directions[kForward].service->rate_fps, 1000U);
  EXPECT_EQ(behaviour.directions[kForward].service->queue_frames, 0U);
  EXPECT_FALSE(behaviour.directions[kReverse].service.has_value());
  const auto& freezes = behaviour.directions[kReverse].freezes;
  ASSERT_EQ(freezes.size(), 2U);
  EXPECT_EQ(freezes[0].at_ns, 0U);
  EXPECT_EQ(freezes[1].at_ns, 500U);
}

TEST(Behaviour, MayHaveAServerForEachReceiveQueue) {
  const Behaviour behaviour = parse(R"({
    "forward": {"service": {"rate_fps": 9, "queue_frames": 5000000, "queues": 2,
                            "hash": "addresses_and_ports"}},
    "reverse": {"service": {"rate_fps": 9, "queue_frames": 1, "queues": 128, "hash": "addresses"}}
  })");
  EXPECT_EQ(behaviour.directions[kForward].service->queues, 2U);
  EXPECT_EQ(behaviour.directions[kForward].service->hash, RssFields::kAddressesAndPorts);
  EXPECT_EQ(behaviour.directions[kReverse].service->queues, 128U);
  EXPECT_EQ(behaviour.directions[kReverse].service->hash, RssFields::kAddresses);
}

TEST(Behaviour, MayHaveVlanTagsOnEachSide) {
  EXPECT_FALSE(parse("{}").vlan.has_value());
  const auto tags = *parse(R"({"vlan": {"right": [{"tpid": 34984, "id": 10}, {"id": 7}]}})").vlan;
  EXPECT_EQ(tags[0], net::VlanTags());
  EXPECT_EQ(tags[1], net::VlanTags(std::vector<net::VlanTag>{{0x88a8, 10}, {0x8100, 7}}));
}

TEST(Behaviour, MayHaveANarrowerLinkInEachDirection) {
  const Behaviour behaviour = parse(R"({
    "forward": {"fragments": {"mtu": 68}, "rules": [{"do": "duplicate"}]},
    "reverse": {"fragments": {"mtu": 9702, "lose_every": 1, "reversed": true},
                "rules": [{"do": "drop"}]}
  })");
  const Fragments& forward = *behaviour.directions[kForward].fragments;
  EXPECT_EQ(forward.mtu, 68U);
  EXPECT_EQ(forward.lose_every, UINT64_MAX);
  EXPECT_FALSE(forward.reversed);
  const Fragments& reverse = *behaviour.directions[kReverse].fragments;
  EXPECT_EQ(reverse.mtu, 9702U);
  EXPECT_EQ(reverse.lose_every, 1U);
  EXPECT_TRUE(reverse.reversed);
}

TEST(Behaviour, HasTheAddressesOfEachPort) {
  const Routing one = *parse(R"({"routing": {"left": ["198.18.0.1"], "right": ["198.19.0.1"],
                                             "more_left": [], "more_right": []}})")
                           .routing;
  EXPECT_EQ(one.pairs(), 1U);
  const Routing two = *parse(R"({"routing": {
    "left": ["198.18.0.1", "2001:2::1"], "more_left": [["198.18.1.1"]],
    "right": ["198.19.0.1"], "more_right": [["198.19.1.1", "2001:2:0:8001::1"]]}})")
                           .routing;
  EXPECT_EQ(two.pairs(), 2U);
  const auto ip = [](const char* text) { return *net::IpAddress::parse(text); };
  using Lists = std::vector<std::vector<net::IpAddress>>;
  EXPECT_EQ(two.of_side(0), (Lists{{ip("198.18.0.1"), ip("2001:2::1")}, {ip("198.18.1.1")}}));
  EXPECT_EQ(two.of_side(1),
            (Lists{{ip("198.19.0.1")}, {ip("198.19.1.1"), ip("2001:2:0:8001::1")}}));
}

TEST(Behaviour, IsForADeviceWithSoManyPairsOfPorts) {
  const Behaviour one = parse(R"({"routing": {"left": ["198.18.0.1"], "right": ["198.19.0.1"]}})");
  EXPECT_NO_THROW(require_pairs(one, 1));
  EXPECT_THROW(require_pairs(one, 2), control::ProtocolError);
  const Behaviour two = parse(R"({"routing": {
    "left": ["198.18.0.1"], "more_left": [["198.18.1.1"]],
    "right": ["198.19.0.1"], "more_right": [["198.19.1.1"]]}})");
  EXPECT_NO_THROW(require_pairs(two, 2));
  EXPECT_THROW(require_pairs(two, 1), control::ProtocolError);
  for (const char* text : {"{}", R"({"routing": "off"})", R"({"nat": "off"})"}) {
    EXPECT_NO_THROW(require_pairs(parse(text), 4)) << text;
  }
}

TEST(Behaviour, KnowsEveryAction) {
  EXPECT_EQ(rule(R"({"do": "drop"})").action.kind, Kind::kDrop);
  EXPECT_EQ(rule(R"({"do": "duplicate"})").action.kind, Kind::kDuplicate);
  const Action reorder = rule(R"({"do": {"reorder": {"distance": 7}}})").action;
  EXPECT_EQ(reorder.kind, Kind::kReorder);
  EXPECT_EQ(reorder.distance, 7U);
  EXPECT_EQ(rule(R"({"do": {"corrupt": "truncation"}})").action.damage, Damage::kTruncation);
  EXPECT_EQ(rule(R"({"do": {"alter": {"hops": 0}}})").action.alteration.hops, 0);
  EXPECT_EQ(rule(R"({"do": {"alter": {"dscp": 63}}})").action.alteration.dscp, 63);
  EXPECT_TRUE(rule(R"({"do": {"alter": "payload"}})").action.alteration.exchanges);
  const Action fixed = rule(R"({"do": {"delay_ns": 5}})").action;
  EXPECT_EQ(fixed.kind, Kind::kDelay);
  EXPECT_EQ(fixed.delay_from_ns, 5U);
  EXPECT_EQ(fixed.delay_to_ns, 5U);
  const Action uniform = rule(R"({"do": {"delay_ns": {"from": 5, "to": 9}}})").action;
  EXPECT_EQ(uniform.delay_from_ns, 5U);
  EXPECT_EQ(uniform.delay_to_ns, 9U);
}

TEST(Behaviour, KnowsWhichFramesAndWhen) {
  EXPECT_EQ(rule(R"({"do": "drop"})").match.kind, Match::Kind::kAll);
  EXPECT_EQ(rule(R"({"match": "background", "do": "drop"})").match.kind, Match::Kind::kBackground);
  EXPECT_EQ(rule(R"({"match": "other", "do": "drop"})").match.kind, Match::Kind::kOther);
  EXPECT_EQ(rule(R"({"match": "other", "do": "duplicate"})").match.kind, Match::Kind::kOther);
  EXPECT_EQ(rule(R"({"match": "other", "do": {"delay_ns": 7}})").action.delay_to_ns, 7U);
  const Match stream = rule(R"({"match": {"stream": 255}, "do": "drop"})").match;
  EXPECT_EQ(stream.kind, Match::Kind::kStream);
  EXPECT_EQ(stream.stream, 255);
  const Rule window =
      rule(R"({"when": {"from_ns": 3, "since": "configured"}, "every": 9, "do": "drop"})");
  EXPECT_EQ(window.when.from_ns, 3U);
  EXPECT_EQ(window.when.to_ns, UINT64_MAX);
  EXPECT_TRUE(window.when.since_configured);
  EXPECT_EQ(window.choice.kind, Choice::Kind::kEvery);
  EXPECT_EQ(window.choice.every, 9U);
}

TEST(Behaviour, TurnsProbabilitiesIntoShareOf64Bits) {
  EXPECT_EQ(rule(R"({"probability": 0.5, "do": "drop"})").choice.threshold, 1ULL << 63);
  EXPECT_EQ(rule(R"({"probability": 0.0001, "do": "drop"})").choice.threshold,
            1844674407370955U);  // 2^64 / 10,000, rounded down
  EXPECT_EQ(rule(R"({"probability": 1, "do": "drop"})").choice.threshold, UINT64_MAX);
}

TEST(Behaviour, HasTheRoutersAddressesOnBothSides) {
  const auto routing =
      parse(R"({"routing": {"left": ["198.18.0.1", "2001:2::1"], "right": ["198.19.0.1"]}})")
          .routing;
  ASSERT_TRUE(routing.has_value());
  EXPECT_TRUE(routing->on);
  EXPECT_EQ(routing->addresses[0].size(), 2U);
  EXPECT_EQ(routing->addresses[1][0], net::IpAddress::parse("198.19.0.1"));
  EXPECT_FALSE(parse(R"({"routing": "off"})").routing->on);
}

struct Refused {
  const char* json;
  const char* message;
};

class BehaviourRefuses : public ::testing::TestWithParam<Refused> {};

TEST_P(BehaviourRefuses, WithPlaceAndHint) {
  try {
    parse(GetParam().json);
    FAIL() << "accepted";
  } catch (const control::ProtocolError& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam().message), std::string::npos)
        << error.what();
    EXPECT_FALSE(error.hint().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, BehaviourRefuses,
    ::testing::Values(
        Refused{"[]", "a behaviour must be a JSON object"},
        Refused{R"({"sed": 1})", "sed is not a known key"},
        Refused{R"({"seed": -1})", "seed must be a whole number"},
        Refused{R"({"about": 1})", "about must be a string"},
        Refused{R"({"forward": []})", "forward must be an object"},
        Refused{R"({"forward": {"rules": {}}})", "forward.rules must be a list"},
        Refused{R"({"forward": {"rules": [{}]}})", "forward.rules[0].do is missing"},
        Refused{R"({"forward": {"rules": [{"do": "lose"}]}})",
                "forward.rules[0].do is not an action"},
        Refused{R"({"forward": {"rules": [{"do": {"corrupt": "payload", "reorder": 1}}]}})",
                "forward.rules[0].do is not an action"},
        Refused{R"({"forward": {"rules": [{"do": "drop"}, {"do": "drop", "evry": 2}]}})",
                "forward.rules[1].evry is not a known key"},
        Refused{R"({"reverse": {"rules": [{"do": "drop", "every": 0}]}})",
                "reverse.rules[0].every must be between 1"},
        Refused{R"({"reverse": {"rules": [{"do": "drop", "every": 2, "probability": 0.5}]}})",
                "reverse.rules[0].every and probability exclude each other"},
        Refused{R"({"reverse": {"rules": [{"do": "drop", "probability": 0}]}})",
                "reverse.rules[0].probability must be a number above 0 and up to 1"},
        Refused{R"({"reverse": {"rules": [{"do": "drop", "probability": 1.01}]}})",
                "reverse.rules[0].probability must be"},
        Refused{R"({"reverse": {"rules": [{"do": "drop", "probability": "1"}]}})",
                "reverse.rules[0].probability must be"},
        Refused{R"({"forward": {"rules": [{"do": "drop", "match": "none"}]}})",
                "forward.rules[0].match is none of the matches"},
        Refused{R"({"forward": {"rules": [{"match": "other", "do": {"corrupt": "payload"}}]}})",
                "forward.rules[0].do corrupt is for test frames only"},
        Refused{
            R"({"reverse": {"rules": [{"match": "other", "do": {"reorder": {"distance": 1}}}]}})",
            "reverse.rules[0].do reorder is for test frames only"},
        Refused{R"({"forward": {"rules": [{"match": "other", "do": {"alter": {"hops": 0}}}]}})",
                "forward.rules[0].do alter is for test frames only"},
        Refused{R"({"forward": {"rules": [{"do": {"alter": {"hops": 255}}}]}})",
                "forward.rules[0].do.alter.hops must be between 0 and 254"},
        Refused{R"({"forward": {"rules": [{"do": {"alter": {"dscp": 64}}}]}})",
                "forward.rules[0].do.alter.dscp must be between 0 and 63"},
        Refused{R"({"forward": {"rules": [{"do": {"alter": {"dscp": 1, "hops": 1}}}]}})",
                "forward.rules[0].do.alter is not an alteration"},
        Refused{R"({"forward": {"rules": [{"do": "drop", "match": {"stream": 256}}]}})",
                "forward.rules[0].match.stream must be between 0 and 255"},
        Refused{R"({"forward": {"rules": [{"do": "drop", "when": {"from_ns": 5, "to_ns": 5}}]}})",
                "forward.rules[0].when.to_ns must be greater than from_ns"},
        Refused{R"({"forward": {"rules": [{"do": "drop", "when": {"since": "ever"}}]}})",
                "forward.rules[0].when.since is neither"},
        Refused{R"({"forward": {"rules": [{"do": {"delay_ns": 1e9}}]}})",
                "forward.rules[0].do.delay_ns must be a whole number of nanoseconds"},
        Refused{R"({"forward": {"rules": [{"do": {"delay_ns": {"from": 2, "to": 1}}}]}})",
                "forward.rules[0].do.delay_ns.to must be between 2"},
        Refused{R"({"forward": {"rules": [{"do": {"reorder": {"distance": 0}}}]}})",
                "forward.rules[0].do.reorder.distance must be between 1"},
        Refused{R"({"forward": {"rules": [{"do": {"corrupt": "header"}}]}})",
                "forward.rules[0].do.corrupt is not a kind of damage"},
        Refused{R"({"forward": {"service": {"rate_fps": 1000}}})",
                "forward.service.queue_frames is missing"},
        Refused{R"({"forward": {"service": {"rate_fps": 0, "queue_frames": 1}}})",
                "forward.service.rate_fps must be between 1"},
        Refused{R"({"forward": {"service": {"rate_fps": 9, "queue_frames": 1, "queues": 4}}})",
                "forward.service.hash is missing"},
        Refused{R"({"forward": {"service": {"rate_fps": 9, "queue_frames": 1, "queues": 4,
                                            "hash": "ports"}}})",
                "forward.service.hash is neither"},
        Refused{R"({"forward": {"service": {"rate_fps": 9, "queue_frames": 1,
                                            "hash": "addresses"}}})",
                "forward.service.hash needs more than one of queues"},
        Refused{R"({"forward": {"service": {"rate_fps": 9, "queue_frames": 1, "queues": 129,
                                            "hash": "addresses"}}})",
                "forward.service.queues must be between 1 and 128"},
        Refused{R"({"forward": {"service": {"rate_fps": 9, "queue_frames": 1, "queues": 2,
                                            "hash": "addresses", "withhold": true}}})",
                "forward.service.withhold needs one queue"},
        Refused{R"({"forward": {"service": {"rate_fps": 9, "queue_frames": 5000001, "queues": 2,
                                            "hash": "addresses"}}})",
                "forward.service.queue_frames is for each of the queues"},
        Refused{
            R"({"forward": {"freezes": [{"at_ns": 0, "for_ns": 2}, {"at_ns": 1, "for_ns": 1}]}})",
            "forward.freezes overlap"},
        Refused{R"({"forward": {"fragments": 1500}})", "forward.fragments must be an object"},
        Refused{R"({"forward": {"fragments": {}}})", "forward.fragments.mtu is missing"},
        Refused{R"({"forward": {"fragments": {"mtu": 67}}})",
                "forward.fragments.mtu must be between 68 and 9702"},
        Refused{R"({"reverse": {"fragments": {"mtu": 9703}}})",
                "reverse.fragments.mtu must be between 68 and 9702"},
        Refused{R"({"forward": {"fragments": {"mtu": "1500"}}})",
                "forward.fragments.mtu must be a whole number"},
        Refused{R"({"forward": {"fragments": {"mtu": 1500, "lose_every": 0}}})",
                "forward.fragments.lose_every must be between 1"},
        Refused{R"({"forward": {"fragments": {"mtu": 1500, "reversed": 1}}})",
                "forward.fragments.reversed must be"},
        Refused{R"({"forward": {"fragments": {"mtu": 1500, "reverse": true}}})",
                "forward.fragments.reverse is not a known key"},
        Refused{R"({"forward": {"fragments": {"mtu": 1500, "lose_every": 9},
                                "rules": [{"do": "drop"}, {"do": "duplicate"}]}})",
                "forward.fragments.lose_every and rules that duplicate exclude each other"},
        Refused{R"({"agent": {}})", "agent.unanswered_every is missing"},
        Refused{R"({"agent": {"unanswered_every": 0}})",
                "agent.unanswered_every must be between 1"},
        Refused{R"({"agent": {"unanswered_every": 2, "every": 2}})",
                "agent.every is not a known key"},
        Refused{R"({"agent": {"unanswered_every": 2}, "routing": "off"})", "agent needs routing"},
        Refused{R"({"routing": "on"})", "routing is neither"}, Refused{R"({"vlan": [10]})", "vlan"},
        Refused{R"({"vlan": {"top": []}})", "vlan.top is not a known key"},
        Refused{R"({"encapsulation": {"top": {}}})", "encapsulation.top is not a known key"},
        Refused{R"({"encapsulation": {"left": {"kind": "6in4"}}})",
                "encapsulation.left.kind is none"},
        Refused{R"({"translation": {"left": {"ipv6_prefix": "2001:db8::/40",
                    "ipv4_prefix": "192.0.2.0/24", "ea_bits": 16}}})",
                "translation.left.prefix is missing"},
        Refused{R"({"translation": {"left": {"ipv6_prefix": "2001:db8::/40",
                    "ipv4_prefix": "192.0.2.0/24", "ea_bits": 16, "prefix": "64:ff9b::/80"}}})",
                "translation.left.prefix must have 64 or 96 bits"},
        Refused{R"({"map": {"left": {"ipv6_prefix": "2001:db8::/65"}}})",
                "map.left.ipv6_prefix is no prefix of IPv6"},
        Refused{R"({"map": {"left": {"ipv6_prefix": "2001:db8::1/40"}}})",
                "map.left.ipv6_prefix has bits behind its length"},
        Refused{R"({"map": {"left": {"ipv6_prefix": "2001:db8::/40", "ipv4_prefix": "::/24"}}})",
                "map.left.ipv4_prefix is no prefix of IPv4"},
        Refused{R"({"map": {"left": {"ipv6_prefix": "2001:db8::/40", "ipv4_prefix": "10.0.0.0/8",
                                     "ea_bits": 16}}})",
                "map.left: ea_bits are fewer than the IPv4 suffix has"},
        Refused{R"({"map": {"left": {"ipv6_prefix": "2001:db8::/40", "ipv4_prefix": "10.0.0.0/24",
                                     "ea_bits": 16}}})",
                "map.left needs encapsulation of that side"},
        Refused{R"({"binding_table": {"left": {"bindings": "AAA"}}})",
                "binding_table.left.bindings is no base64"},
        Refused{R"({"binding_table": {"left": {"bindings": "A=AA"}}})",
                "binding_table.left.bindings is no base64"},
        Refused{R"({"binding_table": {"left": {"bindings": "AAAA"}}})",
                "binding_table.left.bindings is no binding table: must be rows of 24 bytes"},
        Refused{R"({"binding_table": {"left": {"bindings": null}}})",
                "binding_table.left.bindings has no rows"},
        Refused{R"({"binding_table": {"left": {"first_b4": "2001:db8::/129"}}})",
                "binding_table.left.first_b4 is no prefix of IPv6"},
        Refused{R"({"binding_table": {"left": {"first_b4": "2001:db8:0:1::1/64",
                    "ipv4_prefix": "192.0.2.0/24", "psid_length": 8}}})",
                "binding_table.left.first_b4 has no zeros for the numbers of all B4s: the last 16"},
        Refused{R"({"binding_table": {"left": {"first_b4": "2001:db8::1/64",
                    "ipv4_prefix": "192.0.2.0/24", "psid_length": 12, "psid_offset": 6}}})",
                "binding_table.left: psid_offset and the PSID are more bits than a port has"},
        Refused{R"({"binding_table": {"left": {"first_b4": "2001:db8::1/64",
                    "ipv4_prefix": "192.0.2.0/24", "psid_length": 8}}})",
                "binding_table.left needs encapsulation of that side"},
        Refused{R"({"encapsulation": {"left": {"kind": "ip", "local": "2001:2::1",
                                               "remote": "2001:db8::1", "remote_bits": 48}},
                    "map": {"left": {"ipv6_prefix": "2001:db8::/40", "ipv4_prefix": "10.0.0.0/24",
                                     "ea_bits": 16}},
                    "binding_table": {"left": {"first_b4": "2001:db8::1/64",
                                    "ipv4_prefix": "192.0.2.0/24", "psid_length": 8}}})",
                "binding_table.left is beside another rule of that side"},
        Refused{R"({"sixrd": {"left": {"ipv6_prefix": "2001:db8::/48",
                                       "ipv4_prefix": "10.0.0.0/8"}}})",
                "sixrd.left: ea_bits reach into the interface identifier"},
        Refused{R"({"encapsulation": {"left": {"kind": "ip", "local": "2001:2::1",
                                               "remote": "2001:db8::1"}},
                    "sixrd": {"left": {"ipv6_prefix": "2001:db8::/32",
                                       "ipv4_prefix": "10.0.0.0/8"}}})",
                "sixrd.left needs encapsulation of that side, kind ip over IPv4"},
        Refused{R"({"vlan": {"left": [{"id": 4095}]}})", "vlan.left[0].id must be between 0"},
        Refused{R"({"routing": {"left": ["198.18.0.1/24"], "right": ["198.19.0.1"]}})",
                "routing.left[0] is not an IP address"},
        Refused{R"({"routing": {"left": ["198.18.0.1"]}})", "routing.right is missing"},
        Refused{R"({"routing": {"left": ["198.18.0.1"], "right": ["198.19.0.1"],
                                "more_left": [["198.18.1.1"]]}})",
                "routing.more_left and more_right have not as many ports"},
        Refused{R"({"routing": {"left": ["198.18.0.1"], "right": ["198.19.0.1"],
                                "more_right": [["198.19.1.1"]]}})",
                "routing.more_left and more_right have not as many ports"},
        Refused{R"({"routing": {"left": ["198.18.0.1"], "right": ["198.19.0.1"],
                                "more_left": ["198.18.1.1"], "more_right": ["198.19.1.1"]}})",
                "routing.more_left[0] is no list"},
        Refused{R"({"routing": {"left": ["198.18.0.1"], "right": ["198.19.0.1"],
                                "more_left": [["198.18.1.1"]], "more_right": [[]]}})",
                "routing.more_right[0] is no list"},
        Refused{R"({"routing": {"left": ["198.18.0.1"], "right": ["198.19.0.1"],
                                "more_left": [["198.18.1"]], "more_right": [["198.19.1.1"]]}})",
                "routing.more_left[0][0] is not an IP address"},
        Refused{R"({"routing": {"left": ["::1"], "right": ["::2"],
                                "more_left": [["::3"], ["::4"], ["::5"], ["::6"]],
                                "more_right": []}})",
                "routing.more_left must"},
        Refused{R"({"routing": {"left": ["198.18.0.1"], "right": ["198.19.0.1"],
                                "more_left": [["198.18.1.1"]],
                                "more_right": [["198.19.1.1", "198.19.0.1"]]}})",
                "routing.more_right has 198.19.0.1, which another port"},
        Refused{R"({"routing": {"left": ["10.0.0.1"], "right": ["198.19.0.1"],
                                "more_left": [["10.1.0.1"]], "more_right": [["198.19.1.1"]]},
                    "nat": {"kind": "nat44", "public": {"first_address": "198.19.0.1"},
                            "table": {"entries": 9}}})",
                "nat needs a device with one pair of ports"}));

TEST(Behaviour, OfEveryExampleIsWhole) {
  size_t found = 0;
  const std::filesystem::path tree = net::testing::source_tree();
  for (const auto& entry : std::filesystem::directory_iterator(tree / "examples/known-answer")) {
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path());
    const Behaviour behaviour = parse_behaviour(Json::parse(file));
    EXPECT_FALSE(behaviour.routing.has_value()) << "an example fits wire and router";
    ++found;
  }
  EXPECT_GE(found, 10U);
}

}  // namespace
}  // namespace dutperf::refdut
