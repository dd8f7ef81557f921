// What dutperf-refdut was started with.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace dutperf::refdut {

enum class PortKind : uint8_t { kMemif, kAfPacket, kAfXdp };

struct PortArgument {
  PortKind kind = PortKind::kMemif;
  std::string device;  // memif's socket or the interface

  bool operator==(const PortArgument&) const = default;
};

struct Arguments {
  std::array<std::vector<PortArgument>, 2> ports;  // left, right: as many
  int cpu = 0;
  std::string config;
  std::string control;
  bool check = false;  // then there need not be ports
  uint32_t frames_held = 32768;
  uint16_t mtu = 1500;
  uint16_t queues = 1;  // of each port, both ways

  size_t pairs() const { return ports[0].size(); }
};

// What is wrong with the command line, in a line.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws UsageError. What getopt(3) finds it has told on standard error itself.
Arguments parse_arguments(int argc, char** argv);

}  // namespace dutperf::refdut
