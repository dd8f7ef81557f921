#include "gateway.h"

#include <gtest/gtest.h>

#include "device.h"
#include "net/reassembly.h"
#include "net/testing/reference_frame.h"
#include "testing/fake_io.h"
#include "testing/tester.h"

namespace dutperf::refdut {
namespace {

using net::FrameLayout;
using net::IpAddress;
using net::testing::Bytes;
using net::testing::reference_frame;
using net::testing::tagged_payload;
using testing::FakeIo;
using testing::kOwn;
using testing::kTester;

// Ends of a test frame, as text.
struct Ends {
  const char* source;
  uint16_t source_port;
  const char* destination;
  uint16_t destination_port;
};

FrameLayout layout_of(const Ends& ends, uint32_t frame_size = 128) {
  const IpAddress source = *IpAddress::parse(ends.source);
  FrameLayout layout = net::testing::sample_layout(source.version, frame_size);
  layout.src_ip = source;
  layout.dst_ip = *IpAddress::parse(ends.destination);
  layout.src_port = ends.source_port;
  layout.dst_port = ends.destination_port;
  return layout;
}

// A device that is a gateway, and the tester on both sides of it.
class TheGateway : public ::testing::Test {
 protected:
  void configure(const std::string& nat, const std::string& more = "") {
    device_.configure(parse_behaviour(Json::parse(
        R"({"routing": {"left": ["10.0.0.1", "2001:2::1"],
                        "right": ["198.19.0.1", "2001:2:0:8000::1"]},
            "nat": )" +
        nat + more + "}")));
    for (const size_t side : {0, 1}) {
      Bytes request(net::kNeighbourFrameBytes);
      request.resize(net::write_request(
          *IpAddress::parse(side == 0 ? "10.0.0.2" : "198.19.0.2"), kTester[side],
          *IpAddress::parse(side == 0 ? "10.0.0.1" : "198.19.0.1"), request.data()));
      io_.arriving[side].push_back(request);
    }
    device_.step();
    device_.step();  // a reply may leave one look later
    io_.left[0].clear();
    io_.left[1].clear();
  }

  // What leaves on the other side: frames, or none.
  std::vector<FakeIo::Departure> pass(size_t side, FrameLayout layout) {
    layout.src_mac = kTester[side];
    layout.dst_mac = kOwn[side];
    const auto payload = tagged_payload(layout, {1, static_cast<uint8_t>(side), 0}, sequence_++, 0);
    Bytes frame = reference_frame(layout, payload);
    if (layout.ip_version == 4) identify(frame, kId);
    io_.arriving[side].push_back(frame);
    auto& out = io_.left[1 - side];
    out.clear();
    device_.step();
    io_.clock_ns += 1000;
    return out;
  }

  std::optional<Bytes> through(size_t side, const Ends& ends) {
    const auto out = pass(side, layout_of(ends));
    if (out.empty()) return std::nullopt;
    return out.front().bytes;
  }

  static constexpr uint16_t kId = 0xbeef;

  static void identify(Bytes& frame, uint16_t id) {
    auto* header = reinterpret_cast<net::Ipv4Header*>(frame.data() + sizeof(net::EthernetHeader));
    header->id = id;
    header->checksum = 0;
    header->checksum = net::finish(net::sum_words(&header->version_ihl, sizeof *header));
  }

  bool passes(size_t side, const Ends& ends) { return through(side, ends).has_value(); }

  static Ends inside(uint16_t port) { return {"10.0.0.2", port, "198.19.0.2", 80}; }

  Json nat() { return device_.report()["nat"]; }

  FakeIo io_;
  Device<FakeIo> device_{io_, kOwn, 1000};
  uint64_t sequence_ = 0;
};

constexpr const char* kNat44 = R"({"kind": "nat44", "public": {"first_address": "198.19.0.1"},
                                   "table": {"entries": 3}})";

