#include "net/udp.h"

#include <gtest/gtest.h>

#include <random>

#include "net/testing/reference_frame.h"

namespace dutperf::net {
namespace {

using testing::Bytes;

// A datagram from port 161, without FCS, with `padding` behind it.
Bytes datagram(int version, size_t padding = 0) {
  FrameLayout layout = testing::sample_layout(version, 128);
  layout.src_port = 161;
  Bytes frame = testing::reference_frame(layout, testing::tagged_payload(layout, {1, 0, 0}, 5, 6));
  frame.resize(frame.size() + padding);
  return frame;
}

class UdpPacket : public ::testing::TestWithParam<int> {
 protected:
  size_t headers_ = GetParam() == 4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header);
};

INSTANTIATE_TEST_SUITE_P(Versions, UdpPacket, ::testing::Values(4, 6));

TEST_P(UdpPacket, IsThatOfThePort) {
  const Bytes frame = datagram(GetParam());
  const auto packet = udp_packet_from(161, frame.data(), frame.size());
  EXPECT_EQ(Bytes(packet.begin(), packet.end()), Bytes(frame.begin() + 14, frame.end()));
  EXPECT_TRUE(udp_packet_from(162, frame.data(), frame.size()).empty());
}

TEST_P(UdpPacket, EndsWhereItsHeaderSays) {
  const Bytes frame = datagram(GetParam(), 20);
  EXPECT_EQ(udp_packet_from(161, frame.data(), frame.size()).size(), frame.size() - 14 - 20);
}

TEST_P(UdpPacket, IsNoneThatWasCutShort) {
  const Bytes frame = datagram(GetParam());
  for (size_t size = 0; size < frame.size(); ++size) {
    const Bytes part(frame.begin(), frame.begin() + static_cast<long>(size));
    EXPECT_TRUE(udp_packet_from(161, part.data(), size).empty()) << size;
  }
}

TEST_P(UdpPacket, IsNoneOfAnotherProtocolOrOfAPiece) {
  Bytes tcp = datagram(GetParam());
  tcp[14 + (GetParam() == 4 ? 9 : 6)] = 6;
  EXPECT_TRUE(udp_packet_from(161, tcp.data(), tcp.size()).empty());
  if (GetParam() == 6) return;
  Bytes piece = datagram(4);
  piece[14 + 6] |= 0x20;
  EXPECT_TRUE(udp_packet_from(161, piece.data(), piece.size()).empty());
}

TEST_P(UdpPacket, ReadsNothingThatIsNotThere) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    Bytes frame = datagram(GetParam());
    for (int k = 0; k < 4; ++k) frame[12 + random() % 32] = static_cast<uint8_t>(random());
    frame.resize(random() % (frame.size() + 1));
    frame.shrink_to_fit();
    const auto packet = udp_packet_from(161, frame.data(), frame.size());
    ASSERT_LE(packet.size() + (packet.empty() ? 0 : 14), frame.size());
  }
}

}  // namespace
}  // namespace dutperf::net
