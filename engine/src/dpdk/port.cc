#include "dpdk/port.h"

#include <net/if.h>
#include <rte_bus_vdev.h>
#include <rte_common.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "dpdk/error.h"
#include "dpdk/pool.h"
#include "interposed/memif_sockets.h"
#include "kernel/driver_counters.h"
#include "kernel/flow_control.h"
#include "kernel/netlink.h"

namespace dutperf::dpdk {
namespace {

constexpr unsigned kRingFrames = 16384;
constexpr uint32_t kReceiveFrameBytes = 2048;  // AF_PACKET and AF_XDP insist on it

const char* virtual_driver_prefix(Driver driver) {
  switch (driver) {
    case Driver::kAfPacket: return "net_af_packet_";
    case Driver::kAfXdp: return "net_af_xdp_";
    case Driver::kMemif: return "net_memif_";
    case Driver::kRing: return "net_ring_";
    case Driver::kNull: return "net_null_";
    case Driver::kVirtual:
    case Driver::kPci: return "";
  }
  return "";
}

bool is_virtual(const std::string& interface) {
  return !std::filesystem::exists("/sys/class/net/" + interface + "/device");
}

// Busy polling asks the kernel to work for a queue of hardware whenever a receive comes back empty:
// a system call each time. A virtual interface has no such queue.
const char* busy_polling(const PortOptions& options) {
  return is_virtual(options.device) ? ",busy_budget=0" : "";
}

// A packet socket that bypasses the interface's queue discipline gets a frame back that was
// refused, and sends it again: right for a NIC whose ring is full for a moment, as a discipline
// might drop there. Behind a virtual interface it is the device that refuses, because its queue is
// full; with a discipline the frame is then gone, and the device has lost it.
const char* bypassing_discipline(const PortOptions& options) {
  return is_virtual(options.device) ? ",qdisc_bypass=0" : ",qdisc_bypass=1";
}

// Bytes for one received frame: what AF_PACKET and AF_XDP insist on, or a larger MTU's. Some NICs
// use whole KiB of a buffer only, and a frame that needs more comes in two.
uint32_t frame_room(const PortOptions& options) {
  constexpr uint32_t kKiB = 1024;
  const uint32_t needed = RTE_ALIGN_CEIL(options.mtu + 64U, kKiB);
  if (options.driver != Driver::kAfPacket) return std::max(kReceiveFrameBytes, needed);
  // The kernel's own header stands before each frame of the ring; blocks are whole pages.
  constexpr uint32_t kKernelHeader = 128;
  return RTE_ALIGN_CEIL(needed + kKernelHeader, kReceiveFrameBytes);
}

// The least block of a packet socket's ring that has whole frames and whole pages.
uint32_t block_bytes(uint32_t frame_bytes) {
  constexpr uint32_t kPage = 4096;
  return frame_bytes % kPage == 0 ? frame_bytes : 2 * frame_bytes;
}

std::string vdev_arguments(const PortOptions& options) {
  switch (options.driver) {
    case Driver::kAfPacket:
      return "iface=" + options.device + ",framesz=" + std::to_string(frame_room(options)) +
             ",blocksz=" + std::to_string(block_bytes(frame_room(options))) +
             ",framecnt=" + std::to_string(options.in_flight_frames) +
             bypassing_discipline(options);
    case Driver::kAfXdp: return "iface=" + options.device + busy_polling(options);
    case Driver::kMemif:
      return std::string("role=") + (options.memif_server ? "server" : "client") +
             ",id=" + std::to_string(options.memif_id) + ",socket=" + options.device +
             ",socket-abstract=no,rsize=" +
             std::to_string(std::countr_zero(options.memif_ring_frames)) +
             ",bsize=" + std::to_string(frame_room(options)) +
             (options.mac ? ",mac=" + options.mac->text() : "");
    case Driver::kVirtual: {
      const size_t comma = options.device.find(',');
      return comma == std::string::npos ? "" : options.device.substr(comma + 1);
    }
    default: return "";
  }
}

// What DPDK calls the device: by its driver, and after the port, so that two may be of one driver.
std::string virtual_name(const PortOptions& options) {
  if (options.driver != Driver::kVirtual)
    return virtual_driver_prefix(options.driver) + options.name;
  return options.device.substr(0, options.device.find(',')) + "_" + options.name;
}

// A process that was killed leaves its socket's file behind, and nobody can bind to that again.
void remove_dead_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return;
  std::copy(path.begin(), path.end(), address.sun_path);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const bool dead = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 &&
                    errno == ECONNREFUSED;
  close(fd);
  if (dead) unlink(path.c_str());
}

std::string remedy(const PortOptions& options) {
  switch (options.driver) {
    case Driver::kAfPacket:
    case Driver::kAfXdp:
      if (if_nametoindex(options.device.c_str()) == 0) {
        return "interface " + options.device + " does not exist here; ip link shows those that do";
      }
      return geteuid() != 0 ? "run as root" : "the engine's log has DPDK's own words";
    case Driver::kVirtual:
      return "DPDK's guide to its network drivers has names and arguments of virtual devices; the "
             "engine's log has DPDK's own words";
    case Driver::kPci:
      return "bind the device to vfio-pci (dpdk-devbind.py --status shows it), or use interface:";
    case Driver::kMemif:
      return "is the other side running, with the opposite role and the same socket and id?";
    default: return "the engine's log has DPDK's own words";
  }
}

bool is_interface(const PortOptions& options) {
  return options.driver == Driver::kAfPacket || options.driver == Driver::kAfXdp;
}

// One number of the kernel about an interface; nullopt when it has none.
std::optional<long> interface_number(const PortOptions& options, const char* file) {
  std::ifstream stream("/sys/class/net/" + options.device + "/" + file);
  long value = 0;
  return stream >> value ? std::optional(value) : std::nullopt;
}

// How many queues of an interface the kernel spreads received frames to.
long receive_queues(const std::string& interface) {
  const std::filesystem::path queues = "/sys/class/net/" + interface + "/queues";
  std::error_code none;
  long count = 0;
  for (const auto& each : std::filesystem::directory_iterator(queues, none)) {
    count += each.path().filename().string().starts_with("rx-") ? 1 : 0;
  }
  return count;
}

// For DPDK's software drivers an interface is always up.
void ask_kernel(const PortOptions& options, LinkState& state) {
  if (std::ifstream("/sys/class/net/" + options.device + "/carrier").is_open()) {
    state.up = interface_number(options, "carrier").value_or(0) == 1;  // none: it is switched off
    state.changes = static_cast<uint64_t>(interface_number(options, "carrier_changes").value_or(0));
  } else if (if_nametoindex(options.device.c_str()) == 0) {
    state.up = false;
  }
}

// DPDK's software drivers report a made-up speed; for interfaces the kernel knows better, and
// memif and rings have none.
std::optional<uint32_t> speed_mbps(const PortOptions& options, const rte_eth_link& link) {
  if (options.driver == Driver::kPci) {
    const bool known =
        link.link_speed != RTE_ETH_SPEED_NUM_NONE && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN;
    return known ? std::optional(link.link_speed) : std::nullopt;
  }
  if (!is_interface(options)) return std::nullopt;
  const long speed = interface_number(options, "speed").value_or(0);
  return speed > 0 ? std::optional(static_cast<uint32_t>(speed)) : std::nullopt;
}

std::vector<std::pair<uint64_t, std::string>> find_pause_counters(uint16_t port) {
  const int count = rte_eth_xstats_get_names(port, nullptr, 0);
  std::vector<rte_eth_xstat_name> names(static_cast<size_t>(std::max(count, 0)));
  const int told =
      rte_eth_xstats_get_names(port, names.data(), static_cast<unsigned>(names.size()));
  if (told != count) return {};
  std::vector<std::pair<uint64_t, std::string>> result;
  for (size_t id = 0; id < names.size(); ++id) {
    const std::string name(names[id].name, strnlen(names[id].name, RTE_ETH_XSTATS_NAME_SIZE));
    if (kernel::is_pause_counter(name)) result.emplace_back(id, name);
  }
  return result;
}

}  // namespace

