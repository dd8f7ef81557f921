#include "kernel/promiscuity.h"

#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dutperf::kernel {

// Of protocol 0: no frame comes to it.
Promiscuity::Promiscuity(const std::string& interface)
    : fd_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
  packet_mreq membership{};
  membership.mr_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
  membership.mr_type = PACKET_MR_PROMISC;
  setsockopt(fd_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof(membership));
}

Promiscuity::~Promiscuity() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace dutperf::kernel
