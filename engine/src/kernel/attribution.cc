#include "kernel/attribution.h"

#include <algorithm>
#include <numeric>

namespace dutperf::kernel {
namespace {

uint64_t less(uint64_t count, uint64_t known) { return count - std::min(count, known); }

}  // namespace

Attribution attribute(const InterfaceCounters& during, const Attachment& attachment,
                      uint64_t foreign) {
  Attribution result;
  uint64_t interface = during.rx_missed + during.rx_fifo + during.rx_over + during.rx_nohandler;
  if (!attachment.is_virtual) {
    // A frame of a protocol that this kernel does not speak counts as dropped when it is through;
    // a packet socket has had it by then.
    interface += less(during.rx_dropped, attachment.packet_socket ? foreign : 0);
  }
  const uint64_t driver =
      std::accumulate(during.driver.begin(), during.driver.end(), uint64_t{0},
                      [](uint64_t sum, const auto& counter) { return sum + counter.second; });
  // An AF_XDP socket that refuses a frame makes the driver count it, too.
  result.receive = less(std::max(interface, driver), during.xdp_dropped + during.xdp_ring_full);
  // A virtual interface counts as dropped what the device's queue refused.
  result.send =
      during.tx_errors + during.queue_dropped + (attachment.is_virtual ? 0 : during.tx_dropped);
  result.damaged = during.rx_crc + during.rx_frame + during.rx_length;
  return result;
}

uint64_t own_input_queue_drops(const std::vector<InputQueue>& during, bool any_virtual,
                               uint64_t accounted) {
  if (any_virtual) return 0;
  const uint64_t dropped =
      std::accumulate(during.begin(), during.end(), uint64_t{0},
                      [](uint64_t sum, const InputQueue& queue) { return sum + queue.dropped; });
  return less(dropped, accounted);
}

}  // namespace dutperf::kernel