RingPair::RingPair(size_t number, size_t queues) {
  static const char* const kNames[2] = {"left_to_right_", "right_to_left_"};
  for (int i = 0; i < 2; ++i) {
    for (size_t queue = 0; queue < queues; ++queue) {
      const std::string name = kNames[i] + std::to_string(number) + "_" + std::to_string(queue);
      rte_ring* const ring =
          rte_ring_create(name.c_str(), kRingFrames, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
      if (ring == nullptr) throw SetupError("no memory for ring ports", "raise memory_mb");
      rings_[i].push_back(ring);
    }
  }
}

RingPair::~RingPair() {
  for (const std::vector<rte_ring*>& rings : rings_) {
    for (rte_ring* ring : rings) rte_ring_free(ring);
  }
}

Port::Port(const PortOptions& options, const RingPair* rings) : options_(options) {
  try {
    create(rings);
    configure();
    start();
  } catch (...) {
    release();
    throw;
  }
}

Port::~Port() { release(); }

void Port::release() noexcept {
  close();
  rte_mempool_free(receive_pool_);
}

void Port::refuse(const std::string& what, int error) const {
  throw SetupError("port " + options_.name + " (" + options_.device + "): " + what + ": " +
                       rte_strerror(error < 0 ? -error : error),
                   remedy(options_));
}

void Port::create(const RingPair* rings) {
  if (options_.driver == Driver::kRing) {
    const bool left = options_.name.starts_with("left");
    std::vector<rte_ring*> receive = left ? rings->right_to_left() : rings->left_to_right();
    std::vector<rte_ring*> transmit = left ? rings->left_to_right() : rings->right_to_left();
    if (options_.device == "crossed")
      std::rotate(receive.begin(), receive.begin() + 1, receive.end());
    const auto queues = static_cast<unsigned>(receive.size());
    const int id = rte_eth_from_rings(options_.name.c_str(), receive.data(), queues,
                                      transmit.data(), queues, SOCKET_ID_ANY);
    if (id < 0) refuse("cannot make a ring port", rte_errno);
    id_ = static_cast<uint16_t>(id);
    device_name_ = "net_ring_" + options_.name;
    return;
  }
  if (options_.driver == Driver::kAfXdp) refuse_unread_queues();
  std::string name = options_.device;
  int error = 0;
  if (options_.driver == Driver::kPci) {
    // When the engine starts DPDK has opened each; one that was closed is not there any more.
    if (rte_eth_dev_get_port_by_name(name.c_str(), &id_) == 0) return;
    error = rte_dev_probe(name.c_str());
  } else {
    if (options_.driver == Driver::kMemif && options_.memif_server) {
      remove_dead_socket(options_.device);
    }
    name = virtual_name(options_);
    interposed::expect_rings(options_.in_flight_frames);
    // Not by rte_eal_hotplug_add(): since DPDK 24.11 that takes 127 characters, as if for another
    // process, and the path of a socket may be as long.
    error = rte_vdev_init(name.c_str(), vdev_arguments(options_).c_str());
    if (error == 0) device_name_ = name;
  }
  if (error != 0) refuse("DPDK cannot open the device", error);
  error = rte_eth_dev_get_port_by_name(name.c_str(), &id_);
  if (error != 0) refuse("the device has no Ethernet port", error);
}

// An XDP socket reads one queue; what the kernel spreads to others would look lost by the device.
void Port::refuse_unread_queues() const {
  const long queues = receive_queues(options_.device);
  if (queues <= 1) return;
  throw SetupError("port " + options_.name + " (" + options_.device +
                       "): " + std::to_string(queues) +
                       " receive queues, and the AF_XDP driver reads one: the others' frames would "
                       "count as lost",
                   "ethtool -L " + options_.device +
                       " combined 1 (or rx 1), or the driver af_packet, which reads all");
}

void Port::configure() {
  rte_eth_dev_info info{};
  int error = rte_eth_dev_info_get(id_, &info);
  if (error != 0) refuse("cannot read what the device can do", error);
  rte_eth_conf conf{};
  if (options_.driver == Driver::kPci) conf.rxmode.mtu = options_.mtu;
  if (options_.tx_queues > info.max_tx_queues) {
    const std::string most = std::to_string(info.max_tx_queues);
    throw SetupError("port " + options_.name + " (" + options_.device +
                         "): " + std::to_string(options_.tx_queues) +
                         " shares, and the device has at most " + most + " transmit queues",
                     "lower shares of the testbed to " + most);
  }
  if (options_.rx_queues > info.max_rx_queues) {
    const std::string most = std::to_string(info.max_rx_queues);
    throw SetupError("port " + options_.name + " (" + options_.device +
                         "): " + std::to_string(options_.rx_queues) +
                         " receive queues, and the device has at most " + most,
                     "lower rx_queues of the port to " + most);
  }
  // Else a NIC puts all into the first.
  constexpr uint64_t kSpreadBy = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP;
  if (options_.rx_queues > 1 && (info.flow_type_rss_offloads & kSpreadBy) != 0) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf = info.flow_type_rss_offloads & kSpreadBy;
  }
  error = rte_eth_dev_configure(id_, options_.rx_queues, options_.tx_queues, &conf);
  if (error != 0) refuse("cannot configure its queues", error);

  uint16_t rx = options_.rx_descriptors;
  uint16_t tx = options_.tx_descriptors;
  error = rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx, &tx);
  if (error != 0) refuse("cannot set the queue lengths", error);

  // What the driver may hold at once: full receive queues, as many to refill them with, and copies
  // of what is queued to send.
  const uint32_t sending = options_.driver == Driver::kAfXdp ? options_.in_flight_frames : tx;
  const uint32_t buffers = 2U * rx * options_.rx_queues + sending * options_.tx_queues + 512;
  const bool contiguous = !reads_dpdk_memory(options_);
  receive_pool_ = create_pool("receive_" + options_.name, buffers, frame_room(options_), contiguous,
                              numa_node());
  for (uint16_t queue = 0; queue < options_.rx_queues; ++queue) {
    error = rte_eth_rx_queue_setup(id_, queue, rx, static_cast<unsigned>(numa_node()), nullptr,
                                   receive_pool_);
    if (error != 0) refuse("cannot set up a receive queue", error);
  }
  for (uint16_t queue = 0; queue < options_.tx_queues; ++queue) {
    error = rte_eth_tx_queue_setup(id_, queue, tx, static_cast<unsigned>(numa_node()), nullptr);
    if (error != 0) refuse("cannot set up a transmit queue", error);
  }
}

