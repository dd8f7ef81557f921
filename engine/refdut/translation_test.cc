#include "translation.h"

#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "net/classify.h"
#include "net/testing/reference_frame.h"

namespace dutperf::refdut {
namespace {

using net::FrameLayout;
using net::IpAddress;
using net::testing::Bytes;
using net::testing::reference_frame;
using net::testing::tagged_payload;

Endpoint end_of(const IpAddress& address, uint16_t port) { return {address.bytes, port}; }

Flow flow_of(const FrameLayout& layout) {
  return {layout.ip_version, end_of(layout.src_ip, layout.src_port),
          end_of(layout.dst_ip, layout.dst_port), 0};
}

IpAddress random_address(int version, std::mt19937& random) {
  uint8_t bytes[16];
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return IpAddress::from_bytes(version, bytes);
}

FrameLayout random_ends(FrameLayout layout, int version, std::mt19937& random) {
  layout.ip_version = version;
  layout.src_ip = random_address(version, random);
  layout.dst_ip = random_address(version, random);
  layout.src_port = static_cast<uint16_t>(random());
  layout.dst_port = static_cast<uint16_t>(random());
  return layout;
}

class Translating : public ::testing::TestWithParam<std::tuple<int, int>> {};

INSTANTIATE_TEST_SUITE_P(Versions, Translating,
                         ::testing::Combine(::testing::Values(4, 6), ::testing::Values(4, 6)));

TEST_P(Translating, MakesTheFrameThatTheOtherEndsWouldHaveSent) {
  const auto [from, to] = GetParam();
  std::mt19937 random(from * 10 + to);
  for (int i = 0; i < 2000; ++i) {
    FrameLayout layout =
        net::testing::sample_layout(from, 84 + static_cast<uint32_t>(random() % 1400));
    layout.dscp = static_cast<uint8_t>(random() % 64);
    layout.ttl = static_cast<uint8_t>(1 + random() % 255);
    layout = random_ends(layout, from, random);
    const Bytes payload = tagged_payload(layout, {1, 0, 0}, random(), random());
    FrameLayout wanted = random_ends(layout, to, random);
    wanted.flow_label = from == to ? layout.flow_label : 0;
    Bytes frame = reference_frame(layout, payload);
    frame.resize(frame.size() + 20);
    const auto flow = read_flow(frame.data(), frame.size());
    ASSERT_TRUE(flow);
    EXPECT_EQ(flow->source, end_of(layout.src_ip, layout.src_port));
    wanted.df = from == 6 && to == 4 && flow->ip_bytes - 20 > 1260;
    const size_t size = translated_size(*flow, to);
    ASSERT_TRUE(translate(*flow, flow_of(wanted), frame.data()));
    frame.resize(size);
    ASSERT_EQ(frame, reference_frame(wanted, payload)) << from << " to " << to;
  }
}

TEST_P(Translating, OfTcpKeepsAllButTheEnds) {
  const auto [from, to] = GetParam();
  std::mt19937 random(from * 10 + to);
  for (int i = 0; i < 200; ++i) {
    const FrameLayout layout = random_ends(net::testing::sample_layout(from, 84), from, random);
    const FrameLayout wanted = random_ends(layout, to, random);
    Bytes frame = net::testing::segment_of(
        layout, {.step = net::Step::kRequest, .numbers = net::SequenceNumbers(random())});
    const auto before = net::segment_in(frame.data(), frame.size());
    frame.resize(frame.size() + 20);
    const auto flow = read_flow(frame.data(), frame.size());
    ASSERT_TRUE(flow);
    EXPECT_EQ(flow->protocol, Protocol::kTcp);
    EXPECT_FALSE(flow->may_open);
    const size_t size = translated_size(*flow, to);
    ASSERT_TRUE(translate(*flow, flow_of(wanted), frame.data()));
    const auto after = net::segment_in(frame.data(), size);
    ASSERT_TRUE(after);
    EXPECT_EQ(after->ip_version, to);
    EXPECT_EQ(after->sequence, before->sequence);
    EXPECT_EQ(after->acknowledgment, before->acknowledgment);
    EXPECT_EQ(after->payload_bytes(), before->payload_bytes());
    EXPECT_TRUE(net::checksums_hold(frame.data(), *after));
    const auto ends = read_flow(frame.data(), size);
    EXPECT_EQ(ends->source, flow_of(wanted).source);
    EXPECT_EQ(ends->destination, flow_of(wanted).destination);
  }
}

TEST(Translating, KeepsAWrongChecksumWrong) {
  FrameLayout layout = net::testing::sample_layout(6, 128);
  Bytes frame = reference_frame(layout, tagged_payload(layout, {1, 0, 0}, 1, 2));
  frame[70] ^= 1;
  std::mt19937 random(1);
  const auto flow = read_flow(frame.data(), frame.size());
  ASSERT_TRUE(translate(*flow, flow_of(random_ends(layout, 4, random)), frame.data()));
  const auto classified = net::classify(frame.data(), frame.size());
  ASSERT_EQ(classified.kind, net::FrameKind::kTest);
  EXPECT_FALSE(net::checksums_hold(frame.data(), classified));
}

TEST(Translating, RefusesAPacketWithoutChecksumForIpv6Only) {
  FrameLayout layout = net::testing::sample_layout(4, 128);
  Bytes frame = reference_frame(layout, tagged_payload(layout, {1, 0, 0}, 1, 2));
  frame[40] = frame[41] = 0;
  const Bytes before = frame;
  frame.resize(200);
  std::mt19937 random(1);
  const auto flow = read_flow(frame.data(), frame.size());
  EXPECT_FALSE(translate(*flow, flow_of(random_ends(layout, 6, random)), frame.data()));
  EXPECT_TRUE(std::equal(before.begin(), before.end(), frame.begin()));
  EXPECT_TRUE(translate(*flow, flow_of(random_ends(layout, 4, random)), frame.data()));
  EXPECT_EQ(frame[40] | frame[41], 0);
}

TEST(ReadFlow, KnowsWhatIsNoWholeUdpPacket) {
  FrameLayout layout = net::testing::sample_layout(4, 64);
  const Bytes frame = reference_frame(layout, tagged_payload(layout, {1, 0, 0}, 1, 2));
  ASSERT_TRUE(read_flow(frame.data(), frame.size()));
  for (size_t size = sizeof(net::EthernetHeader); size < frame.size(); ++size) {
    EXPECT_FALSE(read_flow(frame.data(), size)) << size;
  }
  for (const size_t at : {12, 14, 20, 23}) {  // EtherType, version, fragment, protocol
    Bytes other = frame;
    other[at] ^= 0x21;
    EXPECT_FALSE(read_flow(other.data(), other.size())) << at;
  }
}

}  // namespace
}  // namespace dutperf::refdut
