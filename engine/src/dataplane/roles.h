// Which worker does what. One pure function, so that a layout can be read and tested.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/trial_spec.h"

namespace dutperf::dataplane {

enum class Duty : uint8_t { kSend, kReceive };

struct Role {
  Duty duty;
  Side side;
  uint64_t share = 0;

  bool operator==(const Role&) const = default;
};

inline constexpr size_t roles_of(uint64_t shares) { return 4 * shares; }

// Roles of each of `workers` workers: 1 runs everything to completion; 2 take a direction each
// (left to right, right to left); 4 are siitperf's layout: left send, right receive, right send,
// left receive. Of several shares each is as the one: with `shares` workers each has all of one,
// with 2 * shares it sends and receives one direction's, with 4 * shares it does one of both.
// REQUIRES: 1 to roles_of(shares) workers.
//
// `by_side`: who receives on a side sends there, too, for it answers (dataplane/exchange.h): 1 or 2
// workers a share.
inline std::vector<std::vector<Role>> assign_roles(size_t workers, uint64_t shares,
                                                   bool by_side = false) {
  std::vector<Role> all;
  for (uint64_t share = 0; share < shares; ++share) {
    for (const Side side : kBothSides) {
      all.push_back({Duty::kSend, side, share});
      all.push_back({Duty::kReceive, by_side ? side : other(side), share});
    }
  }
  std::vector<std::vector<Role>> result(workers);
  for (size_t i = 0; i < all.size(); ++i) result[i * workers / all.size()].push_back(all[i]);
  return result;
}

}  // namespace dutperf::dataplane
