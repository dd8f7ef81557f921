// A loop that reads memory in rounds as long as it is connected, as the device's loop does a memif
// peer's. What may not happen is that it reads what has been taken away.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

#include "../rounds.h"

namespace dutperf::refdut::testing {

class ReadingLoop {
 public:
  static constexpr uint64_t kPresent = 0x5a5a5a5a5a5a5a5a;
  static constexpr size_t kWords = 16'384;

  explicit ReadingLoop(Rounds& rounds) : thread_([this, &rounds] { run(rounds); }) {}
  ~ReadingLoop() {
    stop_ = true;
    thread_.join();
  }
  ReadingLoop(const ReadingLoop&) = delete;
  ReadingLoop& operator=(const ReadingLoop&) = delete;

  // Fills the memory and returns once the loop is reading it.
  void connect(std::span<uint64_t> memory) {
    std::fill(memory.begin(), memory.end(), kPresent);
    memory_ = memory;
    const uint64_t before = begun_;
    connected_.store(true, std::memory_order_release);
    while (begun_ == before) {  // no yield: where others compute, it would come back too late
    }
  }
  // The mark only: a round may still be reading.
  void disconnect() { connected_.store(false, std::memory_order_relaxed); }

  // How many words it read that were not there any more.
  uint64_t absent() const { return absent_; }

 private:
  // In a round, so that it is nearly always reading.
  static constexpr int kReadings = 8;

  void run(Rounds& rounds) {
    Rounds::Loop loop(rounds);
    for (; !stop_; loop.next()) {
      if (!connected_.load(std::memory_order_acquire)) {
        std::this_thread::yield();
        continue;
      }
      begun_.fetch_add(1, std::memory_order_relaxed);
      for (int i = 0; i < kReadings; ++i) absent_.fetch_add(read(), std::memory_order_relaxed);
    }
  }

  // How many words were not there; `volatile`, as each reading counts.
  uint64_t read() const {
    uint64_t absent = 0;
    for (const volatile uint64_t& word : memory_) absent += word != kPresent;
    return absent;
  }

  std::span<const uint64_t> memory_;
  std::atomic<bool> connected_{false};
  std::atomic<uint64_t> begun_{0};
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> absent_{0};
  std::thread thread_;
};

}  // namespace dutperf::refdut::testing
