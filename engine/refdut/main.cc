// dutperf-refdut: the known-answer device. It forwards between two ports, does to the frames
// exactly what it is told, and gives account of what it did. See docs/known-answer.md.

#include <getopt.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include "behaviour.h"
#include "commands.h"
#include "control_socket.h"
#include "device.h"
#include "dpdk/eal.h"
#include "dpdk/error.h"
#include "dpdk/mbuf.h"
#include "dpdk/port.h"
#include "forwarding_rounds.h"
#include "hold_pool.h"
#include "timing/clock.h"

namespace {

using dutperf::control::ProtocolError;
using dutperf::dpdk::Driver;
using dutperf::dpdk::Mbuf;
using dutperf::dpdk::Port;
using dutperf::dpdk::SetupError;
using dutperf::net::Mac;
using dutperf::refdut::Behaviour;
using dutperf::refdut::Json;
using dutperf::refdut::kMaxMtu;
using dutperf::refdut::kMinMtu;

constexpr const char* kUsage =
    "usage: dutperf-refdut --left PORT --right PORT [--config FILE] [--control SOCKET]\n"
    "                      [--cpu N] [--frames-held N] [--mtu BYTES]\n"
    "       dutperf-refdut --check < FILE\n"
    "Forwards between two ports as FILE says (a wire, without) until SIGTERM or a message on "
    "SOCKET;\n"
    "then writes its account to standard output, as JSON. With --check it says whether it\n"
    "understands FILE, and does nothing.\n"
    "  PORT           memif:SOCKET (as its server), af_packet:INTERFACE or af_xdp:INTERFACE\n"
    "  --frames-held  frames that may wait in the device, per direction; default 32768\n";

constexpr uint64_t kTickNs = 1'000'000;
constexpr uint64_t kIdleNs = 20'000'000;
// Then it dozes between looks, so that a lab that is left up does not keep a CPU busy.
constexpr uint64_t kAsleepNs = 10'000'000'000;
constexpr timespec kDoze{0, 200'000};

// As the engine's workers: what the machine does besides is not the device's behaviour.
constexpr int kHighestPriority = -20;

std::atomic<bool> stop_requested{false};

void request_stop(int /*signal*/) { stop_requested = true; }

struct PortArgument {
  Driver driver = Driver::kMemif;
  std::string device;
};

struct Arguments {
  PortArgument ports[2];  // left, right
  int cpu = 0;
  std::string config;
  std::string control;
  bool check = false;
  uint32_t frames_held = 32768;
  uint16_t mtu = 1500;
};

[[noreturn]] void usage() {
  std::fputs(kUsage, stderr);
  std::exit(2);
}

PortArgument parse_port(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos || colon + 1 == text.size()) usage();
  const std::string driver = text.substr(0, colon);
  const std::string device = text.substr(colon + 1);
  if (driver == "memif") return {Driver::kMemif, device};
  if (driver == "af_packet") return {Driver::kAfPacket, device};
  if (driver == "af_xdp") return {Driver::kAfXdp, device};
  usage();
}

// A whole decimal number from `lowest` to `highest`.
uint32_t parse_number(const char* text, uint32_t lowest, uint32_t highest) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || value < lowest || value > highest) usage();
  return static_cast<uint32_t>(value);
}