#define EXPECT_ENDS(frame, from, from_port, to, to_port)                 \
  do {                                                                   \
    const auto bytes = frame;                                            \
    ASSERT_TRUE(bytes);                                                  \
    const auto flow = read_flow(bytes->data(), bytes->size());           \
    ASSERT_TRUE(flow);                                                   \
    EXPECT_EQ(flow->source.address, IpAddress::parse(from)->bytes);      \
    EXPECT_EQ(flow->source.port, from_port);                             \
    EXPECT_EQ(flow->destination.address, IpAddress::parse(to)->bytes);   \
    EXPECT_EQ(flow->destination.port, to_port);                          \
    const auto classified = net::classify(bytes->data(), bytes->size()); \
    EXPECT_EQ(classified.kind, net::FrameKind::kTest);                   \
    EXPECT_TRUE(net::checksums_hold(bytes->data(), classified));         \
  } while (false)

TEST_F(TheGateway, TranslatesIpv4ToIpv4AndBack) {
  configure(kNat44);
  EXPECT_ENDS(through(0, inside(5000)), "198.19.0.1", 1024, "198.19.0.2", 80);
  EXPECT_ENDS(through(0, inside(5001)), "198.19.0.1", 1025, "198.19.0.2", 80);
  EXPECT_ENDS(through(0, {"10.0.0.2", 5000, "198.19.0.2", 81}), "198.19.0.1", 1024, "198.19.0.2",
              81);
  EXPECT_ENDS(through(1, {"198.19.0.2", 80, "198.19.0.1", 1025}), "198.19.0.2", 80, "10.0.0.2",
              5001);
  EXPECT_EQ(nat()["connections"], 3);
}

TEST_F(TheGateway, TranslatesIpv6ToIpv4AndBack) {
  configure(R"({"kind": "nat64", "public": {"first_address": "198.19.0.1", "first_port": 4127},
                "prefix": "64:ff9b::/96", "table": {"entries": 10}})");
  EXPECT_ENDS(through(0, {"2001:2::2", 10000, "64:ff9b::c613:2", 80}), "198.19.0.1", 4127,
              "198.19.0.2", 80);
  EXPECT_ENDS(through(1, {"198.19.0.2", 80, "198.19.0.1", 4127}), "64:ff9b::c613:2", 80,
              "2001:2::2", 10000);
  // Native IPv6 and other IPv4 are none of its business.
  EXPECT_ENDS(through(0, {"2001:2::2", 7, "2001:2:0:8000::2", 8}), "2001:2::2", 7,
              "2001:2:0:8000::2", 8);
  EXPECT_ENDS(through(1, {"198.19.0.2", 80, "198.18.0.9", 4127}), "198.19.0.2", 80, "198.18.0.9",
              4127);
}

TEST_F(TheGateway, TranslatesIpv6ToIpv6AndBackOverAllItsAddresses) {
  configure(R"({"kind": "nat66", "public": {"first_address": "2001:2:0:8000::ffff:ffff",
                "addresses": 2, "first_port": 65535}, "table": {"entries": 10}})");
  EXPECT_ENDS(through(0, {"2001:2::2", 1, "2001:2:0:8000::2", 80}), "2001:2:0:8000::ffff:ffff",
              65535, "2001:2:0:8000::2", 80);
  // Public addresses differ in their last 32 bits only.
  EXPECT_ENDS(through(0, {"2001:2::2", 2, "2001:2:0:8000::2", 80}), "2001:2:0:8000::", 65535,
              "2001:2:0:8000::2", 80);
  EXPECT_ENDS(through(1, {"2001:2:0:8000::2", 80, "2001:2:0:8000::", 65535}), "2001:2:0:8000::2",
              80, "2001:2::2", 2);
  EXPECT_FALSE(passes(0, {"2001:2::2", 3, "2001:2:0:8000::2", 80}));
  EXPECT_EQ(nat()["no_public_endpoint"], 1);
}

