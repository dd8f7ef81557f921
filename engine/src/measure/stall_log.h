// The stalls of one sender: from when on it was late, until when it made up for that, and how much
// it sent to do so.
//
// One thread writes, others read at any time. What ends is published after it is complete. A stall
// beyond the last place of the log is not told from the one before it, which then ends with the
// trial.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dutperf::measure {

struct Stall {
  uint64_t begin_ns = 0;      // the oldest frame that left late was due
  uint64_t caught_up_ns = 0;  // back on schedule
  uint64_t max_lag_ns = 0;
  uint64_t away_ns = 0;  // of that, the longest time in which the sender did not run
  uint64_t frames = 0;   // that left at once instead of evenly (stall_meter.h)

  bool operator==(const Stall&) const = default;
};

class StallLog {
 public:
  static constexpr size_t kMaxStalls = 1024;

  // For the one that writes. `begin` opens a stall unless the log is full; `end` completes it.
  // Both return at once when there is nothing to do.
  void begin(uint64_t begin_ns) {
    const size_t place = begun();
    if (place == kMaxStalls || place > ended()) return;
    stalls_[place].begin_ns = begin_ns;
    begun_.store(place + 1, std::memory_order_release);
  }
  // The begin is the one given to begin().
  void end(const Stall& stall) {
    const size_t place = ended();
    if (place == begun()) return;
    Stall& entry = stalls_[place];  // its begin is being read
    entry.caught_up_ns = stall.caught_up_ns;
    entry.max_lag_ns = std::max(entry.max_lag_ns, stall.max_lag_ns);
    entry.away_ns = std::max(entry.away_ns, stall.away_ns);
    entry.frames += stall.frames;
    if (place + 1 < kMaxStalls) ended_.store(place + 1, std::memory_order_release);
  }
  // The last one of the trial has ended: that of a full log, too.
  void finish() { ended_.store(begun(), std::memory_order_release); }

  // How many stalls there are, the last one of which may not have ended.
  size_t begun() const { return begun_.load(std::memory_order_acquire); }
  size_t ended() const { return ended_.load(std::memory_order_acquire); }
  // REQUIRES: place < begun().
  uint64_t begin_ns(size_t place) const { return stalls_[place].begin_ns; }
  // REQUIRES: place < ended().
  const Stall& stall(size_t place) const { return stalls_[place]; }

 private:
  std::atomic<size_t> begun_{0};
  std::atomic<size_t> ended_{0};
  std::array<Stall, kMaxStalls> stalls_{};
};

}  // namespace dutperf::measure
