// The program's munmap(), and who is asked before it; unmapping.cc says why.
#pragma once

#include <atomic>

namespace dutperf::interposed {

// Called by the thread that unmaps, and returns when nobody reads memory that a driver's thread may
// take away; none: munmap() asks nobody. Must not allocate.
using BeforeUnmapping = void (*)() noexcept;
extern std::atomic<BeforeUnmapping> before_unmapping;

}  // namespace dutperf::interposed
