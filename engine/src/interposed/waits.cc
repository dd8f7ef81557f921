#include "interposed/waits.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

// In place of the C library's, whose declaration says that `sockets` is only written to. DPDK's
// AF_PACKET driver refuses no frame when its ring is full: it polls the socket for a place, inside
// of the send call.
extern "C" int counting_poll(pollfd* sockets, nfds_t count, int timeout_ms) asm("poll");
extern "C" int counting_poll(pollfd* sockets, nfds_t count, int timeout_ms) {
  if (count == 1 && (sockets->events & POLLOUT) != 0) ++dutperf::interposed::waits_for_room;
  return static_cast<int>(syscall(SYS_poll, sockets, count, timeout_ms));
}

namespace dutperf::interposed {

constinit thread_local uint32_t waits_for_room = 0;

}  // namespace dutperf::interposed
