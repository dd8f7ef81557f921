// What the workers of a trial share: when it starts and when it ends. Written a handful of times
// per trial, so the cache line stays shared.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "timing/clock.h"

namespace dutperf::dataplane {

class TrialClock {
 public:
  TrialClock(const timing::TscClock& clock, uint32_t workers, uint32_t senders,
             uint64_t residual_wait_ns, uint64_t not_before_tsc = 0)
      : clock_(clock),
        residual_wait_tsc_(clock.to_tsc(residual_wait_ns)),
        not_before_tsc_(not_before_tsc),
        workers_preparing_(workers),
        senders_sending_(senders) {}

  const timing::TscClock& tsc() const { return clock_; }

  // Called by each worker when its buffers are ready; returns the common start, a little ahead.
  uint64_t meet_at_start() {
    constexpr uint64_t kLeadNs = 1'000'000;  // all workers must have seen the start by then
    if (workers_preparing_.fetch_sub(1) == 1) {
      const uint64_t soon_tsc = timing::read_tsc() + clock_.to_tsc(kLeadNs);
      start_tsc_.store(std::max(soon_tsc, not_before_tsc_));
    }
    while (start_tsc_.load(std::memory_order_acquire) == 0) timing::cpu_relax();
    return start_tsc_.load(std::memory_order_relaxed);
  }

  // Called by each sender after its last frame; the trial ends a residual wait after the last one.
  void sender_done() {
    if (senders_sending_.fetch_sub(1) != 1) return;
    uint64_t open = UINT64_MAX;  // an abort stays an abort
    end_tsc_.compare_exchange_strong(open, timing::read_tsc() + residual_wait_tsc_);
  }

  // The senders end, the trial a residual wait later.
  void stop() { stopping_.store(true, std::memory_order_relaxed); }
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }

  void abort() {
    aborted_.store(true);
    end_tsc_.store(0);
  }

  bool ended() const { return timing::read_tsc() >= end_tsc_.load(std::memory_order_relaxed); }

  bool aborted() const { return aborted_.load(); }
  // 0 until all workers are ready.
  uint64_t start_tsc() const { return start_tsc_.load(std::memory_order_relaxed); }
  // UINT64_MAX while a sender is sending, 0 after an abort.
  uint64_t end_tsc() const { return end_tsc_.load(std::memory_order_relaxed); }

 private:
  const timing::TscClock clock_;
  const uint64_t residual_wait_tsc_;
  const uint64_t not_before_tsc_;
  std::atomic<uint32_t> workers_preparing_;
  std::atomic<uint32_t> senders_sending_;
  std::atomic<uint64_t> start_tsc_{0};
  std::atomic<uint64_t> end_tsc_{UINT64_MAX};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> aborted_{false};
};

}  // namespace dutperf::dataplane
