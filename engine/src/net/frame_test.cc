#include "net/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "net/testing/reference_frame.h"

namespace dutperf::net {
namespace {

using testing::Bytes;
using testing::counting_payload;
using testing::reference_frame;
using testing::sample_layout;
using testing::tagged_payload;
using testing::udp_offset;
using testing::word_at;

constexpr uint64_t kMax48 = (1ULL << 48) - 1;
constexpr TagIdentity kBackgroundTag{0x1234, 7, kTagFlagBackground};

// The frame of RFC 2544 C.2.6.4 itself: the tag replaced by the payload that counts up, and the
// checksum computed by the code under test.
Bytes without_tag(const FrameLayout& layout) {
  Bytes frame = FrameTemplate(layout, kBackgroundTag).bytes();
  const Bytes payload = counting_payload(layout);
  uint8_t* udp = frame.data() + udp_offset(layout.ip_version);
  std::memcpy(udp + 8, payload.data(), payload.size());
  udp[6] = udp[7] = 0;
  const uint16_t checksum =
      finish_udp(udp_sum(layout.ip_version, frame.data() + 14, udp, 8 + payload.size()));
  udp[6] = static_cast<uint8_t>(checksum >> 8);
  udp[7] = static_cast<uint8_t>(checksum);
  return frame;
}

struct Vector {
  int ip_version;
  uint32_t frame_size;
  const char* dst_ip;
  uint16_t ip_checksum;  // 0: IPv6 has none
  uint16_t udp_checksum;
};

// Figures computed outside this code base, by another program.
constexpr Vector kVectors[] = {
    {4, 64, "198.19.0.2", 0x2496, 0x6b17},     {4, 128, "198.19.0.2", 0x2456, 0x4451},
    {4, 1518, "198.19.0.2", 0x1ee8, 0x22aa},   {6, 84, "2001:2:0:8000::2", 0, 0x3737},
    {6, 128, "2001:2:0:8000::2", 0, 0xd96b},   {6, 1518, "2001:2:0:8000::2", 0, 0x0815},
    {6, 84, "64:ff9b::198.19.0.2", 0, 0x1127},
};

class KnownFrames : public ::testing::TestWithParam<Vector> {
 protected:
  FrameLayout layout() const {
    FrameLayout layout = sample_layout(GetParam().ip_version, GetParam().frame_size);
    layout.dst_ip = *IpAddress::parse(GetParam().dst_ip);
    return layout;
  }
};

TEST_P(KnownFrames, HaveTheKnownChecksums) {
  const Bytes frame = without_tag(layout());
  if (GetParam().ip_version == 4) {
    EXPECT_EQ(word_at(frame, 24), GetParam().ip_checksum);
  }
  EXPECT_EQ(word_at(frame, udp_offset(GetParam().ip_version) + 6), GetParam().udp_checksum);
}

TEST_P(KnownFrames, EqualTheFrameOfTheRfcByteForByteApartFromTheTag) {
  EXPECT_EQ(without_tag(layout()), reference_frame(layout(), counting_payload(layout())));
}

INSTANTIATE_TEST_SUITE_P(Methodology, KnownFrames, ::testing::ValuesIn(kVectors));

TEST(FrameTemplate, Writes64BytesOfIpv4AsSpeltOutHere) {
  const Bytes expected = {
      0x02, 0x00, 0x00, 0x00, 0x00, 0xfe,              // destination
      0x02, 0x00, 0x00, 0x00, 0x00, 0x01,              // source
      0x08, 0x00,                                      // IPv4
      0x45, 0x00, 0x00, 0x2e, 0x00, 0x00, 0x00, 0x00,  // 46 bytes, not fragmented
      0x0a, 0x11, 0x24, 0x96,                          // TTL 10, UDP, checksum
      198,  18,   0,    2,    198,  19,   0,    2,     //
      0xc0, 0x20, 0x00, 0x07, 0x00, 0x1a, 0xc9, 0xb3,  // ports, length, checksum
      0xd0, 0x7f, 0x12, 0x34, 0x07, 0x01,              // tag: magic, trial, stream, background
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00,              // sequence number
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00,              // stamp
  };
  EXPECT_EQ(FrameTemplate(sample_layout(4, 64), kBackgroundTag).bytes(), expected);
}

TEST(FrameTemplate, CarriesDscpTtlPortsFlowLabelAndDontFragment) {
  for (const int version : {4, 6}) {
    FrameLayout layout = sample_layout(version, 200);
    layout.dscp = 46;
    layout.ttl = 255;
    layout.src_port = 1024;
    layout.dst_port = 49151;
    layout.df = version == 4;
    layout.flow_label = 0xabcde;
    EXPECT_EQ(FrameTemplate(layout, kBackgroundTag).bytes(),
              reference_frame(layout, tagged_payload(layout, kBackgroundTag, 0, 0)))
        << "IPv" << version;
  }
}

class EverySize : public ::testing::TestWithParam<int> {};

TEST_P(EverySize, EqualsTheFrameWrittenByteForByte) {
  for (uint32_t size = minimum_frame_size(GetParam()); size <= 1600; ++size) {
    const FrameLayout layout = sample_layout(GetParam(), size);
    const FrameTemplate frame_template(layout, kBackgroundTag);
    const Bytes expected = reference_frame(layout, tagged_payload(layout, kBackgroundTag, 0, 0));
    ASSERT_EQ(frame_template.bytes(), expected) << size;
    ASSERT_EQ(frame_template.tag_offset(), size - 4 - sizeof(WireTag)) << size;
    ASSERT_EQ(frame_template.tag_is_odd(), size % 2 != 0) << size;
    ASSERT_EQ(frame_template.udp_offset(), udp_offset(GetParam())) << size;
  }
}

TEST_P(EverySize, KnowsTheSumsThatItsChecksumsComplete) {
  for (uint32_t size = minimum_frame_size(GetParam()); size <= 1600; ++size) {
    const FrameTemplate frame_template(sample_layout(GetParam(), size), kBackgroundTag);
    const Bytes& frame = frame_template.bytes();
    ASSERT_EQ(finish_udp(frame_template.udp_sum()), word_at(frame, udp_offset(GetParam()) + 6));
    ASSERT_EQ(GetParam() == 4 ? finish(frame_template.ipv4_sum()) : 0,
              GetParam() == 4 ? word_at(frame, 24) : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(BothVersions, EverySize, ::testing::Values(4, 6));

TEST(WireTag, GivesBackSequenceAndStamp) {
  std::mt19937_64 random(48);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t sequence = random() & kMax48;
    const uint64_t stamp_ns = random() & kMax48;
    const FrameLayout layout = sample_layout(4, 64);
    const Bytes frame =
        reference_frame(layout, tagged_payload(layout, kBackgroundTag, sequence, stamp_ns));
    WireTag tag;
    std::memcpy(&tag, frame.data() + frame.size() - sizeof(tag), sizeof(tag));
    ASSERT_EQ(tag.sequence(), sequence);
    ASSERT_EQ(tag.stamp_ns(), stamp_ns);
  }
}

}  // namespace
}  // namespace dutperf::net
