#include "kernel/driver_counters.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <vector>

namespace dutperf::kernel {
namespace {

constexpr std::string_view kReceive[] = {"rx", "xdp"};
constexpr std::string_view kDrops[] = {"drop",     "miss",       "discard",    "overrun",
                                       "overflow", "fifo",       "no_buf",     "nobuf",
                                       "no_dma",   "out_of_buf", "alloc_fail", "alloc_err"};
constexpr std::string_view kOthers[] = {
    "tx",  // not on receive
    "crc",   "align",  "length", "size",  "jabber",    "symbol",    "fragment", "csum",  // damaged
    "steer", "filter", "fdir",   "vlan",  "otherhost", "multicast",          // not for us
    "pause", "stamp",  "ptp",    "cache", "pp_",       "lro",       "gro"};  // no frames

constexpr std::string_view kPauses[] = {"pause", "xon", "xoff", "pfc"};
constexpr std::string_view kNoFrames[] = {"duration", "transition", "_to_", "time",
                                          "quanta",   "storm",      "stall"};
constexpr std::string_view kCameIn[] = {"rx", "rcv", "receive"};

bool has(std::string_view name, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

std::string in_lower_case(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// A struct of ethtool's with room for `count` values behind it.
template <typename Header>
class WithRoom {
 public:
  WithRoom(size_t bytes) : storage_((sizeof(Header) + bytes + 7) / 8) {}
  Header* operator->() { return reinterpret_cast<Header*>(storage_.data()); }
  char* room() { return reinterpret_cast<char*>(storage_.data()) + sizeof(Header); }
  bool ask(int fd, ifreq request) {
    request.ifr_data = reinterpret_cast<char*>(storage_.data());
    return ioctl(fd, SIOCETHTOOL, &request) == 0;
  }

 private:
  std::vector<uint64_t> storage_;
};

uint32_t count_of_counters(int fd, const ifreq& request) {
  WithRoom<ethtool_sset_info> info(sizeof(uint32_t));
  info->cmd = ETHTOOL_GSSET_INFO;
  info->sset_mask = 1ULL << ETH_SS_STATS;
  if (!info.ask(fd, request) || info->sset_mask == 0) return 0;
  uint32_t count = 0;
  std::memcpy(&count, info.room(), sizeof(count));
  return count;
}

DriverCounters read_all(int fd, const ifreq& request) {
  const uint32_t count = count_of_counters(fd, request);
  if (count == 0) return {};
  WithRoom<ethtool_gstrings> names(size_t{count} * ETH_GSTRING_LEN);
  names->cmd = ETHTOOL_GSTRINGS;
  names->string_set = ETH_SS_STATS;
  names->len = count;
  WithRoom<ethtool_stats> values(size_t{count} * sizeof(uint64_t));
  values->cmd = ETHTOOL_GSTATS;
  values->n_stats = count;
  if (!names.ask(fd, request) || !values.ask(fd, request)) return {};
  std::vector<uint64_t> numbers(count);
  std::memcpy(numbers.data(), values.room(), count * sizeof(uint64_t));
  return select_counters({names.room(), size_t{count} * ETH_GSTRING_LEN}, numbers);
}

}  // namespace

bool is_receive_drop(std::string_view name) {
  const std::string lower = in_lower_case(name);
  return has(lower, kReceive) && has(lower, kDrops) && !has(lower, kOthers);
}

bool is_pause_counter(std::string_view name) {
  const std::string lower = in_lower_case(name);
  return has(lower, kPauses) && !has(lower, kNoFrames);
}

bool counts_received(std::string_view name) { return has(in_lower_case(name), kCameIn); }

uint64_t pause_frames_received(const std::map<std::string, uint64_t>& pauses) {
  uint64_t most = 0;
  for (const auto& [name, count] : pauses) {
    if (counts_received(name)) most = std::max(most, count);
  }
  return most;
}

DriverCounters select_counters(std::span<const char> names, std::span<const uint64_t> values) {
  DriverCounters result;
  const size_t count = std::min(values.size(), names.size() / ETH_GSTRING_LEN);
  for (size_t i = 0; i < count; ++i) {
    const char* const field = names.data() + i * ETH_GSTRING_LEN;
    const std::string name(field, strnlen(field, ETH_GSTRING_LEN));
    if (is_receive_drop(name)) result.drops[name] += values[i];
    if (is_pause_counter(name)) result.pauses[name] += values[i];
  }
  return result;
}

DriverCounters read_driver(const std::string& interface) {
  ifreq request{};
  if (interface.size() >= sizeof(request.ifr_name)) return {};
  interface.copy(request.ifr_name, interface.size());
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  auto result = read_all(fd, request);
  close(fd);
  return result;
}

}  // namespace dutperf::kernel
