// Sends a trial's announcements: before the device settles by the control thread itself, during
// the trial through the workers, as replies to neighbours leave (a sender looks for them at each
// step, so they leave between two bursts). What a full ring does not take is not sent, and not
// counted: the count tells.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "control/announcement_messages.h"
#include "dataplane/trial_run.h"
#include "dpdk/port.h"

namespace dutperf::control {

class Announcer {
 public:
  using Ports = std::array<dpdk::Port*, dataplane::kSides>;
  using Resources = std::array<dataplane::PortResources*, dataplane::kSides>;

  // By the first port of each side. All outlive it; the announcements are in the order of their
  // times, and have their MACs.
  Announcer(const std::vector<Announcement>& announcements, const Ports& ports,
            const Resources& resources)
      : announcements_(announcements), ports_(ports), resources_(resources) {}

  // Those without a time. REQUIRES: no worker uses the ports.
  void send_before();
  // Those that are due when `running_ns` have passed since the start.
  void send_due(uint64_t running_ns);
  // How long until the next one is due, at most `limit_ms`.
  int wait_ms(uint64_t running_ns, int limit_ms) const;

  uint64_t sent(dataplane::Side side) const { return sent_[dataplane::index_of(side)]; }

 private:
  bool all_sent() const { return next_ == announcements_.size(); }
  std::vector<uint8_t> frame_of_next() const;

  const std::vector<Announcement>& announcements_;
  Ports ports_;
  Resources resources_;
  size_t next_ = 0;
  std::array<uint64_t, dataplane::kSides> sent_{};
};

}  // namespace dutperf::control
