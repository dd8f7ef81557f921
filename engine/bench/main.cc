// dutperf-bench: what each mode of the data path costs, in cycles per frame and as a ratio to what
// DPDK itself needs (the floor), measured in one run on one core. Prints one JSON object.
//
// The floor is the strict one: allocate, send in bursts of 32 and free on net_null, from a pool
// whose buffers follow each other. (Without huge pages DPDK's default pool takes twice as long,
// because one buffer a page makes all buffers compete for the same cache lines; it is printed
// beside it.)
//
// Learned four-tuples come from a table of --entries (several sizes: separated by commas) in random
// order, other ones in each round: otherwise the caches would have learned them, too. They are
// learned into it in order (receive.learn, as in phase 1) and in random order
// (receive.learn_random); each frame brings another tuple than the entry has, so that all is
// written.
//
// Modes are measured in turn, round after round, and the medians are reported, so that a noisy
// machine disturbs all alike. Then follow how shares scale over --cores and how evenly a slow
// sender's frames leave, see scaling.h, and what one worker does on shared memory, see
// memif_path.h. Under
// callgrind, `--mode NAME --rounds 1` with
// --toggle-collect=measured_section counts the instructions of one mode.

#include <getopt.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "both_ends.h"
#include "dpdk/eal.h"
#include "dpdk/error.h"
#include "dpdk/floor.h"
#include "due_sender.h"
#include "learned_table.h"
#include "memif_path.h"
#include "scaling.h"

// Everything timed runs in here; C linkage and no inlining, so that callgrind can name it.
extern "C" [[gnu::noinline]] void measured_section(const std::function<void()>& work) { work(); }

namespace {

using Json = nlohmann::json;
using dutperf::bench::DueSender;
using dutperf::bench::kPorts;
using dutperf::bench::median;
using dutperf::bench::open_port;
using dutperf::bench::trial;
using dutperf::dataplane::Receiver;
using dutperf::dataplane::Side;
using dutperf::dataplane::SideResources;
using dutperf::dataplane::TrialSpec;
using dutperf::dpdk::Mbuf;
using dutperf::dpdk::Port;
using dutperf::timing::read_tsc;
using dutperf::timing::TscClock;
using dutperf::vary::Field;
using dutperf::vary::IndexOrder;
using dutperf::vary::IndexSource;
using dutperf::vary::Variation;

constexpr uint32_t kBurst = 32;
constexpr uint64_t kInAStep = 4 * kBurst;  // of a sender that is behind

struct Arguments {
  int cpu = 0;
  std::vector<uint64_t> other_cpus;  // empty: all that this process may use
  bool hugepages = false;
  uint64_t frames = 32 * 16384;
  int rounds = 15;
  std::vector<uint64_t> entries = {4'000'000};
  std::vector<uint64_t> cores = {1, 2};  // as many as there are
  bool small_pages = false;              // for the table
  std::string mode;
  std::string move_frames;  // be the device behind memif_path.h
};

struct Mode {
  std::string name;
  std::function<double(uint64_t round)> cycles_per_frame;
  uint64_t entries = 0;  // of the table
};

constexpr Variation kAddresses[] = {{Field::kSrcIp, 16, 16, 2, 65534},
                                    {Field::kDstIp, 16, 16, 2, 65534}};
// Of the enumerated ports.
const uint64_t kPortPairs = kPorts[0].size() * kPorts[1].size();
constexpr Variation kNetworks[] = {{Field::kDstIp, 16, 8, 0, 255}};

// All that a trial can record: delays and their variation, timeouts, tags, a time series.
void record_everything(TrialSpec& spec) {
  spec.duration_ns = 1'000'000'000;
  spec.record.timeouts_ns = {10'000'000, 100'000'000};
  spec.record.ipdv = true;
  spec.record.series_interval_ns = 1'000'000;
  spec.record.series_intervals = 1000;
  spec.tags = dutperf::dataplane::TagPlan{0, 1000};
}

// With an 802.1Q tag, which the receiving port expects, too.
TrialSpec tagged(TrialSpec spec) {
  constexpr dutperf::net::VlanTag kTag{.id = 10};
  spec.from[0].received_vlan = dutperf::net::VlanTags({&kTag, 1});
  spec.from[0].streams[0].layout.vlan = spec.from[0].received_vlan;
  return spec;
}

// Inside an IPv6 header, as DS-Lite has it, from a tunnel for each of 256 hosts.
TrialSpec tunnelled(TrialSpec spec) {
  dutperf::net::TunnelEnds ends;
  ends.kind = dutperf::net::Tunnel::kIp;
  ends.local = *dutperf::net::IpAddress::parse("2001:2::2");
  ends.remote = *dutperf::net::IpAddress::parse("2001:2::1");
  ends.local_bits = 96;
  dutperf::dataplane::StreamSpec& stream = spec.from[0].streams[0];
  stream.layout.outer = dutperf::net::Encapsulation(ends);
  spec.from[0].received_outer = stream.layout.outer.from_other_end();
  stream.variations.list.push_back(
      {.field = dutperf::vary::Field::kSrcIp, .offset = 24, .width = 8, .max = 255});
  stream.variations.copies = {
      {dutperf::vary::Field::kSrcIp, 24, dutperf::vary::Field::kOuterSrc, 120, 8}};
  return spec;
}

// All ports of so many B4s, 64 to an address; all of them at one end of a tunnel.
std::string rows_of_bindings(uint32_t count) {
  std::string rows;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t ipv4 = 0x0a000000 + i / 64;
    rows.append("\x20\x01\x00\x02\0\0\0\0\0\0\0\0\0\0\0\x01", 16);
    for (const int shift : {24, 16, 8, 0}) rows.push_back(static_cast<char>(ipv4 >> shift));
    rows.append({'\0', static_cast<char>(i % 64), '\6', '\6'});
  }
  return rows;
}

