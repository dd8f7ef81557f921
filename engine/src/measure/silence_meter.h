// The longest time in which no frame of a direction arrived of those that the DUT must forward,
// from when the first one was due on.
//
// One receiver drives it, a receive call at a time; read after the trial. Times are since its
// start. Where several receive of a direction, each has one, and before it calls a time silent it
// asks the others when they last heard something.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace dutperf::measure {

struct Silence {
  uint64_t begin_ns = 0;
  std::optional<uint64_t> end_ns;  // none: nothing came after

  bool operator==(const Silence&) const = default;
};

class SilenceMeter {
 public:
  explicit SilenceMeter(uint64_t first_due_ns)
      : last_ns_(first_due_ns), longest_begin_ns_(first_due_ns) {}

  // Before the trial; they outlive it.
  void listen_with(std::vector<const SilenceMeter*> others) { others_ = std::move(others); }

  // A receive call that ended at `now_ns` brought frames.
  void hear(uint64_t now_ns) noexcept {
    if (now_ns > last_ns() + longest_ns_) [[unlikely]]
      note(now_ns);
    last_ns_.store(now_ns, std::memory_order_relaxed);
    heard_ = true;
  }

  // What nobody came after is as long as frames were due, the last one at `last_due_ns`: waiting
  // for those that are still on their way is no silence.
  Silence longest(uint64_t last_due_ns) const { return longest_of({}, last_due_ns); }
  // Of all who listened.
  Silence longest_of(std::span<const SilenceMeter* const> others, uint64_t last_due_ns) const {
    const SilenceMeter* longest = this;
    uint64_t last_ns = this->last_ns();
    bool heard = heard_;
    for (const SilenceMeter* other : others) {
      const bool first = other->longest_begin_ns_ < longest->longest_begin_ns_;
      if (other->longest_ns_ > longest->longest_ns_ ||
          (first && other->longest_ns_ == longest->longest_ns_)) {
        longest = other;
      }
      last_ns = std::max(last_ns, other->last_ns());
      heard |= other->heard_;
    }
    if (!heard || last_due_ns > last_ns + longest->longest_ns_) return {last_ns, std::nullopt};
    return {longest->longest_begin_ns_, longest->longest_begin_ns_ + longest->longest_ns_};
  }

 private:
  uint64_t last_ns() const { return last_ns_.load(std::memory_order_relaxed); }

  [[gnu::noinline]] void note(uint64_t now_ns) noexcept {
    uint64_t begin_ns = last_ns();
    for (const SilenceMeter* other : others_) {
      begin_ns = std::max(begin_ns, std::min(other->last_ns(), now_ns));
    }
    if (now_ns - begin_ns <= longest_ns_) return;
    longest_begin_ns_ = begin_ns;
    longest_ns_ = now_ns - begin_ns;
  }

  std::vector<const SilenceMeter*> others_;
  std::atomic<uint64_t> last_ns_;
  uint64_t longest_begin_ns_;
  uint64_t longest_ns_ = 0;
  bool heard_ = false;
};

}  // namespace dutperf::measure
