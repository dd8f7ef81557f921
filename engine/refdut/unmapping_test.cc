#include "unmapping.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <span>

#include "testing/reading_loop.h"

namespace dutperf::refdut {
namespace {

using testing::ReadingLoop;

constexpr size_t kBytes = ReadingLoop::kWords * sizeof(uint64_t);

// With the C library's munmap() this program dies here of SIGSEGV.
TEST(Unmapping, ALoopNeverReadsWhatIsUnmapped) {
  constexpr int kTimes = 30;
  ReadingLoop loop(forwarding_rounds);
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

TEST(Unmapping, IsTheKernelsOtherwise) {
  void* region = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(region, MAP_FAILED);
  EXPECT_EQ(munmap(region, kBytes), 0);
  EXPECT_EQ(madvise(region, kBytes, MADV_NORMAL), -1) << "it is still there";
  EXPECT_EQ(munmap(static_cast<char*>(nullptr) + 1, kBytes), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace dutperf::refdut