// Many more endpoints than connections, without a pause in which its tables grow.
TEST_F(TheGateway, HasRoomForEndpointsThatOutliveTheirConnections) {
  configure(R"({"kind": "nat44", "public": {"first_address": "198.19.0.1"},
                "table": {"entries": 10, "eviction": "least_recently_used"}})");
  for (uint16_t port = 1; port <= 60'000; ++port) passes(0, inside(port));
  EXPECT_EQ(nat()["public_endpoints_in_use"], 60'000);
  EXPECT_EQ(nat()["endpoints_grown"], 0);
}

TEST_F(TheGateway, TranslatesIpv4ToIpv6AndBack) {
  configure(R"({"kind": "nat46", "inside": "right", "prefix": "2001:2:0:6464::/96",
                "public": {"first_address": "2001:2::1"}, "table": {"entries": 10}})");
  EXPECT_ENDS(through(1, {"198.19.0.2", 5000, "198.18.0.2", 80}), "2001:2::1", 1024,
              "2001:2:0:6464::c612:2", 80);
  EXPECT_ENDS(through(0, {"2001:2:0:6464::c612:2", 80, "2001:2::1", 1024}), "198.18.0.2", 80,
              "198.19.0.2", 5000);
}

// RFC 7915 4: whatever was IPv4 without DF; put together it is what left whole.
class ATranslator : public TheGateway {
 protected:
  static constexpr size_t kIp = sizeof(net::EthernetHeader);

  static FrameLayout long_frame(const Ends& ends, uint32_t size, bool df = false) {
    FrameLayout layout = layout_of(ends, size);
    layout.df = df;
    return layout;
  }

  void cuts(size_t side, const Ends& ends) {
    net::Reassembly reassembly(2000);
    for (const uint32_t size : {1278, 1279, 1498, 1980}) {
      const auto pieces = pass(side, long_frame(ends, size));
      const size_t ip_bytes = size - 4 - kIp + 20;
      ASSERT_EQ(pieces.size(), ip_bytes > 1280 ? 2U : 1U);
      std::span<const uint8_t> whole = pieces[0].bytes;
      if (pieces.size() > 1) {
        EXPECT_EQ(pieces[0].bytes.size(), kIp + 1280);
        for (const auto& piece : pieces) {
          EXPECT_EQ(piece.bytes[kIp + 6], net::kIpv6FragmentHeader);
          whole = reassembly.add(piece.bytes.data(), piece.bytes.size());
        }
        EXPECT_EQ(Bytes(pieces[0].bytes.begin() + kIp + 44, pieces[0].bytes.begin() + kIp + 48),
                  (Bytes{0, 0, kId >> 8, kId & 0xff}));
      }
      const auto classified = net::classify(whole.data(), whole.size());
      ASSERT_EQ(classified.kind, net::FrameKind::kTest);
      EXPECT_EQ(classified.ip_version, 6);
      EXPECT_EQ(classified.ip_bytes, ip_bytes);
      EXPECT_EQ(classified.tag->sequence(), sequence_ - 1);
      EXPECT_TRUE(net::checksums_hold(whole.data(), classified));
    }
    EXPECT_TRUE(pass(side, long_frame(ends, 1498, true)).empty());
    EXPECT_EQ(pass(side, long_frame(ends, 1278, true)).size(), 1U);
  }

  Json account(const char* direction) {
    return device_.report()["trials"].back()[direction]["foreground"];
  }
};

constexpr const char* kCut = R"(, "forward": {"fragments": {"mtu": 1280}},
                                  "reverse": {"fragments": {"mtu": 1280}})";

TEST_F(ATranslator, WithATableCutsWhatBecomesTooLong) {
  configure(R"({"kind": "nat46", "inside": "right", "prefix": "2001:2:0:6464::/96",
                "public": {"first_address": "2001:2::1"}, "table": {"entries": 10}})",
            kCut);
  cuts(1, {"198.19.0.2", 5000, "198.18.0.2", 80});
  EXPECT_EQ(account("reverse")["dropped_too_big"], 1);
  EXPECT_EQ(account("reverse")["pieces"]["left"], 6);
  // The other way nothing is cut: IPv6 has nobody's leave.
  EXPECT_EQ(pass(0, long_frame({"2001:2:0:6464::c612:2", 80, "2001:2::1", 1024}, 1298)).size(), 1U);
  EXPECT_EQ(pass(0, long_frame({"2001:2::2", 7, "2001:2:0:8000::2", 8}, 1318)).size(), 0U);
}

