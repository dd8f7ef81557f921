#include "forwarding_rounds.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <span>

#include "testing/reading_loop.h"

namespace dutperf::refdut {
namespace {

using testing::ReadingLoop;

constexpr size_t kBytes = ReadingLoop::kWords * sizeof(uint64_t);

// With the C library's munmap() this program dies here of SIGSEGV.
TEST(ForwardingRounds, ALoopNeverReadsWhatIsUnmapped) {
  constexpr int kTimes = 30;
  ReadingLoop loop(forwarding_rounds());
  for (int i = 0; i < kTimes; ++i) {
    void* region =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(region, MAP_FAILED);
    loop.connect(std::span(static_cast<uint64_t*>(region), ReadingLoop::kWords));
    loop.disconnect();
    ASSERT_EQ(munmap(region, kBytes), 0);
  }
  EXPECT_EQ(loop.absent(), 0);
}

}  // namespace
}  // namespace dutperf::refdut
