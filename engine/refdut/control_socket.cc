#include "control_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dpdk/error.h"

namespace dutperf::refdut {
namespace {

constexpr size_t kMaxLineBytes = 64U << 20;
constexpr int kFlushMs = 1000;
constexpr int kBacklog = 8;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw dpdk::SetupError("cannot listen on " + path + ": " + what,
                         "give --control the path of a socket, up to 107 characters, in a "
                         "directory that is writable; no other device may use it");
}

// True when somebody listens there.
bool is_alive(const sockaddr_un& address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool alive = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return alive;
}

int listen_on(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) refuse(path, "the path is too long");
  std::copy(path.begin(), path.end(), address.sun_path);
  if (is_alive(address)) refuse(path, "somebody else does");
  unlink(path.c_str());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // Before it has a name, so that nobody else finds it open.
  if (fchmod(fd, S_IRUSR | S_IWUSR) != 0 ||
      bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd, kBacklog) != 0) {
    const int error = errno;
    close(fd);
    refuse(path, std::strerror(error));
  }
  return fd;
}

// Whoever changed the file's mode: the device is its owner's, and root's.
bool is_stranger(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  const bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  return !known || (peer.uid != geteuid() && peer.uid != 0);
}

constexpr char kStranger[] =
    R"({"error": {"message": "another user's device: it answers its owner and root only", )"
    R"("hint": "ask as the user that started it, or with sudo"}})"
    "\n";

}  // namespace

ControlSocket::ControlSocket(std::string path) : path_(std::move(path)), fd_(listen_on(path_)) {}

ControlSocket::~ControlSocket() {
  for (const Client& client : clients_) close(client.fd);
  close(fd_);
  unlink(path_.c_str());
}

void ControlSocket::poll(const Answer& answer) {
  accept_clients();
  for (Client& client : clients_) {
    receive(client);
    for (size_t end; (end = client.incoming.find('\n')) != std::string::npos;) {
      const std::string line = client.incoming.substr(0, end);
      client.incoming.erase(0, end + 1);
      client.outgoing += answer(line) + "\n";
    }
    send(client);
  }
  forget_those_gone();
}

void ControlSocket::flush() {
  for (Client& client : clients_) {
    for (int waited = 0; !client.gone && !client.outgoing.empty() && waited < kFlushMs; ++waited) {
      pollfd writable{client.fd, POLLOUT, 0};
      ::poll(&writable, 1, 1);
      send(client);
    }
  }
}

void ControlSocket::accept_clients() {
  for (int fd; (fd = accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
    if (is_stranger(fd)) {
      ::send(fd, kStranger, sizeof(kStranger) - 1, MSG_NOSIGNAL);
      close(fd);
      continue;
    }
    clients_.push_back({fd, {}, {}});
  }
}

void ControlSocket::forget_those_gone() {
  for (const Client& client : clients_) {
    if (client.gone) close(client.fd);
  }
  std::erase_if(clients_, [](const Client& client) { return client.gone; });
}

void ControlSocket::receive(Client& client) {
  char buffer[65536];
  ssize_t size;
  while ((size = recv(client.fd, buffer, sizeof(buffer), 0)) > 0) {
    client.incoming.append(buffer, static_cast<size_t>(size));
    if (client.incoming.size() > kMaxLineBytes) break;
  }
  const bool ended = size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR);
  client.gone = ended || client.incoming.size() > kMaxLineBytes;
}

void ControlSocket::send(Client& client) {
  size_t sent = 0;
  while (sent < client.outgoing.size()) {
    const ssize_t size = ::send(client.fd, client.outgoing.data() + sent,
                                client.outgoing.size() - sent, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      client.gone = client.gone || errno != EAGAIN;
      break;
    }
    sent += static_cast<size_t>(size);
  }
  client.outgoing.erase(0, sent);
}

}  // namespace dutperf::refdut
