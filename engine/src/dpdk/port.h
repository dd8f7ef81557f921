// One Ethernet port of the tester: a NIC by PCI address, a kernel interface through AF_PACKET or
// AF_XDP, shared memory (memif), or a ring inside this process. Opened once, used by many trials.
#pragma once

#include <rte_mempool.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpdk/kernel_sockets.h"
#include "dpdk/mbuf.h"
#include "interposed/xdp_rings.h"
#include "kernel/attribution.h"
#include "kernel/counters.h"
#include "kernel/promiscuity.h"
#include "kernel/tap.h"
#include "net/address.h"
#include "net/encapsulation.h"
#include "net/mpls.h"
#include "net/vlan.h"

struct rte_ring;

namespace dutperf::dpdk {

// kVirtual: any of DPDK's virtual devices, `device` is its name and arguments.
enum class Driver : uint8_t { kAfPacket, kAfXdp, kPci, kMemif, kVirtual, kRing, kNull };

struct PortOptions {
  std::string name;  // "left" or "right", further ones of a side "left2", "right2", ...
  Driver driver = Driver::kNull;
  // Interface, PCI address, memif socket or virtual device. Of a ring port "crossed": what one
  // queue sends comes in by the next.
  std::string device;
  std::optional<net::Mac> mac;
  net::VlanTags vlan;        // of all frames, both ways
  net::LabelStack labels;    // of test frames, both ways
  net::Encapsulation outer;  // likewise
  bool memif_server = false;
  uint32_t memif_id = 0;
  uint32_t memif_ring_frames = 4096;  // a power of 2; the client says how many
  uint16_t mtu = 1500;
  uint16_t rx_queues = 1;  // a device in shared memory may send on several
  uint16_t tx_queues = 1;
  uint16_t rx_descriptors = 8192;
  uint16_t tx_descriptors = 4096;
  // Kernel interfaces: frames that may be on their way to the device or in its queue; a power of 2.
  uint32_t in_flight_frames = 16384;
  WhenFull when_full = WhenFull::kWait;
  std::optional<kernel::TapOptions> tap;  // for a program that speaks for the tester
};

// Whether somebody beside the driver reads and writes the port's buffers where they are, and knows
// DPDK's own memory alone: a NIC by bus address, the other end of a virtio device by file.
inline bool reads_dpdk_memory(const PortOptions& options) {
  return options.driver == Driver::kPci ||
         (options.driver == Driver::kVirtual && options.device.starts_with("net_virtio_user"));
}

// The port's own counters since it was opened.
struct PortCounters {
  uint64_t rx_frames = 0;
  uint64_t tx_frames = 0;
  uint64_t rx_missed = 0;
  uint64_t rx_errors = 0;
  uint64_t rx_nombuf = 0;
  uint64_t tx_errors = 0;
  // Ethernet pause frames by the driver's own names, both ways; empty where it counts none.
  std::map<std::string, uint64_t> pauses;
  // Of a kernel interface, if the kernel tells: all that may have been lost below the port.
  std::optional<kernel::InterfaceCounters> kernel;
};

enum class FlowControl : uint8_t { kOn, kOff, kUnknown };

struct LinkState {
  bool up = false;
  uint64_t changes = 0;  // how often it went up or down so far, at least
  std::optional<uint32_t> speed_mbps;
  bool full_duplex = true;
};

// The rings that cross a pair of ring ports, one for each queue and way; outlive both.
class RingPair {
 public:
  // `number`: of the pair.
  explicit RingPair(size_t number, size_t queues = 1);
  ~RingPair();
  RingPair(const RingPair&) = delete;
  RingPair& operator=(const RingPair&) = delete;

  const std::vector<rte_ring*>& left_to_right() const { return rings_[0]; }
  const std::vector<rte_ring*>& right_to_left() const { return rings_[1]; }

 private:
  std::vector<rte_ring*> rings_[2];
};

class Port {
 public:
  // Creates the device, configures its queues and starts it. `rings` is needed for ring
  // ports only. Throws SetupError; a port that could not be opened leaves nothing behind.
  Port(const PortOptions& options, const RingPair* rings);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // The device gives back all buffers that it holds, whosever they are: to be called of all ports
  // before any pool is freed that frames were sent from. Nothing but the destructor may follow.
  void close() noexcept;

  const PortOptions& options() const { return options_; }
  const net::Mac& mac() const { return mac_; }
  int numa_node() const;
  uint16_t mtu() const;
  std::string driver_name() const;
  // Of a kernel interface the kernel counts each change. Of others the driver may tell; and each
  // call counts one if the link is not as it was at the last.
  LinkState link() const;
  bool counts_changes_when_asked() const;
  FlowControl flow_control() const;
  PortCounters counters() const;
  // Frames for which no buffer was large enough, which no driver counts.
  void add_in_several(uint64_t frames) { in_several_ += frames; }
  // How a kernel interface's frames come to the port; none: it is none.
  std::optional<kernel::Attachment> attachment() const;

  // Control path only, while no worker uses the port: copies a frame into a buffer and sends it;
  // false when the port did not take it.
  bool send_copy(const uint8_t* frame, size_t size);
  // A buffer with a copy of the frame; null: there is none left. Any thread that DPDK knows may
  // ask.
  Mbuf* copy(const uint8_t* frame, size_t size);

  // REQUIRES: queue < options().tx_queues.
  TxQueue tx(uint16_t queue = 0) const {
    return {id_, queue, options_.when_full, xdp_rings_, options_.driver == Driver::kAfPacket};
  }
  // Frames that may be on their way to the device or in its queue; none: not known.
  std::optional<uint32_t> in_flight_frames() const;
  // The shortest ring of all drivers that are in the way: AF_XDP's, which is not for us to choose.
  RxQueues rx() const {
    // Of the others a counter tells when it had no room.
    const bool unseen = options_.driver == Driver::kMemif || options_.driver == Driver::kRing ||
                        options_.driver == Driver::kVirtual;
    return {id_, options_.rx_queues, 0, 1,
            unseen ? std::min<uint32_t>(options_.rx_descriptors, 2048) : UINT32_MAX};
  }

 private:
  void create(const RingPair* rings);
  void configure();
  void start();
  void refuse_unread_queues() const;
  void refuse_scattered() const;
  static int count_link_change(uint16_t id, rte_eth_event_type event, void* port, void* unused);
  void switch_flow_control_off();
  void take_frames_for_any_mac();
  void release() noexcept;
  std::map<std::string, uint64_t> pauses() const;
  [[noreturn]] void refuse(const std::string& what, int error) const;

  PortOptions options_;
  KernelSockets kernel_sockets_;
  interposed::XdpRings xdp_rings_;
  std::optional<kernel::Promiscuity> promiscuity_;
  // Of a NIC's extended statistics those that count pause frames: id and name.
  std::vector<std::pair<uint64_t, std::string>> pause_counters_;
  uint64_t in_several_ = 0;
  // By drivers in a thread of DPDK's, too.
  mutable std::atomic<uint64_t> link_changes_ = 0;
  mutable std::optional<bool> link_was_up_;
  uint16_t id_ = RTE_MAX_ETHPORTS;
  std::string device_name_;  // DPDK's name of a virtual device; empty for PCI
  rte_mempool* receive_pool_ = nullptr;
  net::Mac mac_;
};

}  // namespace dutperf::dpdk
