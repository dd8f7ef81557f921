// What the kernel counts of an interface, and of the queues of its CPUs: where frames go that never
// reach the socket behind a port. Read between trials; all counts since the kernel began to count.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dutperf::kernel {

struct InterfaceCounters {
  // Of the interface, whatever its driver (rtnl_link_stats64).
  uint64_t rx_missed = 0;     // the NIC had no room
  uint64_t rx_fifo = 0;       // the same, as some drivers call it
  uint64_t rx_over = 0;       // and others
  uint64_t rx_nohandler = 0;  // nobody took it
  uint64_t rx_dropped = 0;    // driver, input queue, or a protocol that nobody speaks
  uint64_t rx_crc = 0;        // damaged on the wire: wrong checksum
  uint64_t rx_frame = 0;      // no whole number of bytes
  uint64_t rx_length = 0;     // shorter or longer than it says
  uint64_t tx_errors = 0;
  uint64_t tx_dropped = 0;
  // Frames that the queue discipline dropped on the way out, modulo 2^32.
  uint32_t queue_dropped = 0;
  // The driver's own counters of drops on receive, by their names (ethtool -S).
  std::map<std::string, uint64_t> driver;
  // The packet socket's ring was full.
  uint64_t socket_full = 0;
  // The AF_XDP socket had no room, or no buffer; the last is in `xdp_dropped` already in copy mode,
  // and in zero copy an attempt, not a frame.
  uint64_t xdp_dropped = 0;
  uint64_t xdp_ring_full = 0;
  uint64_t xdp_fill_ring_empty = 0;
};

// What rose from `before` to `after`. A driver that began anew counts from zero again: no rise.
std::map<std::string, uint64_t> rise(const std::map<std::string, uint64_t>& before,
                                     const std::map<std::string, uint64_t>& after);
InterfaceCounters rise(const InterfaceCounters& before, const InterfaceCounters& after);

// Of one CPU, modulo 2^32: frames that its input queue had no room for, and how often it stopped
// with work left to do.
struct InputQueue {
  unsigned cpu = 0;
  uint32_t dropped = 0;
  uint32_t time_squeeze = 0;

  bool operator==(const InputQueue&) const = default;
};

// The text of /proc/net/softnet_stat; empty when it is not one.
std::vector<InputQueue> parse_input_queues(const std::string& text);
std::vector<InputQueue> input_queues();
// Those CPUs where something rose, with how much.
std::vector<InputQueue> rise(const std::vector<InputQueue>& before,
                             const std::vector<InputQueue>& after);

}  // namespace dutperf::kernel
