// A port at drivers that answer as those of NICs do: DPDK's own calls have fakes here.
#include "dpdk/port.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <optional>
#include <string>
#include <string_view>

#include "dpdk/error.h"
#include "dpdk/testing/memory.h"
#include "kernel/flow_control.h"

namespace {

struct Driver {
  std::optional<rte_eth_fc_mode> flow_control;  // none: it has none
  bool takes_settings = true;
  bool scattered = false;
  int settings = 0;
  bool link_up = true;
  bool promiscuous = false;
  rte_eth_dev_cb_fn tell = nullptr;  // of a change of the link, and whom
  void* whom = nullptr;
};
Driver driver;

// A driver of the kernel's, as ethtool -a and -A see it.
struct KernelDriver {
  std::optional<ethtool_pauseparam> pause;  // none: it has none
  bool takes_settings = true;
  bool keeps_autonegotiation = true;  // as i40e and ice; else as igb and e1000e
};
KernelDriver kernel_driver;

// A NIC by PCI, which has no port before it is probed, nor after it was removed: the port of a
// virtual device.
constexpr std::string_view kAddress = "0000:03:00.0";
constexpr const char* kBehind = "net_null_nic";
int probes;

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int rte_dev_probe(const char* device) {
  if (device != kAddress) return real<decltype(rte_dev_probe)>("rte_dev_probe")(device);
  ++probes;
  uint16_t id = 0;
  return rte_eth_dev_get_port_by_name(kBehind, &id) == 0 ? -EEXIST
                                                         : rte_eal_hotplug_add("vdev", kBehind, "");
}

extern "C" int rte_eth_dev_get_port_by_name(const char* name, uint16_t* id) {
  return real<decltype(rte_eth_dev_get_port_by_name)>("rte_eth_dev_get_port_by_name")(
      name == kAddress ? kBehind : name, id);
}

extern "C" int rte_eth_dev_flow_ctrl_get(uint16_t, rte_eth_fc_conf* conf) {
  if (!driver.flow_control) return -ENOTSUP;
  conf->mode = *driver.flow_control;
  conf->autoneg = 1;
  conf->high_water = 77;
  return 0;
}

extern "C" int rte_eth_dev_flow_ctrl_set(uint16_t, rte_eth_fc_conf* conf) {
  // Drivers refuse a configuration without the marks that they told, and those of igb, e1000e and
  // igc one with another autonegotiation than the link's.
  if (!driver.takes_settings || conf->high_water != 77) return -EIO;
  if (conf->autoneg != 1) return -ENOTSUP;
  driver.flow_control = conf->mode;
  ++driver.settings;
  return 0;
}

extern "C" int rte_eth_rx_queue_info_get(uint16_t, uint16_t, rte_eth_rxq_info* info) {
  info->scattered_rx = driver.scattered ? 1 : 0;
  return 0;
}

extern "C" int rte_eth_promiscuous_enable(uint16_t) {
  driver.promiscuous = true;
  return 0;
}

extern "C" int rte_eth_link_get_nowait(uint16_t, rte_eth_link* link) {
  *link = {};
  link->link_status = driver.link_up ? RTE_ETH_LINK_UP : RTE_ETH_LINK_DOWN;
  return 0;
}

extern "C" int rte_eth_dev_callback_register(uint16_t, rte_eth_event_type event,
                                             rte_eth_dev_cb_fn tell, void* whom) {
  EXPECT_EQ(event, RTE_ETH_EVENT_INTR_LSC);
  driver.tell = tell;
  driver.whom = whom;
  return 0;
}

extern "C" int rte_eth_dev_callback_unregister(uint16_t, rte_eth_event_type, rte_eth_dev_cb_fn tell,
                                               void* whom) {
  if (driver.tell == nullptr) return -EINVAL;  // of a port that was never started
  EXPECT_TRUE(tell == driver.tell && whom == driver.whom);
  driver.tell = nullptr;
  return 0;
}

extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request != SIOCETHTOOL) return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
  auto& pause = *reinterpret_cast<ethtool_pauseparam*>(static_cast<ifreq*>(argument)->ifr_data);
  if (!kernel_driver.pause) return -1;
  if (pause.cmd == ETHTOOL_GPAUSEPARAM) {
    pause = *kernel_driver.pause;
    return 0;
  }
  if (!kernel_driver.takes_settings) return -1;
  if (kernel_driver.keeps_autonegotiation && pause.autoneg != kernel_driver.pause->autoneg) {
    return -1;
  }
  if (!kernel_driver.keeps_autonegotiation && pause.autoneg == 1) return 0;  // as negotiated
  kernel_driver.pause = pause;
  return 0;
}

namespace dutperf {
namespace {

using dpdk::FlowControl;
using dpdk::Port;
using dpdk::PortOptions;

class OpenedPort : public ::testing::Test {
 protected:
  OpenedPort() {
    dpdk::testing::memory();
    driver = {};
  }