double cycles(uint64_t frames, const std::function<void()>& work) {
  const uint64_t start = read_tsc();
  measured_section(work);
  return static_cast<double>(read_tsc() - start) / static_cast<double>(frames);
}

double measure_send(const TrialSpec& spec, SideResources& side, const TscClock& clock) {
  DueSender sender(spec, side, clock);
  return cycles(spec.from[0].frames, [&] {
    while (!sender.done()) (*sender).step();
  });
}

// Frames go left to right through a ring; only the receiving side's share is timed. `receive`
// handles what has arrived: as many frames as a sender sends in a step that is behind, whether they
// left in bursts with one stamp each or one by one.
double measure_receive(DueSender& sender, const std::function<void()>& receive) {
  uint64_t spent = 0;
  const std::function<void()> section = receive;
  while (!sender.done()) {
    const uint64_t until = sender.sent() + kInAStep;
    while (!sender.done() && sender.sent() < until) (*sender).step();
    const uint64_t start = read_tsc();
    measured_section(section);
    spent += read_tsc() - start;
    receive();  // nothing is left: the receiver keeps up, and none of its frames waited for it
  }
  return static_cast<double>(spent) / static_cast<double>(sender.sent());
}

// The ports and buffers that all modes share.
struct Bench {
  explicit Bench(const Arguments& arguments)
      : frames(arguments.frames), learned(arguments.entries, !arguments.small_pages) {}

  std::vector<Mode> modes();
  void add_learned(std::vector<Mode>& modes);
  const dutperf::net::BindingTable* bindings_of(uint32_t count);
  void add_bound(std::vector<Mode>& modes);
  std::function<double(uint64_t round)> receive(TrialSpec spec);

  uint64_t frames;
  TscClock clock = dutperf::timing::calibrate_tsc(50'000'000);
  std::unique_ptr<Port> null = open_port("null", dutperf::dpdk::Driver::kNull, nullptr);
  SideResources sender{{null.get()}, 2048};
  dutperf::dpdk::Floor floor{*null, true};
  dutperf::dpdk::Floor default_pool{*null, false};
  dutperf::dpdk::RingPair rings{0};
  std::unique_ptr<Port> left = open_port("left", dutperf::dpdk::Driver::kRing, &rings);
  std::unique_ptr<Port> right = open_port("right", dutperf::dpdk::Driver::kRing, &rings);
  SideResources left_side{{left.get()}, 2048};
  SideResources right_side{{right.get()}, 2048};
  dutperf::bench::LearnedTables learned;
  std::map<uint32_t, std::unique_ptr<dutperf::net::BindingTable>> bindings;
};

