#include "kernel/netlink.h"

#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

namespace dutperf::kernel {
namespace {

constexpr size_t kAnswerBytes = 32768;  // a link with many attributes takes a few thousand
constexpr timeval kPatience{1, 0};      // an answer that was lost must not stop the engine

constexpr size_t aligned(size_t size) { return (size + 3) & ~size_t{3}; }

template <typename T>
std::optional<T> read(Bytes bytes) {
  // Longer ones come from a newer kernel, which adds at the end; shorter ones from an older.
  if (bytes.empty()) return std::nullopt;
  T value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof(value)));
  return value;
}

// What is in the first attribute of this type; empty: there is none.
Bytes attribute(Bytes attributes, uint16_t type) {
  while (attributes.size() >= sizeof(rtattr)) {
    rtattr header{};
    std::memcpy(&header, attributes.data(), sizeof(header));
    if (header.rta_len < sizeof(header) || header.rta_len > attributes.size()) break;
    if ((header.rta_type & NLA_TYPE_MASK) == type) {
      return attributes.subspan(sizeof(header), header.rta_len - sizeof(header));
    }
    attributes = attributes.subspan(std::min(aligned(header.rta_len), attributes.size()));
  }
  return {};
}

// The attributes of the first message of this type, behind its own header; empty: there is none.
Bytes message_attributes(Bytes answer, uint16_t type, size_t header_bytes) {
  while (answer.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header{};
    std::memcpy(&header, answer.data(), sizeof(header));
    if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > answer.size()) break;
    const size_t before = sizeof(header) + aligned(header_bytes);
    if (header.nlmsg_type == type && header.nlmsg_len >= before) {
      return answer.subspan(before, header.nlmsg_len - before);
    }
    answer = answer.subspan(std::min(aligned(header.nlmsg_len), answer.size()));
  }
  return {};
}

bool has_acknowledgement(Bytes answer) {
  while (answer.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header{};
    std::memcpy(&header, answer.data(), sizeof(header));
    if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_len < sizeof(header)) return true;
    answer = answer.subspan(std::min(aligned(header.nlmsg_len), answer.size()));
  }
  return false;
}

// The answer to one request, up to the acknowledgement; some interfaces have nothing to tell, and
// then there is nothing else.
template <typename Payload>
std::vector<uint8_t> ask(uint16_t type, const Payload& payload) {
  std::vector<uint8_t> answer;
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return answer;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  struct {
    nlmsghdr header;
    Payload payload;
  } request{};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = type;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  request.payload = payload;
  if (send(fd, &request, sizeof(request), 0) == static_cast<ssize_t>(sizeof(request))) {
    std::array<uint8_t, kAnswerBytes> part;
    while (!has_acknowledgement(answer)) {
      const ssize_t size = recv(fd, part.data(), part.size(), 0);
      if (size <= 0) break;
      answer.insert(answer.end(), part.begin(), part.begin() + size);
    }
  }
  close(fd);
  return answer;
}

}  // namespace

bool parse_link(Bytes answer, InterfaceCounters& counters) {
  const Bytes attributes = message_attributes(answer, RTM_NEWLINK, sizeof(ifinfomsg));
  const auto stats = read<rtnl_link_stats64>(attribute(attributes, IFLA_STATS64));
  if (!stats) return false;
  counters.rx_missed = stats->rx_missed_errors;
  counters.rx_fifo = stats->rx_fifo_errors;
  counters.rx_over = stats->rx_over_errors;
  counters.rx_nohandler = stats->rx_nohandler;
  counters.rx_dropped = stats->rx_dropped;
  counters.rx_crc = stats->rx_crc_errors;
  counters.rx_frame = stats->rx_frame_errors;
  counters.rx_length = stats->rx_length_errors;
  counters.tx_errors = stats->tx_errors;
  counters.tx_dropped = stats->tx_dropped;
  return true;
}

std::optional<uint32_t> parse_queue_drops(Bytes answer) {
  const Bytes attributes = message_attributes(answer, RTM_NEWQDISC, sizeof(tcmsg));
  const Bytes queue = attribute(attribute(attributes, TCA_STATS2), TCA_STATS_QUEUE);
  const auto stats = read<gnet_stats_queue>(queue);
  return stats ? std::optional(stats->drops) : std::nullopt;
}

bool read_interface(unsigned index, InterfaceCounters& counters) {
  ifinfomsg link{};
  link.ifi_index = static_cast<int>(index);
  if (!parse_link(ask(RTM_GETLINK, link), counters)) return false;
  tcmsg root{};
  root.tcm_ifindex = static_cast<int>(index);
  root.tcm_parent = TC_H_ROOT;
  counters.queue_dropped = parse_queue_drops(ask(RTM_GETQDISC, root)).value_or(0);
  return true;
}

}  // namespace dutperf::kernel
