// JSON-RPC 2.0 over one inherited Unix socket, one message a line.
//
// One thread serves everything: while a trial runs, the engine calls back into `wait`, which
// accepts trial.stop and trial.abort and refuses all else. When the client's end closes, the trial
// is aborted and `serve` returns: no engine outlives its campaign.
#pragma once

#include <sys/time.h>

#include <deque>
#include <optional>
#include <string>

#include "control/engine.h"
#include "control/monitor.h"

namespace dutperf::control {

class Server : public Monitor {
 public:
  // Takes over `socket_fd`. A client that reads nothing for `write_timeout` while there is no room
  // for more is as good as gone: nobody else would be served.
  explicit Server(int socket_fd, timeval write_timeout = {.tv_sec = 30, .tv_usec = 0});
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Until engine.shutdown or the client is gone.
  void serve(Engine& engine);

  // Answers the first request with `error`: the engine could not start.
  void refuse(const ProtocolError& error);

  bool wait(int extra_fd, int timeout_ms) override;
  bool stop_requested() const override { return stop_requested_; }
  void notify(const char* method, const Json& params) override;

 private:
  bool receive();  // reads what is there; false when the client is gone
  std::optional<std::string> next_line();
  void handle(const std::string& line, Engine& engine);
  void handle_during_trial(const std::string& line);
  Json call(const std::string& method, const Json& params, Engine& engine);
  void reply(const Json& id, const Json& result);
  void reply_error(const Json& id, const ProtocolError& error);
  void send(const Json& message);

  int fd_;
  std::string incoming_;
  bool client_gone_ = false;
  bool abort_requested_ = false;
  bool stop_requested_ = false;
  bool shutdown_requested_ = false;
};

}  // namespace dutperf::control
