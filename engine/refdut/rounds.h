// Rounds of the forwarding loop, and who has to wait for the end of one.
//
// Another thread may take away memory that the loop reads: DPDK's own does, when a memif peer goes.
// It marks the port as unconnected, and unmaps. A round that saw the port connected may still be
// reading then, above all when it was preempted; a round that begins after the mark keeps off. So
// in between the other thread waits until the round that runs is over.
//
// The loop pays one atomic exchange a round, however many frames that brings, and never waits. Both
// sides change the same number, so one of them comes first: either the round sees the mark, or it
// is seen and waited for. A plain store would not do: a processor may read the mark before others
// see what it stored.
#pragma once

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstdint>

namespace dutperf::refdut {

class Rounds {
 public:
  constexpr Rounds() = default;
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  // While it is there, the thread that made it runs rounds, one after the other; one at a time.
  class Loop {
   public:
    explicit Loop(Rounds& rounds) : rounds_(rounds) {
      rounds_.thread_ = pthread_self();
      next();
    }
    ~Loop() { rounds_.running_.store(kNone, std::memory_order_release); }
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    // The round ends and another one begins.
    void next() noexcept { rounds_.running_.exchange(++rounds_.last_, std::memory_order_acq_rel); }

   private:
    Rounds& rounds_;
  };

  // Any thread: returns when the round that ran at the call is over; false if it still runs after
  // `naps`. They are counted and not timed: where the machine stands still, both threads do. The
  // loop's own thread need not wait: in its rounds it does one thing after the other.
  bool await_end(uint32_t naps) const noexcept {
    const uint64_t seen = running_.fetch_add(0, std::memory_order_acq_rel);
    if (seen == kNone || pthread_equal(thread_, pthread_self()) != 0) return true;
    while (running_.load(std::memory_order_acquire) == seen) {
      if (naps-- == 0) return false;
      nanosleep(&kNap, nullptr);
    }
    return true;
  }

 private:
  static constexpr uint64_t kNone = 0;
  static constexpr timespec kNap{0, 50'000};

  mutable std::atomic<uint64_t> running_{kNone};
  uint64_t last_ = kNone;  // of the loop's thread
  pthread_t thread_{};     // written before the first round, read by those who see one
};

}  // namespace dutperf::refdut