void Port::start() {
  rte_eth_dev_callback_register(id_, RTE_ETH_EVENT_INTR_LSC, count_link_change, this);
  const int error = rte_eth_dev_start(id_);
  if (error != 0) refuse("cannot start", error);
  refuse_scattered();
  switch_flow_control_off();
  rte_ether_addr address{};
  rte_eth_macaddr_get(id_, &address);
  std::memcpy(mac_.bytes.data(), address.addr_bytes, 6);
  if (options_.mac) mac_ = *options_.mac;
  rte_eth_stats_reset(id_);
  if (options_.driver == Driver::kPci) pause_counters_ = find_pause_counters(id_);
  kernel_sockets_.adopt();
  xdp_rings_ = interposed::take_opened_rings();
  take_frames_for_any_mac();
}

// Those for a MAC that the NIC does not know are the tester's, too, where it was told one; and
// those for nobody's are looked at. Drivers without filters refuse, which is fine.
void Port::take_frames_for_any_mac() {
  rte_eth_allmulticast_enable(id_);  // neighbour solicitations
  if (is_interface(options_)) {
    promiscuity_.emplace(options_.device);
    return;
  }
  const int refused = rte_eth_promiscuous_enable(id_);
  rte_ether_addr own{};
  rte_eth_macaddr_get(id_, &own);
  const bool filters = options_.driver == Driver::kPci && refused != 0;
  if (!filters || std::equal(mac_.bytes.begin(), mac_.bytes.end(), own.addr_bytes)) return;
  refuse("it takes no frames for MAC " + mac_.text() + ", which is not its own", refused);
}

