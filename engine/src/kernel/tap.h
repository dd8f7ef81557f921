// A tap interface in another network namespace: what is written to it arrives there as if from a
// wire, and what is sent there can be read here. It is gone when it is closed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dutperf::kernel {

struct TapOptions {
  std::string network_namespace;  // path of the namespace's file
  std::string interface;
};

class Tap {
 public:
  // Makes the interface, with `mac`; nobody has set it up yet. Throws std::system_error.
  Tap(const TapOptions& options, const std::array<uint8_t, 6>& mac);
  ~Tap();
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  // False when the interface did not take the frame: it is down, or has no room.
  bool write(std::span<const uint8_t> frame) const;
  // The size of a frame that was sent there, without FCS; 0: there is none. Longer ones than
  // `frame` are cut.
  size_t read(std::span<uint8_t> frame) const;

 private:
  int fd_;
};

}  // namespace dutperf::kernel
