// Frames the kernel dropped because a tester's AF_PACKET or AF_XDP socket was full. DPDK 22.11's
// drivers do not report them, and a frame that the tester lost must not count against the DUT.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

namespace dutperf::dpdk {

class KernelDrops {
 public:
  // Remembers which descriptors are open now; `adopt` later takes the packet sockets that were
  // opened since: those of the port opened in between.
  KernelDrops();
  void adopt();

  // Drops since adoption. Reading an AF_PACKET socket's statistics clears them, so they add up here.
  uint64_t read() const;

 private:
  struct Socket {
    int fd;
    int domain;
  };

  std::set<int> known_;
  std::vector<Socket> sockets_;
  mutable uint64_t packet_drops_ = 0;
};

}  // namespace dutperf::dpdk
