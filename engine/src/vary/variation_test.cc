#include "vary/variation.h"

#include <gtest/gtest.h>

namespace dutperf::vary {
namespace {

Variation enumerated(Field field, uint32_t min, uint32_t max) {
  return {field, 0, 16, min, max, Mode::kEnumerate};
}

TEST(Variation, HasAsManyValuesAsItsRange) {
  EXPECT_EQ((Variation{Field::kSrcPort, 0, 16, 1024, 65535}.size()), 64512U);
  EXPECT_EQ((Variation{Field::kSrcIp, 0, 32, 0, UINT32_MAX}.size()), 1ULL << 32);
  EXPECT_EQ((Variation{Field::kSrcIp, 0, 32, 7, 7}.size()), 1U);
}

TEST(Variations, CombineTheEnumeratedFieldsOnly) {
  EXPECT_EQ(Variations{}.combinations(), 1U);
  const Variation random{Field::kDstIp, 0, 8, 0, 255, Mode::kRandom};
  EXPECT_EQ((Variations{{random}}.combinations()), 1U);
  const Variation src = enumerated(Field::kSrcPort, 1024, 65535);
  const Variation dst = enumerated(Field::kDstPort, 1, 49151);
  EXPECT_EQ((Variations{{src, random, dst}}.combinations()), 3'170'829'312U);
}

TEST(Variations, NeverCountCombinationsInALoop) {
  const Variation all{Field::kSrcIp, 0, 32, 0, UINT32_MAX, Mode::kEnumerate};
  EXPECT_EQ((Variations{{all, all}}.combinations()), UINT64_MAX);  // 2^64
  const Variation half{Field::kSrcIp, 0, 32, 0, UINT32_MAX / 2, Mode::kEnumerate};
  EXPECT_EQ((Variations{{all, half}}.combinations()), 1ULL << 63);
  EXPECT_EQ((Variations{{all, all, all, all, half, half, half, half}}.combinations()), UINT64_MAX);
}

TEST(BitsOf, AreThoseOfTheHeaders) {
  for (const int version : {4, 6}) {
    EXPECT_EQ(bits_of(Field::kSrcMac, version), 48U);
    EXPECT_EQ(bits_of(Field::kDstMac, version), 48U);
    EXPECT_EQ(bits_of(Field::kVlanId, version), 12U);
    EXPECT_EQ(bits_of(Field::kSrcPort, version), 16U);
    EXPECT_EQ(bits_of(Field::kDstPort, version), 16U);
    EXPECT_EQ(bits_of(Field::kSrcIp, version), version == 4 ? 32U : 128U);
    EXPECT_EQ(bits_of(Field::kDstIp, version), version == 4 ? 32U : 128U);
  }
  EXPECT_EQ(bits_of(Field::kFlowLabel, 6), 20U);
}

}  // namespace
}  // namespace dutperf::vary
