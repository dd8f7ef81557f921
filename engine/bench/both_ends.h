// What TCP connections and queries of DNS cost: one core is both ends of each, over rings. What
// each end costs is told apart; so many would come to a core for each, but for what two cores'
// caches pass to each other.
//
// Both sides' loops as in a trial (dataplane/exchange.h, dataplane/resolution.h): connections up to
// `opened`, `answered` or `closed`; queries that the authority itself answers, as in the self-test
// of RFC 8219 9.2.1. They are due, but leave only while few are on their way: none is lost. Rings
// lend buffers, so each answer is a copy of its headers; over a driver that copies it would be
// written in place.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dataplane/exchange.h"
#include "dataplane/receiver.h"
#include "dataplane/resolution.h"
#include "dpdk/port.h"
#include "due_sender.h"

namespace dutperf::bench {

// Of what was there to its end: both ends', the asking one's, the answering one's.
using CyclesOfEnds = std::array<double, 3>;

// A left side that asks and a right one that answers, driven by hand.
class BothEnds {
 public:
  BothEnds(const timing::TscClock& clock, const std::string& name)
      : clock_(clock),
        left_port_(open_port(("left_" + name).c_str(), dpdk::Driver::kRing, &rings_)),
        right_port_(open_port(("right_" + name).c_str(), dpdk::Driver::kRing, &rings_)) {}

  // `Answerer`: made of `what`, and whether it is the one that asks. `whole` counts, of both, what
  // was there to its end: `count` at most. `received_at`: the side whose recorder has the frames.
  template <typename Answerer, typename What, typename Whole>
  CyclesOfEnds drive(const dataplane::TrialSpec& spec, const What& what, uint64_t count,
                     dataplane::Side received_at, Whole whole) {
    Answerer ends[2] = {{what, true, left_.ports[0]->tx[0], *left_.pools(0, 2)[1], true},
                        {what, false, right_.ports[0]->tx[0], *right_.pools(0, 2)[1], true}};
    dataplane::SideResources& receiving = received_at == dataplane::Side::kLeft ? left_ : right_;
    receiving.recorders(0)[0].reset(spec.record, count, {});
    dataplane::Receiver left(spec, dataplane::Side::kLeft, {}, left_.receiving({}),
                             left_.recorders(0), left_.hand_over(1), clock_, {});
    dataplane::Receiver right(spec, dataplane::Side::kRight, {}, right_.receiving({}),
                              right_.recorders(0), right_.hand_over(1), clock_, {});
    left.answer_by(&ends[0]);
    right.answer_by(&ends[1]);
    DueSender sender(spec, left_, clock_);
    left.start(sender.start_tsc());
    right.start(sender.start_tsc());
    uint64_t by_answerer = 0;
    const uint64_t begin = timing::read_tsc();
    for (uint64_t idle = 0, done = 0; done < count && idle < kPatience;) {
      const uint64_t before = done;
      if (!sender.done() && sender.sent() - done < kAtOnce) (*sender).step();
      const uint64_t turn = timing::read_tsc();
      right.step();
      by_answerer += timing::read_tsc() - turn;
      left.step();
      done = whole(ends);
      idle = done == before ? idle + 1 : 0;
    }
    const uint64_t cycles = timing::read_tsc() - begin;
    const auto each = static_cast<double>(whole(ends));
    return {static_cast<double>(cycles) / each, static_cast<double>(cycles - by_answerer) / each,
            static_cast<double>(by_answerer) / each};
  }

  double hz() const { return static_cast<double>(clock_.hz()); }

 private:
  static constexpr uint64_t kAtOnce = 512;  // more would not fit between the ends
  static constexpr uint64_t kPatience = 1000;

  const timing::TscClock& clock_;
  dpdk::RingPair rings_{1'000'000};
  std::unique_ptr<dpdk::Port> left_port_;
  std::unique_ptr<dpdk::Port> right_port_;
  dataplane::SideResources left_{{left_port_.get()}, 2048};
  dataplane::SideResources right_{{right_port_.get()}, 2048};
};

// The rounds' medians.
class RoundsOfEnds {
 public:
  void add(const CyclesOfEnds& cycles) {
    for (size_t k = 0; k < cycles.size(); ++k) cycles_[k].push_back(cycles[k]);
  }
  CyclesOfEnds medians() const {
    return {median(cycles_[0]), median(cycles_[1]), median(cycles_[2])};
  }

