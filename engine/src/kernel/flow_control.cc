#include "kernel/flow_control.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace dutperf::kernel {
namespace {

bool ask(const std::string& interface, ethtool_pauseparam& pause) {
  ifreq request{};
  if (interface.size() >= sizeof(request.ifr_name)) return false;
  interface.copy(request.ifr_name, interface.size());
  request.ifr_data = reinterpret_cast<char*>(&pause);
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool answered = fd >= 0 && ioctl(fd, SIOCETHTOOL, &request) == 0;
  if (fd >= 0) close(fd);
  return answered;
}

}  // namespace

std::optional<bool> flow_control(const std::string& interface) {
  ethtool_pauseparam pause{};
  pause.cmd = ETHTOOL_GPAUSEPARAM;
  if (!ask(interface, pause)) return std::nullopt;
  return pause.rx_pause != 0 || pause.tx_pause != 0;
}

void switch_flow_control_off(const std::string& interface) {
  ethtool_pauseparam pause{};
  pause.cmd = ETHTOOL_GPAUSEPARAM;
  if (!ask(interface, pause) || (pause.rx_pause == 0 && pause.tx_pause == 0)) return;
  pause.cmd = ETHTOOL_SPAUSEPARAM;
  pause.rx_pause = pause.tx_pause = 0;
  // igb and e1000e negotiate it all the same where that is on, whatever else they are told; i40e
  // and ice refuse another autonegotiation than the link's.
  const auto negotiated = std::exchange(pause.autoneg, 0U);
  if (ask(interface, pause)) return;
  pause.autoneg = negotiated;
  ask(interface, pause);
}

}  // namespace dutperf::kernel