TEST_F(ATranslator, WithoutStateCutsWhatBecomesTooLong) {
  configure(R"("off", "translation": {"left": {"ipv6_prefix": "2001:db8::/40",
                "ipv4_prefix": "192.0.2.0/24", "ea_bits": 16, "prefix": "64:ff9b::/96"}})",
            kCut);
  cuts(1, {"198.19.0.2", 80, "192.0.2.18", 1232});
  EXPECT_EQ(account("reverse")["dropped_too_big"], 1);
  EXPECT_EQ(account("reverse")["pieces"]["left"], 6);
}

TEST_F(TheGateway, ForwardsFromOutsideOnlyWhatItKnows) {
  configure(kNat44);
  EXPECT_FALSE(passes(1, {"198.19.0.2", 80, "198.19.0.1", 1024}));
  EXPECT_TRUE(passes(0, inside(5000)));
  EXPECT_TRUE(passes(1, {"198.19.0.2", 80, "198.19.0.1", 1024}));
  EXPECT_FALSE(passes(1, {"198.19.0.2", 81, "198.19.0.1", 1024}));  // another remote port
  EXPECT_FALSE(passes(1, {"198.19.0.3", 80, "198.19.0.1", 1024}));
  EXPECT_FALSE(passes(1, {"198.19.0.2", 80, "198.19.0.1", 1023}));  // a port that it never gives
  EXPECT_TRUE(passes(1, {"198.19.0.2", 80, "198.18.0.1", 1023}));   // another address: it routes
  EXPECT_EQ(nat()["unknown"], 4);
  EXPECT_EQ(device_.report()["trials"][0]["reverse"]["foreground"]["dropped_by_nat"], 4);
}

// As many public ports as one inside endpoint gets for three remote ends: two ports of one address,
// and another address.
TEST_F(TheGateway, MapsAnInsideEndpointOnceForAllForEachAddressOrForEachConnection) {
  const auto ports = [this](const std::string& mapping) {
    configure(R"({"kind": "nat44", "public": {"first_address": "198.19.0.1"},
                  "table": {"entries": 9}, "mapping": ")" +
              mapping + R"("})");
    std::vector<uint16_t> seen;
    for (const Ends& ends : {inside(5000), Ends{"10.0.0.2", 5000, "198.19.0.2", 81},
                             Ends{"10.0.0.2", 5000, "198.19.0.3", 80}}) {
      const auto bytes = through(0, ends);
      seen.push_back(read_flow(bytes->data(), bytes->size())->source.port);
    }
    return seen;
  };
  EXPECT_EQ(ports("endpoint"), (std::vector<uint16_t>{1024, 1024, 1024}));
  EXPECT_EQ(ports("address"), (std::vector<uint16_t>{1024, 1024, 1025}));
  EXPECT_EQ(ports("connection"), (std::vector<uint16_t>{1024, 1025, 1026}));
}

TEST_F(TheGateway, LetsInWhomItsFilteringAllows) {
  const auto lets_in = [this](const std::string& filtering) {
    configure(R"({"kind": "nat44", "public": {"first_address": "198.19.0.1"},
                  "table": {"entries": 9}, "filtering": ")" +
              filtering + R"("})");
    EXPECT_FALSE(passes(1, {"198.19.0.2", 80, "198.19.0.1", 1024}));  // in use by nobody
    EXPECT_TRUE(passes(0, inside(5000)));
    return std::array{passes(1, {"198.19.0.2", 80, "198.19.0.1", 1024}),
                      passes(1, {"198.19.0.2", 81, "198.19.0.1", 1024}),
                      passes(1, {"198.19.0.3", 80, "198.19.0.1", 1024})};
  };
  EXPECT_EQ(lets_in("endpoint"), (std::array{true, true, true}));
  EXPECT_EQ(lets_in("address"), (std::array{true, true, false}));
  EXPECT_EQ(lets_in("connection"), (std::array{true, false, false}));
}

