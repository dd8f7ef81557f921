#include <linux/if_packet.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// In place of the C library's, for DPDK's AF_PACKET driver, which makes every socket a member of a
// fanout group, also when it is the only one, and offers no option against it: each received frame
// is then hashed, checked for fragments and for room in the ring, a seventh of the work of the CPU
// that delivers it. Nobody can leave such a group; so nobody enters.
extern "C" int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  if (level == SOL_PACKET && name == PACKET_FANOUT) return 0;
  return static_cast<int>(syscall(SYS_setsockopt, fd, level, name, value, size));
}
