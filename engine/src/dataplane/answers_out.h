// Answers on their way out: what the port has no room for waits, what there is no room to wait for
// is the tester's own loss. For the worker that receives and sends at a side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "dpdk/mbuf.h"

namespace dutperf::dataplane {

class AnswersOut {
 public:
  explicit AnswersOut(const dpdk::TxQueue& queue) : queue_(queue) {
    waiting_.reserve(kMost);
    counts_.reserve(kMost);
  }
  ~AnswersOut() { dpdk::free_frames(waiting_.data(), static_cast<uint32_t>(waiting_.size())); }
  AnswersOut(const AnswersOut&) = delete;
  AnswersOut& operator=(const AnswersOut&) = delete;

  // Adds one to `count` once it has left. False: there is no room, and it is gone.
  bool put(dpdk::Mbuf* mbuf, uint64_t& count) noexcept {
    if (waiting_.size() == kMost) send();
    if (waiting_.size() == kMost) {
      dpdk::free_frame(mbuf);
      return false;
    }
    waiting_.push_back(mbuf);
    counts_.push_back(&count);
    return true;
  }

  // As much as the port takes.
  void send() noexcept {
    constexpr uint32_t kBurst = 32;
    uint32_t done = 0;
    const auto count = static_cast<uint32_t>(waiting_.size());
    while (done < count) {
      const uint32_t wanted = std::min(kBurst, count - done);
      const uint32_t taken = queue_.send(waiting_.data() + done, wanted);
      for (uint32_t i = done; i < done + taken; ++i) ++*counts_[i];
      done += taken;
      if (taken < wanted) break;
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + done);
    counts_.erase(counts_.begin(), counts_.begin() + done);
  }

  size_t waiting() const { return waiting_.size(); }

 private:
  static constexpr size_t kMost = 2048;

  const dpdk::TxQueue queue_;
  std::vector<dpdk::Mbuf*> waiting_;
  std::vector<uint64_t*> counts_;  // of these
};

}  // namespace dutperf::dataplane
