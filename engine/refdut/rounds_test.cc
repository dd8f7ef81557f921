// Also runs under ThreadSanitizer: then a word that is read while it is taken away is a race.
#include "rounds.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "testing/reading_loop.h"

namespace dutperf::refdut {
namespace {

using testing::ReadingLoop;

constexpr uint32_t kPatience = 200'000;

TEST(Rounds, MemoryIsReadInNoRoundOnceTheWaitIsOver) {
  constexpr int kTimes = 30;
  Rounds rounds;
  std::vector<uint64_t> memory(ReadingLoop::kWords);
  ReadingLoop loop(rounds);
  for (int i = 0; i < kTimes; ++i) {
    loop.connect(memory);
    loop.disconnect();
    ASSERT_TRUE(rounds.await_end(kPatience));
    for (volatile uint64_t& word : memory) word = 0;  // volatile: else the compiler leaves it out
  }
  EXPECT_EQ(loop.absent(), 0);
}

// What another thread's wait comes to, without a nap.
bool over_elsewhere(const Rounds& rounds) {
  bool over = false;
  std::thread([&] { over = rounds.await_end(0); }).join();
  return over;
}

TEST(Rounds, NobodyWaitsWhereThereIsNoRound) {
  Rounds rounds;
  EXPECT_TRUE(rounds.await_end(0));
  std::optional<Rounds::Loop> loop(rounds);
  EXPECT_FALSE(over_elsewhere(rounds));
  loop.reset();
  EXPECT_TRUE(over_elsewhere(rounds));
}

TEST(Rounds, PatienceWithARoundThatDoesNotEndIsLimited) {
  Rounds rounds;
  Rounds::Loop loop(rounds);
  bool over = true;
  std::thread([&] { over = rounds.await_end(3); }).join();
  EXPECT_FALSE(over);
}

TEST(Rounds, TheWaitEndsWithTheRoundAlsoIfAnotherOneBegins) {
  Rounds rounds;
  Rounds::Loop loop(rounds);
  std::atomic<bool> done{false};
  bool over = false;
  std::thread other([&] {
    over = rounds.await_end(kPatience);
    done = true;
  });
  while (!done) {
    loop.next();
    std::this_thread::yield();
  }
  other.join();
  EXPECT_TRUE(over);
}

TEST(Rounds, TheLoopDoesNotWaitForItself) {
  Rounds rounds;
  Rounds::Loop loop(rounds);
  EXPECT_TRUE(rounds.await_end(0));
}

}  // namespace
}  // namespace dutperf::refdut
