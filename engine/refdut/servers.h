// A direction's servers: one, or one for each receive queue, which a hash of the frame chooses.
#pragma once

#include <optional>
#include <vector>

#include "rss.h"
#include "server.h"

namespace dutperf::refdut {

// What one queue did in a trial.
struct QueueCount {
  uint64_t served = 0;
  uint64_t dropped = 0;
};

class Servers {
 public:
  Servers() : Servers(std::nullopt, {}) {}
  Servers(const std::optional<Service>& service, const std::vector<Freeze>& freezes) {
    const uint32_t queues = service ? service->queues : 1;
    for (uint32_t i = 0; i < queues; ++i) servers_.emplace_back(service, freezes);
    if (queues == 1) return;
    rss_.emplace(service->hash, queues);
    counts_.resize(queues);
  }

  // Freezes and counts start here.
  void restart(uint64_t now_ns) {
    for (Server& server : servers_) server.restart(now_ns);
    counts_.assign(counts_.size(), {});
  }

  // Of a test frame, as it came in.
  uint8_t queue_of(const uint8_t* frame, int ip_version) const {
    return rss_ ? static_cast<uint8_t>(rss_->queue_of(frame, ip_version)) : 0;
  }

  // As Server's.
  std::optional<uint64_t> serve(uint8_t queue, uint64_t now_ns) {
    const auto served = servers_[queue].serve(now_ns);
    if (rss_) ++(served ? counts_[queue].served : counts_[queue].dropped);
    return served;
  }
  uint64_t room(uint64_t now_ns) { return servers_[0].room(now_ns); }  // only one withholds
  uint64_t thaw(uint64_t at_ns) const { return servers_[0].thaw(at_ns); }

  // Of this trial; empty where there is one queue.
  const std::vector<QueueCount>& counts() const { return counts_; }

 private:
  std::vector<Server> servers_;
  std::optional<Rss> rss_;
  std::vector<QueueCount> counts_;
};

}  // namespace dutperf::refdut
