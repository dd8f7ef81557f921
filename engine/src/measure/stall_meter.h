// How one sender's stalls are measured: when it was late, and how many frames it then sent at once.
//
// A sender that is late by L sends the frames of that time on top of the intended rate as soon as
// it can: a burst of L times the rate. One that is too slow is late without a burst: its lag grows
// and does not fall. So what a stall may have cost the DUT is counted by how much the lag fell,
// over the whole stall, and not by how many frames left late (docs/adr/0001). Ups and downs of less
// than a stall are the steps of the send loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "measure/stall_log.h"

namespace dutperf::measure {

class StallMeter {
 public:
  // Lags of `stall_ns` and more are a stall, until less than half of that is left. `rate_fps` is
  // the highest of the load: no step can have sent more at once, so the device is not blamed for a
  // frame that the burst cost. `log` outlives the meter.
  StallMeter(StallLog& log, uint64_t rate_fps, uint64_t stall_ns)
      : log_(log), rate_fps_(rate_fps), stall_ns_(stall_ns) {}

  bool open() const { return open_; }

  // At `now_ns` since the start of the trial the oldest frame that has not left is late by
  // `lag_ns`; for `idle_ns` of that nothing was sent.
  void note(uint64_t now_ns, uint64_t lag_ns, uint64_t idle_ns) {
    if (!open_) begin(now_ns - std::min(now_ns, lag_ns));
    stall_.caught_up_ns = now_ns;
    stall_.max_lag_ns = std::max(stall_.max_lag_ns, lag_ns);
    stall_.away_ns = std::max(stall_.away_ns, std::min(idle_ns, lag_ns));
    follow(lag_ns);
    if (lag_ns > stall_ns_ / 2) return;
    made_up_ns_ += turn_ns_;
    end();
  }

  // Nothing will be sent any more; the stall that this happened in.
  std::optional<Stall> finish(uint64_t now_ns) {
    std::optional<Stall> last;
    if (open_) {
      stall_.caught_up_ns = now_ns;
      made_up_ns_ += std::min(turn_ns_, stall_ns_);  // the last few frames
      end();
      last = stall_;
    }
    log_.finish();
    return last;
  }

 private:
  void begin(uint64_t begin_ns) {
    open_ = true;
    stall_ = {};
    stall_.begin_ns = begin_ns;
    made_up_ns_ = 0;
    turn_ns_ = 0;
    falling_ = false;
    log_.begin(begin_ns);
  }

  // Adds what the lag fell by, once it is a stall's time below where it turned.
  void follow(uint64_t lag_ns) {
    if (falling_ ? lag_ns >= turn_ns_ + stall_ns_ : lag_ns >= turn_ns_) {
      falling_ = false;
      turn_ns_ = lag_ns;
    } else if (falling_ ? lag_ns < turn_ns_ : lag_ns + stall_ns_ <= turn_ns_) {
      falling_ = true;
      made_up_ns_ += turn_ns_ - lag_ns;
      turn_ns_ = lag_ns;
    }
  }

  void end() {
    open_ = false;
    stall_.frames = static_cast<uint64_t>(
        ((unsigned __int128){made_up_ns_} * rate_fps_ + 999'999'999) / 1'000'000'000);
    log_.end(stall_);
  }

  StallLog& log_;
  const uint64_t rate_fps_;
  const uint64_t stall_ns_;
  bool open_ = false;
  Stall stall_;
  uint64_t made_up_ns_ = 0;  // the lag fell by so much
  uint64_t turn_ns_ = 0;     // the highest lag since it rose, the lowest since it fell
  bool falling_ = false;
};

}  // namespace dutperf::measure
