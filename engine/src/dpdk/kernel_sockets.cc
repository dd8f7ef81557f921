#include "dpdk/kernel_sockets.h"

#include <dirent.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

namespace dutperf::dpdk {

namespace {

constexpr int kSendBufferBytes = 256 << 20;  // a limit, not an allocation

std::set<int> open_descriptors() {
  std::set<int> result;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return result;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') result.insert(std::atoi(entry->d_name));
  }
  result.erase(dirfd(directory));  // closed in a moment; the next socket may get its number
  closedir(directory);
  return result;
}

int domain_of(int fd) {
  int domain = -1;
  socklen_t size = sizeof(domain);
  getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
  return domain;
}

}  // namespace

KernelSockets::KernelSockets() : known_(open_descriptors()) {}

void KernelSockets::adopt() {
  for (const int fd : open_descriptors()) {
    if (known_.contains(fd)) continue;
    const int domain = domain_of(fd);
    if (domain != AF_PACKET && domain != AF_XDP) continue;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &kSendBufferBytes, sizeof(kSendBufferBytes));
    sockets_.push_back({fd, domain});
  }
  known_.clear();
  kernel::InterfaceCounters earlier;
  count(earlier);  // what was dropped before the port was in use does not count
  packet_drops_ = 0;
}

void KernelSockets::count(kernel::InterfaceCounters& counters) const {
  for (const Socket& socket : sockets_) {
    if (socket.domain == AF_PACKET) {
      tpacket_stats stats{};
      socklen_t size = sizeof(stats);
      if (getsockopt(socket.fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0) {
        packet_drops_ += stats.tp_drops;
      }
    } else {
      xdp_statistics stats{};
      socklen_t size = sizeof(stats);
      if (getsockopt(socket.fd, SOL_XDP, XDP_STATISTICS, &stats, &size) == 0) {
        counters.xdp_dropped += stats.rx_dropped;
        counters.xdp_ring_full += stats.rx_ring_full;
        counters.xdp_fill_ring_empty += stats.rx_fill_ring_empty_descs;
      }
    }
  }
  counters.socket_full += packet_drops_;
}

}  // namespace dutperf::dpdk
