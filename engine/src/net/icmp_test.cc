#include "net/icmp.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

namespace dutperf::net {
namespace {

TEST(IcmpCounts, AreThoseOfAMap) {
  std::mt19937_64 random(1);
  std::map<std::tuple<uint8_t, uint8_t, uint8_t>, uint64_t> slow;
  IcmpCounts counts;
  for (int i = 0; i < 10'000; ++i) {
    const IcmpKind kind{static_cast<uint8_t>(random() % 2 != 0 ? 4 : 6),
                        static_cast<uint8_t>(random() % 2 * 255),
                        static_cast<uint8_t>(random() % 4)};
    counts.count(kind);
    ++slow[{kind.ip_version, kind.type, kind.code}];
  }
  ASSERT_EQ(counts.each().size(), slow.size());
  for (const auto& [kind, frames] : counts.each()) {
    EXPECT_EQ(frames, (slow[{kind.ip_version, kind.type, kind.code}]));
  }
}

TEST(IcmpCounts, GoOnWithTheFirstKindsWhenThereAreTooMany) {
  IcmpCounts counts;
  for (int round = 0; round < 3; ++round) {
    for (int code = 0; code < 256; ++code) counts.count({4, 3, static_cast<uint8_t>(code)});
  }
  ASSERT_EQ(counts.each().size(), 16U);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(counts.each()[i], (IcmpCounts::Count{{4, 3, static_cast<uint8_t>(i)}, 3}));
  }
}

TEST(IcmpCounts, AreNoneAtFirst) { EXPECT_TRUE(IcmpCounts{}.each().empty()); }

}  // namespace
}  // namespace dutperf::net
