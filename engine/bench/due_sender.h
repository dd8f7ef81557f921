// What the benches share: trials that send one stream from the left, and a sender that is driven
// by hand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/sender.h"
#include "dataplane/trial_run.h"
#include "dpdk/port.h"
#include "timing/clock.h"

namespace dutperf::bench {

inline constexpr uint64_t kAllDueFps = 1'000'000'000'000;

// A field is enough for the ports that RFC 4814 wants.
inline constexpr vary::Variation kPorts[] = {{vary::Field::kSrcPort, 0, 16, 1024, 65535},
                                             {vary::Field::kDstPort, 0, 16, 1, 49151}};

inline dataplane::TrialSpec trial(uint64_t frames,
                                  std::initializer_list<std::span<const vary::Variation>> parts,
                                  vary::Mode mode = vary::Mode::kRandom) {
  dataplane::TrialSpec spec;
  spec.trial_id = 1;
  spec.lag_limit_ns = UINT64_MAX >> 20;
  dataplane::StreamSpec stream;
  stream.tag.trial = spec.trial_id;
  stream.layout.src_ip = *net::IpAddress::parse("198.18.0.2");
  stream.layout.dst_ip = *net::IpAddress::parse("198.19.0.2");
  for (const auto& part : parts) {
    stream.variations.list.insert(stream.variations.list.end(), part.begin(), part.end());
  }
  for (vary::Variation& variation : stream.variations.list) variation.mode = mode;
  dataplane::DirectionSpec& direction = spec.from[0];
  direction.frames = frames;
  direction.rate_fps = kAllDueFps;
  direction.streams.push_back(stream);
  return spec;
}

// A sender that starts at once; at kAllDueFps all its frames are due.
class DueSender {
 public:
  DueSender(const dataplane::TrialSpec& spec, dataplane::SideResources& side,
            const timing::TscClock& clock)
      : clock_(clock, 1, 1, 0),
        sender_(spec, dataplane::Side::kLeft, {}, side.sending({}), side.pools(0, 1), clock_,
                stalls_),
        all_due_(spec.from[0].rate_fps == kAllDueFps) {
    sender_.prepare();
    const uint64_t now = timing::read_tsc();
    start_tsc_ = all_due_ ? now - clock.hz() / 100 : now;
    sender_.start(start_tsc_);
  }

  dataplane::Sender& operator*() { return sender_; }
  bool done() const { return sent() == sender_.frames() || sender_.report().gave_up; }
  uint64_t sent() const { return sender_.report().sent; }
  uint64_t start_tsc() const { return start_tsc_; }

 private:
  dataplane::TrialClock clock_;
  measure::StallLog stalls_;
  dataplane::Sender sender_;
  bool all_due_;
  uint64_t start_tsc_ = 0;
};

inline std::unique_ptr<dpdk::Port> open_port(const char* name, dpdk::Driver driver,
                                             const dpdk::RingPair* rings) {
  dpdk::PortOptions options;
  options.name = name;
  options.driver = driver;
  return std::make_unique<dpdk::Port>(options, rings);
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace dutperf::bench