TEST_F(TheGateway, OpensATcpConnectionByItsSynAlone) {
  configure(kNat44);
  const auto passes_as = [&](net::Step step) {
    FrameLayout layout = layout_of(inside(5000));
    layout.src_mac = kTester[0];
    layout.dst_mac = kOwn[0];
    io_.arriving[0].push_back(
        net::testing::segment_of(layout, {.step = step, .numbers = net::SequenceNumbers(1)}));
    io_.left[1].clear();
    device_.step();
    io_.clock_ns += 1000;
    return !io_.left[1].empty();
  };
  EXPECT_FALSE(passes_as(net::Step::kRequest));
  EXPECT_FALSE(passes_as(net::Step::kFin));
  EXPECT_EQ(nat()["unknown"], 2);
  EXPECT_TRUE(passes_as(net::Step::kSyn));
  EXPECT_TRUE(passes_as(net::Step::kRequest));
  EXPECT_EQ(nat()["connections"], 1);
  EXPECT_TRUE(passes(0, inside(5000)));  // of UDP it is another one
  EXPECT_EQ(nat()["connections"], 2);
}

// One place, taken: what the host gets back whose SYN, and whose datagram, finds none.
class TheRefusal : public TheGateway {
 protected:
  std::vector<Bytes> of(const std::string& refusal, const std::string& keys, const Ends& first,
                        const Ends& second) {
    configure(R"({"refusal": ")" + refusal + R"(", "table": {"entries": 1}, )" + keys + "}");
    EXPECT_TRUE(passes(0, first));
    io_.left[0].clear();
    FrameLayout layout = layout_of(second);
    layout.src_mac = kTester[0];
    layout.dst_mac = kOwn[0];
    io_.arriving[0].push_back(
        net::testing::segment_of(layout, {.numbers = net::SequenceNumbers(1)}));
    io_.left[1].clear();
    device_.step();
    io_.clock_ns += 1000;
    EXPECT_FALSE(passes(0, second));  // of UDP
    device_.step();
    EXPECT_EQ(nat()["refused"], 2);
    EXPECT_TRUE(io_.left[1].empty());
    EXPECT_EQ(io_.owned(), 0U);
    std::vector<Bytes> answers;
    for (const auto& departure : io_.left[0]) answers.push_back(departure.bytes);
    return answers;
  }
  std::vector<Bytes> of_ipv4(const std::string& refusal) {
    return of(refusal, R"("kind": "nat44", "public": {"first_address": "198.19.0.1"})", inside(1),
              inside(2));
  }
  std::vector<Bytes> of_ipv6(const std::string& refusal) {
    return of(refusal, R"("kind": "nat66", "public": {"first_address": "2001:2:0:8000::9"})",
              {"2001:2::2", 1, "2001:2:0:8000::2", 80}, {"2001:2::2", 2, "2001:2:0:8000::2", 80});
  }
};

TEST_F(TheRefusal, IsSilenceUnlessItIsSaid) { EXPECT_TRUE(of_ipv4("silence").empty()); }

TEST_F(TheRefusal, ResetsASynAndNoDatagram) {
  for (const auto& answers : {of_ipv4("reset"), of_ipv6("reset")}) {
    ASSERT_EQ(answers.size(), 1U);
    const uint8_t* const frame = answers[0].data();
    EXPECT_EQ(std::memcmp(frame, kTester[0].bytes.data(), 6), 0);
    EXPECT_EQ(std::memcmp(frame + 6, kOwn[0].bytes.data(), 6), 0);
    const auto segment = net::segment_in(frame, answers[0].size());
    ASSERT_TRUE(segment);
    EXPECT_TRUE(net::checksums_hold(frame, *segment));
    EXPECT_EQ(segment->flags, net::kTcpRst | net::kTcpAck);
    EXPECT_EQ(segment->acknowledgment, net::SequenceNumbers(1).of(0) + 1);
    const auto flow = read_flow(frame, answers[0].size());
    ASSERT_TRUE(flow);
    EXPECT_EQ(flow->source.port, 80);
    EXPECT_EQ(flow->destination.port, 2);
  }
}

