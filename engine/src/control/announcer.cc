#include "control/announcer.h"

#include <algorithm>

namespace dutperf::control {

using dataplane::index_of;

std::vector<uint8_t> Announcer::frame_of_next() const {
  const Announcement& announcement = announcements_[next_];
  const size_t side = index_of(announcement.side);
  return frame_of(announcement, announcement.dst_mac.value_or(net::Mac{}), ports_[side]->mac(),
                  resources_[side]->own.vlan);
}

void Announcer::send_before() {
  for (; !all_sent() && !announcements_[next_].at_ns; ++next_) {
    const size_t side = index_of(announcements_[next_].side);
    const std::vector<uint8_t> frame = frame_of_next();
    if (ports_[side]->send_copy(frame.data(), frame.size())) ++sent_[side];
  }
}

void Announcer::send_due(uint64_t running_ns) {
  for (; !all_sent() && announcements_[next_].at_ns <= running_ns; ++next_) {
    const size_t side = index_of(announcements_[next_].side);
    const std::vector<uint8_t> frame = frame_of_next();
    dpdk::Mbuf* const mbuf = ports_[side]->copy(frame.data(), frame.size());
    if (mbuf == nullptr) continue;
    if (resources_[side]->replies.put(mbuf)) {
      ++sent_[side];
    } else {
      dpdk::free_frame(mbuf);
    }
  }
}

int Announcer::wait_ms(uint64_t running_ns, int limit_ms) const {
  if (all_sent()) return limit_ms;
  constexpr uint64_t kNsPerMs = 1'000'000;
  const uint64_t due_ns = announcements_[next_].at_ns.value_or(0);
  const uint64_t left_ms = (due_ns - std::min(due_ns, running_ns)) / kNsPerMs;
  return static_cast<int>(std::min<uint64_t>(left_ms + 1, static_cast<uint64_t>(limit_ms)));
}

}  // namespace dutperf::control
