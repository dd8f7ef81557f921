// Two figures of the sender beside its cost: how two workers scale, and how evenly frames leave.
//
//   workers   the same sender on one CPU, then on two at once; each has a port, a queue and a pool
//             of its own, as workers of a trial have; and how long a question to the other CPU
//             takes there and back, for a virtual machine's two may be on two sockets
//   pacing    a sender at a tenth of one worker's limit: frames leave one by one (the median burst
//             is 1) and on time (the lag)
//
// Both are measured round after round; a round's ratio compares what was measured next to each
// other, and medians are reported, so that one preemption is not the result.
#pragma once

#include <sched.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>

#include "dpdk/eal.h"
#include "due_sender.h"
#include "timing/synchrony.h"

namespace dutperf::bench {

// Another CPU that this process may use.
inline std::optional<int> second_cpu(int cpu) {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) return std::nullopt;
  for (int other = 0; other < CPU_SETSIZE; ++other) {
    if (other != cpu && CPU_ISSET(other, &usable)) return other;
  }
  return std::nullopt;
}

class Scaling {
 public:
  Scaling(const timing::TscClock& clock, std::optional<unsigned> second_lcore)
      : clock_(clock), second_lcore_(second_lcore) {}

  // One worker alone, then both; then a paced sender. Call once a round.
  void round() {
    std::vector<double> one;
    std::vector<double> two;
    for (int i = 0; i < kSlices; ++i) {
      one.push_back(together(false));
      if (second_lcore_) two.push_back(together(true));
    }
    one_.push_back(median(one));
    if (second_lcore_) {
      two_.push_back(median(two));
      ratios_.push_back(two_.back() / one_.back());
      ask();
    }
    pace();
  }

  nlohmann::json workers() const {
    nlohmann::json result = {{"one", rate(one_, 1)}};
    if (!second_lcore_) {
      result["skipped"] = "only one CPU is available";
      return result;
    }
    result["two"] = rate(two_, 2);
    result["ratio"] = median(ratios_);
    result["ratios"] = ratios_;
    result["there_and_back_cycles"] = median(there_and_back_);
    return result;
  }

  nlohmann::json pacing() const {
    return {{"rate_fps", median(rates_)},     {"burst_p50_frames", median(burst_p50_)},
            {"lag_p50_ns", median(lag_p50_)}, {"lag_p99_ns", median(lag_p99_)},
            {"lag_max_ns", median(lag_max_)}, {"rounds_lag_p99_ns", lag_p99_},
            {"rounds_lag_max_ns", lag_max_},  {"rounds_burst_p50_frames", burst_p50_}};
  }

 private:
  // Shorter than what a scheduler gives to a process at once: most slices are undisturbed.
  static constexpr uint64_t kSliceNs = 2'000'000;
  static constexpr int kSlices = 11;
  static constexpr uint64_t kPacedNs = 50'000'000;
  static constexpr uint64_t kPacedShare = 10;
  static constexpr uint64_t kEndless = uint64_t{1} << 40;

  // One worker's share: sends until the deadline.
  struct Worker {
    Worker(const char* name, const timing::TscClock& tsc)
        : port(open_port(name, dpdk::Driver::kNull, nullptr)),
          side({port.get()}, 2048),
          clock(tsc) {}

    static int run(void* worker) {
      static_cast<Worker*>(worker)->send();
      return 0;
    }

    void send() {
      DueSender sender(trial(kEndless, {kPorts}), side, clock);
      ready.fetch_sub(1);
      while (ready.load() != 0) timing::cpu_relax();
      const uint64_t start = timing::read_tsc();
      const uint64_t end = start + clock.to_tsc(kSliceNs);
      uint64_t now = start;
      for (; now < end; now = timing::read_tsc()) (*sender).step();
      fps = static_cast<double>(sender.sent()) /
            (static_cast<double>(now - start) / static_cast<double>(clock.hz()));
    }

    std::unique_ptr<dpdk::Port> port;
    dataplane::SideResources side;
    const timing::TscClock& clock;
    double fps = 0;
    static inline std::atomic<int> ready = 0;
  };

  double together(bool both) {
    Worker::ready = both ? 2 : 1;
    if (both) dpdk::Eal::launch(*second_lcore_, &Worker::run, &workers_[1]);
    workers_[0].send();
    if (!both) return workers_[0].fps;
    dpdk::Eal::wait(*second_lcore_);
    return workers_[0].fps + workers_[1].fps;
  }

  // What is left open of the other CPU's time is how long the fastest question took.
  void ask() {
    constexpr int kPatienceShare = 10;  // of a second
    timing::SynchronyProbe probe;
    Question question{&probe, clock_.hz() / kPatienceShare};
    dpdk::Eal::launch(*second_lcore_, &Question::answer, &question);
    const timing::OffsetBounds bounds = probe.ask(question.patience_tsc);
    dpdk::Eal::wait(*second_lcore_);
    there_and_back_.push_back(static_cast<double>(bounds.highest - bounds.lowest));
  }

  struct Question {
    static int answer(void* question) {
      const auto& self = *static_cast<Question*>(question);
      self.probe->answer(self.patience_tsc);
      return 0;
    }

    timing::SynchronyProbe* probe;
    uint64_t patience_tsc;
  };

  void pace() {
    const auto rate_fps = static_cast<uint64_t>(median(one_)) / kPacedShare;
    dataplane::TrialSpec spec = trial(rate_fps * kPacedNs / 1'000'000'000, {kPorts});
    spec.from[0].rate_fps = rate_fps;
    DueSender sender(spec, workers_[0].side, clock_);
    while (!sender.done()) (*sender).step();
    const dataplane::SendReport& report = (*sender).report();
    rates_.push_back(static_cast<double>(rate_fps));
    burst_p50_.push_back(percentile(report.burst_frames, 50));
    lag_p50_.push_back(percentile(report.lag_ns, 50));
    lag_p99_.push_back(percentile(report.lag_ns, 99));
    lag_max_.push_back(static_cast<double>(report.lag_ns.max()));
  }

  // The upper end of the bucket that holds it: never less than the truth.
  static double percentile(const measure::Histogram& histogram, uint64_t percent) {
    const uint64_t rank = (histogram.count() * percent + 99) / 100;
    uint64_t seen = 0;
    for (const measure::Histogram::Bucket& bucket : histogram.buckets()) {
      seen += bucket.count;
      if (seen >= rank) return static_cast<double>(bucket.highest);
    }
    return static_cast<double>(histogram.max());
  }

  nlohmann::json rate(const std::vector<double>& fps, int workers) const {
    const double value = median(fps);
    return {{"fps", value},
            {"cycles_per_frame", workers * static_cast<double>(clock_.hz()) / value}};
  }

  const timing::TscClock& clock_;
  const std::optional<unsigned> second_lcore_;
  Worker workers_[2] = {{"worker_0", clock_}, {"worker_1", clock_}};
  std::vector<double> one_, two_, ratios_, there_and_back_;
  std::vector<double> rates_, burst_p50_, lag_p50_, lag_p99_, lag_max_;
};

}  // namespace dutperf::bench
