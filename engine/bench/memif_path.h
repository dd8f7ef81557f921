// The tester on shared memory: how many frames one worker sends and receives through memif, with a
// device behind it that does nothing but move them.
//
//   tester, one CPU      left -> memif -> device -> memif -> right, and the other way round
//   device, another CPU  moves what comes by one port to the other, as fast as it can
//
// The device is this program once more, as a process of its own: DPDK's memif does not bear both
// ends in one. All frames are due at once, so the slower of the two sets the pace: how often the
// tester found its ring full, and how often nothing had come, say which. Several short slices a
// round; the median counts.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "dataplane/receiver.h"
#include "dpdk/eal.h"
#include "dpdk/error.h"
#include "due_sender.h"

namespace dutperf::bench {

inline std::unique_ptr<dpdk::Port> open_memif(const std::string& name, const std::string& socket,
                                              bool server) {
  dpdk::PortOptions options;
  options.name = name;
  options.driver = dpdk::Driver::kMemif;
  options.device = socket;
  options.memif_server = server;
  options.rx_descriptors = 4096;
  return std::make_unique<dpdk::Port>(options, nullptr);
}

inline constexpr const char* kSides[2] = {"left", "right"};

// The device: does not return. `sockets`: the beginning of their names.
[[noreturn]] inline void move_frames(const std::string& sockets, int cpu, bool hugepages) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const dpdk::Eal eal({.main_cpu = cpu, .memory_mb = 256, .hugepages = hugepages});
  const std::unique_ptr<dpdk::Port> ports[2] = {open_memif(kSides[0], sockets + kSides[0], true),
                                                open_memif(kSides[1], sockets + kSides[1], true)};
  if (write(STDOUT_FILENO, "r", 1) != 1) _exit(1);
  while (true) {
    for (int from = 0; from < 2; ++from) {
      constexpr uint32_t kBurst = 32;
      dpdk::Mbuf* mbufs[kBurst];
      const uint32_t count = ports[from]->rx().receive(0, mbufs, kBurst);
      if (count == 0) continue;
      const uint32_t sent = ports[1 - from]->tx().send(mbufs, count);
      dpdk::free_frames(mbufs + sent, count - sent);
    }
  }
}

// A process that does so, until this object goes.
class MovingDevice {
 public:
  // Waits until it is ready: who connects earlier stays unconnected.
  MovingDevice(int cpu, bool hugepages)
      : sockets_("/run/dutperf-bench-" + std::to_string(getpid()) + "-") {
    int ready[2];
    if (pipe(ready) != 0) throw dpdk::SetupError("no pipe", "close other files");
    process_ = fork();
    if (process_ == 0) {
      dup2(ready[1], STDOUT_FILENO);
      execl("/proc/self/exe", "dutperf-bench", "--cpu", std::to_string(cpu).c_str(), "--hugepages",
            hugepages ? "on" : "off", "--move-frames", sockets_.c_str(), nullptr);
      _exit(127);
    }
    close(ready[1]);
    char byte = 0;
    const bool is_ready = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    if (!is_ready) throw dpdk::SetupError("the device behind memif ended", "see its words above");
  }
  ~MovingDevice() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
    for (const char* side : kSides) std::filesystem::remove(sockets_ + side);
  }
  MovingDevice(const MovingDevice&) = delete;
  MovingDevice& operator=(const MovingDevice&) = delete;

  // The beginning of their names.
  const std::string& sockets() const { return sockets_; }

 private:
  std::string sockets_;
  pid_t process_ = -1;
};

class MemifPath {
 public:
  MemifPath(const timing::TscClock& clock, const MovingDevice& device)
      : clock_(clock), links_{Link(0, device), Link(1, device)} {}

  // Call once a round.
  void round() {
    for (int slice = 0; slice < kSlices; ++slice) measure();
  }

  // Of each direction, frames a second that were sent, and that came back.
  nlohmann::json result() const {
    return {{"sent_fps_per_direction", median(sent_fps_)},
            {"fps_per_direction", median(fps_)},
            {"cycles_per_frame", static_cast<double>(clock_.hz()) / (2 * median(fps_))},
            {"ring_full_share", median(full_)},
            {"nothing_came_share", median(idle_)}};
  }

