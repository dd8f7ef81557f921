#include "net/classify.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

#include "net/testing/reference_frame.h"

namespace dutperf::net {
namespace {

using testing::Bytes;
using testing::kTag;
using testing::reference_frame;
using testing::sample_layout;
using testing::tagged_payload;
using testing::udp_offset;

constexpr uint64_t kSequence = 0x0000a1b2c3d4e5;
constexpr uint64_t kStampNs = 0x00001122334455;

Bytes test_frame(int version, uint32_t size) {
  const FrameLayout layout = sample_layout(version, size);
  return reference_frame(layout, tagged_payload(layout, kTag, kSequence, kStampNs));
}

// A heap block of exactly the frame's size, so that the sanitizer sees a read outside.
class Exact {
 public:
  Exact(const Bytes& bytes, size_t size) : size_(size), bytes_(new uint8_t[size]) {
    if (size > 0) std::memcpy(bytes_.get(), bytes.data(), size);
  }
  explicit Exact(const Bytes& bytes) : Exact(bytes, bytes.size()) {}

  const uint8_t* data() const { return bytes_.get(); }
  Classified classified() const { return classify(bytes_.get(), size_); }
  FrameKind kind() const { return classified().kind; }
  bool whole() const {
    const Classified result = classified();
    return result.kind == FrameKind::kTest && checksums_hold(bytes_.get(), result);
  }

