// The AF_PACKET or AF_XDP sockets behind a port on a kernel interface, and the two things that
// DPDK 22.11's drivers leave undone with them:
//
// * Frames that the kernel dropped because such a socket was full are not reported. A frame that
//   the tester lost must not count against the device under test.
// * The socket's send buffer is the kernel's small default. It fills up while the device is busy,
//   and then frames that count as sent wait in the tester: the device would slow the tester down
//   instead of losing frames, like Ethernet flow control.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "kernel/counters.h"

namespace dutperf::dpdk {

class KernelSockets {
 public:
  // Remembers which descriptors are open now; `adopt` later takes the packet sockets that were
  // opened since: those of the port opened in between.
  KernelSockets();
  void adopt();

  // What they dropped on receive since adoption, added to `counters`.
  void count(kernel::InterfaceCounters& counters) const;

 private:
  struct Socket {
    int fd;
    int domain;
  };

  std::set<int> known_;
  std::vector<Socket> sockets_;
  mutable uint64_t packet_drops_ = 0;  // reading an AF_PACKET socket's statistics clears them
};

}  // namespace dutperf::dpdk
