// DPDK's environment layer: memory, and one thread (lcore) per worker CPU. One per process.
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>
#include <vector>

namespace dutperf::dpdk {

struct EalOptions {
  int main_cpu = 0;
  std::vector<int> worker_cpus;
  uint32_t memory_mb = 512;
  bool hugepages = true;
  std::vector<std::string> pci;  // devices that may be touched; all others are left alone
};

class Eal {
 public:
  // Throws SetupError.
  explicit Eal(const EalOptions& options);
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  // Lcore of each worker, in the order of worker_cpus.
  const std::vector<unsigned>& worker_lcores() const { return worker_lcores_; }

  static std::string version();

  // Runs `function(argument)` on an idle worker lcore; `wait` blocks until it has returned.
  static void launch(unsigned lcore, int (*function)(void*), void* argument);
  static void wait(unsigned lcore);

 private:
  std::vector<unsigned> worker_lcores_;
};

// While it lives this thread runs where the lcore does. Linux takes a page from the node of the
// core that touches it first, so what is made meanwhile is near the worker that will use it.
class BesideLcore {
 public:
  explicit BesideLcore(unsigned lcore);
  ~BesideLcore();
  BesideLcore(const BesideLcore&) = delete;
  BesideLcore& operator=(const BesideLcore&) = delete;

 private:
  cpu_set_t before_;
};

}  // namespace dutperf::dpdk
