#include "kernel/tap.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace dutperf::kernel {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

int open_or_refuse(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) refuse(path);
  return fd;
}

// This thread is in another network namespace for as long as it lives.
class Visit {
 public:
  explicit Visit(const std::string& path) : own_(open_or_refuse("/proc/thread-self/ns/net", 0)) {
    const int other = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool entered = other >= 0 && setns(other, CLONE_NEWNET) == 0;
    const int error = errno;
    if (other >= 0) close(other);
    if (entered) return;
    close(own_);
    errno = error;
    refuse("cannot enter network namespace " + path);
  }
  ~Visit() {
    // Nothing could go on in a namespace that nobody meant.
    if (setns(own_, CLONE_NEWNET) != 0) std::abort();
    close(own_);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  int own_;
};

// The interface belongs to the namespace in which the device was opened.
int open_in(const std::string& network_namespace) {
  const Visit visit(network_namespace);
  return open_or_refuse("/dev/net/tun", O_RDWR | O_NONBLOCK);
}

}  // namespace

Tap::Tap(const TapOptions& options, const std::array<uint8_t, 6>& mac)
    : fd_(open_in(options.network_namespace)) {
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  options.interface.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
  bool made = ioctl(fd_, TUNSETIFF, &request) == 0;
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  std::copy(mac.begin(), mac.end(), request.ifr_hwaddr.sa_data);
  made = made && ioctl(fd_, SIOCSIFHWADDR, &request) == 0;
  if (made) return;
  const int error = errno;
  close(fd_);
  errno = error;
  refuse("cannot make tap " + options.interface);
}

Tap::~Tap() { close(fd_); }

bool Tap::write(std::span<const uint8_t> frame) const {
  return ::write(fd_, frame.data(), frame.size()) == static_cast<ssize_t>(frame.size());
}

size_t Tap::read(std::span<uint8_t> frame) const {
  const ssize_t size = ::read(fd_, frame.data(), frame.size());
  return size > 0 ? static_cast<size_t>(size) : 0;
}

}  // namespace dutperf::kernel
