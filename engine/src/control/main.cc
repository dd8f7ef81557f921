// dutperf-engine: control and data plane of dutperf. Started by the plan, once per campaign.

#include <getopt.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "control/engine.h"
#include "control/server.h"
#include "dpdk/error.h"

namespace {

using dutperf::control::Engine;
using dutperf::control::ProtocolError;
using dutperf::control::Server;
using dutperf::dpdk::EalOptions;

constexpr const char* kUsage =
    "usage: dutperf-engine --control-fd N --main-cpu C --worker-cpus A[,B..]\n"
    "                      [--memory-mb M] [--hugepages on|off] [--pci ADDRESS]...\n"
    "Speaks JSON-RPC on the inherited Unix socket N; normally started by dutperf.\n";

struct Arguments {
  int control_fd = -1;
  EalOptions eal;
};

std::vector<int> parse_cpus(const std::string& text) {
  std::vector<int> cpus;
  std::stringstream stream(text);
  for (std::string cpu; std::getline(stream, cpu, ',');) cpus.push_back(std::atoi(cpu.c_str()));
  return cpus;
}

[[noreturn]] void usage() {
  std::fputs(kUsage, stderr);
  std::exit(2);
}

Arguments parse_arguments(int argc, char** argv) {
  static const option kOptions[] = {
      {"control-fd", required_argument, nullptr, 'f'},
      {"main-cpu", required_argument, nullptr, 'm'},
      {"worker-cpus", required_argument, nullptr, 'w'},
      {"memory-mb", required_argument, nullptr, 's'},
      {"hugepages", required_argument, nullptr, 'h'},
      {"pci", required_argument, nullptr, 'p'},
      {"version", no_argument, nullptr, 'v'},
      {nullptr, 0, nullptr, 0},
  };
  Arguments arguments;
  for (int option = 0; (option = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (option) {
      case 'f': arguments.control_fd = std::atoi(optarg); break;
      case 'm': arguments.eal.main_cpu = std::atoi(optarg); break;
      case 'w': arguments.eal.worker_cpus = parse_cpus(optarg); break;
      case 's': arguments.eal.memory_mb = static_cast<uint32_t>(std::atoi(optarg)); break;
      case 'h': arguments.eal.hugepages = std::string(optarg) != "off"; break;
      case 'p': arguments.eal.pci.emplace_back(optarg); break;
      case 'v':
        std::printf("dutperf-engine %s, %s\n", DUTPERF_VERSION,
                    dutperf::dpdk::Eal::version().c_str());
        std::exit(0);
      default: usage();
    }
  }
  const size_t workers = arguments.eal.worker_cpus.size();
  if (arguments.control_fd < 0 || workers == 0) usage();
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse_arguments(argc, argv);
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // a killed plan must not leave an engine behind
  // A device at the other end of a socket may go, and not all drivers ask for an error instead.
  std::signal(SIGPIPE, SIG_IGN);
  Server server(arguments.control_fd);
  try {
    Engine engine(arguments.eal);
    server.serve(engine);
    return 0;
  } catch (const dutperf::dpdk::SetupError& error) {
    server.refuse(ProtocolError(dutperf::control::kEnvironmentError, error.what(), error.hint()));
  }
  return 1;
}