// A receiver of what `spec` sends; other values of what varies in each round.
std::function<double(uint64_t round)> Bench::receive(TrialSpec spec) {
  return [this, spec = std::move(spec)](uint64_t round) mutable {
    spec.from[0].streams[0].variations.seed = round + 1;
    right_side.ports[0]->own.vlan = spec.from[0].received_vlan;
    right_side.recorders(0)[0].reset(spec.record, frames, spec.tags_of(Side::kLeft, 0).sequences());
    Receiver receiver(spec, Side::kRight, {}, right_side.receiving({}), right_side.recorders(0),
                      right_side.hand_over(1), clock, {});
    DueSender due(spec, left_side, clock);
    receiver.start(due.start_tsc());
    return measure_receive(due, [&] { receiver.step(); });
  };
}

void Bench::add_learned(std::vector<Mode>& modes) {
  for (const auto& table : learned.tables()) {
    TrialSpec spec = trial(frames, {});
    spec.from[0].streams[0].tuples = {IndexSource::kLearned, IndexOrder::kRandom, table->entries(),
                                      table.get()};
    const auto send = [this, spec](uint64_t round) mutable {
      spec.from[0].streams[0].variations.seed = round;
      return measure_send(spec, sender, clock);
    };
    modes.push_back({"send.learned_random", send, table->entries()});
  }
  for (const auto& table : learned.tables()) {
    TrialSpec spec = trial(frames, {kPorts}, dutperf::vary::Mode::kEnumerate);
    spec.verify_checksums = false;
    spec.learn = {Side::kLeft, 4, table->entries(), false, table.get(), std::nullopt};
    modes.push_back({"receive.learn", receive(spec), table->entries()});
    spec.from[0].streams[0].tuples = {IndexSource::kGenerated, IndexOrder::kRandom,
                                      std::min(table->entries(), kPortPairs)};
    modes.push_back({"receive.learn_random", receive(spec), table->entries()});
  }
}

// Made when it is first asked for.
const dutperf::net::BindingTable* Bench::bindings_of(uint32_t count) {
  auto& table = bindings[count];
  if (!table) table = std::make_unique<dutperf::net::BindingTable>(rows_of_bindings(count));
  return table.get();
}

// Of B4s, and to B4s, all of which are the tunnel's one destination.
void Bench::add_bound(std::vector<Mode>& modes) {
  TrialSpec sent = tunnelled(trial(frames, {}));
  sent.from[0].streams[0].variations = {};
  TrialSpec received = sent;
  record_everything(received);
  for (const uint32_t count : {1U << 16, 1U << 20}) {
    const auto send = [this, spec = sent, count](uint64_t round) mutable {
      dutperf::vary::Variations& variations = spec.from[0].streams[0].variations;
      variations.seed = round;
      variations.bound = {{bindings_of(count), true, false}};
      return measure_send(spec, sender, clock);
    };
    modes.push_back({"send.binding_table", send, count});
    const auto receive_bound = [this, spec = received, count](uint64_t round) mutable {
      dutperf::dataplane::StreamSpec& stream = spec.from[0].streams[0];
      const dutperf::net::BindingTable* const table = bindings_of(count);
      stream.variations.bound = {{table, false, false}};
      stream.received_end = {stream.layout.outer.ends().remote, true, {}, table};
      return receive(spec)(round);
    };
    modes.push_back({"receive.binding_table_checksums", receive_bound, count});
  }
}

std::vector<Mode> Bench::modes() {
  const auto floor_mode = [this](dutperf::dpdk::Floor& of) {
    return [this, &of](uint64_t) { return cycles(frames, [&] { of.send(frames / kBurst); }); };
  };
  const auto send = [this](TrialSpec spec) {
    return [this, spec](uint64_t) { return measure_send(spec, sender, clock); };
  };
  const auto receive_all = [this](TrialSpec spec, bool verify_checksums, bool distinct = false) {
    spec.verify_checksums = verify_checksums;
    if (distinct) spec.burst_limit = 1;  // each frame has a stamp of its own
    record_everything(spec);
    return receive(spec);
  };
  const TrialSpec ports = trial(frames, {kPorts});
  std::vector<Mode> modes = {
      {"floor", floor_mode(floor)},
      {"floor.default_pool", floor_mode(default_pool)},
      {"send.fixed", send(trial(frames, {}))},
      {"send.random_ports", send(ports)},
      {"send.random_addresses", send(trial(frames, {kAddresses}))},
      {"send.random_ports_addresses", send(trial(frames, {kPorts, kAddresses}))},
      {"send.networks_256_random_ports", send(trial(frames, {kNetworks, kPorts}))},
      {"send.enumerate_random", send(trial(frames, {kPorts}, dutperf::vary::Mode::kEnumerate))},
      {"receive.count",
       [this, ports](uint64_t) {
         DueSender due(ports, left_side, clock);
         return measure_receive(due, [this] {
           Mbuf* mbufs[kBurst];
           uint32_t count = kBurst;
           for (int burst = 0; burst < 4 && count == kBurst; ++burst) {
             count = right_side.ports[0]->rx.receive(0, mbufs, kBurst);
             dutperf::dpdk::free_frames(mbufs, count);
           }
         });
       }},
      {"receive.full", receive_all(ports, false)},
      {"receive.full_checksums", receive_all(ports, true)},
      {"receive.full_distinct_delays", receive_all(ports, false, true)},
      {"receive.full_checksums_distinct_delays", receive_all(ports, true, true)},
      {"send.vlan_random_ports", send(tagged(ports))},
      {"receive.vlan_checksums", receive_all(tagged(ports), true)},
      {"send.tunnel_random_ports", send(tunnelled(ports))},
      {"receive.tunnel_checksums", receive_all(tunnelled(ports), true)},
  };
  add_learned(modes);
  add_bound(modes);
  return modes;
}

