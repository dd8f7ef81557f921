#include "net/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <tuple>

#include "net/testing/reference_frame.h"

namespace dutperf::net {
namespace {

using testing::Bytes;
using testing::counting_payload;
using testing::reference_frame;
using testing::sample_layout;
using testing::tagged_payload;
using testing::udp_offset;

constexpr uint64_t kMax48 = (1ULL << 48) - 1;
constexpr TagIdentity kTag{0x1234, 7, kTagFlagBackground};

uint16_t word_at(const Bytes& frame, size_t offset) {
  return static_cast<uint16_t>(frame[offset] << 8 | frame[offset + 1]);
}

// The frame of RFC 2544 C.2.6.4 itself: the tag replaced by the payload that counts up, and the
// checksum computed by the code under test.
Bytes without_tag(const FrameLayout& layout) {
  Bytes frame = FrameTemplate(layout, kTag).bytes();
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
      0xc0, 0x20, 0x00, 0x07, 0x00, 0x1a, 0xc8, 0xae,  // ports, length, checksum
      0xd0, 0x7f, 0x12, 0x34, 0x07, 0x01,              // tag: magic, trial, stream, background
      0x00, 0x00, 0x00, 0x00, 0x00, 0x05,              // sequence number
      0x00, 0x00, 0x00, 0x00, 0x01, 0x00,              // stamp
  };
  const FrameTemplate frame_template(sample_layout(4, 64), kTag);
  Bytes frame = frame_template.bytes();
  frame_template.patch(frame.data(), 5, 256);
  EXPECT_EQ(frame, expected);
}

TEST(FrameTemplate, CarriesDscpTtlPortsAndDontFragment) {
  for (const int version : {4, 6}) {
    FrameLayout layout = sample_layout(version, 200);
    layout.dscp = 46;
    layout.ttl = 255;
    layout.src_port = 1024;
    layout.dst_port = 49151;
    layout.df = version == 4;
    EXPECT_EQ(FrameTemplate(layout, kTag).bytes(),
              reference_frame(layout, tagged_payload(layout, kTag, 0, 0)))
        << "IPv" << version;
  }
}

class EverySize : public ::testing::TestWithParam<int> {};

TEST_P(EverySize, IsPatchedAsIfWrittenAnew) {
  constexpr std::pair<uint64_t, uint64_t> kExtremes[] = {
      {0, 0},          {kMax48, kMax48}, {0, kMax48},     {kMax48, 0},
      {1, 1ULL << 32}, {1ULL << 32, 1},  {0x8000, 0xffff}};
  std::mt19937_64 random(64);
  for (uint32_t size = minimum_frame_size(GetParam()); size <= 1600; ++size) {
    const FrameLayout layout = sample_layout(GetParam(), size);
    const FrameTemplate frame_template(layout, kTag);
    Bytes frame = frame_template.bytes();  // one buffer for all: patching leaves nothing behind
    ASSERT_EQ(frame, reference_frame(layout, tagged_payload(layout, kTag, 0, 0))) << size;
    const auto check = [&](uint64_t sequence, uint64_t stamp_ns) {
      frame_template.patch(frame.data(), sequence, stamp_ns);
      ASSERT_EQ(frame, reference_frame(layout, tagged_payload(layout, kTag, sequence, stamp_ns)))
          << size << " bytes, sequence " << sequence << ", stamp " << stamp_ns;
    };
    for (const auto& [sequence, stamp_ns] : kExtremes) check(sequence, stamp_ns);
    check(random() & kMax48, random() & kMax48);
  }
}

INSTANTIATE_TEST_SUITE_P(BothVersions, EverySize, ::testing::Values(4, 6));

class ZeroChecksum : public ::testing::TestWithParam<std::tuple<int, uint32_t>> {};

TEST_P(ZeroChecksum, IsSentAsFfff) {
  const auto [version, size] = GetParam();
  const FrameLayout layout = sample_layout(version, size);
  const FrameTemplate frame_template(layout, kTag);
  Bytes frame = frame_template.bytes();
  int hits = 0;
  // The stamp's last 16 bits alone reach every checksum, so some stamp below 2^16 - 1 makes zero.
  for (uint64_t stamp_ns = 0; stamp_ns < 0x10000; ++stamp_ns) {
    frame_template.patch(frame.data(), 0, stamp_ns);
    const uint16_t checksum = word_at(frame, udp_offset(version) + 6);
    ASSERT_NE(checksum, 0);
    if (checksum != 0xffff) continue;
    ++hits;
    EXPECT_EQ(frame, reference_frame(layout, tagged_payload(layout, kTag, 0, stamp_ns)));
  }
  EXPECT_GE(hits, 1);
}

// 65 and 85: the tag stands at an odd offset.
INSTANTIATE_TEST_SUITE_P(BothVersionsAndParities, ZeroChecksum,
                         ::testing::Values(std::tuple{4, 64U}, std::tuple{4, 65U},
                                           std::tuple{6, 84U}, std::tuple{6, 85U}));

TEST(WireTag, GivesBackSequenceAndStamp) {
  std::mt19937_64 random(48);
  const FrameTemplate frame_template(sample_layout(4, 64), kTag);
  Bytes frame = frame_template.bytes();
  for (int i = 0; i < 1000; ++i) {
    const uint64_t sequence = random() & kMax48;
    const uint64_t stamp_ns = random() & kMax48;
    frame_template.patch(frame.data(), sequence, stamp_ns);
    WireTag tag;
    std::memcpy(&tag, frame.data() + frame.size() - sizeof(tag), sizeof(tag));
    ASSERT_EQ(tag.sequence(), sequence);
    ASSERT_EQ(tag.stamp_ns(), stamp_ns);
  }
}

}  // namespace
}  // namespace dutperf::net
