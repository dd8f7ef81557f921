// rte_intr_fd_get(), which every DPDK has had since 22.03.
#define ALLOW_EXPERIMENTAL_API

#include "interposed/memif_sockets.h"

#include <dlfcn.h>
#include <rte_alarm.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <mutex>
#include <vector>

namespace dutperf::interposed {
namespace {

struct Registered {
  const rte_intr_handle* handle;
  rte_intr_callback_fn callback;
  void* argument;
  int fd;
};

// Written by the thread that opens ports, and by the interrupt thread when a client connects.
std::mutex mutex;
std::vector<Registered> sockets;

// Of a UNIX socket, also of one that was accepted: where the server listens. Empty: it is none.
std::string path_of(int fd) {
  sockaddr_un name{};
  socklen_t size = sizeof(name);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return "";
  if (name.sun_family != AF_UNIX || size <= offsetof(sockaddr_un, sun_path)) return "";
  return name.sun_path;
}

bool listens(int fd) {
  int value = 0;
  socklen_t size = sizeof(value);
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value != 0;
}

// The number of a socket that was closed may be another one's by now.
void remember(const Registered& socket) {
  const std::lock_guard lock(mutex);
  std::erase_if(sockets, [&](const Registered& old) {
    return old.fd == socket.fd || path_of(old.fd).empty();
  });
  if (!path_of(socket.fd).empty()) sockets.push_back(socket);
}

bool is_known(int fd) {
  const std::lock_guard lock(mutex);
  return std::ranges::any_of(sockets, [&](const Registered& one) { return one.fd == fd; });
}

// Nothing that comes at these any more is served; which they are.
std::vector<int> forget(const std::string& path, bool listening) {
  std::vector<int> forgotten;
  const std::lock_guard lock(mutex);
  std::erase_if(sockets, [&](const Registered& one) {
    if (path_of(one.fd) != path || listens(one.fd) != listening) return false;
    if (rte_intr_callback_unregister(one.handle, one.callback, one.argument) > 0) {
      forgotten.push_back(one.fd);
    }
    return true;
  });
  return forgotten;
}

struct Closing {
  uint16_t port;
  const std::string& path;
  std::promise<void> done;
};

void close_here(void* argument) {
  Closing& closing = *static_cast<Closing*>(argument);
  auto left = forget(closing.path, true);
  rte_eth_dev_stop(closing.port);  // the client that has the port is told
  const auto clients = forget(closing.path, false);
  left.insert(left.end(), clients.begin(), clients.end());
  rte_eth_dev_close(closing.port);
  // Who waits for an answer at one of these would wait for ever.
  for (const int fd : left) {
    if (path_of(fd) == closing.path) ::close(fd);
  }
  closing.done.set_value();
}

}  // namespace

void close_memif_server(uint16_t port, const std::string& path) noexcept {
  Closing closing{port, path, {}};
  auto done = closing.done.get_future();
  if (rte_eal_alarm_set(1, close_here, &closing) != 0) close_here(&closing);
  done.wait();
}

}  // namespace dutperf::interposed

// In place of the C library's.
extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  static auto* const original = reinterpret_cast<decltype(sendmsg)*>(dlsym(RTLD_NEXT, "sendmsg"));
  const ssize_t sent = original(fd, message, flags);
  const bool hung_up = sent < 0 && (errno == EPIPE || errno == ECONNRESET);
  if (!hung_up || !dutperf::interposed::is_known(fd)) return sent;
  size_t size = 0;
  for (size_t i = 0; i < message->msg_iovlen; ++i) size += message->msg_iov[i].iov_len;
  return static_cast<ssize_t>(size);
}

// In place of DPDK's, for its memif driver.
extern "C" int rte_intr_callback_register(const rte_intr_handle* handle,
                                          rte_intr_callback_fn callback, void* argument) {
  static auto* const original = reinterpret_cast<decltype(rte_intr_callback_register)*>(
      dlsym(RTLD_NEXT, "rte_intr_callback_register"));
  const int error = original(handle, callback, argument);
  if (error == 0) {
    dutperf::interposed::remember({handle, callback, argument, rte_intr_fd_get(handle)});
  }
  return error;
}
