// The longest time in which no frame of a direction arrived of those that the DUT must forward,
// from when the first one was due on.
//
// One receiver drives it, a receive call at a time; read after the trial. Times are since its
// start.
#pragma once

#include <cstdint>
#include <optional>

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

  // A receive call that ended at `now_ns` brought frames.
  void hear(uint64_t now_ns) noexcept {
    if (now_ns > last_ns_ + longest_ns_) [[unlikely]] {
      longest_begin_ns_ = last_ns_;
      longest_ns_ = now_ns - last_ns_;
    }
    last_ns_ = now_ns;
    heard_ = true;
  }

  // What nobody came after is as long as frames were due, the last one at `last_due_ns`: waiting
  // for those that are still on their way is no silence.
  Silence longest(uint64_t last_due_ns) const {
    if (!heard_ || last_due_ns > last_ns_ + longest_ns_) return {last_ns_, std::nullopt};
    return {longest_begin_ns_, longest_begin_ns_ + longest_ns_};
  }

 private:
  uint64_t last_ns_;
  uint64_t longest_begin_ns_;
  uint64_t longest_ns_ = 0;
  bool heard_ = false;
};

}  // namespace dutperf::measure
