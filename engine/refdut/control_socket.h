// A Unix socket on which clients send lines and get a line for each; never waits for anybody.
// It is its owner's: mode 0600, and clients of other users but root are told so and left.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dutperf::refdut {

class ControlSocket {
 public:
  using Answer = std::function<std::string(const std::string& line)>;

  // Takes the place of a socket that a dead process left. Throws dpdk::SetupError.
  explicit ControlSocket(std::string path);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  // Lets clients in, answers the lines that have come whole, goes on with answers that were too
  // long for a socket's buffer.
  void poll(const Answer& answer);
  // Before the end: waits up to a second until clients have their answers.
  void flush();

 private:
  struct Client {
    int fd;
    std::string incoming;
    std::string outgoing;
    bool gone = false;
  };

  void accept_clients();
  void forget_those_gone();
  static void receive(Client& client);
  static void send(Client& client);

  std::string path_;
  int fd_;
  std::vector<Client> clients_;
};

}  // namespace dutperf::refdut
