// dutperf-refdut: the known-answer device. A wire between two memif ports that loses and duplicates
// exactly the test frames it is told to, and reports what it did as one JSON object on standard
// output when it is told to stop (SIGTERM or SIGINT).

#include <getopt.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "dpdk/eal.h"
#include "dpdk/error.h"
#include "dpdk/mbuf.h"
#include "dpdk/port.h"
#include "impairment.h"
#include "net/classify.h"
#include "timing/clock.h"

namespace {

using dutperf::dpdk::Mbuf;
using dutperf::dpdk::Port;
using dutperf::refdut::Account;
using dutperf::refdut::Impairment;
using Json = nlohmann::json;

constexpr const char* kUsage =
    "usage: dutperf-refdut --left SOCKET --right SOCKET [--cpu N]\n"
    "         [--drop-every K] [--reverse-drop-every K] [--duplicate-every K]\n"
    "Forwards between two memif sockets (as their server) until SIGTERM; K applies to test frames\n"
    "of left to right, or of right to left with the prefix reverse-. The report is JSON.\n";
constexpr uint32_t kBurst = 32;

std::atomic<bool> stop_requested{false};

void request_stop(int /*signal*/) { stop_requested = true; }

struct Arguments {
  std::string socket[2];  // left, right
  int cpu = 0;
  Impairment impairment[2];  // forward, reverse
};

[[noreturn]] void usage() {
  std::fputs(kUsage, stderr);
  std::exit(2);
}

Arguments parse_arguments(int argc, char** argv) {
  static const option kOptions[] = {
      {"left", required_argument, nullptr, 'l'},
      {"right", required_argument, nullptr, 'r'},
      {"cpu", required_argument, nullptr, 'c'},
      {"drop-every", required_argument, nullptr, 'd'},
      {"reverse-drop-every", required_argument, nullptr, 'D'},
      {"duplicate-every", required_argument, nullptr, 'u'},
      {nullptr, 0, nullptr, 0},
  };
  Arguments arguments;
  for (int option = 0; (option = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (option) {
      case 'l': arguments.socket[0] = optarg; break;
      case 'r': arguments.socket[1] = optarg; break;
      case 'c': arguments.cpu = std::atoi(optarg); break;
      case 'd': arguments.impairment[0].drop_every = std::strtoull(optarg, nullptr, 10); break;
      case 'D': arguments.impairment[1].drop_every = std::strtoull(optarg, nullptr, 10); break;
      case 'u': arguments.impairment[0].duplicate_every = std::strtoull(optarg, nullptr, 10); break;
      default: usage();
    }
  }
  if (arguments.socket[0].empty() || arguments.socket[1].empty()) usage();
  return arguments;
}

std::unique_ptr<Port> open_memif(const char* name, const std::string& socket) {
  dutperf::dpdk::PortOptions options;
  options.name = name;
  options.driver = dutperf::dpdk::Driver::kMemif;
  options.device = socket;
  options.memif_server = true;
  return std::make_unique<Port>(options, nullptr);
}

// Sends all of `mbufs`, waiting about a second for room: this device loses nothing by itself, and
// what a dead neighbour costs is in the account.
void forward_all(const Port& to, Mbuf** mbufs, uint32_t count, Account& account) {
  uint32_t sent = 0;
  for (int tries = 0; sent < count && tries < 20'000'000; ++tries) {
    sent += to.tx().send(mbufs + sent, count - sent);
    if (sent < count) dutperf::timing::cpu_relax();
  }
  account.queue_full += count - sent;
  dutperf::dpdk::free_frames(mbufs + sent, count - sent);
}

void forward_burst(const Port& from, const Port& to, const Impairment& impairment,
                   Account& account) {
  Mbuf* received[kBurst];
  Mbuf* leaving[2 * kBurst];
  uint32_t count = 0;
  const uint32_t arrived = from.rx().receive(received, kBurst);
  for (uint32_t i = 0; i < arrived; ++i) {
    Mbuf* mbuf = received[i];
    const auto classified =
        dutperf::net::classify(dutperf::dpdk::frame_of(mbuf), dutperf::dpdk::size_of(mbuf));
    if (classified.kind != dutperf::net::FrameKind::kTest) {
      ++account.other_frames;
      leaving[count++] = mbuf;
      continue;
    }
    const auto fate = decide(impairment, account);
    if (fate.drop) {
      dutperf::dpdk::free_frame(mbuf);
      continue;
    }
    leaving[count++] = mbuf;
    // The memif driver copies on transmit, so one buffer may be sent twice.
    if (fate.duplicate) leaving[count++] = dutperf::dpdk::share(mbuf);
  }
  if (count > 0) forward_all(to, leaving, count, account);
}

Json to_json(const Account& account) {
  return {{"test_frames", account.test_frames},
          {"dropped", account.dropped},
          {"duplicated", account.duplicated},
          {"other_frames", account.other_frames},
          {"queue_full", account.queue_full}};
}

int run(const Arguments& arguments) {
  dutperf::dpdk::EalOptions options;
  options.main_cpu = arguments.cpu;
  options.hugepages = false;
  options.memory_mb = 256;
  const dutperf::dpdk::Eal eal(options);
  const auto left = open_memif("left", arguments.socket[0]);
  const auto right = open_memif("right", arguments.socket[1]);
  std::array<Account, 2> accounts{};
  std::puts("{\"ready\": true}");
  std::fflush(stdout);
  while (!stop_requested) {
    forward_burst(*left, *right, arguments.impairment[0], accounts[0]);
    forward_burst(*right, *left, arguments.impairment[1], accounts[1]);
  }
  const Json report = {{"forward", to_json(accounts[0])}, {"reverse", to_json(accounts[1])}};
  std::puts(report.dump().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse_arguments(argc, argv);
  std::signal(SIGTERM, request_stop);
  std::signal(SIGINT, request_stop);
  try {
    return run(arguments);
  } catch (const dutperf::dpdk::SetupError& error) {
    std::fprintf(stderr, "error: %s\nhint: %s\n", error.what(), error.hint().c_str());
    return 3;
  }
}
