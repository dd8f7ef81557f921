// What must hold whatever the input: the fuzzer keeps the input that breaks it.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace dutperf::fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace dutperf::fuzz
