// A device, memory or privilege is missing: thrown by constructors on the control path only.
#pragma once

#include <stdexcept>
#include <string>

namespace dutperf::dpdk {

class SetupError : public std::runtime_error {
 public:
  SetupError(const std::string& message, std::string hint)
      : std::runtime_error(message), hint_(std::move(hint)) {}

  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

}  // namespace dutperf::dpdk