 private:
  static constexpr uint64_t kSliceNs = 20'000'000;
  static constexpr int kSlices = 5;
  static constexpr uint64_t kEndless = uint64_t{1} << 40;

  struct Link {
    Link(int side, const MovingDevice& device)
        : port(open_memif(std::string("memif_") + kSides[side], device.sockets() + kSides[side],
                          false)),
          resources({port.get()}, 2048) {
      constexpr int kTries = 500;  // they meet in a thread of DPDK's
      for (int i = 0; i < kTries; ++i) {
        if (port->link().up) return;
        usleep(10'000);
      }
      throw dpdk::SetupError("memif does not connect within 5 s", "may sockets be made in /run?");
    }

    std::unique_ptr<dpdk::Port> port;
    dataplane::SideResources resources;
  };

  // As a worker of a trial does all four roles.
  void measure() {
    dataplane::TrialSpec spec = trial(kEndless, {kPorts});
    spec.from[1] = spec.from[0];
    spec.from[1].streams[0].id = spec.from[1].streams[0].tag.stream = 1;
    spec.record.tracking_bytes = kTrackingBytes;
    dataplane::SideResources& left = links_[0].resources;
    dataplane::SideResources& right = links_[1].resources;
    dataplane::StreamRecorders* const recorders[2] = {&left.recorders(0), &right.recorders(0)};
    for (auto* of_side : recorders) (*of_side)[0].reset(spec.record, kEndless, {});
    dataplane::TrialClock clock(clock_, 1, 2, 0);
    measure::StallLog stalls[2];
    dataplane::Sender senders[2] = {
        {spec, dataplane::Side::kLeft, {}, left.sending({}), left.pools(0, 1), clock, stalls[0]},
        {spec,
         dataplane::Side::kRight,
         {},
         right.sending({}),
         right.pools(0, 1),
         clock,
         stalls[1]}};
    dataplane::Receiver receivers[2] = {{spec,
                                         dataplane::Side::kLeft,
                                         {},
                                         left.receiving({}),
                                         left.recorders(0),
                                         left.hand_over(1),
                                         clock_,
                                         {&stalls[0], &stalls[1]}},
                                        {spec,
                                         dataplane::Side::kRight,
                                         {},
                                         right.receiving({}),
                                         right.recorders(0),
                                         right.hand_over(1),
                                         clock_,
                                         {&stalls[0], &stalls[1]}}};
    for (dataplane::Sender& sender : senders) sender.prepare();
    const uint64_t begin = timing::read_tsc();
    for (dataplane::Sender& sender : senders) sender.start(begin - clock_.hz() / 100);
    for (dataplane::Receiver& receiver : receivers) receiver.start(begin - clock_.hz() / 100);
    uint64_t rounds = 0;
    uint64_t idle = 0;
    uint64_t now = begin;
    for (const uint64_t end = begin + clock_.to_tsc(kSliceNs); now < end; ++rounds) {
      const uint64_t before = received(receivers);
      for (dataplane::Sender& sender : senders) sender.step();
      for (dataplane::Receiver& receiver : receivers) receiver.step();
      idle += received(receivers) == before ? 1 : 0;
      now = timing::read_tsc();
    }
    const auto steps = static_cast<double>(2 * rounds);
    const double seconds = static_cast<double>(now - begin) / static_cast<double>(clock_.hz());
    const uint64_t sent = senders[0].report().sent + senders[1].report().sent;
    sent_fps_.push_back(static_cast<double>(sent) / 2 / seconds);
    fps_.push_back(static_cast<double>(received(receivers)) / 2 / seconds);
    full_.push_back(static_cast<double>(senders[0].report().tx_full + senders[1].report().tx_full) /
                    steps);
    idle_.push_back(static_cast<double>(idle) / static_cast<double>(rounds));
  }

  static uint64_t received(const dataplane::Receiver (&receivers)[2]) {
    return receivers[0].published_received() + receivers[1].published_received();
  }

  static constexpr uint64_t kTrackingBytes = 1 << 20;

  const timing::TscClock& clock_;
  Link links_[2];
  std::vector<double> sent_fps_, fps_, full_, idle_;
};

}  // namespace dutperf::bench