[[noreturn]] void usage() {
  std::fputs(
      "usage: dutperf-bench [--cpu N] [--other-cpus N,N,...] [--hugepages on|off] [--frames N] "
      "[--rounds N] "
      "[--cores N,N,...] [--entries N,N,...] [--small-pages] [--mode NAME]\n",
      stderr);
  std::exit(2);
}

std::vector<uint64_t> parse_numbers(const char* text, uint64_t least = 1) {
  std::vector<uint64_t> numbers;
  for (char* end = nullptr; *text != 0; text = *end == ',' ? end + 1 : end) {
    numbers.push_back(std::strtoull(text, &end, 10));
    if (numbers.back() < least || (*end != ',' && *end != 0)) usage();
  }
  if (numbers.empty()) usage();
  return numbers;
}

Arguments parse_arguments(int argc, char** argv) {
  static const option kOptions[] = {
      {"cpu", required_argument, nullptr, 'c'},
      {"other-cpus", required_argument, nullptr, 'o'},
      {"hugepages", required_argument, nullptr, 'h'},
      {"frames", required_argument, nullptr, 'f'},
      {"rounds", required_argument, nullptr, 'r'},
      {"entries", required_argument, nullptr, 'e'},
      {"cores", required_argument, nullptr, 'n'},
      {"small-pages", no_argument, nullptr, 's'},
      {"mode", required_argument, nullptr, 'm'},
      {"move-frames", required_argument, nullptr, 'd'},
      {nullptr, 0, nullptr, 0},
  };
  Arguments arguments;
  for (int option = 0; (option = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (option) {
      case 'c': arguments.cpu = std::atoi(optarg); break;
      case 'o': arguments.other_cpus = parse_numbers(optarg, 0); break;
      case 'h': arguments.hugepages = std::string(optarg) == "on"; break;
      case 'f': arguments.frames = std::strtoull(optarg, nullptr, 10) / kBurst * kBurst; break;
      case 'r': arguments.rounds = std::atoi(optarg); break;
      case 'e': arguments.entries = parse_numbers(optarg); break;
      case 'n': arguments.cores = parse_numbers(optarg); break;
      case 's': arguments.small_pages = true; break;
      case 'm': arguments.mode = optarg; break;
      case 'd': arguments.move_frames = optarg; break;
      default: usage();
    }
  }
  if (arguments.frames == 0 || arguments.rounds < 1) usage();
  return arguments;
}

// Of those that were asked for, from 1 on, rising, each once.
std::vector<unsigned> counts_of_cores(const Arguments& arguments, size_t available) {
  std::set<unsigned> counts = {1};
  for (const uint64_t count : arguments.cores) {
    if (count <= available) counts.insert(static_cast<unsigned>(count));
  }
  return {counts.begin(), counts.end()};
}

// Its ports and buffers are given back then: the next one needs their memory.
template <typename Bench>
Json measure(const Arguments& arguments, const TscClock& clock) {
  Bench bench(clock);
  for (int round = 0; round < arguments.rounds; ++round) bench.round();
  return bench.result();
}

void add_scaling(Json& result, const Arguments& arguments, const TscClock& clock,
                 const dutperf::dpdk::Eal& eal, const std::vector<int>& cpus) {
  dutperf::bench::Scaling scaling(clock, cpus, eal.worker_lcores(),
                                  counts_of_cores(arguments, cpus.size()));
  for (int round = 0; round < arguments.rounds; ++round) scaling.round();
  result["cores"] = scaling.cores();
  result["there_and_back_cycles"] = scaling.there_and_back_cycles();
  result["pacing"] = scaling.pacing();
  result["connections"] = measure<dutperf::bench::Connections>(arguments, clock);
  result["queries"] = measure<dutperf::bench::Queries>(arguments, clock);
}

// The device has the second CPU for itself: no worker of ours uses it by then.
Json measure_memif(const Arguments& arguments, const TscClock& clock, int second) {
  try {
    const dutperf::bench::MovingDevice device(second, arguments.hugepages);
    dutperf::bench::MemifPath path(clock, device);
    for (int round = 0; round < arguments.rounds; ++round) path.round();
    return path.result();
  } catch (const dutperf::dpdk::SetupError& error) {
    return {{"skipped", error.what()}};
  }
}

Json run(const Arguments& arguments) {
  dutperf::dpdk::EalOptions options;
  options.main_cpu = arguments.cpu;
  options.hugepages = arguments.hugepages;
  // A single mode is for counting instructions: nothing else runs then.
  const bool only_one_mode = !arguments.mode.empty();
  std::vector<int> cpus = {arguments.cpu};
  unsigned shares = 0;
  if (!only_one_mode) {
    if (arguments.other_cpus.empty()) cpus = dutperf::bench::usable_cpus(arguments.cpu);
    cpus.insert(cpus.end(), arguments.other_cpus.begin(), arguments.other_cpus.end());
    const std::vector<unsigned> counts = counts_of_cores(arguments, cpus.size());
    cpus.resize(std::min<size_t>(cpus.size(), std::max(2U, counts.back())));
    shares = std::accumulate(counts.begin(), counts.end(), 0U);
  }
  options.worker_cpus.assign(cpus.begin() + 1, cpus.end());
  constexpr uint32_t kMemoryMb = 704;
  constexpr uint32_t kMemoryOfShareMb = 192;
  options.memory_mb = kMemoryMb + kMemoryOfShareMb * shares;
  const dutperf::dpdk::Eal eal(options);
  setpriority(PRIO_PROCESS, 0, -20);  // as the engine's workers
  Bench bench(arguments);
  std::vector<Mode> modes = bench.modes();
  if (!arguments.mode.empty()) {
    std::erase_if(modes, [&](const Mode& mode) { return mode.name != arguments.mode; });
    if (modes.empty()) usage();
  }
  std::vector<std::vector<double>> samples(modes.size());
  for (int round = 0; round < arguments.rounds; ++round) {
    for (size_t i = 0; i < modes.size(); ++i) {
      samples[i].push_back(modes[i].cycles_per_frame(static_cast<uint64_t>(round)));
    }
  }
  Json list = Json::array();
  for (size_t i = 0; i < modes.size(); ++i) {
    // What the machine does in a round is in both.
    std::vector<double> ratios;
    for (size_t round = 0; round < samples[i].size(); ++round) {
      ratios.push_back(samples[i][round] / samples[0][round]);
    }
    Json mode = {{"name", modes[i].name},
                 {"cycles_per_frame", median(samples[i])},
                 {"ratio", median(std::move(ratios))}};
    if (modes[i].entries > 0) mode["entries"] = modes[i].entries;
    list.push_back(mode);
  }
  Json result = {{"schema_version", 2},
                 {"dpdk_version", dutperf::dpdk::Eal::version()},
                 {"tsc_hz", bench.clock.hz()},
                 {"cpu", arguments.cpu},
                 {"hugepages", arguments.hugepages},
                 {"frames", arguments.frames},
                 {"rounds", arguments.rounds},
                 {"table", bench.learned.report()},
                 {"floor", list[0]},
                 {"modes", list}};
  if (only_one_mode) return result;
  add_scaling(result, arguments, bench.clock, eal, cpus);
  if (cpus.size() > 1) result["memif"] = measure_memif(arguments, bench.clock, cpus[1]);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments arguments = parse_arguments(argc, argv);
    if (!arguments.move_frames.empty()) {
      dutperf::bench::move_frames(arguments.move_frames, arguments.cpu, arguments.hugepages);
    }
    std::puts(run(arguments).dump(1).c_str());
    return 0;
  } catch (const dutperf::dpdk::SetupError& error) {
    std::fprintf(stderr, "error: %s\nhint: %s\n", error.what(), error.hint().c_str());
    return 3;
  }
}
