#include "map_translator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "net/testing/addresses.h"

namespace dutperf::refdut {
namespace {

using net::testing::ip;

Endpoint end(const char* address, uint16_t port) { return {ip(address).bytes, port}; }

// The rule of RFC 7599 appendix A, examples 1 and 2, and the RFC's default mapping rule.
MapTranslation example_translation(const char* prefix = "2001:db8:ffff::", uint8_t bits = 64) {
  return {{ip("2001:db8::"), 40, ip("192.0.2.0"), 24, 16, 6}, ip(prefix), bits};
}

constexpr const char* kEdge = "2001:db8:12:3400:0:c000:212:34";

TEST(MapTranslator, ReadsTheEdgeOfTheRfcsExample) {
  const MapTranslator relay(example_translation());
  const Flow out{6, end(kEdge, 1232), end("2001:db8:ffff:0:a:0102:0300:0", 80), 0};
  const auto flow = relay.from_edges(out);
  ASSERT_TRUE(flow);
  EXPECT_EQ(flow->version, 4);
  EXPECT_EQ(flow->source, end("192.0.2.18", 1232));
  EXPECT_EQ(flow->destination, end("10.1.2.3", 80));
}

TEST(MapTranslator, WritesItBack) {
  for (const auto& [prefix, bits, far] :
       {std::tuple{"2001:db8:ffff::", 64, "2001:db8:ffff:0:a:0102:0300:0"},
        std::tuple{"64:ff9b::", 96, "64:ff9b::10.1.2.3"}}) {
    const MapTranslator relay(example_translation(prefix, static_cast<uint8_t>(bits)));
    const Flow in{4, end("10.1.2.3", 80), end("192.0.2.18", 1232), 0};
    const auto flow = relay.to_edges(in);
    ASSERT_TRUE(flow);
    EXPECT_EQ(flow->version, 6);
    EXPECT_EQ(flow->source, end(far, 80));
    EXPECT_EQ(flow->destination, end(kEdge, 1232));
    const auto back = relay.from_edges({6, flow->destination, flow->source, 0});
    ASSERT_TRUE(back);
    EXPECT_EQ(back->destination, in.source);
    EXPECT_EQ(back->source, in.destination);
  }
}

TEST(MapTranslator, RefusesWhoIsNotTheEdgeOfItsPort) {
  const MapTranslator relay(example_translation());
  const Endpoint far = end("2001:db8:ffff:0:a:0102:0300:0", 80);
  EXPECT_FALSE(relay.from_edges({6, end(kEdge, 1236), far, 0}));
  EXPECT_FALSE(relay.from_edges({6, end("2001:db8:12:3400:0:c000:213:34", 1232), far, 0}));
  EXPECT_FALSE(relay.from_edges({6, end("2001:db8:12:3400:1:c000:212:34", 1232), far, 0}));
  EXPECT_FALSE(relay.from_edges({4, end("192.0.2.18", 1232), end("10.1.2.3", 80), 0}));
}

TEST(MapTranslator, RefusesADestinationBesideItsPrefix) {
  const MapTranslator relay(example_translation());
  const Endpoint edge = end(kEdge, 1232);
  EXPECT_FALSE(relay.from_edges({6, edge, end("2001:db8:fffe:0:a:0102:0300:0", 80), 0}));
  EXPECT_FALSE(relay.from_edges({6, edge, end("2001:db8:ffff:0:a:0102:0300:1", 80), 0}));
}

TEST(MapTranslator, SendsNothingToNobody) {
  const MapTranslator relay(example_translation());
  const Endpoint far = end("10.1.2.3", 80);
  EXPECT_FALSE(relay.to_edges({4, far, end("192.0.2.18", 80), 0}));  // of no port set
  EXPECT_FALSE(relay.to_edges({4, far, end("192.0.3.18", 1232), 0}));
  EXPECT_FALSE(relay.to_edges({6, far, end(kEdge, 1232), 0}));
}

}  // namespace
}  // namespace dutperf::refdut