 private:
  std::array<std::vector<double>, 3> cycles_;
};

class Connections {
 public:
  explicit Connections(const timing::TscClock& clock) : ends_(clock, "tcp") {}

  // Call once a round.
  void round() {
    for (size_t i = 0; i < kEnds.size(); ++i) rounds_[i].add(measure(kEnds[i]));
  }

  nlohmann::json result() const {
    nlohmann::json json;
    const double hz = ends_.hz();
    for (size_t i = 0; i < kEnds.size(); ++i) {
      const auto [both, initiator, responder] = rounds_[i].medians();
      json[kEnds[i].name] = {{"cycles_per_connection", both},
                             {"cycles_per_segment", both / kEnds[i].segments},
                             {"per_s", hz / both},
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

  CyclesOfEnds measure(const End& end) {
    dataplane::TrialSpec spec = trial(kConnections, {kPorts}, vary::Mode::kEnumerate);
    spec.exchange = dataplane::ExchangeSpec{.first = {.numbers = net::SequenceNumbers(7)},
                                            .last = end.last,
                                            .connections = kConnections};
    dataplane::StreamSpec& stream = spec.from[0].streams[0];
    stream.layout.tcp = spec.exchange->first;
    stream.layout.frame_size = net::segment_frame_size(4, *stream.layout.tcp);
    stream.frame_sizes = stream.received_frame_sizes = {stream.layout.frame_size};
    const auto whole = [&end](const dataplane::Exchange(&exchanges)[2]) {
      const auto last = static_cast<size_t>(end.last);
      return exchanges[0].report().received[last] + exchanges[1].report().received[last];
    };
    return ends_.drive<dataplane::Exchange>(spec, *spec.exchange, kConnections,
                                            dataplane::Side::kRight, whole);
  }

  BothEnds ends_;
  std::array<RoundsOfEnds, kEnds.size()> rounds_;
};

class Queries {
 public:
  explicit Queries(const timing::TscClock& clock) : ends_(clock, "dns") {}

  // Call once a round.
  void round() { rounds_.add(measure()); }

  nlohmann::json result() const {
    const auto [both, client, authority] = rounds_.medians();
    return {{"cycles_per_query", both},
            {"per_s", ends_.hz() / both},
            {"cycles_of_client", client},
            {"cycles_of_authority", authority},
            {"queries_per_s_by_a_core", ends_.hz() / client},
            {"answers_per_s_by_a_core", ends_.hz() / authority}};
  }

 private:
  static constexpr uint64_t kQueries = 1 << 15;

  CyclesOfEnds measure() {
    static constexpr vary::Variation kSourcePort[] = {{vary::Field::kSrcPort, 0, 16, 1024, 65535}};
    dataplane::TrialSpec spec = trial(kQueries, {kSourcePort});
    spec.resolution =
        dataplane::ResolutionSpec{.zone = {.trial = 1, .aaaa_percent = 100}, .queries = kQueries};
    dataplane::StreamSpec& stream = spec.from[0].streams[0];
    stream.layout.query = spec.resolution->zone;
    stream.layout.dst_port = net::kDnsPort;
    stream.layout.frame_size = net::query_frame_size(4);
    stream.frame_sizes = stream.received_frame_sizes = {stream.layout.frame_size};
    const auto whole = [](const dataplane::Resolution(&ends)[2]) {
      return ends[0].report().replies[static_cast<size_t>(net::DnsReply::kValid)];
    };
    return ends_.drive<dataplane::Resolution>(spec, *spec.resolution, kQueries,
                                              dataplane::Side::kLeft, whole);
  }

  BothEnds ends_;
  RoundsOfEnds rounds_;
};

}  // namespace dutperf::bench
