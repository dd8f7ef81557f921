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

Role of_share(Role role, uint64_t share) {
  role.share = share;
  return role;
}

TEST(AssignRoles, GivesEachRoleToExactlyOneWorkerAndEachWorkerARole) {
  for (const uint64_t shares : {1, 2, 3, 8}) {
    for (size_t workers = 1; workers <= roles_of(shares); ++workers) {
      const Layout layout = assign_roles(workers, shares);
      EXPECT_EQ(layout.size(), workers);
      std::vector<Role> all;
      for (const auto& roles : layout) {
        EXPECT_FALSE(roles.empty());
        all.insert(all.end(), roles.begin(), roles.end());
      }
      EXPECT_EQ(all.size(), roles_of(shares));
      for (uint64_t share = 0; share < shares; ++share) {
        for (const Role& role : {kSendLeft, kSendRight, kReceiveLeft, kReceiveRight}) {
          EXPECT_EQ(std::count(all.begin(), all.end(), of_share(role, share)), 1);
        }
      }
    }
  }
}

TEST(AssignRoles, LetsTwoWorkersTakeADirectionEach) {
  EXPECT_EQ(assign_roles(2, 1), (Layout{{kSendLeft, kReceiveRight}, {kSendRight, kReceiveLeft}}));
}

TEST(AssignRoles, LetsFourWorkersTakeARoleEach) {
  EXPECT_EQ(assign_roles(4, 1),
            (Layout{{kSendLeft}, {kReceiveRight}, {kSendRight}, {kReceiveLeft}}));
}

TEST(AssignRoles, LetsEachOfTwoWorkersAShareSendAndReceiveItsDirection) {
  EXPECT_EQ(assign_roles(4, 2), (Layout{{kSendLeft, kReceiveRight},
                                        {kSendRight, kReceiveLeft},
                                        {of_share(kSendLeft, 1), of_share(kReceiveRight, 1)},
                                        {of_share(kSendRight, 1), of_share(kReceiveLeft, 1)}}));
}

TEST(AssignRoles, LetsOneWorkerAShareHaveAllOfIt) {
  EXPECT_EQ(assign_roles(2, 2)[1],
            (std::vector<Role>{of_share(kSendLeft, 1), of_share(kReceiveRight, 1),
                               of_share(kSendRight, 1), of_share(kReceiveLeft, 1)}));
}

}  // namespace
}  // namespace dutperf::dataplane
