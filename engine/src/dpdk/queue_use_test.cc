#include "dpdk/queue_use.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "dpdk/testing/memory.h"

namespace dutperf::dpdk {
namespace {

constexpr size_t kBytes = 4096;
constexpr auto kAWhile = std::chrono::milliseconds(50);

void* mapped() {
  void* region = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(region, MAP_FAILED);
  return region;
}

bool is_there(void* region) { return madvise(region, kBytes, MADV_NORMAL) == 0; }

TEST(QueueUse, WhatAnotherThreadUnmapsStaysUntilTheLastUseIsOver) {
  testing::memory();
  void* region = mapped();
  std::optional<QueueUse> outer(std::in_place);
  std::atomic<bool> begun = false;
  std::thread driver([&] {
    begun = true;
    munmap(region, kBytes);
  });
  while (!begun) std::this_thread::yield();
  QueueUse{};
  std::this_thread::sleep_for(kAWhile);
  EXPECT_TRUE(is_there(region));
  outer.reset();
  driver.join();
  EXPECT_FALSE(is_there(region));
}

TEST(QueueUse, TheEnginesOwnThreadsDoNotWait) {
  testing::memory();
  void* region = mapped();
  const QueueUse use;
  EXPECT_EQ(munmap(region, kBytes), 0);
  EXPECT_FALSE(is_there(region));
}

TEST(QueueUse, NobodyWaitsWhereQueuesAreNotUsed) {
  QueueUse{};
  void* region = mapped();
  std::thread([&] { munmap(region, kBytes); }).join();
  EXPECT_FALSE(is_there(region));
}

}  // namespace
}  // namespace dutperf::dpdk
