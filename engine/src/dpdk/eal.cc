#include "dpdk/eal.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_version.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "dpdk/error.h"

namespace dutperf::dpdk {
namespace {

// Lcore 0 is the main thread, lcore i + 1 worker i; several may share a CPU.
std::string lcore_map(const EalOptions& options) {
  std::string map = "0@" + std::to_string(options.main_cpu);
  for (size_t i = 0; i < options.worker_cpus.size(); ++i) {
    map += "," + std::to_string(i + 1) + "@" + std::to_string(options.worker_cpus[i]);
  }
  return map;
}

// --in-memory and --no-shconf leave no files in /dev/hugepages or /var/run, whatever ends the
// process (DPDK refuses --in-memory together with --no-huge).
std::vector<std::string> arguments(const EalOptions& options) {
  std::vector<std::string> args = {"dutperf-engine", "--no-telemetry",
                                   "--lcores=" + lcore_map(options), "-m",
                                   std::to_string(options.memory_mb)};
  if (options.hugepages) {
    args.emplace_back("--in-memory");
  } else {
    args.insert(args.end(), {"--no-huge", "--no-shconf"});
  }
  if (options.pci.empty()) args.emplace_back("--no-pci");
  for (const std::string& address : options.pci) args.push_back("--allow=" + address);
  return args;
}

std::string remedy(const EalOptions& options) {
  if (geteuid() != 0) return "run as root";
  if (options.hugepages) {
    return "reserve huge pages (echo 512 > /proc/sys/vm/nr_hugepages) or set hugepages: off";
  }
  return "lower memory_mb in the testbed; the engine's log has DPDK's own words";
}

// Workers outrank everyday processes on their CPU, so fewer frames leave late. Not SCHED_FIFO: the
// kernel throttles a real-time thread that never sleeps, for 50 ms at a time.
constexpr int kHighestPriority = -20;

int outrank(void* /*unused*/) {
  setpriority(PRIO_PROCESS, 0, kHighestPriority);
  return 0;
}

// Where the kernel groups processes by session (autogroup), priorities count within a session only,
// and a compiler in another one would take half of a worker's CPU. The session is the engine's own.
void outrank_other_sessions() {
  if (getsid(0) == getpid()) std::ofstream("/proc/self/autogroup") << kHighestPriority;
}

}  // namespace

Eal::Eal(const EalOptions& options) {
  std::vector<std::string> args = arguments(options);
  std::vector<char*> argv;
  argv.reserve(args.size());
  for (std::string& arg : args) argv.push_back(arg.data());
  if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
    throw SetupError(std::string("DPDK did not start: ") + rte_strerror(rte_errno),
                     remedy(options));
  }
  outrank_other_sessions();
  for (unsigned i = 0; i < options.worker_cpus.size(); ++i) {
    worker_lcores_.push_back(i + 1);
    launch(i + 1, outrank, nullptr);
    wait(i + 1);
  }
}

Eal::~Eal() { rte_eal_cleanup(); }

std::string Eal::version() { return rte_version(); }

void Eal::launch(unsigned lcore, int (*function)(void*), void* argument) {
  if (rte_eal_remote_launch(function, argument, lcore) != 0) {
    throw SetupError("worker lcore " + std::to_string(lcore) + " is still busy", "");
  }
}

void Eal::wait(unsigned lcore) { rte_eal_wait_lcore(lcore); }

// Where it may not go it stays: the memory is then farther away, and right all the same.
BesideLcore::BesideLcore(unsigned lcore) {
  const rte_cpuset_t cpus = rte_lcore_cpuset(lcore);
  sched_getaffinity(0, sizeof(before_), &before_);
  sched_setaffinity(0, sizeof(cpus), &cpus);
}

BesideLcore::~BesideLcore() { sched_setaffinity(0, sizeof(before_), &before_); }

}  // namespace dutperf::dpdk
