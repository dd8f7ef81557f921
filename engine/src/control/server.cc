#include "control/server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "dpdk/error.h"

namespace dutperf::control {
namespace {

constexpr int kIdleMs = 10;
constexpr size_t kMaxLineBytes = 64UL << 20;

struct Request {
  Json id;
  std::string method;
  Json params;
};

Request parse_request(const Json& message) {
  const bool well_formed = message.is_object() && message.value("jsonrpc", Json()) == "2.0" &&
                           message.contains("id") && message.contains("method") &&
                           message["method"].is_string();
  if (!well_formed) {
    throw ProtocolError(kInvalidRequest, "a request needs jsonrpc \"2.0\", id and method");
  }
  return {message["id"], message["method"].get<std::string>(),
          message.value("params", Json::object())};
}

void expect_none(const Json& params) { ObjectReader(params, "").finish(); }

// What the id of a broken request was, if that much can be told.
Json id_of(const Json& message) {
  return message.is_object() && message.contains("id") ? message["id"] : Json();
}

}  // namespace

Server::Server(int socket_fd, timeval write_timeout) : fd_(socket_fd) {
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &write_timeout, sizeof(write_timeout));
}

Server::~Server() { close(fd_); }

void Server::serve(Engine& engine) {
  while (!shutdown_requested_ && !client_gone_) {
    pollfd waiting{fd_, POLLIN, 0};
    if (poll(&waiting, 1, kIdleMs) > 0) receive();
    engine.idle();
    while (auto line = next_line()) {
      handle(*line, engine);
      if (shutdown_requested_) break;
    }
  }
}

void Server::refuse(const ProtocolError& error) {
  while (!client_gone_) {
    receive();
    if (const auto line = next_line()) {
      Json id;
      try {
        id = id_of(parse_text(*line));
      } catch (const ProtocolError&) {  // the answer has no id then
      }
      reply_error(id, error);
      return;
    }
  }
}

bool Server::wait(int extra_fd, int timeout_ms) {
  pollfd waiting[2] = {{fd_, POLLIN, 0}, {extra_fd, POLLIN, 0}};
  poll(waiting, extra_fd < 0 ? 1 : 2, timeout_ms);
  if (waiting[0].revents != 0) receive();
  while (const auto line = next_line()) handle_during_trial(*line);
  return !abort_requested_ && !client_gone_;
}

void Server::notify(const char* method, const Json& params) {
  send({{"jsonrpc", "2.0"}, {"method", method}, {"params", params}});
}

bool Server::receive() {
  char buffer[65536];
  const ssize_t size = recv(fd_, buffer, sizeof(buffer), 0);
  if (size < 0 && errno == EINTR) return true;
  if (size <= 0 || incoming_.size() + static_cast<size_t>(size) > kMaxLineBytes) {
    client_gone_ = true;
    return false;
  }
  incoming_.append(buffer, static_cast<size_t>(size));
  return true;
}

std::optional<std::string> Server::next_line() {
  const size_t end = incoming_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = incoming_.substr(0, end);
  incoming_.erase(0, end + 1);
  return line;
}

void Server::handle(const std::string& line, Engine& engine) {
  Json id;
  abort_requested_ = stop_requested_ = false;
  try {
    const Json message = parse_text(line);
    id = id_of(message);
    const Request request = parse_request(message);
    reply(id, call(request.method, request.params, engine));
  } catch (const ProtocolError& error) {
    reply_error(id, error);
  } catch (const dpdk::SetupError& error) {
    reply_error(id, ProtocolError(kEnvironmentError, error.what(), error.hint()));
  } catch (const std::exception& error) {
    reply_error(id, ProtocolError(kInternalError, error.what(), "this is a defect in the engine"));
  }
}

void Server::handle_during_trial(const std::string& line) {
  Json id;
  try {
    const Json message = parse_text(line);
    id = id_of(message);
    const Request request = parse_request(message);
    const bool stop = request.method == "trial.stop";
    if (!stop && request.method != "trial.abort") {
      throw ProtocolError(kStateError, request.method + ": the engine is busy",
                          "wait for the answer to the earlier call, or send trial.abort");
    }
    (stop ? stop_requested_ : abort_requested_) = true;
    reply(id, Json::object());
  } catch (const ProtocolError& error) {
    reply_error(id, error);
  }
}

Json Server::call(const std::string& method, const Json& params, Engine& engine) {
  if (method == "ports.open") return engine.open_ports(params, *this);
  if (method == "neighbours.set") return engine.set_neighbours(params, *this);
  if (method == "trial.run") return engine.run_trial(params, *this);
  if (method == "frames.preview") return engine.preview(params);
  if (method == "engine.hello" || method == "ports.status" || method == "trial.abort" ||
      method == "trial.stop" || method == "engine.shutdown" || method == "table.drop") {
    expect_none(params);
  }
  if (method == "engine.hello") return engine.hello();
  if (method == "ports.status") return engine.port_status();
  if (method == "table.drop") return engine.drop_table();
  // Nothing runs: nothing to end.
  if (method == "trial.abort" || method == "trial.stop") return Json::object();
  if (method == "engine.shutdown") {
    shutdown_requested_ = true;
    return Json::object();
  }
  throw ProtocolError(kUnknownMethod, "unknown method " + method);
}

void Server::reply(const Json& id, const Json& result) {
  send({{"jsonrpc", "2.0"}, {"id", id}, {"result", result}});
}

void Server::reply_error(const Json& id, const ProtocolError& error) {
  send({{"jsonrpc", "2.0"},
        {"id", id},
        {"error",
         {{"code", error.code()}, {"message", error.what()}, {"data", {{"hint", error.hint()}}}}}});
}

void Server::send(const Json& message) {
  // Invalid UTF-8 from a request may be echoed in an error: replace it, never throw.
  const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  size_t sent = 0;
  while (sent < line.size() && !client_gone_) {
    const ssize_t size = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      client_gone_ = true;
    } else {
      sent += static_cast<size_t>(size);
    }
  }
}

}  // namespace dutperf::control
