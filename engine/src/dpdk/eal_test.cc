#include "dpdk/eal.h"

#include <gtest/gtest.h>

#include "dpdk/testing/memory.h"

namespace {

TEST(BesideLcore, RunsWhereTheLcoreDoesAndThenWhereItDidBefore) {
  dutperf::dpdk::testing::memory();
  const auto affinity = [] {
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof(cpus), &cpus);
    return cpus;
  };
  // DPDK has put this thread on CPU 0; any that there is will do.
  cpu_set_t everywhere;
  CPU_ZERO(&everywhere);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &everywhere);
  sched_setaffinity(0, sizeof(everywhere), &everywhere);
  const cpu_set_t before = affinity();
  {
    const dutperf::dpdk::BesideLcore beside(0);
    EXPECT_EQ(sched_getcpu(), 0);
    const cpu_set_t meanwhile = affinity();
    EXPECT_EQ(CPU_COUNT(&meanwhile), 1);
  }
  const cpu_set_t after = affinity();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
