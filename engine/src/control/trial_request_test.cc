// A trial's request, and the preview of its frames, as the golden messages say.
#include <gtest/gtest.h>

#include "control/messages.h"
#include "control/testing/golden.h"
#include "net/testing/addresses.h"

namespace dutperf::control {
namespace {

using dataplane::Side;
using net::testing::ip;
using net::testing::mac;
using testing::golden_params;

void expect_golden(const TrialRequest& request) {
  const dataplane::TrialSpec& spec = request.spec;
  EXPECT_EQ(spec.trial_id, 41);
  EXPECT_EQ(spec.duration_ns, 60'000'000'000U);
  EXPECT_EQ(request.settle_ns, 2'000'000'000U);
  EXPECT_EQ(spec.residual_wait_ns, 2'000'000'000U);
  EXPECT_EQ(spec.burst_limit, 32U);
  EXPECT_EQ(spec.lag_limit_ns, 10'000'000U);
  EXPECT_TRUE(spec.verify_checksums);
  EXPECT_EQ(spec.inspect_every, 61U);
  EXPECT_FALSE(spec.stop_when_lost);
  EXPECT_EQ(request.order, (std::vector{Side::kLeft, Side::kRight}));
  ASSERT_EQ(request.addressing[0].size(), 1U);
  EXPECT_EQ(request.addressing[0][0][0].next_hop, ip("198.18.0.1"));
  EXPECT_EQ(request.addressing[0][0][0].src_mac, std::nullopt);
  EXPECT_EQ(request.addressing[0][0][0].dst_mac, std::nullopt);
  ASSERT_EQ(request.addressing[1].size(), 1U);
  EXPECT_EQ(request.addressing[1][0][0].next_hop, ip("198.19.0.1"));

  net::FrameLayout forward;
  forward.src_ip = ip("198.18.0.2");
  forward.dst_ip = ip("198.19.0.2");
  ASSERT_EQ(spec.from[0].streams.size(), 1U);
  EXPECT_EQ(spec.from[0].rate_fps, 1000U);
  EXPECT_EQ(spec.from[0].frames, 60'000U);
  EXPECT_EQ(spec.from[0].streams[0].id, 0);
  EXPECT_EQ(spec.from[0].streams[0].frame_sizes, std::vector{64U});
  EXPECT_EQ(spec.from[0].streams[0].received_frame_sizes, std::vector{64U});
  EXPECT_EQ(spec.from[0].streams[0].variations, vary::Variations{});
  EXPECT_EQ(spec.from[0].frames_of(0, 60'000), 60'000U);
  EXPECT_EQ(spec.from[0].streams[0].layout, forward);
  EXPECT_EQ(spec.from[0].streams[0].tag, (net::TagIdentity{41, 0, 0}));
  EXPECT_FALSE(spec.from[0].between);
  EXPECT_TRUE(spec.from[1].between) << "the sides' frames are not due at the same times";

  net::FrameLayout reverse;
  reverse.frame_size = 1518;
  reverse.src_ip = ip("198.19.0.2");
  reverse.dst_ip = ip("198.18.0.2");
  reverse.src_port = 1024;
  reverse.dst_port = 49151;
  reverse.ttl = 64;
  reverse.dscp = 46;
  reverse.df = true;
  ASSERT_EQ(spec.from[1].streams.size(), 1U);
  EXPECT_EQ(spec.from[1].rate_fps, 812U);
  EXPECT_EQ(spec.from[1].frames, 48'720U);
  EXPECT_EQ(spec.from[1].streams[0].frame_sizes, std::vector{1518U});
  EXPECT_EQ(spec.from[1].streams[0].received_frame_sizes, std::vector{1518U});
  EXPECT_EQ(spec.from[1].streams[0].layout, reverse);
  EXPECT_EQ(spec.from[1].streams[0].expected, (net::Expected{std::nullopt, 46}));
  EXPECT_EQ(spec.from[1].streams[0].tag, (net::TagIdentity{41, 1, net::kTagFlagBackground}));
}

TEST(TrialRun, IsReadAsTheGoldenRequestSays) {
  expect_golden(parse_trial(golden_params("trial.run")));
}

TEST(TrialRun, HasTheDefaultsOfTheCompleteRequest) {
  expect_golden(parse_trial(golden_params("trial.run-minimal")));
}

TEST(TrialRun, IsReadWithPathsBetweenSeveralPorts) {
  const TrialRequest request = parse_trial(golden_params("trial.run-pairs"));
  const dataplane::StreamSpec& stream = request.spec.from[0].streams.at(0);
  ASSERT_EQ(stream.paths(), 4U);
  ASSERT_EQ(request.addressing[0][0].size(), 4U);
  // RFC 2544 16: all inputs have a frame to an output before the next output has its turn.
  const uint8_t sent_by[4] = {0, 1, 0, 1};
  const uint8_t received_by[4] = {0, 0, 1, 1};
  for (size_t path = 0; path < 4; ++path) {
    EXPECT_EQ(stream.sent_by(path), sent_by[path]) << path;
    EXPECT_EQ(stream.received_by(path), received_by[path]) << path;
  }
  EXPECT_EQ(stream.layout_of(0).src_ip, stream.layout.src_ip);
  EXPECT_NE(stream.layout_of(1).src_ip, stream.layout.src_ip);
  EXPECT_EQ(stream.layout_of(2).src_ip, stream.layout.src_ip);
  EXPECT_NE(stream.layout_of(3).dst_ip, stream.layout.dst_ip);
}

TEST(TrialRun, IsReadForIpv6InOneDirection) {
  const TrialRequest request = parse_trial(golden_params("trial.run-ipv6"));
  EXPECT_FALSE(request.spec.from[0].active());
  EXPECT_EQ(request.order, std::vector{Side::kRight});
  EXPECT_EQ(request.spec.trial_id, 65535);
  EXPECT_EQ(request.settle_ns, 0U);
  EXPECT_FALSE(request.spec.verify_checksums);
  EXPECT_EQ(request.spec.burst_limit, 1U);
  const dataplane::StreamSpec& stream = request.spec.from[1].streams.at(0);
  EXPECT_EQ(stream.id, 255);
  EXPECT_EQ(request.spec.from[1].frames, 14'881U);
  EXPECT_EQ(stream.layout.ip_version, 6);
  EXPECT_EQ(stream.layout.frame_size, 84U);
  EXPECT_EQ(stream.frame_sizes, std::vector{84U});
  EXPECT_EQ(stream.received_frame_sizes, std::vector{64U});
  EXPECT_EQ(stream.variations.seed, uint64_t{INT64_MAX});
  EXPECT_EQ(stream.layout.src_ip, ip("2001:2::2"));
  EXPECT_EQ(stream.layout.dst_ip, ip("64:ff9b::198.19.0.2"));
  EXPECT_EQ(stream.layout.ttl, 255);
  EXPECT_EQ(stream.layout.dscp, 63);
}

TEST(TrialRun, IsReadWithTwoStreamsSizesAndVariations) {
  const TrialRequest request = parse_trial(golden_params("trial.run-traffic"));
  EXPECT_TRUE(request.spec.stop_when_lost);
  const dataplane::DirectionSpec& forward = request.spec.from[0];
  EXPECT_EQ(forward.frames, 1000U);
  ASSERT_EQ(forward.streams.size(), 2U);
  const net::VlanTags sent{std::vector<net::VlanTag>{{0x8100, 10, 5, 19}}};
  EXPECT_EQ(forward.vlan, sent);
  EXPECT_EQ(forward.streams[0].layout.vlan, sent);
  EXPECT_EQ(forward.streams[1].layout.vlan, sent);
  EXPECT_EQ(forward.received_vlan,
            net::VlanTags(std::vector<net::VlanTag>{{0x9100, 20}, {0x9200, 0}}));
  const net::LabelStack labels{std::vector<net::MplsLabel>{{16}, {1'048'575, 7, 255}}};
  EXPECT_EQ(forward.labels, labels);
  EXPECT_EQ(forward.streams[0].layout.labels, labels);
  EXPECT_EQ(forward.streams[1].layout.labels, labels);
  EXPECT_EQ(forward.received_labels, net::LabelStack(std::vector<net::MplsLabel>{{100}}));
  EXPECT_EQ(forward.frames_of(0, forward.frames), 900U);
  EXPECT_EQ(forward.frames_of(1, forward.frames), 100U);
  const dataplane::StreamSpec& foreground = forward.streams[0];
  EXPECT_EQ(foreground.tag, (net::TagIdentity{77, 2, 0}));
  EXPECT_EQ(foreground.frame_sizes, (std::vector{84U, 84U, 84U, 532U, 1538U}));
  EXPECT_EQ(foreground.received_frame_sizes, (std::vector{64U, 64U, 64U, 512U, 1518U}));
  EXPECT_EQ(foreground.layout.frame_size, 84U);
  EXPECT_EQ(foreground.layout.flow_label, 1'048'575U);
  EXPECT_EQ(foreground.expected, (net::Expected{9, 0}));
  EXPECT_EQ(request.spec.inspect_every, 0U);
  EXPECT_EQ(foreground.variations.seed, 20U);
  EXPECT_EQ(foreground.variations.order, vary::Order::kRandom);
  using vary::Field;
  using vary::Mode;
  EXPECT_EQ(foreground.variations.list,
            (std::vector<vary::Variation>{
                {Field::kSrcPort, 0, 16, 1024, 65535, Mode::kRandom},
                {Field::kDstPort, 0, 16, 1, 49151, Mode::kRandom},
                {Field::kDstIp, 112, 16, 2, 1001, Mode::kIncreasing},
                {Field::kVlanId, 0, 12, 10, 19, Mode::kRandom},
                {Field::kFlowLabel, 0, 20, 0, 1'048'575, Mode::kDecreasing},
            }));
  const dataplane::StreamSpec& background = forward.streams[1];
  EXPECT_EQ(background.tag, (net::TagIdentity{77, 3, net::kTagFlagBackground}));
  EXPECT_EQ(background.variations, (vary::Variations{{}, vary::Order::kIncreasing, 20}));
}

TEST(TrialRun, IsReadWithMacsOfItsOwnAndAnEnumeration) {
  const TrialRequest request = parse_trial(golden_params("trial.run-traffic"));
  ASSERT_EQ(request.addressing[1].size(), 1U);
  EXPECT_EQ(request.addressing[1][0][0].src_mac, mac("02:00:00:00:01:00"));
  EXPECT_EQ(request.addressing[1][0][0].dst_mac, mac("02:00:00:00:02:00"));
  using vary::Field;
  using vary::Mode;
  const vary::Variations& variations = request.spec.from[1].streams.at(0).variations;
  EXPECT_EQ(variations.order, vary::Order::kDecreasing);
  EXPECT_EQ(variations.combinations(), 1000U);
  EXPECT_EQ(variations.list, (std::vector<vary::Variation>{
                                 {Field::kSrcPort, 0, 16, 1024, 1123, Mode::kEnumerate},
                                 {Field::kSrcIp, 16, 8, 0, 9, Mode::kEnumerate},
                                 {Field::kSrcMac, 24, 24, 0, 0xffffff, Mode::kRandom},
                                 {Field::kDstMac, 40, 8, 0, 255, Mode::kRandom},
                             }));
}

TEST(TrialRun, IsReadWithALoadOverTime) {
  const dataplane::TrialSpec spec = parse_trial(golden_params("trial.run-steps")).spec;
  const dataplane::DirectionSpec& direction = spec.from[0];
  EXPECT_EQ(direction.rate_fps, 110'000U);
  EXPECT_EQ(direction.steps,
            (std::vector<timing::RateStep>{
                {110'000, 1'000'000'000}, {55'000, 1'000'000'000}, {0, 500'000'000}}));
  EXPECT_EQ(direction.frames, 220'000U) << "half of the first step once more";
  EXPECT_EQ(spec.idle_end_ns(Side::kLeft), 0U);
}

TEST(TrialRun, IsReadWithFramesThatNeedNotBeForwarded) {
  const TrialRequest request = parse_trial(golden_params("trial.run-beside"));
  const dataplane::DirectionSpec& direction = request.spec.from[0];
  ASSERT_EQ(direction.streams.size(), 2U);
  EXPECT_FALSE(direction.streams[0].is_beside());
  EXPECT_TRUE(direction.streams[1].is_beside());
  EXPECT_EQ(request.addressing[0][1][0].dst_mac, mac("ff:ff:ff:ff:ff:ff"));
  EXPECT_EQ(direction.frames, 1000U);
  EXPECT_EQ(direction.expected_among(1000), 990U);
  EXPECT_EQ(direction.last_expected_among(2), 0U);
  EXPECT_EQ(direction.last_expected_among(3), 2U);
  // Number 1, and every hundredth from there on.
  for (uint64_t k = 0; k < 10; ++k) EXPECT_EQ(direction.place_of(1, k), 100 * k + 1);
  EXPECT_EQ(parse_trial(golden_params("trial.run-traffic")).spec.from[0].expected_among(1000),
            1000U);
}

TEST(TrialRun, IsReadWithSynsBesideTheStream) {
  Json params = golden_params("trial.run-beside");
  Json& stream = params["directions"][0]["streams"][1];
  stream["syn"] = true;
  stream["frame_sizes"] = stream["received_frame_sizes"] = Json::array({74U});
  const dataplane::TrialSpec spec = parse_trial(params).spec;
  EXPECT_TRUE(spec.from[0].has_flood());
  const auto numbers = spec.from[0].streams[1].layout.tcp->numbers;
  EXPECT_FALSE(spec.from[0].streams[0].layout.tcp);
  params["trial_id"] = 2U;
  EXPECT_NE(parse_trial(params).spec.from[0].streams[1].layout.tcp->numbers, numbers)
      << "what is late is none of the next trial's";
  EXPECT_FALSE(parse_trial(golden_params("trial.run-beside")).spec.from[0].has_flood());
  stream["frame_sizes"] = Json::array({75U});
  EXPECT_THROW(parse_trial(params), ProtocolError);
  stream["frame_sizes"] = Json::array({74U});
  stream["name"] = "background";
  EXPECT_THROW(parse_trial(params), ProtocolError);
}

TEST(TrialRun, IsReadWithATableToLearn) {
  const dataplane::TrialSpec spec = parse_trial(golden_params("trial.run-learning")).spec;
  ASSERT_TRUE(spec.learn);
  EXPECT_EQ(spec.learn->from, Side::kLeft);
  EXPECT_EQ(spec.learn->ip_version, 4);
  EXPECT_EQ(spec.learn->entries, 3999U);
  EXPECT_FALSE(spec.learn->keep);
  ASSERT_TRUE(spec.learn->expected);
  EXPECT_EQ(spec.learn->expected->first, ip("198.19.0.1"));
  EXPECT_EQ(spec.learn->expected->last, ip("198.19.0.9"));
  using vary::IndexOrder;
  using vary::IndexSource;
  EXPECT_EQ(spec.from[0].streams.at(0).tuples,
            (vary::Tuples{IndexSource::kGenerated, IndexOrder::kOnce, 4000, nullptr, 4000}));
  EXPECT_EQ(spec.not_before_ns, 0U);
  EXPECT_EQ(spec.survival_blocks, 0U);
}

TEST(TrialRun, IsReadWithLearnedTuples) {
  const dataplane::TrialSpec spec = parse_trial(golden_params("trial.run-stateful")).spec;
  ASSERT_TRUE(spec.learn);
  EXPECT_TRUE(spec.learn->keep);
  EXPECT_FALSE(spec.learn->expected);
  EXPECT_EQ(spec.not_before_ns, 2'000'000'000U);
  EXPECT_EQ(spec.survival_blocks, 4U);
  EXPECT_EQ(spec.connection_blocks, 0U);
  using vary::IndexOrder;
  using vary::IndexSource;
  EXPECT_EQ(spec.from[0].streams.at(0).tuples,
            (vary::Tuples{IndexSource::kGenerated, IndexOrder::kRandom, 4000, nullptr, 4000}));
  EXPECT_EQ(spec.from[1].streams.at(0).tuples, (vary::Tuples{.source = IndexSource::kLearned,
                                                             .order = IndexOrder::kRandom,
                                                             .count = 3999,
                                                             .port_added = 4,
                                                             .address_added = ip("0.0.0.2")}));
  EXPECT_EQ(spec.learn->told, 2U);
  EXPECT_TRUE(spec.from[1].streams.at(0).is_learned());
}

TEST(TrialRun, TellsOfConnectionsThatTakeTurns) {
  Json params = golden_params("trial.run-stateful");
  params["record"]["connection_blocks"] = 512;
  for (Json& direction : params["directions"]) {
    direction["streams"][0]["tuples"]["order"] = "increasing";
    direction["streams"][0]["tuples"]["count"] = 3999;
  }
  EXPECT_EQ(parse_trial(params).spec.connection_blocks, 512U);
  params["directions"][1]["streams"][0]["tuples"]["count"] = 3998;
  EXPECT_THROW(parse_trial(params), ProtocolError);
  params["directions"][1]["streams"][0]["tuples"]["count"] = 3999;
  params["directions"][1]["streams"][0]["tuples"]["order"] = "decreasing";
  EXPECT_THROW(parse_trial(params), ProtocolError);
}

TEST(TrialRun, IsReadWithOuterHeadersAndWhatIsCopiedToThem) {
  const dataplane::TrialSpec spec = parse_trial(golden_params("trial.run-stateful")).spec;
  const dataplane::DirectionSpec& direction =
      spec.from[0].outer.bytes() > 0 ? spec.from[0] : spec.from[1];
  net::TunnelEnds sent{net::Tunnel::kIp, ip("2001:db8::1"), ip("2001:db8::2")};
  sent.local_bits = 96;
  sent.ttl = 255;
  EXPECT_EQ(direction.outer, net::Encapsulation(sent));
  EXPECT_EQ(direction.streams[0].layout.outer, direction.outer);
  net::TunnelEnds received{net::Tunnel::kVxlan, ip("10.0.0.1"), ip("10.0.0.2")};
  received.local_bits = received.remote_bits = 32;
  received.vni = 16'777'215;
  received.src_port = 1;
  received.inner_mac = {{2, 0, 0, 0, 0, 0x77}};
  EXPECT_EQ(direction.received_outer, net::Encapsulation(received));
  const std::vector<vary::Copy> copies = {
      {vary::Field::kSrcIp, 16, vary::Field::kOuterSrc, 112, 16}};
  EXPECT_EQ(direction.streams[0].variations.copies, copies);
}

TEST(TrialRun, IsReadWithSegments) {
  const dataplane::TrialSpec spec = parse_trial(golden_params("trial.run-ipv6")).spec;
  const dataplane::DirectionSpec& direction =
      spec.from[0].outer.bytes() > 0 ? spec.from[0] : spec.from[1];
  net::TunnelEnds ends{net::Tunnel::kSrv6, ip("2001:2::2"), ip("2001:2:0:8000::2")};
  const std::vector<net::IpAddress> three = {ip("2001:db8::1"), ip("2001:db8::2"),
                                             ip("2001:db8::3")};
  ends.sent = {three, 2, true, 65535};
  ends.received = {{ip("2001:2::2")}, 0, false, 0};
  ends.flow_label = 1'048'575;
  EXPECT_EQ(direction.outer, net::Encapsulation(ends));
  const std::vector<vary::Copy> copies = {
      {vary::Field::kSrcPort, 0, vary::Field::kOuterFlowLabel, 4, 16}};
  EXPECT_EQ(direction.streams[0].variations.copies, copies);
  ends.flow_label = 0;
  ends.sent = {{ip("2001:2::2")}, 0, true, 0};
  ends.received = {three, 1, true, 65535};
  EXPECT_EQ(direction.received_outer, net::Encapsulation(ends));
}

TEST(TrialRun, IsReadWithWhomItsFramesAreFor) {
  const dataplane::TrialSpec spec = parse_trial(golden_params("trial.run-stateful")).spec;
  const dataplane::DirectionSpec& direction =
      spec.from[0].streams[0].received_end ? spec.from[0] : spec.from[1];
  const net::ReceivedEnd expected{ip("2001:db8::"), false, {{40, 8, false, 40}, {48, 8, true, 6}}};
  EXPECT_EQ(direction.streams[0].received_end, expected);
}

Json stateful_with(const char* key, const Json& value) {
  Json params = golden_params("trial.run-stateful");
  for (Json& direction : params["directions"]) {
    if (!direction["encapsulation"].is_null()) direction[key] = value;
  }
  return params;
}

TEST(TrialRun, RefusesToWriteOuterHeadersThatAreNotThere) {
  const auto said = [](const Json& params) {
    try {
      parse_trial(params);
    } catch (const ProtocolError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(
      said(stateful_with("encapsulation", nullptr)).find("has outer_src, and encapsulation no"),
      std::string::npos);
  Json ipv4 = {{"kind", "ip"}, {"local", "10.0.0.1"}, {"remote", "10.0.0.2"}};
  Json params = stateful_with("encapsulation", ipv4);
  EXPECT_EQ(said(params), "") << "of its last 32 bits";
  for (Json& direction : params["directions"]) {
    for (Json& copy : direction["streams"][0]["copies"]) copy["offset"] = 95;
  }
  EXPECT_NE(said(params).find("has bits of outer_src before its last 32"), std::string::npos);
  for (Json& direction : params["directions"]) {
    for (Json& copy : direction["streams"][0]["copies"]) copy["field"] = "outer_flow_label";
    for (Json& copy : direction["streams"][0]["copies"]) copy["offset"] = 0;
  }
  EXPECT_NE(said(params).find("has outer_flow_label, and encapsulation no outer header of IPv6"),
            std::string::npos);
  ipv4["flow_label"] = 1;
  EXPECT_NE(said(stateful_with("encapsulation", ipv4)).find("flow_label is a field of IPv6"),
            std::string::npos);
  ipv4["flow_label"] = 0;
  ipv4["remote"] = "2001:db8::1";
  EXPECT_NE(
      said(stateful_with("encapsulation", ipv4)).find("remote is not of the version of local"),
      std::string::npos);
  ipv4["remote"] = "10.0.0.2";
  ipv4["vni"] = 1;
  EXPECT_NE(said(stateful_with("encapsulation", ipv4)).find("vni is for vxlan"), std::string::npos);
}

TEST(FramesPreview, IsReadAsTheGoldenRequestSays) {
  const PreviewParams params = parse_preview(golden_params("frames.preview"));
  EXPECT_EQ(params.count, 10U);
  EXPECT_EQ(params.path, "frames.pcap");
  EXPECT_EQ(params.trial.spec.trial_id, 41);
  EXPECT_EQ(params.trial.order, std::vector{Side::kLeft});
}

TEST(TrialRunParams, OfConnectionsSendSyns) {
  const TrialRequest request = parse_trial(golden_params("trial.run-tcp"));
  const dataplane::TrialSpec& spec = request.spec;
  ASSERT_TRUE(spec.exchange);
  EXPECT_EQ(spec.exchange->last, net::Step::kLastAck);
  EXPECT_EQ(spec.exchange->first.step, net::Step::kRequest);
  EXPECT_EQ(spec.exchange->first.mss, 1400);
  // What one request and its response took before.
  EXPECT_EQ(spec.exchange->first.sent_before, 49U);
  EXPECT_EQ(spec.exchange->first.answered_before, 40U + 100U);
  EXPECT_EQ(spec.exchange->object_bytes, 100U);
  EXPECT_EQ(spec.exchange->connections, 1000U);
  const net::FrameLayout& layout = spec.from[0].streams[0].layout;
  EXPECT_EQ(layout.tcp, spec.exchange->first);
}

TEST(TrialRunParams, OfQueriesNameTheirs) {
  const TrialRequest request = parse_trial(golden_params("trial.run-dns"));
  const dataplane::TrialSpec& spec = request.spec;
  ASSERT_TRUE(spec.resolution);
  EXPECT_EQ(spec.resolution->queries, 1000U);
  EXPECT_EQ(spec.resolution->zone.trial, 42);
  EXPECT_EQ(spec.resolution->zone.aaaa_percent, 20U);
  EXPECT_EQ(spec.resolution->zone.prefix[3], 0x9b);
  EXPECT_EQ(spec.resolution->zone.cached, (net::DnsCached{43, 10'000, 20}));
  EXPECT_EQ(spec.from[0].streams[0].layout.query, spec.resolution->zone);
  EXPECT_EQ(spec.receiver_of(dataplane::Side::kLeft), dataplane::Side::kLeft);
}

TEST(TrialRunParams, OfQueriesRefuseWhatTheyHaveNot) {
  const auto refused = [](const char* path, const Json& value) {
    Json params = golden_params("trial.run-dns");
    params[Json::json_pointer(path)] = value;
    EXPECT_THROW(parse_trial(params), ProtocolError) << path;
  };
  refused("/dns/names", 65536);
  refused("/dns/aaaa_percent", 101);
  refused("/dns/prefix", "64:ff9b::1");
  refused("/dns/prefix", "1.2.3.4");
  refused("/dns/prefix_length", 97);
  refused("/dns/prefix_length", 72);
  refused("/dns/zone", "test");
  refused("/dns/fills", true);
  refused("/dns/cached/names", 42);
  refused("/dns/cached/count", 0);
  refused("/dns/cached/percent", 0);
  refused("/dns/cached/percent", 101);
  refused("/directions/0/streams/0/dst_port", 54);
  refused("/directions/0/streams/0/frame_sizes", Json{111});
  refused("/tcp", Json{{"until", "opened"}});
}

TEST(TrialRunParams, OfConnectionsHaveTheNumbersOfTheTrialThatOpenedThem) {
  Json params = golden_params("trial.run-tcp");
  const net::SequenceNumbers later = parse_trial(params).spec.exchange->first.numbers;
  params["trial_id"] = params["tcp"]["opened_by"];
  params["tcp"] = {{"until", "opened"}};
  params["directions"][0]["streams"][0]["frame_sizes"] = Json::array({74U});
  params["directions"][0]["streams"][0]["received_frame_sizes"] = Json::array({74U});
  EXPECT_EQ(parse_trial(params).spec.exchange->first.numbers, later);
}

TEST(TrialRunParams, OfConnectionsRefuseWhatTheyHaveNot) {
  const auto refused = [](const char* path, const Json& value) {
    Json params = golden_params("trial.run-tcp");
    params[Json::json_pointer(path)] = value;
    EXPECT_THROW(parse_trial(params), ProtocolError) << path;
  };
  refused("/tcp/until", "never");
  refused("/tcp/until", "opened");
  refused("/tcp/begin", "ack");
  refused("/tcp/begin", "syn");
  refused("/tcp/begin", "response");
  refused("/tcp/opened_by", golden_params("trial.run-tcp")["trial_id"]);
  refused("/tcp/opened_by", nullptr);
  refused("/tcp/asked", -1);
  refused("/tcp/mss", 535);
  refused("/tcp/object_bytes", 65001U);
  refused("/tcp/object", 3);
  refused("/directions/0/streams/0/frame_sizes", Json{64});
  refused("/directions/0/streams/0/ipv4_options", Json{"nop"});
  Json both = golden_params("trial.run-tcp");
  both["directions"].push_back(both["directions"][0]);
  both["directions"][1]["name"] = "reverse";
  both["directions"][1]["streams"][0]["id"] = 9;
  EXPECT_THROW(parse_trial(both), ProtocolError);
}

}  // namespace
}  // namespace dutperf::control