Arguments parse_arguments(int argc, char** argv) {
  static const option kOptions[] = {
      {"left", required_argument, nullptr, 'l'},
      {"right", required_argument, nullptr, 'r'},
      {"config", required_argument, nullptr, 'f'},
      {"control", required_argument, nullptr, 's'},
      {"cpu", required_argument, nullptr, 'c'},
      {"frames-held", required_argument, nullptr, 'h'},
      {"mtu", required_argument, nullptr, 'm'},
      {"check", no_argument, nullptr, 'k'},
      {nullptr, 0, nullptr, 0},
  };
  Arguments arguments;
  for (int option = 0; (option = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (option) {
      case 'l': arguments.ports[0] = parse_port(optarg); break;
      case 'r': arguments.ports[1] = parse_port(optarg); break;
      case 'f': arguments.config = optarg; break;
      case 's': arguments.control = optarg; break;
      case 'c': arguments.cpu = static_cast<int>(parse_number(optarg, 0, 4095)); break;
      case 'k': arguments.check = true; break;
      case 'h': arguments.frames_held = parse_number(optarg, 1, 4'000'000); break;
      case 'm':
        arguments.mtu = static_cast<uint16_t>(parse_number(optarg, kMinMtu, kMaxMtu));
        break;
      default: usage();
    }
  }
  if (optind != argc) usage();
  if (arguments.check) return arguments;
  if (arguments.ports[0].device.empty() || arguments.ports[1].device.empty()) usage();
  return arguments;
}

// Throws SetupError, which begins with `prefix`.
Behaviour parse_behaviour(std::istream& stream, const std::string& prefix) {
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  try {
    return dutperf::refdut::parse_behaviour(dutperf::control::parse_text(text));
  } catch (const ProtocolError& error) {
    throw SetupError(prefix + error.what(),
                     error.hint().empty() ? "docs/known-answer.md has examples" : error.hint());
  }
}

Behaviour read_behaviour(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream file(path);
  if (!file) throw SetupError("cannot read " + path, "--config takes a JSON file");
  return parse_behaviour(file, path + ": ");
}

std::unique_ptr<Port> open_port(const char* name, const PortArgument& argument, const Mac& mac,
                                uint16_t mtu) {
  dutperf::dpdk::PortOptions options;
  options.name = name;
  options.driver = argument.driver;
  options.device = argument.device;
  options.mtu = mtu;
  if (argument.driver == Driver::kMemif) {
    options.memif_server = true;
    options.mac = mac;
  }
  return std::make_unique<Port>(options, nullptr);
}

// The device's outside world, as path.h wants it.
class DpdkIo {
 public:
  using Frame = Mbuf*;

  DpdkIo(const Port& left, const Port& right, dutperf::refdut::HoldPool& pool)
      : ports_{&left, &right},
        pool_(pool),
        clock_(dutperf::timing::calibrate_tsc(100'000'000)),
        start_tsc_(dutperf::timing::read_tsc()) {}

  static uint8_t* bytes(Frame frame) { return dutperf::dpdk::frame_of(frame); }
  static size_t size(Frame frame) { return dutperf::dpdk::size_of(frame); }
  static void set_size(Frame frame, size_t size) { dutperf::dpdk::set_size(frame, size); }
  static void free(Frame frame) { dutperf::dpdk::free_frame(frame); }
  // All drivers copy a frame that is not from the sending port's own pool, so one buffer may be
  // sent twice.
  static Frame share(Frame frame) { return dutperf::dpdk::share(frame); }
  Frame keep(Frame frame) { return pool_.keep(frame); }
  Frame blank() { return pool_.blank(); }

  uint32_t receive(size_t side, Frame* frames, uint32_t limit) const {
    return ports_[side]->rx().receive(frames, limit);
  }
  uint32_t transmit(size_t side, Frame* frames, uint32_t count) const {
    return ports_[side]->tx().send(frames, count);
  }
  uint64_t now_ns() const { return clock_.to_ns(dutperf::timing::read_tsc() - start_tsc_); }

 private:
  std::array<const Port*, 2> ports_;
  dutperf::refdut::HoldPool& pool_;
  dutperf::timing::TscClock clock_;
  uint64_t start_tsc_;
};

using Device = dutperf::refdut::Device<DpdkIo>;
using Path = dutperf::refdut::Path<DpdkIo>;
using Commands = dutperf::refdut::Commands<Device>;

void forward_until_told(const DpdkIo& io, Device& device, Commands& commands,
                        dutperf::refdut::ControlSocket* control) {
  uint64_t tick_ns = io.now_ns();
  uint64_t busy_ns = tick_ns;
  bool asleep = false;
  const auto answer = [&](const std::string& line) { return commands.answer(line); };
  dutperf::refdut::Rounds::Loop rounds(dutperf::refdut::forwarding_rounds());
  for (; !stop_requested && !commands.stop_requested(); rounds.next()) {
    const bool busy = device.step();
    if (asleep && !busy) nanosleep(&kDoze, nullptr);
    const uint64_t now_ns = io.now_ns();
    if (busy) busy_ns = now_ns;
    if (now_ns - tick_ns < kTickNs) continue;
    tick_ns = now_ns;
    if (control != nullptr) control->poll(answer);
    if (now_ns - busy_ns > kIdleNs) device.idle();
    asleep = now_ns - busy_ns > kAsleepNs && !device.holds_frames();
  }
}

int run(const Arguments& arguments) {
  if (arguments.check) {
    parse_behaviour(std::cin, "");
    return 0;
  }
  const Behaviour behaviour = read_behaviour(arguments.config);
  constexpr uint32_t kUsualFrameBytes = 2048;
  const uint32_t frame_bytes = std::max<uint32_t>(kUsualFrameBytes, arguments.mtu + 64U);
  const uint32_t held = 2 * (arguments.frames_held + Path::kOutbox + Path::kMostPieces);
  dutperf::dpdk::EalOptions options;
  options.main_cpu = arguments.cpu;
  options.hugepages = false;
  // The ports' own buffers, and what is held.
  options.memory_mb = 256 * ((frame_bytes + kUsualFrameBytes - 1) / kUsualFrameBytes) +
                      dutperf::refdut::HoldPool::memory_mb(held, frame_bytes);
  const dutperf::dpdk::Eal eal(options);
  setpriority(PRIO_PROCESS, 0, kHighestPriority);
  dutperf::refdut::HoldPool pool(held, frame_bytes);
  const auto left = open_port("left", arguments.ports[0], {{2, 0, 0, 0, 1, 1}}, arguments.mtu);
  const auto right = open_port("right", arguments.ports[1], {{2, 0, 0, 0, 1, 2}}, arguments.mtu);
  DpdkIo io(*left, *right, pool);
  const auto device =
      std::make_unique<Device>(io, std::array{left->mac(), right->mac()}, arguments.frames_held);
  device->configure(behaviour);
  Commands commands(*device);
  std::unique_ptr<dutperf::refdut::ControlSocket> control;
  if (!arguments.control.empty()) {
    control = std::make_unique<dutperf::refdut::ControlSocket>(arguments.control);
  }
  std::puts("{\"ready\": true}");
  std::fflush(stdout);
  forward_until_told(io, *device, commands, control.get());
  std::puts(device->report().dump().c_str());
  if (control) control->flush();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse_arguments(argc, argv);
  std::signal(SIGTERM, request_stop);
  std::signal(SIGINT, request_stop);
  try {
    return run(arguments);
  } catch (const SetupError& error) {
    std::fprintf(stderr, "error: %s\nhint: %s\n", error.what(), error.hint().c_str());
    return 3;
  }
}