TEST_F(TheRefusal, QuotesInIcmpWhatIsProhibited) {
  const auto of_4 = of_ipv4("icmp");
  const auto of_6 = of_ipv6("icmp");
  ASSERT_EQ(of_4.size(), 2U);
  ASSERT_EQ(of_6.size(), 2U);
  const auto kind = [](const Bytes& frame, size_t headers) {
    const auto classified = net::classify(frame.data(), frame.size());
    EXPECT_EQ(classified.kind, net::FrameKind::kIcmp);
    EXPECT_EQ(classified.ip_headers, headers);
    const uint8_t* const icmp = frame.data() + 14 + headers;
    return std::pair{icmp[0], icmp[1]};
  };
  for (const Bytes& frame : of_4) {
    EXPECT_EQ(kind(frame, 20), (std::pair<uint8_t, uint8_t>{3, 13}));
    const auto* const header = reinterpret_cast<const net::Ipv4Header*>(frame.data() + 14);
    EXPECT_EQ(std::memcmp(header->src, IpAddress::parse("10.0.0.1")->bytes.data(), 4), 0);
    EXPECT_EQ(std::memcmp(header->dst, IpAddress::parse("10.0.0.2")->bytes.data(), 4), 0);
    EXPECT_EQ(net::fold(net::sum_words(frame.data() + 14, 20)), 0xffff);
    EXPECT_EQ(net::fold(net::sum_words(frame.data() + 34, header->total_length - 20)), 0xffff);
    EXPECT_EQ(frame[42], 0x45) << "the packet that is prohibited";
  }
  for (const Bytes& frame : of_6) {
    EXPECT_EQ(kind(frame, 40), (std::pair<uint8_t, uint8_t>{1, 1}));
    const auto* const header = reinterpret_cast<const net::Ipv6Header*>(frame.data() + 14);
    const uint64_t pseudo = net::sum_words(header->src, 32) + header->payload_length + 58U;
    EXPECT_EQ(net::fold(pseudo + net::sum_words(frame.data() + 54, header->payload_length)),
              0xffff);
  }
}

TEST_F(TheGateway, RefusesWhenTheTableIsFullAndForgetsAfterTheTimeout) {
  configure(R"({"kind": "nat44", "public": {"first_address": "198.19.0.1"},
                "table": {"entries": 3, "timeout_ns": 1000000}})");
  for (uint16_t port = 1; port <= 3; ++port) EXPECT_TRUE(passes(0, inside(port)));
  EXPECT_FALSE(passes(0, inside(4)));
  io_.clock_ns += 900'000;
  EXPECT_TRUE(passes(1, {"198.19.0.2", 80, "198.19.0.1", 1026}));  // refreshes the third
  io_.clock_ns += 900'000;
  EXPECT_TRUE(passes(0, inside(4)));
  EXPECT_FALSE(passes(1, {"198.19.0.2", 80, "198.19.0.1", 1024}));
  EXPECT_TRUE(passes(1, {"198.19.0.2", 80, "198.19.0.1", 1026}));
  EXPECT_EQ(nat()["connections"], 2);
}

TEST_F(TheGateway, MakesConnectionsNoFasterThanItIsTold) {
  const std::string setup = R"({"kind": "nat44", "public": {"first_address": "198.19.0.1"},
      "table": {"entries": 100}, "setup": {"rate_per_s": 100000, "queue_frames": 4, "overload": )";
  for (const bool forget : {false, true}) {
    configure(setup + (forget ? R"("forget"}})" : R"("drop"}})"));
    int passed = 0;
    for (uint16_t port = 1; port <= 100; ++port)
      passed += passes(0, inside(port)) ? 1 : 0;  // 1 us apart
    // One in 10 us from 0 to 99 us, the one being made and the queue.
    EXPECT_EQ(nat()["connections"], 14);
    EXPECT_EQ(passed, forget ? 100 : 14);
    EXPECT_EQ(nat()[forget ? "forgotten" : "too_fast"], 86);
    EXPECT_TRUE(passes(0, inside(1)));  // one that is known costs nothing
  }
}

