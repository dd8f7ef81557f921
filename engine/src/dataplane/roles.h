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

  bool operator==(const Role&) const = default;
};

// Roles of each of `workers` workers: 1 runs everything to completion; 2 take a direction each
// (left to right, right to left); 4 are siitperf's layout: left send, right receive, right send,
// left receive. REQUIRES: workers is 1, 2 or 4.
inline std::vector<std::vector<Role>> assign_roles(size_t workers) {
  const Role all[4] = {{Duty::kSend, Side::kLeft},
                       {Duty::kReceive, Side::kRight},
                       {Duty::kSend, Side::kRight},
                       {Duty::kReceive, Side::kLeft}};
  std::vector<std::vector<Role>> result(workers);
  for (size_t i = 0; i < 4; ++i) result[i * workers / 4].push_back(all[i]);
  return result;
}

}  // namespace dutperf::dataplane
