// The three kernels of lanes.h that multiply most, for CPUs with AVX-512. They use what no compiler
// of today finds by itself: that factors of 32 bits take one multiplication, five cycles long,
// where 64 bits take three and fifteen. The plain twins in lanes.cc are what they have to agree
// with.
#pragma once

#include <cstdint>

#include "vary/lanes.h"

namespace dutperf::vary::lanes::avx512 {

// Whether this CPU can; the rest REQUIRES it.
bool is_here();

void random_windows(const RandomWindow* windows, uint32_t window_count, const Lanes& numbers,
                    Lanes* out, uint32_t count);
void draw_indices(uint64_t key, uint64_t size, const Lanes& numbers, Lanes& out, uint32_t count);
void encrypt(const Feistel& network, const Lanes& numbers, Lanes& left, Lanes& right,
             uint32_t count);

}  // namespace dutperf::vary::lanes::avx512
