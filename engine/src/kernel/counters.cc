#include "kernel/counters.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace dutperf::kernel {
namespace {

constexpr size_t kDropped = 1, kTimeSqueeze = 2, kCpu = 12;  // columns of softnet_stat

uint64_t rise_of(uint64_t before, uint64_t after) { return after - std::min(before, after); }

}  // namespace

std::map<std::string, uint64_t> rise(const std::map<std::string, uint64_t>& before,
                                     const std::map<std::string, uint64_t>& after) {
  std::map<std::string, uint64_t> result;
  for (const auto& [name, count] : after) {
    const auto earlier = before.find(name);
    result[name] = rise_of(earlier == before.end() ? 0 : earlier->second, count);
  }
  return result;
}

InterfaceCounters rise(const InterfaceCounters& before, const InterfaceCounters& after) {
  InterfaceCounters result;
  for (const auto member :
       {&InterfaceCounters::rx_missed, &InterfaceCounters::rx_fifo, &InterfaceCounters::rx_over,
        &InterfaceCounters::rx_nohandler, &InterfaceCounters::rx_dropped,
        &InterfaceCounters::rx_crc, &InterfaceCounters::rx_frame, &InterfaceCounters::rx_length,
        &InterfaceCounters::tx_errors, &InterfaceCounters::tx_dropped,
        &InterfaceCounters::socket_full, &InterfaceCounters::xdp_dropped,
        &InterfaceCounters::xdp_ring_full, &InterfaceCounters::xdp_fill_ring_empty}) {
    result.*member = rise_of(before.*member, after.*member);
  }
  result.queue_dropped = after.queue_dropped - before.queue_dropped;
  result.driver = rise(before.driver, after.driver);
  return result;
}

std::vector<InputQueue> parse_input_queues(const std::string& text) {
  std::vector<InputQueue> result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream columns(line);
    std::vector<uint32_t> values;
    for (uint32_t value = 0; columns >> std::hex >> value;) values.push_back(value);
    if (values.size() <= kTimeSqueeze) continue;
    // Older kernels do not name the CPU; a line each, then, and none is missing.
    const auto cpu = values.size() > kCpu ? values[kCpu] : static_cast<uint32_t>(result.size());
    result.push_back({cpu, values[kDropped], values[kTimeSqueeze]});
  }
  return result;
}

std::vector<InputQueue> input_queues() {
  std::ifstream file("/proc/net/softnet_stat");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_input_queues(text.str());
}

std::vector<InputQueue> rise(const std::vector<InputQueue>& before,
                             const std::vector<InputQueue>& after) {
  std::vector<InputQueue> result;
  for (const InputQueue& now : after) {
    const auto then = std::find_if(before.begin(), before.end(),
                                   [&](const InputQueue& each) { return each.cpu == now.cpu; });
    if (then == before.end()) continue;
    const InputQueue rose{now.cpu, now.dropped - then->dropped,
                          now.time_squeeze - then->time_squeeze};
    if (rose.dropped != 0 || rose.time_squeeze != 0) result.push_back(rose);
  }
  return result;
}

}  // namespace dutperf::kernel
