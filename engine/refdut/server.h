// One server, first come first served: when does a frame that comes now leave?
//
// Each frame takes 1 / rate; times are 64.64 fixed point, so a million frames take a million times
// that to a nanosecond. In a freeze nothing is served and nothing leaves.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "behaviour.h"

namespace dutperf::refdut {

class Server {
 public:
  Server() = default;
  Server(const std::optional<Service>& service, std::vector<Freeze> freezes)
      : freezes_(std::move(freezes)) {
    if (!service) return;
    interval_ = (Fixed{1'000'000'000} << 64) / service->rate_fps;
    in_system_.resize(service->queue_frames + 1);
    withholds_ = service->withhold;
  }

  // Freezes count from here.
  void restart(uint64_t now_ns) { epoch_ns_ = now_ns; }

  // The first nanosecond at which the frame has been served; none when the queue is full.
  // REQUIRES: `now_ns` never goes back.
  std::optional<uint64_t> serve(uint64_t now_ns) {
    if (interval_ == 0) return thaw(now_ns);
    let_go(now_ns);
    if (waiting_ == in_system_.size()) return std::nullopt;
    free_at_ = finish(std::max(free_at_, Fixed{now_ns} << 64));
    const auto served = static_cast<uint64_t>((free_at_ + UINT64_MAX) >> 64);
    in_system_[last_] = served;
    last_ = next(last_);
    ++waiting_;
    return served;
  }

  // How many frames may be fetched from the port: all, or as many as the queue has places for where
  // the rest is to stay in the port's ring. REQUIRES: as `serve`.
  uint64_t room(uint64_t now_ns) {
    if (!withholds_) return UINT64_MAX;
    let_go(now_ns);
    return in_system_.size() - waiting_;
  }

  // `at_ns`, or the end of the freeze that it lies in.
  uint64_t thaw(uint64_t at_ns) const {
    for (const Freeze& freeze : freezes_) {
      const uint64_t begin = epoch_ns_ + freeze.at_ns;
      if (at_ns >= begin && at_ns < begin + freeze.for_ns) at_ns = begin + freeze.for_ns;
    }
    return at_ns;
  }

 private:
  using Fixed = unsigned __int128;

  // When the work that starts at `start` is done: freezes interrupt it.
  Fixed finish(Fixed start) const {
    Fixed end = start + interval_;
    for (const Freeze& freeze : freezes_) {
      const Fixed begin = Fixed{epoch_ns_ + freeze.at_ns} << 64;
      const Fixed length = Fixed{freeze.for_ns} << 64;
      if (start >= begin + length || end <= begin) continue;
      end += length - (start > begin ? start - begin : 0);
    }
    return end;
  }

  // Those that have been served wait no more.
  void let_go(uint64_t now_ns) {
    while (waiting_ > 0 && in_system_[first_] <= now_ns) {
      first_ = next(first_);
      --waiting_;
    }
  }

  size_t next(size_t place) const { return place + 1 == in_system_.size() ? 0 : place + 1; }

  Fixed interval_ = 0;  // 0: takes no time
  bool withholds_ = false;
  Fixed free_at_ = 0;
  uint64_t epoch_ns_ = 0;
  std::vector<Freeze> freezes_;
  // When those that wait or are being served will have been served; a ring.
  std::vector<uint64_t> in_system_;
  size_t first_ = 0;
  size_t last_ = 0;
  size_t waiting_ = 0;
};

}  // namespace dutperf::refdut
