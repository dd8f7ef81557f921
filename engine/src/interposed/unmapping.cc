#include "interposed/unmapping.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dutperf::interposed {

constinit std::atomic<BeforeUnmapping> before_unmapping{nullptr};

}  // namespace dutperf::interposed

// In place of the C library's, for DPDK's memif driver. When the peer goes, its control thread
// marks the port as unconnected and unmaps the peer's rings and buffers, and then forgets where
// they were; it neither waits for a receive or transmit call that is under way nor tells anybody
// beforehand. So a program died of its peer, if it was in such a call. Programs that open memif
// ports export this. See docs/adr/0016.
extern "C" int munmap(void* address, size_t size) noexcept {
  const auto ask = dutperf::interposed::before_unmapping.load(std::memory_order_acquire);
  if (ask != nullptr) ask();
  return static_cast<int>(syscall(SYS_munmap, address, size));
}
