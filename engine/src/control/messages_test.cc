// Ports and neighbours: requests and results as the golden messages say.
#include "control/messages.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "control/testing/golden.h"
#include "net/testing/addresses.h"

namespace dutperf::control {
namespace {

using dataplane::Side;
using net::testing::ip;
using net::testing::mac;
using testing::golden_params;
using testing::golden_result;

const net::LabelStack kOneLabel{std::vector<net::MplsLabel>{{16, 5, 64}}};
const net::VlanTags kTwoTags{std::vector<net::VlanTag>{{0x88a8, 4094, 7}, {0x8100, 100, 0}}};

TEST(PortsOpen, IsReadAsTheGoldenRequestSays) {
  const PortsOpenParams params = parse_ports_open(golden_params("ports.open"));
  EXPECT_EQ(params.link_timeout_ns, 5'000'000'000U);
  ASSERT_EQ(params.ports.size(), 2U);
  const dpdk::PortOptions& left = params.ports[0].options;
  EXPECT_EQ(left.name, "left");
  EXPECT_EQ(left.driver, dpdk::Driver::kAfPacket);
  EXPECT_EQ(left.device, "tl");
  EXPECT_EQ(left.mac, std::nullopt);
  EXPECT_EQ(left.mtu, 1500);
  EXPECT_EQ(left.vlan, net::VlanTags());
  EXPECT_EQ(left.labels, net::LabelStack());
  const dpdk::PortOptions& right = params.ports[1].options;
  EXPECT_EQ(right.name, "right");
  EXPECT_EQ(right.driver, dpdk::Driver::kMemif);
  EXPECT_EQ(right.device, "/run/dutperf/right.sock");
  EXPECT_EQ(right.mac, mac("02:00:00:00:00:02"));
  EXPECT_TRUE(right.memif_server);
  EXPECT_EQ(right.memif_id, 7U);
  EXPECT_EQ(left.memif_ring_frames, 4096U);
  EXPECT_EQ(right.memif_ring_frames, 16384U);
  EXPECT_EQ(right.mtu, 9000);
  EXPECT_EQ(right.vlan, kTwoTags);
  EXPECT_EQ(right.labels, kOneLabel);
  EXPECT_EQ(left.rx_queues, 1);
  EXPECT_EQ(right.rx_queues, 2);
  EXPECT_EQ(right.rx_descriptors, 1024);
  EXPECT_EQ(right.tx_descriptors, 512);
  EXPECT_EQ(right.in_flight_frames, 64U);
  EXPECT_EQ(right.when_full, dpdk::WhenFull::kLose);
  EXPECT_FALSE(left.tap);
  ASSERT_TRUE(right.tap);
  EXPECT_EQ(right.tap->network_namespace, "/proc/4711/ns/net");
  EXPECT_EQ(right.tap->interface, "right");
}

TEST(PortsOpen, HasTheDefaultsOfTheCompleteRequest) {
  const auto left = parse_ports_open(golden_params("ports.open")).ports[0].options;
  const PortsOpenParams minimal = parse_ports_open(golden_params("ports.open-minimal"));
  EXPECT_EQ(minimal.link_timeout_ns, 5'000'000'000U);
  EXPECT_EQ(minimal.ports[0].options.mac, left.mac);
  EXPECT_EQ(minimal.ports[0].options.memif_server, left.memif_server);
  EXPECT_EQ(minimal.ports[0].options.memif_id, left.memif_id);
  EXPECT_EQ(minimal.ports[0].options.memif_ring_frames, left.memif_ring_frames);
  EXPECT_EQ(minimal.ports[0].options.mtu, left.mtu);
  EXPECT_EQ(minimal.ports[0].options.vlan, left.vlan);
  EXPECT_EQ(minimal.ports[1].options.vlan, kTwoTags);
  EXPECT_EQ(minimal.ports[1].options.labels, kOneLabel);
  EXPECT_EQ(minimal.ports[0].options.rx_queues, left.rx_queues);
  EXPECT_EQ(minimal.ports[0].options.rx_descriptors, left.rx_descriptors);
  EXPECT_EQ(minimal.ports[0].options.tx_descriptors, left.tx_descriptors);
  EXPECT_EQ(minimal.ports[0].options.in_flight_frames, left.in_flight_frames);
  EXPECT_EQ(minimal.ports[0].options.when_full, left.when_full);
  EXPECT_FALSE(minimal.ports[0].options.tap);
}

TEST(PortsOpen, RefusesAnInFlightCapacityThatNoRingHas) {
  Json params = golden_params("ports.open");
  params["ports"][0]["in_flight_frames"] = 10'000;
  EXPECT_THROW(parse_ports_open(params), ProtocolError);
}

TEST(PortsOpen, RefusesAnotherWordForAFullPort) {
  Json params = golden_params("ports.open");
  params["ports"][0]["when_full"] = "drop";
  EXPECT_THROW(parse_ports_open(params), ProtocolError);
}

TEST(PortsOpen, PutsTheLeftPortFirst) {
  Json params = golden_params("ports.open");
  std::swap(params["ports"][0], params["ports"][1]);
  EXPECT_EQ(parse_ports_open(params).ports[0].options.name, "left");
  EXPECT_EQ(parse_ports_open(params).ports[1].options.name, "right");
}

TEST(PortsOpen, PutsSeveralPortsOfASideInTheOrderOfTheirNumbers) {
  Json params = golden_params("ports.open-pairs");
  std::reverse(params["ports"].begin(), params["ports"].end());
  const std::vector<PortToOpen> ports = parse_ports_open(params).ports;
  ASSERT_EQ(ports.size(), 4U);
  const PortId ids[4] = {{Side::kLeft, 0}, {Side::kLeft, 1}, {Side::kRight, 0}, {Side::kRight, 1}};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(ports[i].id, ids[i]) << i;
  EXPECT_EQ(ports[1].options.name, "left2");
  EXPECT_EQ(name_of(ports[1].id), "left 2");
}

TEST(PortsOpen, RefusesPortsThatAreNoPairs) {
  Json uneven = golden_params("ports.open-pairs");
  uneven["ports"].erase(3);
  EXPECT_THROW(parse_ports_open(uneven), ProtocolError);
  Json twice = golden_params("ports.open-pairs");
  twice["ports"][1].erase("number");
  EXPECT_THROW(parse_ports_open(twice), ProtocolError);
  Json tagged = golden_params("ports.open-pairs");
  tagged["ports"][1]["vlan"] = golden_params("ports.open")["ports"][1]["vlan"];
  EXPECT_THROW(parse_ports_open(tagged), ProtocolError);
}

void expect_golden(const NeighboursParams& params) {
  EXPECT_EQ(params.timeout_ns, 3'000'000'000U);
  ASSERT_EQ(params.ports.size(), 2U);
  const PortNeighbours& left = params.ports[0];
  EXPECT_EQ(left.port, (PortId{Side::kLeft, 0}));
  EXPECT_EQ(params.ports[1].port, (PortId{Side::kRight, 0}));
  ASSERT_EQ(left.own.size(), 2U);
  EXPECT_EQ(left.own[0].first, ip("198.18.0.2"));
  EXPECT_EQ(left.own[0].count, 65534U);
  EXPECT_EQ(left.own[1].first, ip("2001:2::2"));
  EXPECT_EQ(left.own[1].count, 1U);
  EXPECT_EQ(left.resolve, (std::vector{ip("198.18.0.1"), ip("2001:2::1")}));
  ASSERT_EQ(params.ports[1].own.size(), 1U);
  EXPECT_EQ(params.ports[1].own[0].first, ip("198.19.0.2"));
  EXPECT_EQ(params.ports[1].resolve, std::vector{ip("198.19.0.1")});
}

TEST(NeighboursSet, IsReadForSeveralPortsOfASide) {
  const NeighboursParams params = parse_neighbours(golden_params("neighbours.set-pairs"));
  ASSERT_EQ(params.ports.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(params.ports[i].port.number, i % 2) << i;
    EXPECT_EQ(params.ports[i].own.size(), params.ports[0].own.size()) << i;
  }
  EXPECT_NE(params.ports[0].own[0].first, params.ports[1].own[0].first);
}

TEST(NeighboursSet, IsReadAsTheGoldenRequestSays) {
  expect_golden(parse_neighbours(golden_params("neighbours.set")));
}

TEST(NeighboursSet, HasTheDefaultsOfTheCompleteRequest) {
  expect_golden(parse_neighbours(golden_params("neighbours.set-minimal")));
}

TEST(PortStatusResult, IsWrittenAsTheGoldenResultSays) {
  PortStatus left;
  left.options.name = "left";
  left.options.driver = dpdk::Driver::kAfPacket;
  left.options.device = "tl";
  left.mac = mac("02:00:00:00:00:01");
  left.link.up = true;
  left.link.speed_mbps = 10'000;
  left.flow_control = dpdk::FlowControl::kOff;
  left.mtu = 1500;
  left.dpdk_name = "net_af_packet";
  left.in_flight_frames = 8192;
  left.counters = {60'012, 60'013, 1, 2, 3, 4};
  PortStatus right;
  right.id.side = Side::kRight;
  right.options.name = "right";
  right.options.driver = dpdk::Driver::kMemif;
  right.options.device = "/run/dutperf/right.sock";
  right.mac = mac("02:00:00:00:00:02");
  right.options.vlan = kTwoTags;
  right.options.labels = kOneLabel;
  right.link.full_duplex = false;
  right.numa_node = 1;
  right.mtu = 9000;
  right.dpdk_name = "net_memif";
  const Json expected = golden_result("ports.status");
  EXPECT_EQ(expected, (Json{{"ports", {to_json(left), to_json(right)}}}));
}

TEST(ResolvedNeighbourResult, IsWrittenAsTheGoldenResultSays) {
  const Json expected = {
      {"neighbours",
       {to_json(
            ResolvedNeighbour{{Side::kLeft}, ip("198.18.0.1"), mac("02:00:00:00:00:0a"), 183402}),
        to_json(ResolvedNeighbour{{Side::kLeft}, ip("2001:2::1"), std::nullopt, 3'000'104'211}),
        to_json(ResolvedNeighbour{
            {Side::kRight}, ip("198.19.0.1"), mac("02:00:00:00:00:0b"), 201877})}}};
  EXPECT_EQ(golden_result("neighbours.set"), expected);
}

TEST(ResolvedNeighbourResult, TellsTheNumberOfAFurtherPort) {
  const Json json = to_json(
      ResolvedNeighbour{{Side::kRight, 1}, ip("198.19.1.1"), mac("02:00:00:00:00:0d"), 183405});
  EXPECT_EQ(json, golden_result("neighbours.set-pairs")["neighbours"][3]) << json;
}

}  // namespace
}  // namespace dutperf::control
