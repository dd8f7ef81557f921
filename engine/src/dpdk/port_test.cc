// A port at drivers that answer as those of NICs do: DPDK's own calls have fakes here.
#include "dpdk/port.h"

#include <gtest/gtest.h>
#include <rte_ethdev.h>

#include <optional>

#include "dpdk/error.h"
#include "dpdk/testing/memory.h"

namespace {

struct Driver {
  std::optional<rte_eth_fc_mode> flow_control;  // none: it has none
  bool takes_settings = true;
  bool scattered = false;
  int settings = 0;
};
Driver driver;

}  // namespace

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

}  // namespace
}  // namespace dutperf
