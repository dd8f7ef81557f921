#include "net/encapsulation.h"

#include <gtest/gtest.h>

#include "net/classify.h"
#include "net/neighbour.h"
#include "net/testing/addresses.h"
#include "net/testing/reference_frame.h"

namespace dutperf::net {
namespace {

using testing::Bytes;
using testing::ip;
using testing::kTag;
using testing::reference_frame;
using testing::reference_sum;
using testing::sample_layout;
using testing::tagged_frame;
using testing::tagged_payload;

const VlanTags kTags(std::vector<VlanTag>{{0x88a8, 10}, {0x8100, 100}});

TunnelEnds ends_of(Tunnel kind, int outer_version) {
  TunnelEnds ends;
  ends.kind = kind;
  ends.local = ip(outer_version == 4 ? "198.18.0.2" : "2001:2::2");
  ends.remote = ip(outer_version == 4 ? "198.18.0.1" : "2001:2::1");
  ends.flow_label = outer_version == 4 ? 0 : 0xabcde;
  ends.vni = 0xabcdef;
  ends.src_port = 55555;
  ends.inner_mac = {{2, 0, 0, 0, 9, 9}};
  return ends;
}

// As many segments as that, of addresses that begin as `first` says.
SegmentPath path(const char* first, size_t segments, uint8_t left, bool reduced = false) {
  SegmentPath path{std::vector<IpAddress>(segments, ip(first)), left, reduced, 0x1234};
  for (size_t i = 0; i < segments; ++i) path.segments[i].bytes[15] = static_cast<uint8_t>(i + 1);
  return path;
}

struct Case {
  Tunnel kind;
  int outer;
  int inner;
  SegmentPath sent = {};
  SegmentPath received = {};
};

class Tunnelled : public ::testing::TestWithParam<Case> {
 protected:
  TunnelEnds ends() const {
    TunnelEnds ends = ends_of(GetParam().kind, GetParam().outer);
    ends.sent = GetParam().sent;
    ends.received = GetParam().received;
    return ends;
  }
  // Of the tester's end, and of the device's: what arrives at the tester.
  FrameLayout sent(const VlanTags& vlan = {}) const { return layout_of(ends(), vlan); }
  FrameLayout layout_of(const TunnelEnds& ends, const VlanTags& vlan = {}) const {
    FrameLayout layout = sample_layout(GetParam().inner, 128);
    layout.vlan = vlan;
    layout.outer = Encapsulation(ends);
    return layout;
  }
  FrameLayout arriving(const VlanTags& vlan = {}) const {
    FrameLayout layout = sent(vlan);
    layout.outer = layout.outer.from_other_end();
    return layout;
  }
  static size_t outer_at(const FrameLayout& layout) { return 14 + layout.vlan.bytes(); }
  static size_t outer_udp_at(const FrameLayout& layout) {
    return outer_at(layout) + layout.outer.udp_offset();
  }
  Classified classified(const Bytes& frame, const VlanTags& vlan = {}) const {
    return classify_tunnelled(vlan, Encapsulation(ends()), frame.data(), frame.size());
  }
  // Of what arrives.
  static IpAddress& destination(TunnelEnds& ends) {
    SegmentPath& path = ends.received;
    return ends.kind == Tunnel::kSrv6 ? path.segments[path.segments.size() - 1 - path.left]
                                      : ends.local;
  }
  std::optional<Damage> damage(const Bytes& frame, bool verify_checksums = true) const {
    return Encapsulation(ends()).damage_at(frame.data() + 12, 110, verify_checksums);
  }
};

TEST_P(Tunnelled, FramesAreThoseOfTheSlowTwin) {
  for (const VlanTags& vlan : {VlanTags{}, kTags}) {
    const FrameLayout layout = sent(vlan);
    const FrameTemplate made(layout, kTag);
    const uint32_t before = vlan.bytes() + layout.outer.bytes();
    ASSERT_EQ(made.bytes().size(), 124 + before);
    ASSERT_EQ(made.ip_offset(), 14 + before);
    ASSERT_EQ(made.bytes(), reference_frame(layout, tagged_payload(layout, kTag, 0, 0)));
  }
}

TEST_P(Tunnelled, WhatTheDeviceSendsIsKnown) {
  for (const VlanTags& vlan : {VlanTags{}, kTags}) {
    const FrameLayout layout = arriving(vlan);
    const Bytes frame = tagged_frame(layout);
    const Classified found = classified(frame, vlan);
    ASSERT_EQ(found.kind, FrameKind::kTest);
    ASSERT_EQ(found.ip_version, GetParam().inner);
    ASSERT_EQ(found.ip_bytes, 110);
    ASSERT_EQ(found.tag->sequence(), 5);
    const size_t before = vlan.bytes() + layout.outer.bytes();
    ASSERT_TRUE(checksums_hold(frame.data() + before, found));
    const Encapsulation own(ends());
    ASSERT_EQ(own.damage_at(frame.data() + 12 + vlan.bytes(), 110, true), std::nullopt);
  }
}

TEST_P(Tunnelled, WhatTheTesterSendsDoesNotCountWhenItComesBack) {
  EXPECT_EQ(classified(tagged_frame(sent())).kind, FrameKind::kOtherVlan);
}

TEST_P(Tunnelled, AnotherTunnelIsNotTheirs) {
  const std::vector<Tunnel> kinds = {Tunnel::kIp, Tunnel::kGre, Tunnel::kVxlan};
  for (const Tunnel kind : kinds) {
    for (const int version : {4, 6}) {
      if (kind == GetParam().kind && version == GetParam().outer) continue;
      FrameLayout layout = sent();
      layout.outer = Encapsulation(ends_of(kind, version)).from_other_end();
      ASSERT_EQ(classified(tagged_frame(layout)).kind == FrameKind::kTest, false);
    }
  }
  for (const auto change : {+[](TunnelEnds& e) { destination(e).bytes[1] ^= 1; },
                            +[](TunnelEnds& e) { e.remote.bytes[1] ^= 1; },
                            +[](TunnelEnds& e) { destination(e).bytes[3] ^= 1; }}) {
    TunnelEnds others = ends();
    change(others);
    FrameLayout layout = sent();
    layout.outer = Encapsulation(others).from_other_end();
    ASSERT_EQ(classified(tagged_frame(layout)).kind, FrameKind::kOtherVlan);
  }
  FrameLayout bare = sent();
  bare.outer = {};
  EXPECT_EQ(classified(tagged_frame(bare)).kind, FrameKind::kOtherVlan);
}

TEST_P(Tunnelled, WhatVariesOfTheLocalAddressIsNotCompared) {
  if (GetParam().received.entries() > 0) return;  // it stands among the segments, too
  TunnelEnds own = ends();
  const auto bits = static_cast<uint8_t>(8 * own.local.size() - 5);
  own.local_bits = bits;
  for (const auto& [flipped, kind] :
       {std::pair{uint8_t{0x1f}, FrameKind::kTest}, {uint8_t{0x20}, FrameKind::kOtherVlan}}) {
    TunnelEnds others = ends();
    destination(others).bytes[others.local.size() - 1] ^= flipped;
    FrameLayout layout = sent();
    layout.outer = Encapsulation(others).from_other_end();
    const Bytes frame = tagged_frame(layout);
    const auto found = classify_tunnelled({}, Encapsulation(own), frame.data(), frame.size());
    ASSERT_EQ(found.kind, kind);
  }
}

TEST_P(Tunnelled, WhatIsTheDevicesToChooseIsNotCompared) {
  Bytes frame = tagged_frame(arriving());
  if (GetParam().outer == 6) {
    frame[14] = 0x6f;  // traffic class and flow label
    frame[15] = frame[16] = frame[17] = 0xff;
    frame[21] = 1;  // hop limit
  } else {
    for (const size_t at : {15, 18, 19, 22}) frame[at] = 0x5a;  // TOS, identification, TTL
    frame[20] = 0;                                              // no DF
    frame[24] = frame[25] = 0;
    const uint16_t sum = reference_sum(Bytes(frame.begin() + 14, frame.begin() + 34));
    frame[24] = static_cast<uint8_t>((0xffff - sum) >> 8);
    frame[25] = static_cast<uint8_t>(0xffff - sum);
  }
  if (GetParam().kind == Tunnel::kVxlan) frame[outer_udp_at(arriving())] ^= 0xff;
  EXPECT_EQ(classified(frame).kind, FrameKind::kTest);
  EXPECT_EQ(damage(frame), std::nullopt);
}

TEST_P(Tunnelled, OuterLengthsMustBeRight) {
  const FrameLayout layout = arriving();
  std::vector<size_t> lengths = {GetParam().outer == 4 ? size_t{17} : size_t{19}};
  if (GetParam().kind == Tunnel::kVxlan) lengths.push_back(outer_udp_at(layout) + 5);
  for (const size_t at : lengths) {
    Bytes frame = tagged_frame(layout);
    frame[at] ^= 1;
    ASSERT_EQ(classified(frame).kind, FrameKind::kTest);
    ASSERT_EQ(damage(frame), Damage::kLength);
    ASSERT_EQ(damage(frame, false), Damage::kLength);
  }
}

TEST_P(Tunnelled, OuterChecksumsMustHold) {
  const FrameLayout layout = arriving();
  if (GetParam().outer == 4) {
    Bytes frame = tagged_frame(layout);
    frame[22] ^= 1;  // TTL
    EXPECT_EQ(damage(frame), Damage::kChecksumWrong);
    EXPECT_EQ(damage(frame, false), std::nullopt);
  }
  if (GetParam().kind != Tunnel::kVxlan) return;
  const size_t udp = outer_udp_at(layout);
  Bytes frame = tagged_frame(layout);
  Bytes covered(frame.begin() + static_cast<ptrdiff_t>(udp), frame.end());
  const size_t addresses = GetParam().outer == 4 ? 8 : 32;
  const auto header_end = frame.begin() + static_cast<ptrdiff_t>(udp);
  covered.insert(covered.begin(), header_end - static_cast<ptrdiff_t>(addresses), header_end);
  const size_t length = frame.size() - udp;
  covered.insert(covered.begin(),
                 {0, 17, static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length)});
  const uint16_t checksum = static_cast<uint16_t>(0xffff - reference_sum(covered));
  frame[udp + 6] = static_cast<uint8_t>(checksum >> 8);
  frame[udp + 7] = static_cast<uint8_t>(checksum);
  EXPECT_EQ(damage(frame), std::nullopt);
  frame[udp + 7] ^= 1;
  EXPECT_EQ(damage(frame), Damage::kChecksumWrong);
  EXPECT_EQ(damage(frame, false), std::nullopt);
}

TEST_P(Tunnelled, APieceIsNoTestFrame) {
  if (GetParam().outer != 4) return;
  Bytes frame = tagged_frame(arriving());
  frame[20] = 0x20;  // more fragments
  EXPECT_EQ(classified(frame).kind, FrameKind::kFragment);
}

TEST_P(Tunnelled, AFrameThatIsTooShortIsNoTestFrame) {
  const Bytes whole = tagged_frame(arriving(kTags));
  for (size_t size = 14; size < whole.size(); ++size) {
    Bytes frame(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    ASSERT_NE(classified(frame, kTags).kind, FrameKind::kTest);
  }
}

// A device takes out what the tester sent, and puts in what the tester expects.
TEST_P(Tunnelled, ADeviceTakesItOutAndPutsItIn) {
  const Encapsulation devices = Encapsulation(ends()).from_other_end();
  FrameLayout bare = sent();
  bare.outer = {};
  Bytes frame = tagged_frame(sent());
  ASSERT_TRUE(devices.stands_at(frame.data() + 12));
  ASSERT_EQ(devices.take_out(frame.data(), frame.size()), tagged_frame(bare).size());
  Bytes taken(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(tagged_frame(bare).size()));
  EXPECT_EQ(taken, tagged_frame(bare));

  FrameLayout put = sent();
  put.outer = devices;
  Bytes room = tagged_frame(bare);
  const size_t size = room.size();
  room.resize(size + devices.bytes());
  ASSERT_EQ(devices.put_in(room.data(), size), room.size());
  EXPECT_EQ(room, tagged_frame(put));
  EXPECT_EQ(classified(room).kind, FrameKind::kTest);
}

// A message of ICMP in the tunnel, and one beside it.
TEST_P(Tunnelled, WhatSaysWhyIsHeardOnBothWays) {
  FrameLayout layout = arriving();
  Bytes inside = tagged_frame(layout);
  const size_t protocol = 14 + layout.outer.bytes() + (GetParam().inner == 4 ? 9 : 6);
  inside[protocol] = GetParam().inner == 4 ? 1 : 58;
  EXPECT_EQ(classified(inside).kind, FrameKind::kIcmp);
  layout.outer = {};
  Bytes outside = tagged_frame(layout);
  outside[14 + (GetParam().inner == 4 ? 9 : 6)] = GetParam().inner == 4 ? 1 : 58;
  EXPECT_EQ(classified(outside).kind, FrameKind::kIcmp);
}

INSTANTIATE_TEST_SUITE_P(OfAllKinds, Tunnelled,
                         ::testing::Values(Case{Tunnel::kIp, 6, 4}, Case{Tunnel::kIp, 4, 6},
                                           Case{Tunnel::kIp, 4, 4}, Case{Tunnel::kIp, 6, 6},
                                           Case{Tunnel::kGre, 6, 4}, Case{Tunnel::kGre, 4, 4},
                                           Case{Tunnel::kGre, 4, 6}, Case{Tunnel::kVxlan, 4, 4},
                                           Case{Tunnel::kVxlan, 6, 4}, Case{Tunnel::kVxlan, 4, 6},
                                           Case{Tunnel::kVxlan, 6, 6}));

constexpr size_t kMost = SegmentPath::kMost;
INSTANTIATE_TEST_SUITE_P(
    OfSegments, Tunnelled,
    ::testing::Values(
        Case{Tunnel::kSrv6, 6, 4, path("fd00:1::", 3, 2), path("fd00:2::", 1, 0)},
        Case{Tunnel::kSrv6, 6, 6, path("fd00:1::", 3, 2), path("fd00:2::", 1, 0, true)},
        Case{Tunnel::kSrv6, 6, 4, path("fd00:1::", 1, 0, true), path("fd00:1::", 1, 0)},
        Case{Tunnel::kSrv6, 6, 6, path("fd00:1::", 1, 0), path("fd00:2::", 2, 0, true)},
        Case{Tunnel::kSrv6, 6, 4, path("fd00:1::", 3, 2, true), path("fd00:1::", 3, 1, true)},
        Case{Tunnel::kSrv6, 6, 6, path("fd00:1::", kMost, kMost - 1), path("fd00:2::", kMost, 0)}));

// What is in the destination alone goes without a header; else it stands there and in the list.
TEST(SegmentsOfATunnel, MakeAFrameLonger) {
  const auto bytes = [](const SegmentPath& sent) {
    TunnelEnds ends = ends_of(Tunnel::kSrv6, 6);
    ends.sent = sent;
    ends.received = path("fd00:2::", 2, 0);
    const Encapsulation outer(ends);
    EXPECT_EQ(outer.received_bytes(), 40U + 8 + 2 * 16);
    EXPECT_EQ(outer.from_other_end().received_bytes(), outer.bytes());
    return outer.bytes();
  };
  EXPECT_EQ(bytes(path("fd00:1::", 1, 0, true)), 40U);
  EXPECT_EQ(bytes(path("fd00:1::", 1, 0)), 40U + 8 + 16);
  EXPECT_EQ(bytes(path("fd00:1::", 3, 2, true)), 40U + 8 + 2 * 16);
  EXPECT_EQ(bytes(path("fd00:1::", kMost, 0)), 40U + 8 + kMost * 16);
}

// An endpoint decrements what is left and writes the next segment over the destination (RFC 8754
// 4.3.1.1): that, and no other bit of the header, may differ between what is sent and arrives.
TEST(SegmentsOfATunnel, AreComparedBitByBitBehindAnEndpoint) {
  TunnelEnds left = ends_of(Tunnel::kSrv6, 6);
  left.sent = path("fd00:1::", 3, 2);
  left.received = path("fd00:2::", 2, 0);
  TunnelEnds right = Encapsulation(left).from_other_end().ends();
  right.received.left = 1;
  FrameLayout layout = sample_layout(4, 128);
  layout.outer = Encapsulation(left);
  Bytes frame = tagged_frame(layout);
  const Encapsulation own(right);
  EXPECT_FALSE(own.stands_at(frame.data() + 12));
  --frame[14 + 40 + 3];
  std::copy_n(frame.begin() + 14 + 40 + 8 + 16, 16, frame.begin() + 14 + 24);
  ASSERT_TRUE(own.stands_at(frame.data() + 12));
  for (size_t bit = 0; bit < 8 * (8 + 3 * 16); ++bit) {
    uint8_t& byte = frame[14 + 40 + bit / 8];
    byte ^= static_cast<uint8_t>(1U << (bit % 8));
    ASSERT_FALSE(own.stands_at(frame.data() + 12)) << bit;
    const auto found = classify_tunnelled({}, own, frame.data(), frame.size());
    const bool is_routing = frame[14 + 40 + 2] == 4;
    ASSERT_EQ(found.kind, is_routing ? FrameKind::kOtherVlan : FrameKind::kForeign) << bit;
    byte ^= static_cast<uint8_t>(1U << (bit % 8));
  }
}

TEST(TunnelPort, NeighboursAskBesideIt) {
  const Encapsulation outer(ends_of(Tunnel::kVxlan, 4));
  for (const VlanTags& vlan : {VlanTags{}, kTags}) {
    uint8_t frame[kTaggedNeighbourFrameBytes] = {};
    const size_t size =
        vlan.put_in(frame, write_request(ip("198.18.0.1"), Mac{}, ip("198.18.0.2"), frame));
    EXPECT_EQ(classify_tunnelled(vlan, outer, frame, size).kind, FrameKind::kNeighbour);
  }
}

// Nobody in a tunnel is answered: what stands in VXLAN is a frame of another network.
TEST(TunnelPort, NeighboursInATunnelAreForeign) {
  const Encapsulation devices = Encapsulation(ends_of(Tunnel::kVxlan, 4)).from_other_end();
  FrameLayout layout = sample_layout(4, 128);
  layout.outer = devices;
  Bytes frame = reference_frame(layout, tagged_payload(layout, kTag, 5, 77));
  frame[14 + devices.bytes() - 2] = 0x08;
  frame[14 + devices.bytes() - 1] = 0x06;  // ARP
  const Encapsulation own(ends_of(Tunnel::kVxlan, 4));
  EXPECT_EQ(classify_tunnelled({}, own, frame.data(), frame.size()).kind, FrameKind::kForeign);
}

}  // namespace
}  // namespace dutperf::net
