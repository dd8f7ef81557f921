#include "control/slow_path.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "dpdk/error.h"

namespace dutperf::control {
namespace {

// The longest IP packet that a port can have, in Ethernet and VLAN tags.
constexpr size_t kLeastBytes = 60;  // of an Ethernet frame without FCS
constexpr size_t kMostBytes = 9702 + sizeof(net::EthernetHeader) + net::VlanTags::kMaxBytes;

kernel::TapOptions tap_of(const dpdk::Port& port) { return port.options().tap.value(); }

}  // namespace

SlowPath::SlowPath(dpdk::Port& port, dataplane::PortResources& resources) try
    : port_(port), resources_(resources), tap_(tap_of(port), port.mac().bytes) {
  resources.unclaimed.emplace("unclaimed_" + port.options().name, dataplane::kUnclaimedFrames);
} catch (const std::system_error& error) {
  throw dpdk::SetupError("port " + port.options().name + ": its slow path: " + error.what(),
                         "it needs root, and a kernel with CONFIG_TUN (/dev/net/tun)");
}

void SlowPath::give(const uint8_t* frame, size_t size) {
  if (tap_.write({frame, size})) {
    ++counts_.to_tap;
  } else {
    ++counts_.lost;
  }
}

template <typename Send>
void SlowPath::each_waiting(Send&& send) {
  std::array<uint8_t, kMostBytes> frame;
  const std::span<uint8_t> room(frame.data(), kMostBytes - net::VlanTags::kMaxBytes);
  for (size_t i = 0; i < dataplane::kUnclaimedFrames; ++i) {
    size_t size = tap_.read(room);
    if (size == 0) return;
    if (size < kLeastBytes) std::fill(frame.begin() + size, frame.begin() + kLeastBytes, 0);
    size = resources_.own.vlan.put_in(frame.data(), std::max(size, kLeastBytes));
    if (send(frame.data(), size)) {
      ++counts_.from_tap;
    } else {
      ++counts_.lost;
    }
  }
}

void SlowPath::send_waiting() {
  each_waiting([this](const uint8_t* frame, size_t size) { return port_.send_copy(frame, size); });
}

void SlowPath::carry() {
  dpdk::Mbuf* mbufs[32];
  while (const uint32_t count = resources_.unclaimed->take(mbufs, 32)) {
    for (uint32_t i = 0; i < count; ++i) give(dpdk::frame_of(mbufs[i]), dpdk::size_of(mbufs[i]));
    dpdk::free_frames(mbufs, count);
  }
  each_waiting([this](const uint8_t* frame, size_t size) {
    dpdk::Mbuf* const mbuf = port_.copy(frame, size);
    if (mbuf == nullptr || resources_.replies.put(mbuf)) return mbuf != nullptr;
    dpdk::free_frame(mbuf);
    return false;
  });
}

SlowPath::Counts SlowPath::take_counts() { return std::exchange(counts_, {}); }

}  // namespace dutperf::control