 private:
  size_t size_;
  std::unique_ptr<uint8_t[]> bytes_;
};

Bytes changed(Bytes frame, size_t offset, const Bytes& bytes) {
  std::copy(bytes.begin(), bytes.end(), frame.begin() + static_cast<ptrdiff_t>(offset));
  return frame;
}

class Classify : public ::testing::TestWithParam<int> {};

TEST_P(Classify, KnowsOwnFramesOfEverySizeAndFindsTheirTag) {
  for (uint32_t size = minimum_frame_size(GetParam()); size <= 1600; ++size) {
    const Exact frame(test_frame(GetParam(), size));
    const Classified result = frame.classified();
    ASSERT_EQ(result.kind, FrameKind::kTest) << size;
    ASSERT_EQ(result.ip_version, GetParam());
    ASSERT_EQ(result.ip_bytes, size - 18);
    ASSERT_EQ(result.tag->trial, kTag.trial);
    ASSERT_EQ(result.tag->stream, kTag.stream);
    ASSERT_EQ(result.tag->flags, kTag.flags);
    ASSERT_EQ(result.tag->sequence(), kSequence);
    ASSERT_EQ(result.tag->stamp_ns(), kStampNs);
    ASSERT_TRUE(frame.whole()) << size;
  }
}

// Six bytes of the tag are its stamp, which need not be there.
TEST_P(Classify, KnowsATruncatedFrameAndWhoseItIsAsLongAsItTells) {
  const Bytes whole = test_frame(GetParam(), 200);
  const size_t headers = GetParam() == 4 ? 34 : 54;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Exact frame(whole, size);
    const Classified result = frame.classified();
    ASSERT_EQ(result.kind, size < headers ? FrameKind::kForeign : FrameKind::kTruncated) << size;
    ASSERT_EQ(result.tag != nullptr, size >= whole.size() - 6) << size;
    if (result.tag == nullptr) continue;
    ASSERT_EQ(result.tag->trial, kTag.trial);
    ASSERT_EQ(result.tag->stream, kTag.stream);
    // What is there of it: sequence() reads two bytes of the stamp, too.
    const auto* begin = reinterpret_cast<const uint8_t*>(result.tag);
    WireTag tag{};
    std::memcpy(&tag, begin, static_cast<size_t>(frame.data() + size - begin));
    ASSERT_EQ(tag.sequence(), kSequence);
  }
}

TEST_P(Classify, TakesNoForeignTruncatedFrameForItsOwn) {
  Bytes frame = test_frame(GetParam(), 200);
  frame[frame.size() - sizeof(WireTag)] ^= 0x10;
  EXPECT_EQ(Exact(frame, frame.size() - 1).kind(), FrameKind::kForeign);
}

TEST_P(Classify, LooksThroughPadding) {
  const Bytes frame = test_frame(GetParam(), minimum_frame_size(GetParam()));
  for (size_t padding = 1; padding <= 40; ++padding) {
    Bytes padded = frame;
    padded.resize(frame.size() + padding, 0x5a);
    const Exact exact(padded);
    ASSERT_EQ(exact.classified().ip_bytes, frame.size() - 14) << padding;
    ASSERT_EQ(exact.classified().tag->sequence(), kSequence);
    ASSERT_TRUE(exact.whole());
  }
}

TEST_P(Classify, DoesNotTakeOtherPayloadForATag) {
  const Bytes frame = test_frame(GetParam(), 128);
  for (const size_t byte : {frame.size() - 18, frame.size() - 17}) {
    Bytes other = frame;
    other[byte] ^= 0x10;
    EXPECT_EQ(Exact(other).kind(), FrameKind::kForeign);
  }
}

TEST_P(Classify, LeavesOtherProtocolsAlone) {
  const Bytes frame = test_frame(GetParam(), 128);
  const size_t protocol = GetParam() == 4 ? 23 : 20;
  EXPECT_EQ(Exact(changed(frame, protocol, Bytes{6})).kind(), FrameKind::kForeign);   // TCP
  EXPECT_EQ(Exact(changed(frame, protocol, Bytes{50})).kind(), FrameKind::kForeign);  // ESP
}

// What a port's frames carry, against what a frame carries: types and ids must be the same.
TEST_P(Classify, KnowsAFrameByTheTagsOfItsPort) {
  const std::vector<std::vector<VlanTag>> all = {
      {},
      {{0x8100, 10}},
      {{0x8100, 11}},
      {{0x88a8, 10}},
      {{0x88a8, 10}, {0x8100, 100}},
      {{0x88a8, 10}, {0x8100, 101}},
      {{0x8100, 10}, {0x8100, 100}},
  };
  for (const std::vector<VlanTag>& carried : all) {
    FrameLayout layout = sample_layout(GetParam(), 128);
    layout.vlan = VlanTags(carried);
    const Bytes bytes = reference_frame(layout, tagged_payload(layout, kTag, kSequence, kStampNs));
    ASSERT_EQ(bytes.size(), 124 + 4 * carried.size());
    const Exact frame(bytes);
    for (const std::vector<VlanTag>& expected : all) {
      const VlanTags vlan(expected);
      const Classified result = classify_behind(vlan, frame.data(), bytes.size());
      ASSERT_EQ(result.kind, carried == expected ? FrameKind::kTest : FrameKind::kOtherVlan);
      if (carried != expected) continue;
      ASSERT_EQ(result.ip_bytes, 110);
      ASSERT_EQ(result.tag->sequence(), kSequence);
      ASSERT_TRUE(checksums_hold(frame.data() + vlan.bytes(), result));
    }
  }
}

TEST_P(Classify, DoesNotAskForAPriority) {
  FrameLayout layout = sample_layout(GetParam(), 128);
  layout.vlan = VlanTags(std::vector<VlanTag>{{0x8100, 10, 7}});
  const Exact frame(reference_frame(layout, tagged_payload(layout, kTag, kSequence, kStampNs)));
  const VlanTags lower(std::vector<VlanTag>{{0x8100, 10, 1}});
  EXPECT_EQ(classify_behind(lower, frame.data(), 128).kind, FrameKind::kTest);
}

TEST_P(Classify, ReadsNoTagsOfAFrameThatIsTooShortForThem) {
  const VlanTags vlan(std::vector<VlanTag>{{0x88a8, 10}, {0x8100, 100}});
  FrameLayout layout = sample_layout(GetParam(), 128);
  layout.vlan = vlan;
  const Bytes bytes = reference_frame(layout, tagged_payload(layout, kTag, kSequence, kStampNs));
  for (size_t size = 0; size < 42; ++size) {
    ASSERT_EQ(classify_behind(vlan, Exact(bytes, size).data(), size).kind, FrameKind::kForeign);
  }
  EXPECT_EQ(classify_behind(vlan, Exact(bytes, 100).data(), 100).kind, FrameKind::kTruncated);
}

TEST_P(Classify, DistrustsLengthsThatDoNotFitTheFrame) {
  const Bytes frame = test_frame(GetParam(), 128);
  const size_t length = GetParam() == 4 ? 16 : 18;
  const auto kind_with = [&](uint32_t wrong) {
    const Bytes bytes = {static_cast<uint8_t>(wrong >> 8), static_cast<uint8_t>(wrong)};
    return Exact(changed(frame, length, bytes)).kind();
  };
  for (const uint32_t wrong : {0U, 1U, 45U}) EXPECT_EQ(kind_with(wrong), FrameKind::kForeign);
  EXPECT_EQ(kind_with(0xffff), FrameKind::kTruncated);
}

TEST_P(Classify, NoticesEveryFlippedBitOfTheDatagramAndItsAddresses) {
  const size_t first = GetParam() == 4 ? 14 : 22;  // IPv6 protects no more of its header
  for (const uint32_t size : {minimum_frame_size(GetParam()), 127U, 128U, 333U, 1518U}) {
    const Bytes frame = test_frame(GetParam(), size);
    for (size_t bit = first * 8; bit < frame.size() * 8; ++bit) {
      Bytes flipped = frame;
      flipped[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
      ASSERT_FALSE(Exact(flipped).whole()) << size << ": byte " << bit / 8 << " bit " << bit % 8;
    }
  }
}

// A frame of any size, its payload random but for the tag; some are damaged, and of those some so
// that a sum does not tell.
Bytes perhaps_damaged(int version, std::mt19937_64& random) {
  const uint32_t least = minimum_frame_size(version);
  const auto size = static_cast<uint32_t>(least + random() % (random() % 8 == 0 ? 9000 : 400));
  const FrameLayout layout = sample_layout(version, size);
  Bytes payload = tagged_payload(layout, kTag, random() >> 16, random() >> 16);
  for (size_t i = 0; i + sizeof(WireTag) < payload.size(); ++i) {
    payload[i] = static_cast<uint8_t>(random());
  }
  Bytes frame = reference_frame(layout, payload);
  const size_t udp = udp_offset(version);
  const auto any = [&] { return 14 + random() % (frame.size() - 14); };
  switch (random() % 8) {
    case 0: break;
    case 1: frame[any()] ^= static_cast<uint8_t>(1U << (random() % 8)); break;
    case 2: frame[any()] = static_cast<uint8_t>(random()); break;
    case 3: std::swap(frame[any()], frame[any()]); break;
    case 4: frame[udp + 6] = frame[udp + 7] = random() % 2 == 0 ? 0 : 0xff; break;
    case 5: frame[udp + 5] = static_cast<uint8_t>(frame[udp + 5] + random() % 3); break;
    case 6:  // words change places
      for (const size_t at : {size_t{0}, size_t{1}}) {
        std::swap(frame[udp + at], frame[udp + 8 + 2 * (random() % 4) + at]);
      }
      break;
    default:  // one word more, another less by as much
      ++frame[udp + 9];
      --frame[udp + 1];
  }
  return frame;
}

TEST_P(Classify, HoldsChecksumsForWholeWhereTheBookDoesWhateverIsDamaged) {
  std::mt19937_64 random(1071U + static_cast<uint64_t>(GetParam()));
  int whole = 0;
  int damaged = 0;
  for (int i = 0; i < 40'000; ++i) {
    const Bytes frame = perhaps_damaged(GetParam(), random);
    const size_t offset = random() % 64;  // the sanitizer guards the frame's end
    const auto block = std::make_unique<uint8_t[]>(offset + frame.size());
    std::copy(frame.begin(), frame.end(), block.get() + offset);
    const Classified classified = classify(block.get() + offset, frame.size());
    if (classified.kind != FrameKind::kTest) continue;
    const bool holds = checksums_hold(block.get() + offset, classified);
    ASSERT_EQ(holds, testing::reference_whole(frame, GetParam(), classified.ip_bytes)) << i;
    ++(holds ? whole : damaged);
  }
  EXPECT_GT(whole, 5'000);
  EXPECT_GT(damaged, 5'000);
}

TEST_P(Classify, NoticesAUdpLengthThatDisagreesWithTheIpLength) {
  const size_t udp = udp_offset(GetParam());
  const Bytes frame = test_frame(GetParam(), 128);
  // The checksum makes up for the shorter length, in the header alone or in both places.
  for (const int more : {1, 2}) {
    const auto checksum = static_cast<uint16_t>((frame[udp + 6] << 8 | frame[udp + 7]) + more);
    const Exact wrong(
        changed(frame, udp + 5,
                {static_cast<uint8_t>(frame[udp + 5] - 1), static_cast<uint8_t>(checksum >> 8),
                 static_cast<uint8_t>(checksum)}));
    EXPECT_EQ(wrong.kind(), FrameKind::kTest);
    EXPECT_FALSE(wrong.whole());
  }
}

TEST_P(Classify, TakesAMissingUdpChecksumForWholeInIpv4Only) {
  const Bytes frame = changed(test_frame(GetParam(), 128), udp_offset(GetParam()) + 6, {0, 0});
  EXPECT_EQ(Exact(frame).kind(), FrameKind::kTest);
  EXPECT_EQ(Exact(frame).whole(), GetParam() == 4);
}

TEST_P(Classify, TellsHowAFrameIsDamaged) {
  const Bytes whole = test_frame(GetParam(), 128);
  const size_t udp = udp_offset(GetParam());
  const auto damage = [&](const Bytes& bytes, size_t expected_ip_bytes) {
    const Exact frame(bytes);
    return damage_of(frame.data(), frame.classified(), expected_ip_bytes);
  };
  const size_t ip_bytes = whole.size() - 14;
  EXPECT_EQ(damage(whole, ip_bytes + 1), Damage::kLength);
  EXPECT_EQ(damage(changed(whole, udp + 4, {0, 9}), ip_bytes), Damage::kLength);
  EXPECT_EQ(damage(changed(whole, udp + 4, {0, 9, 0, 0}), ip_bytes), Damage::kLength);
  EXPECT_EQ(damage(changed(whole, udp + 6, {0x12, 0x34}), ip_bytes), Damage::kChecksumWrong);
  EXPECT_EQ(damage(changed(whole, udp + 9, {0xff}), ip_bytes), Damage::kChecksumWrong);
  // IPv4 may do without; so there it is the header's that is wrong.
  const Bytes without = changed(whole, udp + 6, {0, 0});
  EXPECT_EQ(damage(GetParam() == 4 ? changed(without, 24, {0, 1}) : without, ip_bytes),
            GetParam() == 4 ? Damage::kChecksumWrong : Damage::kChecksumZero);
}

TEST_P(Classify, AcceptsAChecksumOfFfff) {
  const FrameLayout layout = sample_layout(GetParam(), 128);
  const size_t field = udp_offset(GetParam()) + 6;
  for (uint64_t stamp_ns = 0; stamp_ns < 0x10000; ++stamp_ns) {
    const Bytes frame = reference_frame(layout, tagged_payload(layout, kTag, 0, stamp_ns));
    if (frame[field] == 0xff && frame[field + 1] == 0xff) {
      EXPECT_TRUE(Exact(frame).whole());
      return;
    }
  }
  FAIL() << "no stamp gave the checksum";
}

TEST_P(Classify, NeverReadsOutsideGarbage) {
  const Bytes frame = test_frame(GetParam(), 90);
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  uint64_t tests = 0;
  for (int i = 0; i < 200'000; ++i) {
    Bytes bytes = frame;
    for (uint64_t changes = random() % 6; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    const size_t size = random() % (bytes.size() + 1);
    const Exact garbage(bytes, random() % 2 == 0 ? size : bytes.size());
    if (garbage.kind() != FrameKind::kTest) continue;
    ++tests;
    const Classified result = garbage.classified();
    ASSERT_LE(14U + result.ip_bytes, bytes.size());
    ASSERT_EQ(reinterpret_cast<const uint8_t*>(result.tag),
              garbage.data() + 14 + result.ip_bytes - 18);
    checksums_hold(garbage.data(), result);  // for the sanitizer
  }
  EXPECT_GT(tests, 1000U);  // else this test looks at nothing
}

INSTANTIATE_TEST_SUITE_P(BothVersions, Classify, ::testing::Values(4, 6));

TEST(ClassifyIpv4, TellsFragmentsByTheirFlags) {
  const Bytes frame = test_frame(4, 128);
  for (const Bytes& flags : {Bytes{0x20, 0x00}, Bytes{0x00, 0x01}, Bytes{0x1f, 0xff},
                             Bytes{0x20, 0x10}, Bytes{0x60, 0x00}}) {
    EXPECT_EQ(Exact(changed(frame, 20, flags)).kind(), FrameKind::kFragment);
  }
}

TEST(ClassifyIpv6, TellsFragmentsByTheirHeader) {
  const Exact fragment(changed(test_frame(6, 128), 20, {44}));
  EXPECT_EQ(fragment.kind(), FrameKind::kFragment);
}

TEST(ClassifyIpv4, TakesDontFragmentForNoFragment) {
  FrameLayout layout = sample_layout(4, 128);
  layout.df = true;
  const Exact frame(reference_frame(layout, tagged_payload(layout, kTag, 0, 0)));
  EXPECT_TRUE(frame.whole());
}

TEST(ClassifyIpv4, BelievesALengthOfItsHeaderThatIsOne) {
  const Bytes frame = test_frame(4, 128);
  for (const Bytes& version_ihl : {Bytes{0x44}, Bytes{0x65}}) {
    EXPECT_EQ(Exact(changed(frame, 14, version_ihl)).kind(), FrameKind::kForeign);
  }
  for (const Bytes& version_ihl : {Bytes{0x46}, Bytes{0x4f}}) {
    EXPECT_FALSE(Exact(changed(frame, 14, version_ihl)).whole());
  }
}

TEST(ClassifyIpv4, AcceptsADecrementedTtlWithItsNewChecksum) {
  FrameLayout layout = sample_layout(4, 128);
  layout.ttl = 9;
  EXPECT_TRUE(Exact(reference_frame(layout, tagged_payload(layout, kTag, 0, 0))).whole());
  EXPECT_FALSE(Exact(changed(test_frame(4, 128), 22, {9})).whole());
}

TEST(ClassifyNeighbour, SendsArpAndNeighbourDiscoveryToSlowerCode) {
  Bytes arp(60);
  arp[12] = 0x08;
  arp[13] = 0x06;
  EXPECT_EQ(Exact(arp).kind(), FrameKind::kNeighbour);
  EXPECT_EQ(Exact(arp, 33).kind(), FrameKind::kForeign);
  const Bytes icmpv6 = changed(test_frame(6, 128), 20, {58});
  for (const uint8_t type : {kNeighbourSolicitation, kNeighbourAdvertisement}) {
    const Bytes neighbour = changed(icmpv6, 54, {type});
    EXPECT_EQ(Exact(neighbour).kind(), FrameKind::kNeighbour);
    for (size_t size = 0; size < 78; ++size) {  // one that is cut short is none to answer
      ASSERT_EQ(Exact(neighbour, size).kind(), size < 56 ? FrameKind::kForeign : FrameKind::kIcmp)
          << size;
    }
  }
}

// `frame` is one from its type on at `at`, whatever is cut off behind its code.
void expect_icmp(const Bytes& frame, size_t at, int version) {
  for (size_t size = 0; size <= frame.size(); ++size) {
    const Exact cut(frame, size);
    const Classified result = cut.classified();
    ASSERT_EQ(result.kind, size < at + 2 ? FrameKind::kForeign : FrameKind::kIcmp) << size;
    if (result.kind != FrameKind::kIcmp) continue;
    ASSERT_EQ(result.ip_version, version);
    ASSERT_EQ(sizeof(EthernetHeader) + result.ip_headers, at);
    ASSERT_EQ(result.tag, nullptr);
  }
}

TEST(ClassifyIcmp, IsToldApartWithItsTypeAndCode) {
  expect_icmp(changed(test_frame(4, 128), 23, {1}), 34, 4);
  const Bytes icmpv6 = changed(test_frame(6, 128), 20, {58});
  for (const int type : {1, 3, 128, 129, 134}) {  // errors, echo, a router's advertisement
    expect_icmp(changed(icmpv6, 54, Bytes{static_cast<uint8_t>(type)}), 54, 6);
  }
}

TEST(ClassifyIcmp, StandsBehindOptionsAndExtensionHeaders) {
  // A header of 24 bytes.
  expect_icmp(changed(changed(test_frame(4, 128), 23, {1}), 14, {0x46}), 38, 4);
  // Behind the router alert of a multicast listener's report; neighbour discovery has none.
  const Bytes hop_by_hop = changed(test_frame(6, 128), 20, {0});
  for (const int type : {143, 135}) {
    const Bytes report = changed(hop_by_hop, 54, {58, 0, 5, 2, 0, 0, 1, 0});
    expect_icmp(changed(report, 62, Bytes{static_cast<uint8_t>(type)}), 62, 6);
  }
}

TEST(ClassifyIcmp, IsNotThereInAPieceThatIsNotTheFirst) {
  const Bytes icmp = changed(test_frame(4, 128), 23, {1});
  EXPECT_EQ(Exact(changed(icmp, 20, {0, 1})).kind(), FrameKind::kFragment);
}

TEST(ClassifyNeighbour, LeavesOtherEtherTypesAlone) {
  Bytes lldp(60);
  lldp[12] = 0x88;
  lldp[13] = 0xcc;
  EXPECT_EQ(Exact(lldp).kind(), FrameKind::kForeign);
}

}  // namespace
}  // namespace dutperf::net
