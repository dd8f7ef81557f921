// The three kernels of lanes.h that multiply most, by hand for CPUs with AVX2 or AVX-512. They use
// what no compiler of today finds by itself: that factors of 32 bits take one multiplication, five
// cycles long, where 64 bits take three and fifteen. Both are built of one source, lanes_wide.inc;
// the plain twins in lanes.cc are what they have to agree with.
#pragma once

#include <cstdint>
#include <vector>

#include "vary/lanes.h"

namespace dutperf::vary::lanes {

struct Kernels {
  void (*random_windows)(const RandomWindow* windows, uint32_t window_count, const Lanes& numbers,
                         Lanes* out, uint32_t count);
  void (*draw_indices)(uint64_t key, uint64_t size, const Lanes& numbers, Lanes& out,
                       uint32_t count);
  void (*encrypt)(const Feistel& network, const Lanes& numbers, Lanes& left, Lanes& right,
                  uint32_t count);
};

// Those that this CPU can run, the best one first, the plain ones last.
std::vector<Kernels> kernels_here();

extern const Kernels kPlain;
extern const Kernels kAvx2;    // REQUIRES: that CPU
extern const Kernels kAvx512;  // likewise

}  // namespace dutperf::vary::lanes
