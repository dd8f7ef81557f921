// How long-running work on the control thread stays reachable.
#pragma once

#include <nlohmann/json.hpp>

namespace dutperf::control {

class Monitor {
 public:
  virtual ~Monitor() = default;

  // Sleeps up to `timeout_ms`, or until `extra_fd` (-1: none) is readable, serving the control
  // socket meanwhile. False once the trial shall end: trial.abort arrived or the socket closed.
  virtual bool wait(int extra_fd, int timeout_ms) = 0;

  // Whether trial.stop has arrived: the trial shall send no more, and be accounted for as ever.
  virtual bool stop_requested() const = 0;

  // Sends a notification.
  virtual void notify(const char* method, const nlohmann::json& params) = 0;
};

}  // namespace dutperf::control