// A frame in several buffers would be taken for a truncated one: the device's fault, not ours.
void Port::refuse_scattered() const {
  for (uint16_t queue = 0; queue < options_.rx_queues; ++queue) {
    rte_eth_rxq_info info{};
    if (rte_eth_rx_queue_info_get(id_, queue, &info) != 0) continue;  // few software drivers tell
    if (info.scattered_rx == 0) continue;
    throw SetupError("port " + options_.name + " (" + options_.device +
                         "): the driver receives a frame of its MTU, " + std::to_string(mtu()) +
                         " bytes, in several buffers, and the tester looks into the first",
                     "lower mtu of the port; the engine's log has DPDK's own words");
  }
}

// Before the link is up some drivers say that it is off, and negotiate it then: so it is set
// whatever they say. What cannot be set is read back by flow_control(), and makes trials invalid.
void Port::switch_flow_control_off() {
  if (is_interface(options_)) return kernel::switch_flow_control_off(options_.device);
  rte_eth_fc_conf conf{};
  if (rte_eth_dev_flow_ctrl_get(id_, &conf) != 0) return;  // the driver has none to set
  conf.mode = RTE_ETH_FC_NONE;  // all else as told: igb, e1000e and igc refuse another autoneg
  rte_eth_dev_flow_ctrl_set(id_, &conf);
}

