// The counters of a NIC's driver (ethtool -S), which have names of the driver's choice.
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

// Those of a driver's counters that are drops on receive. `names`: as the kernel gives them, in
// fields of 32 bytes.
std::map<std::string, uint64_t> receive_drops(std::span<const char> names,
                                              std::span<const uint64_t> values);

// What the driver of an interface tells; empty when it counts nothing of the kind.
std::map<std::string, uint64_t> read_driver(const std::string& interface);

}  // namespace dutperf::kernel
