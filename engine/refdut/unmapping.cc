#include "unmapping.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dutperf::refdut {

constinit Rounds forwarding_rounds;

namespace {

// Some seconds. A loop that is stuck for longer reads no port, or never will again.
constexpr uint32_t kPatienceNaps = 50'000;

}  // namespace
}  // namespace dutperf::refdut

// In place of the C library's, for DPDK's memif driver. When the peer goes, its control thread
// marks the port as unconnected and unmaps the peer's rings and buffers, and then forgets where
// they were; it neither waits for a receive or transmit call that is under way nor tells anybody
// beforehand. So the device died of a tester that was killed, if its loop was preempted in such a
// call. Everyone else who unmaps waits for less than a round, too. The program exports this.
extern "C" int munmap(void* address, size_t size) noexcept {
  dutperf::refdut::forwarding_rounds.await_end(dutperf::refdut::kPatienceNaps);
  return static_cast<int>(syscall(SYS_munmap, address, size));
}
