// The counters of a NIC's driver (ethtool -S, or DPDK's extended statistics), which have names of
// the driver's choice.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace dutperf::kernel {

// Whether a counter of this name counts frames that were dropped on receive, for want of room or
// buffers. The rule, upper and lower case alike: "rx" or "xdp" is in it and "tx" is not; so is one
// of drop, miss, discard, overrun, overflow, fifo, no_buf, nobuf, no_dma, out_of_buf, alloc_fail,
// alloc_err; and nothing that says that the frame was damaged, meant for others or filtered out on
// purpose, or that no frame is counted: see the list beside the code.
bool is_receive_drop(std::string_view name);

// Whether a counter of this name counts Ethernet pause frames (IEEE 802.3 annex 31B, and those by
// priority): "pause", "xon", "xoff" or "pfc" is in it, and nothing that says that it counts times
// or changes between states. The same frames may stand in several counters of one driver.
bool is_pause_counter(std::string_view name);

// Of such a counter: whether its frames came in, and did not go out.
bool counts_received(std::string_view name);

// Pause frames that came in: of several counters the largest, as they may count the same frames.
uint64_t pause_frames_received(const std::map<std::string, uint64_t>& pauses);

struct DriverCounters {
  std::map<std::string, uint64_t> drops;   // on receive
  std::map<std::string, uint64_t> pauses;  // both ways

  bool operator==(const DriverCounters&) const = default;
};

// Those of a driver's counters that tell something here. `names`: as the kernel gives them, in
// fields of 32 bytes.
DriverCounters select_counters(std::span<const char> names, std::span<const uint64_t> values);

// What the driver of an interface tells; empty when it counts nothing of the kind.
DriverCounters read_driver(const std::string& interface);

}  // namespace dutperf::kernel
