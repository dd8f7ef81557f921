// What TCP connections cost: one core is both ends of each, over rings. What each end costs is told
// apart; so many would come to a core for each, but for what two cores' caches pass to each other.
//
// Both sides' loops as in a trial (dataplane/exchange.h), up to `opened`, `answered` or `closed`.
// SYNs are due, but leave only while few connections are on their way: none is lost. Rings lend
// buffers, so each answer is a copy of its headers; over a driver that copies it would be written
// in place.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "dataplane/exchange.h"
#include "dataplane/receiver.h"
#include "dpdk/port.h"
#include "due_sender.h"

namespace dutperf::bench {

class Connections {
 public:
  explicit Connections(const timing::TscClock& clock) : clock_(clock) {}

  // Call once a round.
  void round() {
    for (size_t i = 0; i < kEnds.size(); ++i) {
      const Cycles cycles = measure(kEnds[i]);
      for (size_t k = 0; k < cycles.size(); ++k) cycles_[i][k].push_back(cycles[k]);
    }
  }

  nlohmann::json result() const {
    nlohmann::json json;
    for (size_t i = 0; i < kEnds.size(); ++i) {
      const double cycles = median(cycles_[i][0]);
      const double initiator = median(cycles_[i][1]);
      const double responder = median(cycles_[i][2]);
      const auto hz = static_cast<double>(clock_.hz());
      json[kEnds[i].name] = {{"cycles_per_connection", cycles},
                             {"cycles_per_segment", cycles / kEnds[i].segments},
                             {"per_s", hz / cycles},
                             {"cycles_of_initiator", initiator},
                             {"cycles_of_responder", responder},
                             {"per_s_by_a_core_each", hz / std::max(initiator, responder)}};
    }
    return json;
  }

 private:
  struct End {
    const char* name;
    double segments;       // of a connection
    dataplane::Step last;  // of them
  };
  static constexpr std::array<End, 3> kEnds = {{{"opened", 3, dataplane::Step::kAck},
                                                {"answered", 5, dataplane::Step::kResponse},
                                                {"closed", 8, dataplane::Step::kLastAck}}};
  static constexpr uint64_t kConnections = 1 << 15;
  static constexpr uint64_t kAtOnce = 512;  // more would not fit between the ends
  static constexpr uint64_t kPatience = 1000;

  // Of a connection that was there to its end: both ends', the initiator's, the responder's.
  using Cycles = std::array<double, 3>;
  Cycles measure(const End& end) {
    dataplane::TrialSpec spec = trial(kConnections, {kPorts}, vary::Mode::kEnumerate);
    spec.exchange = dataplane::ExchangeSpec{.first = {.numbers = net::SequenceNumbers(7)},
                                            .last = end.last,
                                            .connections = kConnections};
    dataplane::StreamSpec& stream = spec.from[0].streams[0];
    stream.layout.tcp = spec.exchange->first;
    stream.layout.frame_size = net::segment_frame_size(4, *stream.layout.tcp);
    stream.frame_sizes = stream.received_frame_sizes = {stream.layout.frame_size};
    dataplane::Exchange exchanges[2] = {
        {*spec.exchange, true, left_.ports[0]->tx[0], *left_.pools(0, 2)[1], true},
        {*spec.exchange, false, right_.ports[0]->tx[0], *right_.pools(0, 2)[1], true}};
    right_.recorders(0)[0].reset(spec.record, kConnections, {});
    dataplane::Receiver left(spec, dataplane::Side::kLeft, {}, left_.receiving({}),
                             left_.recorders(0), left_.hand_over(1), clock_, {});
    dataplane::Receiver right(spec, dataplane::Side::kRight, {}, right_.receiving({}),
                              right_.recorders(0), right_.hand_over(1), clock_, {});
    left.answer_by(&exchanges[0]);
    right.answer_by(&exchanges[1]);
    DueSender sender(spec, left_, clock_);
    left.start(sender.start_tsc());
    right.start(sender.start_tsc());
    const auto whole = [&] {
      uint64_t count = 0;
      for (const dataplane::Exchange& each : exchanges) {
        count += each.report().received[static_cast<size_t>(end.last)];
      }
      return count;
    };
    uint64_t by_responder = 0;
    const uint64_t begin = timing::read_tsc();
    for (uint64_t idle = 0, done = 0; done < kConnections && idle < kPatience;) {
      const uint64_t before = done;
      if (!sender.done() && sender.sent() - done < kAtOnce) (*sender).step();
      const uint64_t turn = timing::read_tsc();
      right.step();
      by_responder += timing::read_tsc() - turn;
      left.step();
      done = whole();
      idle = done == before ? idle + 1 : 0;
    }
    const uint64_t cycles = timing::read_tsc() - begin;
    const auto count = static_cast<double>(whole());
    return {static_cast<double>(cycles) / count, static_cast<double>(cycles - by_responder) / count,
            static_cast<double>(by_responder) / count};
  }

  const timing::TscClock& clock_;
  dpdk::RingPair rings_{1'000'000};
  std::unique_ptr<dpdk::Port> left_port_ = open_port("left_tcp", dpdk::Driver::kRing, &rings_);
  std::unique_ptr<dpdk::Port> right_port_ = open_port("right_tcp", dpdk::Driver::kRing, &rings_);
  dataplane::SideResources left_{{left_port_.get()}, 2048};
  dataplane::SideResources right_{{right_port_.get()}, 2048};
  std::vector<double> cycles_[kEnds.size()][3];
};

}  // namespace dutperf::bench
