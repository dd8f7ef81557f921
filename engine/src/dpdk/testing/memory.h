// DPDK's memory for the tests of one program; there can be one in a process.
#pragma once

#include "dpdk/eal.h"

namespace dutperf::dpdk::testing {

inline const Eal& memory() {
  static const Eal instance({.main_cpu = 0, .memory_mb = 64, .hugepages = false});
  return instance;
}

}  // namespace dutperf::dpdk::testing