void Port::close() noexcept {
  if (id_ != RTE_MAX_ETHPORTS) {
    rte_eth_dev_info info{};
    const bool known = rte_eth_dev_info_get(id_, &info) == 0;
    rte_eth_dev_callback_unregister(id_, RTE_ETH_EVENT_INTR_LSC, count_link_change, this);
    if (options_.driver == Driver::kMemif && options_.memif_server) {
      interposed::close_memif_server(id_, options_.device);
    } else {
      rte_eth_dev_stop(id_);
      rte_eth_dev_close(id_);
    }
    // A NIC that has a driver still is not probed again, and would have no port then.
    if (known && options_.driver == Driver::kPci) rte_dev_remove(info.device);
  }
  promiscuity_.reset();
  id_ = RTE_MAX_ETHPORTS;
  if (!device_name_.empty()) rte_vdev_uninit(device_name_.c_str());
  device_name_.clear();
}

Mbuf* Port::copy(const uint8_t* frame, size_t size) {
  Mbuf* const mbuf = rte_pktmbuf_alloc(receive_pool_);
  if (mbuf == nullptr) return nullptr;
  std::memcpy(frame_of(mbuf), frame, size);
  set_size(mbuf, size);
  return mbuf;
}

bool Port::send_copy(const uint8_t* frame, size_t size) {
  Mbuf* mbuf = copy(frame, size);
  if (mbuf == nullptr) return false;
  if (tx().send(&mbuf, 1) == 1) return true;
  free_frame(mbuf);
  return false;
}

int Port::numa_node() const { return rte_eth_dev_socket_id(id_); }

