// The device's ports: pairs of one on the left and one on the right.
#pragma once

#include <array>
#include <cstddef>

namespace dutperf::refdut {

inline constexpr size_t kMostPairs = 4;
inline constexpr std::array<const char*, 2> kSideNames = {"left", "right"};

// All in one row: left, right, the second of the left, the second of the right, ... Sides: 0 left,
// 1 right. A port's number, from 0, is its place on its side.
constexpr size_t port_index(size_t side, size_t number) { return 2 * number + side; }
constexpr size_t side_of(size_t port) { return port % 2; }

}  // namespace dutperf::refdut
