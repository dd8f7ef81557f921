// The tester and the device, on the left and on the right.
#pragma once

#include <array>

#include "net/testing/addresses.h"

namespace dutperf::refdut::testing {

inline const std::array<net::Mac, 2> kTester = {net::testing::mac("02:00:00:00:00:01"),
                                                net::testing::mac("02:00:00:00:00:02")};
inline const std::array<net::Mac, 2> kOwn = {net::testing::mac("02:00:00:00:01:01"),
                                             net::testing::mac("02:00:00:00:01:02")};

}  // namespace dutperf::refdut::testing