TEST_F(TheGateway, DeletesAtItsSpeedAndThenStartsAnew) {
  configure(R"({"kind": "nat44", "public": {"first_address": "198.19.0.1"},
                "table": {"entries": 100}, "removal_per_s": 1000000})");
  for (uint16_t port = 1; port <= 50; ++port) EXPECT_TRUE(passes(0, inside(port)));
  Gateway& gateway = *device_.gateway();
  gateway.start_removal(io_.clock_ns);
  io_.clock_ns += 20'000;
  device_.step();
  EXPECT_EQ(gateway.connections(io_.clock_ns), 30U);
  EXPECT_FALSE(passes(1, {"198.19.0.2", 80, "198.19.0.1", 1024}));  // the oldest first
  io_.clock_ns += 40'000;
  device_.step();
  EXPECT_EQ(gateway.connections(io_.clock_ns), 0U);
  EXPECT_FALSE(gateway.removing());
  EXPECT_ENDS(through(0, inside(77)), "198.19.0.1", 1024, "198.19.0.2", 80);
  gateway.clear();
  EXPECT_EQ(nat()["connections"], 0);
}

TEST_F(TheGateway, StaysWithItsTableUntilItIsToldOtherwise) {
  configure(kNat44);
  EXPECT_TRUE(passes(0, inside(5000)));
  device_.configure(parse_behaviour(Json::parse(R"({"forward": {"rules": []}})")));
  EXPECT_EQ(nat()["connections"], 1);
  device_.configure(parse_behaviour(Json::parse(R"({"nat": "off"})")));
  EXPECT_FALSE(device_.report().contains("nat"));
  EXPECT_ENDS(through(0, inside(5000)), "10.0.0.2", 5000, "198.19.0.2", 80);
}

TEST(NatSettings, SayWhatIsWrongAndWhere) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"({})", "nat.kind"},
      {R"({"kind": "nat55"})", "nat.kind"},
      {R"({"kind": "nat44"})", "nat.public"},
      {R"({"kind": "nat44", "public": {"first_address": "2001:2::1"}, "table": {"entries": 1}})",
       "nat.public.first_address"},
      {R"({"kind": "nat44", "public": {"first_address": "1.2.3.4", "first_port": 9,
          "last_port": 8}, "table": {"entries": 1}})",
       "nat.public.last_port"},
      {R"({"kind": "nat44", "public": {"first_address": "1.2.3.4"}, "table": {"entries": 0}})",
       "nat.table.entries"},
      {R"({"kind": "nat44", "public": {"first_address": "1.2.3.4"}, "table": {"entries": 5,
          "chunk": 2}})",
       "nat.table.chunk"},
      {R"({"kind": "nat44", "prefix": "64:ff9b::/96", "public": {"first_address": "1.2.3.4"},
          "table": {"entries": 5}})",
       "nat.prefix"},
      {R"({"kind": "nat64", "prefix": "64:ff9b::/64", "public": {"first_address": "1.2.3.4"},
          "table": {"entries": 5}})",
       "nat.prefix"},
      {R"({"kind": "nat44", "public": {"first_address": "1.2.3.4"}, "table": {"entries": 5},
          "setup": {"rate_per_s": 5}})",
       "nat.setup.queue_frames"},
  };
  for (const auto& [text, key] : wrong) {
    try {
      parse_behaviour(Json::parse(std::string(R"({"nat": )") + text + "}"));
      FAIL() << text;
    } catch (const control::ProtocolError& error) {
      EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
      EXPECT_FALSE(error.hint().empty());
    }
  }
  EXPECT_THROW(
      parse_behaviour(Json::parse(std::string(R"({"routing": "off", "nat": )") + kNat44 + "}")),
      control::ProtocolError);
}

}  // namespace
}  // namespace dutperf::refdut