// DPDK's drivers of interfaces do not ask the kernel, and shared memory has none but what was asked
// for.
uint16_t Port::mtu() const {
  if (is_interface(options_)) {
    const long mtu = interface_number(options_, "mtu").value_or(options_.mtu);
    return static_cast<uint16_t>(std::min<long>(mtu, options_.mtu));
  }
  uint16_t mtu = options_.mtu;
  if (options_.driver == Driver::kPci) rte_eth_dev_get_mtu(id_, &mtu);
  return mtu;
}

std::optional<uint32_t> Port::in_flight_frames() const {
  if (xdp_rings_.capacity != 0) return xdp_rings_.capacity;
  if (options_.driver == Driver::kAfPacket) return options_.in_flight_frames;
  return std::nullopt;
}

std::string Port::driver_name() const {
  rte_eth_dev_info info{};
  const bool known = rte_eth_dev_info_get(id_, &info) == 0 && info.driver_name != nullptr;
  return known ? info.driver_name : "unknown";
}

LinkState Port::link() const {
  rte_eth_link link{};
  LinkState state;
  if (rte_eth_link_get_nowait(id_, &link) != 0) return state;
  state.up = link.link_status == RTE_ETH_LINK_UP;
  state.full_duplex = link.link_duplex == RTE_ETH_LINK_FULL_DUPLEX;
  state.speed_mbps = speed_mbps(options_, link);
  if (is_interface(options_)) {
    ask_kernel(options_, state);
    return state;
  }
  if (std::exchange(link_was_up_, state.up).value_or(state.up) != state.up) ++link_changes_;
  state.changes = link_changes_;
  return state;
}

bool Port::counts_changes_when_asked() const { return !is_interface(options_); }

int Port::count_link_change(uint16_t /*id*/, rte_eth_event_type /*event*/, void* port,
                            void* /*unused*/) {
  ++static_cast<Port*>(port)->link_changes_;
  return 0;
}

FlowControl Port::flow_control() const {
  if (is_interface(options_)) {
    const std::optional<bool> on = kernel::flow_control(options_.device);
    return !on ? FlowControl::kUnknown : *on ? FlowControl::kOn : FlowControl::kOff;
  }
  rte_eth_fc_conf conf{};
  if (rte_eth_dev_flow_ctrl_get(id_, &conf) != 0) return FlowControl::kUnknown;
  return conf.mode == RTE_ETH_FC_NONE ? FlowControl::kOff : FlowControl::kOn;
}

PortCounters Port::counters() const {
  rte_eth_stats stats{};
  rte_eth_stats_get(id_, &stats);
  PortCounters result{
      stats.ipackets, stats.opackets, stats.imissed, stats.ierrors, stats.rx_nombuf + in_several_,
      stats.oerrors,  pauses(),       std::nullopt};
  if (!is_interface(options_)) return result;
  kernel::InterfaceCounters counters;
  kernel_sockets_.count(counters);
  // The AF_XDP driver's imissed holds `xdp_dropped` already, not what found the ring full.
  result.rx_missed += counters.socket_full + counters.xdp_ring_full;
  if (kernel::read_interface(if_nametoindex(options_.device.c_str()), counters)) {
    kernel::DriverCounters driver = kernel::read_driver(options_.device);
    counters.driver = std::move(driver.drops);
    result.pauses = std::move(driver.pauses);
    result.kernel = std::move(counters);
  }
  return result;
}

std::map<std::string, uint64_t> Port::pauses() const {
  std::map<std::string, uint64_t> result;
  for (const auto& [id, name] : pause_counters_) {
    uint64_t count = 0;
    if (rte_eth_xstats_get_by_id(id_, &id, &count, 1) == 1) result[name] = count;
  }
  return result;
}

std::optional<kernel::Attachment> Port::attachment() const {
  if (!is_interface(options_)) return std::nullopt;
  return kernel::Attachment{is_virtual(options_.device), options_.driver == Driver::kAfPacket};
}

}  // namespace dutperf::dpdk
