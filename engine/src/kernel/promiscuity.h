// Makes a kernel interface take frames for whatever MAC, as long as this exists.
#pragma once

#include <string>

namespace dutperf::kernel {

// By a socket's membership, which ends with the process, too. An interface that refuses filters on.
class Promiscuity {
 public:
  explicit Promiscuity(const std::string& interface);
  ~Promiscuity();
  Promiscuity(const Promiscuity&) = delete;
  Promiscuity& operator=(const Promiscuity&) = delete;

 private:
  int fd_;
};

}  // namespace dutperf::kernel
