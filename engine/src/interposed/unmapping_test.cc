#include "interposed/unmapping.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>

namespace dutperf::interposed {
namespace {

constexpr size_t kBytes = 4096;
int asked = 0;

TEST(Unmapping, IsTheKernelsWhoeverIsAskedBefore) {
  for (const BeforeUnmapping ask :
       {BeforeUnmapping{nullptr}, BeforeUnmapping{[]() noexcept { ++asked; }}}) {
    before_unmapping = ask;
    void* region = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(region, MAP_FAILED);
    const int before = asked;
    EXPECT_EQ(munmap(region, kBytes), 0);
    EXPECT_EQ(asked, before + (ask == nullptr ? 0 : 1));
    EXPECT_EQ(madvise(region, kBytes, MADV_NORMAL), -1) << "it is still there";
    EXPECT_EQ(munmap(static_cast<char*>(nullptr) + 1, kBytes), -1);
    EXPECT_EQ(errno, EINVAL);
  }
  before_unmapping = nullptr;
}

}  // namespace
}  // namespace dutperf::interposed