  static PortOptions options() {
    PortOptions found;
    found.name = "left";
    found.rx_descriptors = found.tx_descriptors = 64;
    return found;
  }
};

TEST_F(OpenedPort, SwitchesFlowControlOff) {
  driver.flow_control = RTE_ETH_FC_FULL;
  const Port port(options(), nullptr);
  EXPECT_EQ(driver.flow_control, RTE_ETH_FC_NONE);
  EXPECT_EQ(port.flow_control(), FlowControl::kOff);
}

TEST_F(OpenedPort, SetsItAlsoWhereItSeemsOffBeforeTheLinkIsUp) {
  driver.flow_control = RTE_ETH_FC_NONE;
  const Port port(options(), nullptr);
  EXPECT_EQ(driver.settings, 1);
}

TEST_F(OpenedPort, TellsWhatCannotBeSet) {
  driver.flow_control = RTE_ETH_FC_FULL;
  driver.takes_settings = false;
  EXPECT_EQ(Port(options(), nullptr).flow_control(), FlowControl::kOn);
  driver.flow_control.reset();
  EXPECT_EQ(Port(options(), nullptr).flow_control(), FlowControl::kUnknown);
}

TEST_F(OpenedPort, TakesFramesForAnyMac) {
  const Port port(options(), nullptr);
  EXPECT_TRUE(driver.promiscuous);
}

TEST_F(OpenedPort, IsANicThatDpdkHasOpenedOrOneThatWasClosed) {
  PortOptions nic = options();
  nic.driver = dpdk::Driver::kPci;
  nic.device = kAddress;
  ASSERT_EQ(rte_eal_hotplug_add("vdev", kBehind, ""), 0);
  probes = 0;
  for (const int expected : {0, 1, 2}) {
    EXPECT_EQ(Port(nic, nullptr).driver_name(), "net_null");
    EXPECT_EQ(probes, expected);
  }
}

TEST(KernelFlowControl, IsSwitchedOffWhetherItIsNegotiatedOrNot) {
  for (const bool keeps : {true, false}) {
    for (const uint32_t autoneg : {0U, 1U}) {
      kernel_driver = {
          ethtool_pauseparam{.cmd = 0, .autoneg = autoneg, .rx_pause = 1, .tx_pause = 0}, true,
          keeps};
      EXPECT_EQ(kernel::flow_control("eth0"), true);
      kernel::switch_flow_control_off("eth0");
      EXPECT_EQ(kernel::flow_control("eth0"), false);
    }
  }
}

TEST(KernelFlowControl, TellsWhatCannotBeSet) {
  kernel_driver = {ethtool_pauseparam{.cmd = 0, .autoneg = 1, .rx_pause = 1, .tx_pause = 1}, false};
  kernel::switch_flow_control_off("eth0");
  EXPECT_EQ(kernel::flow_control("eth0"), true);
  kernel_driver = {};
  kernel::switch_flow_control_off("eth0");
  EXPECT_EQ(kernel::flow_control("eth0"), std::nullopt);
}

TEST_F(OpenedPort, RefusesToReceiveAFrameInSeveralBuffers) {
  driver.scattered = true;
  try {
    const Port port(options(), nullptr);
    FAIL() << "it opened";
  } catch (const dpdk::SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("in several buffers"), std::string::npos);
  }
  driver.scattered = false;
  const Port port(options(), nullptr);  // what was refused is closed again
  EXPECT_TRUE(port.link().up);
}

TEST_F(OpenedPort, SaysHowManyQueuesItsDeviceHas) {
  PortOptions more = options();
  more.rx_queues = RTE_MAX_QUEUES_PER_PORT + 1;
  try {
    const Port port(more, nullptr);
    FAIL() << "it opened";
  } catch (const dpdk::SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("1025 receive queues"), std::string::npos);
    EXPECT_EQ(error.hint(), "lower rx_queues of the port to 1024");
  }
}

TEST_F(OpenedPort, CountsThatItsLinkWentDownAndUpWhereSomebodyLooked) {
  const Port port(options(), nullptr);
  EXPECT_TRUE(port.counts_changes_when_asked());
  EXPECT_EQ(port.link().changes, 0U);
  driver.link_up = false;
  EXPECT_EQ(port.link().changes, 1U);
  driver.link_up = true;
  EXPECT_EQ(port.link().changes, 2U);
  EXPECT_EQ(port.link().changes, 2U);
}

TEST_F(OpenedPort, CountsEachChangeThatItsDriverTells) {
  const Port port(options(), nullptr);
  EXPECT_EQ(port.link().changes, 0U);
  for (int i = 0; i < 2; ++i) driver.tell(0, RTE_ETH_EVENT_INTR_LSC, driver.whom, nullptr);
  EXPECT_EQ(port.link().changes, 2U);
}

}  // namespace
}  // namespace dutperf
