#include "control/stream_messages.h"

#include <gtest/gtest.h>

#include <functional>

#include "control/testing/refusal.h"

namespace dutperf::control {
namespace {

using testing::refusal;
using vary::Field;
using vary::Mode;
using vary::Order;

Json stream_of(int version) {
  const bool v4 = version == 4;
  return {{"id", 3},
          {"ip_version", version},
          {"frame_sizes", {128}},
          {"received_frame_sizes", {128}},
          {"src_ip", v4 ? "198.18.0.2" : "2001:2::2"},
          {"dst_ip", v4 ? "198.19.0.2" : "2001:2:0:8000::2"},
          {"next_hop", "198.18.0.1"}};
}

Json variation(const char* field, int width, uint64_t min, uint64_t max) {
  return {{"field", field}, {"width", width}, {"min", min}, {"max", max}};
}

ParsedStream parse(const Json& stream, uint64_t seed = 1) {
  // By way of text, as from the socket: a number there is unsigned, a literal here is not.
  dataplane::TrialSpec trial;
  trial.trial_id = 41;
  return parse_stream(Json::parse(stream.dump()), "streams[0]", trial, seed);
}

TEST(ParseStream, GivesEveryKeyItsDefault) {
  const ParsedStream parsed = parse(stream_of(4), 77);
  const net::FrameLayout& layout = parsed.spec.layout;
  EXPECT_EQ(layout.src_port, 0xC020);
  EXPECT_EQ(layout.dst_port, 7);
  EXPECT_EQ(layout.ttl, 10);
  EXPECT_EQ(layout.dscp, 0);
  EXPECT_EQ(layout.flow_label, 0U);
  EXPECT_FALSE(layout.df);
  EXPECT_FALSE(layout.identified);
  EXPECT_EQ(parsed.spec.tag, (net::TagIdentity{41, 3, 0}));
  EXPECT_EQ(parsed.spec.variations, (vary::Variations{{}, Order::kRandom, 77}));
  EXPECT_EQ(parsed.addressing.at(0).src_mac, std::nullopt);
}

Json path_of(int sent_by, int received_by, const char* src_ip, const char* dst_ip) {
  return {{"sent_by", sent_by}, {"received_by", received_by}, {"src_ip", src_ip},
          {"dst_ip", dst_ip},   {"next_hop", "198.18.1.1"},   {"dst_mac", "02:00:00:00:00:09"}};
}

TEST(ParseStream, ReadsPathsBesideItsOwn) {
  Json json = stream_of(4);
  json["more_paths"] = Json::array({path_of(1, 2, "198.18.1.2", "198.19.2.2")});
  const ParsedStream parsed = parse(json);
  ASSERT_EQ(parsed.spec.paths(), 2U);
  EXPECT_EQ(parsed.spec.sent_by(0), 0);
  EXPECT_EQ(parsed.spec.received_by(0), 0);
  EXPECT_EQ(parsed.spec.sent_by(1), 1);
  EXPECT_EQ(parsed.spec.received_by(1), 2);
  EXPECT_EQ(parsed.spec.layout_of(1).src_ip.text(), "198.18.1.2");
  EXPECT_EQ(parsed.spec.layout_of(1).dst_ip.text(), "198.19.2.2");
  EXPECT_EQ(parsed.addressing.at(1).next_hop.text(), "198.18.1.1");
  EXPECT_EQ(parsed.addressing.at(1).dst_mac, net::Mac::parse("02:00:00:00:00:09"));
}

TEST(ParseStream, RefusesPathsThatAStreamCannotHave) {
  const auto with = [](const Json& path, const char* key, const Json& value) {
    Json json = stream_of(4);
    json["more_paths"] = Json::array({path});
    json[key] = value;
    return refusal([&] { parse(json); });
  };
  const Json path = path_of(1, 1, "198.18.1.2", "198.19.1.2");
  // Bits 16 to 23 are where the paths' addresses differ.
  Json networks = variation("dst_ip", 8, 0, 255);
  networks["offset"] = 16;
  Json hosts = variation("dst_ip", 8, 2, 254);
  hosts["offset"] = 24;
  EXPECT_EQ(with(path, "vary", Json::array({hosts})), "accepted");
  EXPECT_NE(with(path, "vary", Json::array({networks})).find("paths differ"), std::string::npos);
  EXPECT_NE(with(path_of(4, 1, "198.18.1.2", "198.19.1.2"), "ttl", 9).find("sent_by"),
            std::string::npos);
  EXPECT_NE(with(path_of(1, 1, "2001:2::2", "198.19.1.2"), "ttl", 9).find("src_ip"),
            std::string::npos);
  Json many = Json::array();
  for (int size = 100; size < 133; ++size) many.push_back(size);
  Json json = stream_of(4);
  json["more_paths"] = Json::array({path});
  json["frame_sizes"] = json["received_frame_sizes"] = many;
  EXPECT_NE(refusal([&] { parse(json); }).find("more_paths"), std::string::npos);
}

TEST(ParseStream, ReadsEveryFieldModeAndOrder) {
  const std::pair<const char*, Field> fields[] = {
      {"src_mac", Field::kSrcMac},       {"dst_mac", Field::kDstMac},
      {"flow_label", Field::kFlowLabel}, {"vlan_id", Field::kVlanId},
      {"src_ip", Field::kSrcIp},         {"dst_ip", Field::kDstIp},
      {"src_port", Field::kSrcPort},     {"dst_port", Field::kDstPort}};
  for (const auto& [name, field] : fields) {
    Json stream = stream_of(6);
    stream["vary"] = Json::array({variation(name, 9, 3, 500)});
    EXPECT_EQ(parse(stream).spec.variations.list.at(0),
              (vary::Variation{field, 0, 9, 3, 500, Mode::kRandom}));
  }
  const std::pair<const char*, Mode> modes[] = {{"increasing", Mode::kIncreasing},
                                                {"decreasing", Mode::kDecreasing},
                                                {"random", Mode::kRandom},
                                                {"enumerate", Mode::kEnumerate}};
  for (const auto& [name, mode] : modes) {
    Json stream = stream_of(4);
    stream["vary"] = Json::array({variation("src_port", 8, 0, 255)});
    stream["vary"][0]["mode"] = name;
    stream["vary"][0]["offset"] = 8;
    EXPECT_EQ(parse(stream).spec.variations.list.at(0),
              (vary::Variation{Field::kSrcPort, 8, 8, 0, 255, mode}));
  }
  const std::pair<const char*, Order> orders[] = {{"increasing", Order::kIncreasing},
                                                  {"decreasing", Order::kDecreasing},
                                                  {"random", Order::kRandom}};
  for (const auto& [name, order] : orders) {
    Json stream = stream_of(4);
    stream["enumeration_order"] = name;
    EXPECT_EQ(parse(stream).spec.variations.order, order);
  }
}

// One change of a good stream, and what is said about it.
struct Refused {
  int version;
  Json patch;
  std::string message;
};

class RefusedStream : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedStream, IsToldWhatIsWrong) {
  Json stream = stream_of(GetParam().version);
  stream.merge_patch(GetParam().patch);
  EXPECT_EQ(refusal([&] { parse(stream); }), "streams[0]." + GetParam().message);
}

Json vary(const std::vector<Json>& list) { return {{"vary", list}}; }

Json changed(Json json, const char* key, const Json& value) {
  json[key] = value;
  return json;
}

Json copy(const char* field, int offset, const char* of, int of_offset, int width) {
  return {
      {"field", field}, {"offset", offset}, {"of", of}, {"of_offset", of_offset}, {"width", width}};
}

Json copies(const std::vector<Json>& list) { return {{"copies", list}}; }

const Json kPort = variation("src_port", 16, 1024, 65535);

Json given(const Json& changes) {
  Json tuples = {{"source", "given"},
                 {"order", "increasing"},
                 {"count", 3},
                 {"flows",
                  {{{"src_ip", "198.18.1.2"},
                    {"dst_ip", "198.19.1.2"},
                    {"src_port", 0},
                    {"dst_port", 65535}}}},
                 {"sequence", {0, 0, 0}}};
  tuples.update(changes);
  return {{"tuples", tuples}};
}

const std::vector<Refused> kRefused = {
    {6, given(Json::object()), "tuples.flows[0].dst_ip is not an IPv6 address"},
    {4, given({{"order", "random"}}),
     "tuples.order must be increasing: the flows are given in their order"},
    {4, given({{"count", 2}}), "tuples.count must be that of the numbers in sequence"},
    {4, given({{"sequence", {0, 1, 0}}}),
     "tuples.sequence[1] must be the number of a flow, counted from 0"},
    {4, given({{"sequence", Json::array()}}), "tuples.sequence must be a list of 1 to 4096"},
    {4, given({{"flows", Json::array()}}), "tuples.flows must be a list of 1 to 4096"},
    {4, {{"ip_version", 5}}, "ip_version must be 4 or 6"},
    {4, {{"ip_version", 6}}, "src_ip is not an IPv6 address"},
    {6, {{"dst_ip", "198.19.0.2"}}, "dst_ip is not an IPv6 address"},
    {4, {{"id", 256}}, "id must be between 0 and 255"},
    {4, {{"name", "middle"}}, "name is none of foreground, background, beside"},
    {4, {{"frame_sizes", Json::array()}}, "frame_sizes must be a list of 1 to 4096"},
    {4, {{"frame_sizes", std::vector(4097, 64)}}, "frame_sizes must be a list of 1 to 4096"},
    {4, {{"frame_sizes", {64, 63}}}, "frame_sizes[1] must be a whole number from 64 to 9720"},
    {6, {{"frame_sizes", {83}}}, "frame_sizes[0] must be a whole number from 84 to 9720"},
    {4, {{"frame_sizes", {9721}}}, "frame_sizes[0] must be a whole number from 64 to 9720"},
    {4, {{"frame_sizes", {64.0}}}, "frame_sizes[0] must be a whole number from 64 to 9720"},
    {4, {{"frame_sizes", {-64}}}, "frame_sizes[0] must be a whole number from 64 to 9720"},
    {6,
     {{"received_frame_sizes", {63}}},
     "received_frame_sizes[0] must be a whole number from 64 to 9720"},
    {4,
     {{"frame_sizes", {64, 64}}},
     "received_frame_sizes must have one size for each of frame_sizes"},
    {4, {{"next_hop", "dut"}}, "next_hop is not an IP address"},
    {4, {{"src_mac", "02-00-00-00-00-01"}}, "src_mac is not a MAC address"},
    {4, {{"dst_mac", "02:00:00:00:00:AB"}}, "dst_mac is not a MAC address"},
    {4, {{"src_port", 65536}}, "src_port must be between 0 and 65535"},
    {4, {{"dst_port", -1}}, "dst_port must be a whole number of 0 or more"},
    {4, {{"ttl", 0}}, "ttl must be between 1 and 255"},
    {4, {{"dscp", 64}}, "dscp must be between 0 and 63"},
    {6, {{"flow_label", 1 << 20}}, "flow_label must be between 0 and 1048575"},
    {4, {{"df", 1}}, "df must be true or false"},
    {4, {{"most_pieces", 0}}, "most_pieces must be between 1 and 1215"},
    {4, {{"most_pieces", 1216}}, "most_pieces must be between 1 and 1215"},
    {4,
     {{"most_pieces", 2}, {"df", true}},
     "most_pieces must be 1 for IPv6 and with df, which nobody fragments"},
    {6, {{"most_pieces", 2}}, "most_pieces must be 1 for IPv6 and with df, which nobody fragments"},
    {4, {{"tos", 1}}, "tos is not a known key"},
    {4,
     {{"enumeration_order", "up"}},
     "enumeration_order is none of increasing, decreasing, random"},
    {4, vary(std::vector<Json>(9, kPort)), "vary must be a list of 0 to 8"},
    {4, vary({Json(1)}), "vary[0] must be an object"},
    {4, vary({changed(kPort, "field", "port")}),
     "vary[0].field is none of src_mac, dst_mac, vlan_id, flow_label, src_ip, dst_ip, src_port, "
     "dst_port, outer_src, outer_src_port, outer_flow_label"},
    {4, vary({variation("flow_label", 20, 0, 1)}), "vary[0].field flow_label is a field of IPv6"},
    {4, vary({changed(kPort, "mode", "fixed")}),
     "vary[0].mode is none of increasing, decreasing, random, enumerate"},
    {4, vary({changed(kPort, "step", 2)}), "vary[0].step is not a known key"},
    {4, vary({variation("src_port", 0, 0, 0)}), "vary[0].width must be between 1 and 32"},
    {6, vary({variation("src_ip", 33, 0, 0)}), "vary[0].width must be between 1 and 32"},
    {4, vary({variation("src_port", 17, 0, 0)}),
     "vary[0].width reaches beyond the field's 16 bits"},
    {4, vary({changed(kPort, "offset", 1)}), "vary[0].width reaches beyond the field's 16 bits"},
    {4, vary({changed(kPort, "offset", 16)}), "vary[0].offset must be between 0 and 15"},
    {6, vary({changed(variation("dst_ip", 1, 0, 1), "offset", 128)}),
     "vary[0].offset must be between 0 and 127"},
    {4, vary({variation("src_port", 16, 2, 1)}), "vary[0].max must be between 2 and 65535"},
    {4, vary({variation("src_port", 16, 0, 65536)}), "vary[0].max must be between 0 and 65535"},
    {4, vary({variation("src_port", 15, 32768, 32768)}), "vary[0].min must be between 0 and 32767"},
    {4, vary({variation("dst_port", 1, 0, 1), kPort, kPort}), "vary[2] overlaps an earlier one"},
    {4,
     vary({changed(variation("src_ip", 8, 0, 1), "offset", 24),
           changed(variation("src_ip", 9, 0, 1), "offset", 16)}),
     "vary[1] overlaps an earlier one"},
    {6,
     vary({changed(variation("src_ip", 32, 0, UINT32_MAX), "mode", "enumerate"),
           changed(variation("src_port", 16, 0, 65535), "mode", "enumerate"),
           changed(variation("dst_port", 1, 0, 1), "mode", "enumerate")}),
     "vary enumerates more than 2^48 combinations"},
    {4, copies({Json(1)}), "copies[0] must be an object"},
    {4, copies({copy("outer_src", 0, "tos", 0, 1)}),
     "copies[0].of is none of src_mac, dst_mac, vlan_id, flow_label, src_ip, dst_ip, src_port, "
     "dst_port, outer_src, outer_src_port, outer_flow_label"},
    {4, copies({copy("outer_src", 0, "flow_label", 0, 1)}),
     "copies[0].of flow_label is a field of IPv6"},
    {4, copies({copy("outer_src", 0, "src_ip", 0, 33)}),
     "copies[0].width must be between 1 and 32"},
    {4, copies({copy("outer_src", 0, "src_ip", 25, 8)}),
     "copies[0].width reaches beyond the field's 32 bits"},
    {4, copies({copy("outer_src", 121, "src_ip", 0, 8)}),
     "copies[0].width reaches beyond the field's 128 bits"},
    {4,
     {{"vary", Json::array({kPort})},
      {"copies", Json::array({copy("src_port", 15, "dst_port", 0, 1)})}},
     "copies[0].field has bits there that vary"},
    {4, copies({copy("src_ip", 0, "src_ip", 7, 8)}),
     "copies[0].field has bits there that another copy has, too"},
    {4, copies({copy("src_ip", 0, "dst_ip", 0, 8), copy("src_ip", 7, "dst_ip", 8, 1)}),
     "copies[1].field has bits there that another copy has, too"},
    {4, copies({copy("src_ip", 0, "dst_ip", 0, 8), copy("src_port", 0, "src_ip", 7, 1)}),
     "copies[1].field has bits there that another copy has, too"},
};

INSTANTIATE_TEST_SUITE_P(ParseStream, RefusedStream, ::testing::ValuesIn(kRefused));

class NeededKey : public ::testing::TestWithParam<const char*> {};

TEST_P(NeededKey, IsAskedFor) {
  Json stream = stream_of(4);
  stream.erase(GetParam());
  EXPECT_EQ(refusal([&] { parse(stream); }),
            std::string("streams[0].") + GetParam() + " is missing");
}

INSTANTIATE_TEST_SUITE_P(ParseStream, NeededKey,
                         ::testing::Values("id", "ip_version", "frame_sizes",
                                           "received_frame_sizes", "src_ip", "dst_ip", "next_hop"));

class NeededKeyOfAVariation : public ::testing::TestWithParam<const char*> {};

TEST_P(NeededKeyOfAVariation, IsAskedFor) {
  Json stream = stream_of(4);
  stream["vary"] = Json::array({kPort});
  stream["vary"][0].erase(GetParam());
  EXPECT_EQ(refusal([&] { parse(stream); }),
            std::string("streams[0].vary[0].") + GetParam() + " is missing");
}

INSTANTIATE_TEST_SUITE_P(ParseStream, NeededKeyOfAVariation,
                         ::testing::Values("field", "width", "min", "max"));

dataplane::StreamSpec stream_with(const vary::Variations& variations,
                                  std::optional<vary::Tuples> tuples = {}) {
  dataplane::StreamSpec stream;
  stream.variations = variations;
  stream.tuples = tuples;
  return stream;
}

const vary::Variations kHundredPorts{{{Field::kSrcPort, 0, 16, 0, 99, Mode::kEnumerate}}};

TEST(CheckEnumeration, RefusesOneThatTheFramesWouldExhaust) {
  check_enumeration(stream_with(kHundredPorts), 100, "streams[1]");
  try {
    check_enumeration(stream_with(kHundredPorts), 101, "streams[1]");
    FAIL() << "accepted";
  } catch (const ProtocolError& error) {
    EXPECT_STREQ(error.what(),
                 "streams[1].vary enumerates 100 combinations, fewer than the trial's 101 frames");
    EXPECT_EQ(error.hint(), "widen a range, or send fewer frames");
    EXPECT_EQ(error.code(), kInvalidParams);
  }
}

TEST(CheckEnumeration, MayGoRoundUpAndDown) {
  for (const vary::Order order : {vary::Order::kIncreasing, vary::Order::kDecreasing}) {
    check_enumeration(stream_with({kHundredPorts.list, order}), 101, "streams[0]");
  }
}

TEST(CheckEnumeration, ConcernsEnumeratedFieldsOnly) {
  check_enumeration(stream_with({}), UINT64_MAX, "streams[0]");
  check_enumeration(stream_with({{{Field::kSrcPort, 0, 16, 0, 0, Mode::kRandom}}}), 1000,
                    "streams[0]");
}

TEST(CheckEnumeration, CountsTuplesThatAreTakenOnceEach) {
  using vary::IndexOrder;
  using vary::IndexSource;
  for (const IndexSource source : {IndexSource::kGenerated, IndexSource::kLearned}) {
    const vary::Variations variations =
        source == IndexSource::kGenerated ? kHundredPorts : vary::Variations{};
    for (const IndexOrder order : {IndexOrder::kOnce, IndexOrder::kShuffled}) {
      const auto stream = stream_with(variations, vary::Tuples{source, order, 50});
      check_enumeration(stream, 50, "streams[0]");
      EXPECT_EQ(refusal([&] { check_enumeration(stream, 51, "streams[0]"); }),
                "streams[0].tuples takes each once of 50 combinations, fewer than the trial's 51 "
                "frames");
    }
    for (const IndexOrder order : {IndexOrder::kFirst, IndexOrder::kIncreasing,
                                   IndexOrder::kDecreasing, IndexOrder::kRandom}) {
      const auto stream = stream_with(variations, vary::Tuples{source, order, 50});
      check_enumeration(stream, 101, "streams[0]");
    }
  }
}

}  // namespace
}  // namespace dutperf::control
