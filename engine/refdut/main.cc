// dutperf-refdut: the known-answer device. It forwards between its ports, does to the frames
// exactly what it is told, and gives account of what it did. See docs/known-answer.md.

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "arguments.h"
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
#include "net/classify.h"
#include "outbox.h"
#include "ports.h"
#include "rss.h"
#include "timing/clock.h"

namespace {

using dutperf::control::ProtocolError;
using dutperf::dpdk::Driver;
using dutperf::dpdk::Mbuf;
using dutperf::dpdk::Port;
using dutperf::dpdk::SetupError;
using dutperf::net::Mac;
using dutperf::refdut::Arguments;
using dutperf::refdut::Behaviour;
using dutperf::refdut::Json;
using dutperf::refdut::PortArgument;
using dutperf::refdut::PortKind;

constexpr const char* kUsage =
    "usage: dutperf-refdut --left PORT --right PORT [--config FILE] [--control SOCKET]\n"
    "                      [--cpu N] [--frames-held N] [--mtu BYTES] [--queues N]\n"
    "       dutperf-refdut --check < FILE\n"
    "Forwards between two ports as FILE says (a wire, without) until SIGTERM or a message on "
    "SOCKET;\n"
    "then writes its account to standard output, as JSON. With --check it says whether it\n"
    "understands FILE, and does nothing. With --left and --right several times, up to four, it\n"
    "has as many pairs of ports, in that order.\n"
    "  PORT           memif:SOCKET (as its server), af_packet:INTERFACE or af_xdp:INTERFACE\n"
    "  --frames-held  frames that may wait in the device, per direction; default 32768\n"
    "  --queues       of each memif port, both ways; what a frame leaves by follows from its\n"
    "                 addresses and ports, as by RSS\n";

constexpr uint64_t kTickNs = 1'000'000;
constexpr uint64_t kIdleNs = 20'000'000;
// Then it dozes between looks, so that a lab that is left up does not keep a CPU busy.
constexpr uint64_t kAsleepNs = 10'000'000'000;
constexpr timespec kDoze{0, 200'000};

// As the engine's workers: what the machine does besides is not the device's behaviour.
constexpr int kHighestPriority = -20;

std::atomic<bool> stop_requested{false};

void request_stop(int /*signal*/) { stop_requested = true; }

// For a device with so many pairs of ports; 0: with any. Throws SetupError, which begins with
// `prefix`.
Behaviour parse_behaviour(std::istream& stream, const std::string& prefix, size_t pairs) {
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  try {
    const Behaviour behaviour =
        dutperf::refdut::parse_behaviour(dutperf::control::parse_text(text));
    if (pairs > 0) require_pairs(behaviour, pairs);
    return behaviour;
  } catch (const ProtocolError& error) {
    throw SetupError(prefix + error.what(),
                     error.hint().empty() ? "docs/known-answer.md has examples" : error.hint());
  }
}

Behaviour read_behaviour(const std::string& path, size_t pairs) {
  if (path.empty()) return {};
  std::ifstream file(path);
  if (!file) throw SetupError("cannot read " + path, "--config takes a JSON file");
  return parse_behaviour(file, path + ": ", pairs);
}

Driver driver_of(PortKind kind) {
  switch (kind) {
    case PortKind::kMemif: return Driver::kMemif;
    case PortKind::kAfPacket: return Driver::kAfPacket;
    case PortKind::kAfXdp: break;
  }
  return Driver::kAfXdp;
}

std::unique_ptr<Port> open_port(size_t side, size_t number, const Arguments& arguments) {
  const PortArgument& argument = arguments.ports[side][number];
  dutperf::dpdk::PortOptions options;
  options.name = dutperf::refdut::kSideNames[side];
  if (number > 0) options.name += "_" + std::to_string(number + 1);
  options.driver = driver_of(argument.kind);
  options.device = argument.device;
  options.mtu = arguments.mtu;
  options.rx_queues = options.tx_queues = arguments.queues;
  if (argument.kind == PortKind::kMemif) {
    options.memif_server = true;
    options.mac =
        Mac{{2, 0, 0, 0, static_cast<uint8_t>(1 + number), static_cast<uint8_t>(1 + side)}};
  }
  return std::make_unique<Port>(options, nullptr);
}

using Ports = std::vector<std::unique_ptr<Port>>;  // by port_index()

Ports open_ports(const Arguments& arguments) {
  Ports ports;
  for (size_t number = 0; number < arguments.pairs(); ++number) {
    for (const size_t side : {0U, 1U}) ports.push_back(open_port(side, number, arguments));
  }
  return ports;
}

std::vector<Mac> macs_of(const Ports& ports) {
  std::vector<Mac> macs;
  for (const auto& port : ports) macs.push_back(port->mac());
  return macs;
}

// The device's outside world, as path.h wants it.
class DpdkIo {
 public:
  using Frame = Mbuf*;

  DpdkIo(const Ports& ports, dutperf::refdut::HoldPool& pool, uint16_t queues)
      : pool_(pool),
        queues_(queues),
        rss_(dutperf::refdut::RssFields::kAddressesAndPorts, queues),
        clock_(dutperf::timing::calibrate_tsc(100'000'000)),
        start_tsc_(dutperf::timing::read_tsc()) {
    for (size_t i = 0; i < ports.size(); ++i) ports_[i] = ports[i].get();
  }

  static uint8_t* bytes(Frame frame) { return dutperf::dpdk::frame_of(frame); }
  static size_t size(Frame frame) { return dutperf::dpdk::size_of(frame); }
  static void set_size(Frame frame, size_t size) { dutperf::dpdk::set_size(frame, size); }
  static size_t room(Frame frame) { return dutperf::dpdk::room_of(frame); }
  static void free(Frame frame) { dutperf::dpdk::free_frame(frame); }
  // All drivers copy a frame that is not from the sending port's own pool, so one buffer may be
  // sent twice.
  static Frame share(Frame frame) { return dutperf::dpdk::share(frame); }
  Frame keep(Frame frame) { return pool_.keep(frame); }
  Frame blank() { return pool_.blank(); }

  // Each queue has its turn.
  uint32_t receive(size_t port, Frame* frames, uint32_t limit) {
    uint16_t& next = next_queue_[port];
    next = static_cast<uint16_t>(next + 1 < queues_ ? next + 1 : 0);
    return ports_[port]->rx().receive(next, frames, limit);
  }
  uint32_t transmit(size_t port, Frame* frames, uint32_t count) const {
    if (queues_ == 1) return ports_[port]->tx().send(frames, count);
    for (uint32_t i = 0; i < count; ++i) {
      if (ports_[port]->tx(queue_of(frames[i])).send(frames + i, 1) == 0) return i;
    }
    return count;
  }
  static uint64_t raw_ns() { return dutperf::refdut::monotonic_raw_ns(); }
  uint64_t now_ns() const { return clock_.to_ns(dutperf::timing::read_tsc() - start_tsc_); }

 private:
  uint16_t queue_of(Frame frame) const {
    const auto classified = dutperf::net::classify(bytes(frame), size(frame));
    if (classified.kind != dutperf::net::FrameKind::kTest) return 0;
    return static_cast<uint16_t>(rss_.queue_of(bytes(frame), classified.ip_version));
  }

  std::array<const Port*, 2 * dutperf::refdut::kMostPairs> ports_{};
  std::array<uint16_t, 2 * dutperf::refdut::kMostPairs> next_queue_{};
  dutperf::refdut::HoldPool& pool_;
  const uint16_t queues_;
  const dutperf::refdut::Rss rss_;
  dutperf::timing::TscClock clock_;
  uint64_t start_tsc_;
};

template <typename Device>
void forward_until_told(const DpdkIo& io, Device& device,
                        dutperf::refdut::Commands<Device>& commands,
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

// From the first frame to the last account.
template <typename Device>
void be_device(const Arguments& arguments, const Behaviour& behaviour, const Ports& ports,
               dutperf::refdut::HoldPool& pool) {
  DpdkIo io(ports, pool, arguments.queues);
  const auto device = std::make_unique<Device>(io, macs_of(ports), arguments.frames_held);
  device->configure(behaviour);
  dutperf::refdut::Commands<Device> commands(*device);
  std::unique_ptr<dutperf::refdut::ControlSocket> control;
  if (!arguments.control.empty()) {
    control = std::make_unique<dutperf::refdut::ControlSocket>(arguments.control);
  }
  std::puts("{\"ready\": true}");
  std::fflush(stdout);
  forward_until_told(io, *device, commands, control.get());
  std::puts(device->report().dump().c_str());
  if (control) control->flush();
}

// For the ports' own buffers, of each pair.
constexpr uint32_t kPairMb = 256;

int run(const Arguments& arguments) {
  if (arguments.check) {
    parse_behaviour(std::cin, "", arguments.pairs());
    return 0;
  }
  const Behaviour behaviour = read_behaviour(arguments.config, arguments.pairs());
  const auto pairs = static_cast<uint32_t>(arguments.pairs());
  constexpr uint32_t kUsualFrameBytes = 2048;
  const uint32_t frame_bytes = std::max<uint32_t>(kUsualFrameBytes, arguments.mtu + 64U);
  const uint32_t leaving = dutperf::refdut::kOutboxFrames + dutperf::refdut::kMostPieces;
  const uint32_t held = 2 * (arguments.frames_held + pairs * leaving);
  dutperf::dpdk::EalOptions options;
  options.main_cpu = arguments.cpu;
  options.hugepages = false;
  // The ports' buffers, and what is held.
  options.memory_mb = pairs * arguments.queues * kPairMb *
                          ((frame_bytes + kUsualFrameBytes - 1) / kUsualFrameBytes) +
                      dutperf::refdut::HoldPool::memory_mb(held, frame_bytes);
  const dutperf::dpdk::Eal eal(options);
  setpriority(PRIO_PROCESS, 0, kHighestPriority);
  dutperf::refdut::HoldPool pool(held, frame_bytes);
  const Ports ports = open_ports(arguments);
  if (pairs == 1) {
    be_device<dutperf::refdut::Device<DpdkIo, 1>>(arguments, behaviour, ports, pool);
  } else {
    be_device<dutperf::refdut::Device<DpdkIo, dutperf::refdut::kMostPairs>>(arguments, behaviour,
                                                                            ports, pool);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGTERM, request_stop);
  std::signal(SIGINT, request_stop);
  try {
    return run(dutperf::refdut::parse_arguments(argc, argv));
  } catch (const dutperf::refdut::UsageError& error) {
    std::fprintf(stderr, "error: %s\n%s", error.what(), kUsage);
    return 2;
  } catch (const SetupError& error) {
    std::fprintf(stderr, "error: %s\nhint: %s\n", error.what(), error.hint().c_str());
    return 3;
  }
}
