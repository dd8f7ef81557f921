#include "dataplane/roles.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dutperf::dataplane {
namespace {

using Layout = std::vector<std::vector<Role>>;

constexpr Role kSendLeft{Duty::kSend, Side::kLeft};
constexpr Role kSendRight{Duty::kSend, Side::kRight};
constexpr Role kReceiveLeft{Duty::kReceive, Side::kLeft};
constexpr Role kReceiveRight{Duty::kReceive, Side::kRight};

class AssignRoles : public ::testing::TestWithParam<size_t> {};

TEST_P(AssignRoles, GivesEachRoleToExactlyOneWorkerAndEachWorkerARole) {
  const Layout layout = assign_roles(GetParam());
  EXPECT_EQ(layout.size(), GetParam());
  std::vector<Role> all;
  for (const auto& roles : layout) {
    EXPECT_FALSE(roles.empty());
    all.insert(all.end(), roles.begin(), roles.end());
  }
  EXPECT_EQ(all.size(), 4U);
  for (const Role& role : {kSendLeft, kSendRight, kReceiveLeft, kReceiveRight}) {
    EXPECT_EQ(std::count(all.begin(), all.end(), role), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, AssignRoles, ::testing::Values(1, 2, 4));

TEST(AssignRoles, LetsTwoWorkersTakeADirectionEach) {
  EXPECT_EQ(assign_roles(2), (Layout{{kSendLeft, kReceiveRight}, {kSendRight, kReceiveLeft}}));
}

TEST(AssignRoles, LetsFourWorkersTakeARoleEach) {
  EXPECT_EQ(assign_roles(4), (Layout{{kSendLeft}, {kReceiveRight}, {kSendRight}, {kReceiveLeft}}));
}

}  // namespace
}  // namespace dutperf::dataplane
