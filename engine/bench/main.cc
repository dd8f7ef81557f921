// dutperf-bench: what each mode of the data path costs, in cycles per frame and as a ratio to what
// DPDK itself needs (the floor), measured in one run on one core over net_null. Prints JSON.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "dataplane/sender.h"
#include "dataplane/trial_run.h"
#include "dpdk/eal.h"
#include "dpdk/floor.h"
#include "dpdk/port.h"
#include "timing/clock.h"

namespace {

using namespace dutperf;  // NOLINT: a program of one file
using Json = nlohmann::json;

constexpr uint64_t kFrames = 32 * 20000;
constexpr int kRounds = 15;

struct Mode {
  std::string name;
  std::function<double()> cycles_per_frame;
};

dataplane::TrialSpec fixed_spec() {
  dataplane::TrialSpec spec;
  spec.trial_id = 1;
  spec.lag_limit_ns = UINT64_MAX >> 20;
  dataplane::StreamSpec stream;
  stream.layout.src_ip = *net::IpAddress::parse("198.18.0.2");
  stream.layout.dst_ip = *net::IpAddress::parse("198.19.0.2");
  spec.from[0].frames = kFrames;
  spec.from[0].rate_fps = 1'000'000'000'000;  // everything is due at once
  spec.from[0].streams.push_back(stream);
  return spec;
}

using vary::Field;
using vary::Variation;

constexpr Variation kPorts[] = {{Field::kSrcPort, 0, 16, 1024, 65535},
                                {Field::kDstPort, 0, 16, 1, 49151}};
constexpr Variation kAddresses[] = {{Field::kSrcIp, 16, 16, 2, 65534},
                                    {Field::kDstIp, 16, 16, 2, 65534}};
constexpr Variation kNetworks[] = {{Field::kDstIp, 16, 8, 0, 255}};

dataplane::TrialSpec varied_spec(std::initializer_list<std::span<const Variation>> parts,
                                 vary::Mode mode = vary::Mode::kRandom) {
  dataplane::TrialSpec spec = fixed_spec();
  auto& list = spec.from[0].streams[0].variations.list;
  for (const auto& part : parts) list.insert(list.end(), part.begin(), part.end());
  for (Variation& variation : list) variation.mode = mode;
  return spec;
}

double measure_send(const dataplane::TrialSpec& spec, dataplane::SideResources& side,
                    const timing::TscClock& clock) {
  dataplane::TrialClock trial_clock(clock, 1, 1, 0);
  dataplane::Sender sender(spec, dataplane::Side::kLeft, side.tx, side.pools(1), side.replies,
                           trial_clock);
  sender.prepare();
  sender.start(timing::read_tsc() - clock.hz() / 100);
  const uint64_t start = timing::read_tsc();
  while (sender.report().sent < kFrames && !sender.report().gave_up) sender.step();
  return static_cast<double>(timing::read_tsc() - start) /
         static_cast<double>(sender.report().sent);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Bench {
  Bench(int cpu, bool hugepages) {
    dpdk::EalOptions options;
    options.main_cpu = cpu;
    options.hugepages = hugepages;
    options.memory_mb = 256;
    eal = std::make_unique<dpdk::Eal>(options);
  }
  std::unique_ptr<dpdk::Eal> eal;
};

}  // namespace

int main(int argc, char** argv) {
  const Bench bench(argc > 1 ? std::atoi(argv[1]) : 0, argc > 2);
  const timing::TscClock clock = timing::calibrate_tsc(50'000'000);
  dpdk::PortOptions options;
  options.name = "left";
  options.driver = dpdk::Driver::kNull;
  dpdk::Port port(options, nullptr);
  dpdk::Floor floor(port, false);
  dpdk::Floor contiguous(port, true);
  dataplane::SideResources side(port, 2048);

  std::vector<Mode> modes = {
      {"floor",
       [&] {
         const uint64_t start = timing::read_tsc();
         floor.send(kFrames / 32);
         return static_cast<double>(timing::read_tsc() - start) / kFrames;
       }},
      {"floor.contiguous",
       [&] {
         const uint64_t start = timing::read_tsc();
         contiguous.send(kFrames / 32);
         return static_cast<double>(timing::read_tsc() - start) / kFrames;
       }},
  };
  const std::pair<const char*, dataplane::TrialSpec> sends[] = {
      {"send.fixed", fixed_spec()},
      {"send.random_ports", varied_spec({kPorts})},
      {"send.random_addresses", varied_spec({kAddresses})},
      {"send.random_ports_addresses", varied_spec({kPorts, kAddresses})},
      {"send.networks_256_random_ports", varied_spec({kNetworks, kPorts})},
      {"send.enumerate_random", varied_spec({kPorts}, vary::Mode::kEnumerate)},
  };
  for (const auto& [name, spec] : sends) {
    modes.push_back({name, [&] { return measure_send(spec, side, clock); }});
  }
  std::vector<std::vector<double>> samples(modes.size());
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < modes.size(); ++i) samples[i].push_back(modes[i].cycles_per_frame());
  }
  const double floor_cycles = median(samples[0]);
  for (size_t i = 0; i < modes.size(); ++i) {
    std::printf("%-30s %6.1f cycles  %5.2f x floor\n", modes[i].name.c_str(), median(samples[i]),
                median(samples[i]) / floor_cycles);
  }
  return 0;
}
