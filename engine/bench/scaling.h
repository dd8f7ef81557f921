// Two figures of the loops beside their cost: how shares scale over cores, and how evenly frames
// leave.
//
//   cores     as many shares of a direction as cores, each with a core, queues and a pool of its
//             own, as in a trial (dataplane/trial_run.h): sending only; through rings back to the
//             same core; to another core, whose share they are of; and to another core that hands
//             them over. The last two differ by what it costs that nobody steers. And how long a
//             question to another CPU takes there and back, for two CPUs of a virtual machine may
//             be on two sockets
//   pacing    a sender at a tenth of one core's limit: frames leave one by one (the median burst
//             is 1) and on time (the lag)
//
// All are measured round after round; a round's ratio compares what was measured next to each
// other, and medians are reported, so that one preemption is not the result.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/receiver.h"
#include "dpdk/eal.h"
#include "due_sender.h"
#include "timing/synchrony.h"

namespace dutperf::bench {

// The CPUs that this process may use; `first` stands before all others.
inline std::vector<int> usable_cpus(int first) {
  cpu_set_t usable;
  std::vector<int> result = {first};
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) return result;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (cpu != first && CPU_ISSET(cpu, &usable)) result.push_back(cpu);
  }
  return result;
}

// What frames do that shares send.
enum class Way : uint8_t { kSend, kLoop, kAcross, kHandedOver };
inline constexpr std::array<std::pair<Way, const char*>, 4> kWays = {
    {{Way::kSend, "send"},
     {Way::kLoop, "loop"},
     {Way::kAcross, "across"},
     {Way::kHandedOver, "handed_over"}}};

// Some shares, a worker each, and their way.
class Shares {
 public:
  Shares(Way way, unsigned count, const timing::TscClock& clock)
      : name_(std::to_string(static_cast<int>(way)) + "_" + std::to_string(count)),
        shares_(count),
        receives_others_(way == Way::kAcross),
        clock_(clock),
        rings_(way == Way::kSend ? nullptr : make_rings(way, count)),
        from_(open("left_", rings_ ? dpdk::Driver::kRing : dpdk::Driver::kNull, "")),
        to_(rings_ ? open("right_", dpdk::Driver::kRing, way == Way::kLoop ? "" : "crossed")
                   : nullptr),
        sending_({from_.get()}, kFrameBytes) {
    if (to_) receiving_.emplace(std::vector<const dpdk::Port*>{to_.get()}, kFrameBytes);
    for (unsigned i = 0; i < count; ++i) sending_.pools(i, 1);
  }

  // Works for a slice of time: the first share on this thread, the others on `lcores`. Returns the
  // rate of each, in frames a second.
  std::vector<double> work(const std::vector<unsigned>& lcores) {
    dataplane::TrialSpec spec = trial(kEndless, {kPorts});
    spec.shares = shares_;
    spec.record.tracking_bytes = kTrackingBytes;
    dataplane::TrialClock clock(clock_, static_cast<uint32_t>(shares_),
                                static_cast<uint32_t>(shares_), 0);
    std::vector<measure::StallLog> stalls(shares_);
    ready_ = static_cast<int>(shares_);
    std::vector<std::unique_ptr<Worker>> workers;
    for (uint64_t i = 0; i < shares_; ++i) {
      const measure::Share share{i, shares_};
      workers.push_back(std::make_unique<Worker>(*this));
      workers[i]->sender = std::make_unique<dataplane::Sender>(
          spec, dataplane::Side::kLeft, share, sending_.sending(share), sending_.pools(i, 1), clock,
          stalls[i]);
      if (!receiving_) continue;
      // Crossed rings bring what the next share sent.
      const measure::Share received{receives_others_ ? (i + 1) % shares_ : i, shares_};
      receiving_->recorders(i)[0].reset(spec.record, share.frames_among(kEndless), {}, 1, shares_);
      workers[i]->receiver = std::make_unique<dataplane::Receiver>(
          spec, dataplane::Side::kRight, received, receiving_->receiving(share),
          receiving_->recorders(i), receiving_->hand_over(shares_), clock_,
          dataplane::SenderStalls{});
    }
    for (uint64_t i = 1; i < shares_; ++i) {
      dpdk::Eal::launch(lcores[i - 1], &Worker::run, workers[i].get());
    }
    Worker::run(workers[0].get());
    std::vector<double> fps;
    for (uint64_t i = 0; i < shares_; ++i) {
      if (i > 0) dpdk::Eal::wait(lcores[i - 1]);
      fps.push_back(workers[i]->fps);
    }
    drain();
    return fps;
  }

 private:
  // Shorter than what a scheduler gives to a process at once: most slices are undisturbed.
  static constexpr uint64_t kSliceNs = 2'000'000;
  static constexpr uint64_t kEndless = uint64_t{1} << 40;
  static constexpr uint64_t kTrackingBytes = 1 << 18;
  static constexpr uint32_t kFrameBytes = 2048;

  struct Worker {
    explicit Worker(Shares& shares) : all(shares) {}

    static int run(void* worker) {
      static_cast<Worker*>(worker)->work();
      return 0;
    }

    void work() {
      sender->prepare();
      all.ready_.fetch_sub(1);
      while (all.ready_.load() != 0) timing::cpu_relax();
      const uint64_t start = timing::read_tsc();
      const uint64_t end = start + all.clock_.to_tsc(kSliceNs);
      const uint64_t due_since = start - all.clock_.hz() / 100;
      sender->start(due_since);
      if (receiver) receiver->start(due_since);
      uint64_t now = start;
      for (; now < end; now = timing::read_tsc()) {
        sender->step();
        if (receiver) receiver->step();
      }
      const uint64_t frames = receiver ? receiver->published_received() : sender->report().sent;
      fps = static_cast<double>(frames) /
            (static_cast<double>(now - start) / static_cast<double>(all.clock_.hz()));
    }

    Shares& all;
    std::unique_ptr<dataplane::Sender> sender;
    std::unique_ptr<dataplane::Receiver> receiver;
    double fps = 0;
  };

  static std::unique_ptr<dpdk::RingPair> make_rings(Way way, unsigned count) {
    // The bench's own are number 0.
    return std::make_unique<dpdk::RingPair>(kWays.size() * count + static_cast<size_t>(way), count);
  }

  std::unique_ptr<dpdk::Port> open(const char* side, dpdk::Driver driver,
                                   const char* device) const {
    dpdk::PortOptions options;
    options.name = side + name_;
    options.driver = driver;
    options.device = device;
    options.rx_queues = options.tx_queues = static_cast<uint16_t>(shares_);
    options.rx_descriptors = 512;  // of ports that take no buffers for what they receive
    return std::make_unique<dpdk::Port>(options, rings_.get());
  }

  // What is on the way at the end of a slice is none of the next one's.
  void drain() {
    if (!to_) return;
    constexpr uint32_t kBurst = 32;
    dpdk::Mbuf* mbufs[kBurst];
    for (uint16_t queue = 0; queue < shares_; ++queue) {
      while (const uint32_t count = to_->rx().receive(queue, mbufs, kBurst)) {
        dpdk::free_frames(mbufs, count);
      }
    }
  }

  const std::string name_;
  const uint64_t shares_;
  const bool receives_others_;
  const timing::TscClock& clock_;
  const std::unique_ptr<dpdk::RingPair> rings_;
  const std::unique_ptr<dpdk::Port> from_, to_;
  dataplane::SideResources sending_;
  std::optional<dataplane::SideResources> receiving_;
  std::atomic<int> ready_ = 0;
};

class Scaling {
 public:
  // `cpus`: this thread's, then those of `lcores`. `counts`: of cores, rising, from 1 on.
  // REQUIRES: none is above the number of CPUs.
  Scaling(const timing::TscClock& clock, std::vector<int> cpus, std::vector<unsigned> lcores,
          const std::vector<unsigned>& counts)
      : clock_(clock), cpus_(std::move(cpus)), lcores_(std::move(lcores)) {
    for (const unsigned count : counts) {
      for (const auto& [way, name] : kWays) {
        if (way >= Way::kAcross && count == 1) continue;
        runs_.push_back({count,
                         name,
                         std::make_unique<Shares>(way, count, clock),
                         {},
                         {},
                         std::vector<std::vector<double>>(count)});
      }
    }
  }

  // Each number of cores, one after the other; then a paced sender. Call once a round.
  void round() {
    std::vector<std::vector<double>> slices(runs_.size());
    for (int i = 0; i < kSlices; ++i) {
      for (size_t run = 0; run < runs_.size(); ++run) {
        const std::vector<double> fps = runs_[run].shares->work(lcores_);
        slices[run].push_back(std::accumulate(fps.begin(), fps.end(), 0.0));
        for (size_t share = 0; share < fps.size(); ++share) {
          runs_[run].share_fps[share].push_back(fps[share]);
        }
      }
    }
    for (size_t i = 0; i < runs_.size(); ++i) {
      Run& run = runs_[i];
      run.fps.push_back(median(slices[i]));
      const Run& one = runs_[run.way == std::string("send") ? 0 : 1];
      run.ratios.push_back(run.fps.back() / one.fps.back());
    }
    if (!lcores_.empty()) ask();
    pace();
  }

  nlohmann::json cores() const {
    nlohmann::json result = nlohmann::json::array();
    for (const Run& run : runs_) {
      if (result.empty() || result.back()["cores"] != run.cores) {
        const auto cpus = cpus_.begin();
        result.push_back({{"cores", run.cores}, {"cpus", std::vector(cpus, cpus + run.cores)}});
      }
      const auto hz = static_cast<double>(clock_.hz());
      nlohmann::json by_share = nlohmann::json::array();
      for (const auto& fps : run.share_fps) by_share.push_back(hz / median(fps));
      const double fps = median(run.fps);
      result.back()[run.way] = {{"fps", fps},
                                {"cycles_per_frame", run.cores * hz / fps},
                                {"by_share_cycles_per_frame", by_share},
                                {"ratio", median(run.ratios)},
                                {"ratios", run.ratios}};
    }
    return result;
  }

  nlohmann::json there_and_back_cycles() const {
    return there_and_back_.empty() ? nlohmann::json() : nlohmann::json(median(there_and_back_));
  }

  nlohmann::json pacing() const {
    return {{"rate_fps", median(rates_)},     {"burst_p50_frames", median(burst_p50_)},
            {"lag_p50_ns", median(lag_p50_)}, {"lag_p99_ns", median(lag_p99_)},
            {"lag_max_ns", median(lag_max_)}, {"rounds_lag_p99_ns", lag_p99_},
            {"rounds_lag_max_ns", lag_max_},  {"rounds_burst_p50_frames", burst_p50_}};
  }

 private:
  static constexpr int kSlices = 11;
  static constexpr uint64_t kPacedNs = 50'000'000;
  static constexpr uint64_t kPacedShare = 10;

  struct Run {
    unsigned cores;
    std::string way;
    std::unique_ptr<Shares> shares;
    std::vector<double> fps, ratios;             // of each round
    std::vector<std::vector<double>> share_fps;  // of each slice
  };

  // What is left open of the other CPU's time is how long the fastest question took.
  void ask() {
    constexpr int kPatienceShare = 10;  // of a second
    timing::SynchronyProbe probe;
    Question question{&probe, clock_.hz() / kPatienceShare};
    dpdk::Eal::launch(lcores_[0], &Question::answer, &question);
    const timing::OffsetBounds bounds = probe.ask(question.patience_tsc);
    dpdk::Eal::wait(lcores_[0]);
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
    const auto rate_fps = static_cast<uint64_t>(median(runs_[0].fps)) / kPacedShare;
    dataplane::TrialSpec spec = trial(rate_fps * kPacedNs / 1'000'000'000, {kPorts});
    spec.from[0].rate_fps = rate_fps;
    DueSender sender(spec, paced_side_, clock_);
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

  const timing::TscClock& clock_;
  const std::vector<int> cpus_;
  const std::vector<unsigned> lcores_;
  std::vector<Run> runs_;
  const std::unique_ptr<dpdk::Port> paced_ = open_port("paced", dpdk::Driver::kNull, nullptr);
  dataplane::SideResources paced_side_{{paced_.get()}, 2048};
  std::vector<double> there_and_back_;
  std::vector<double> rates_, burst_p50_, lag_p50_, lag_p99_, lag_max_;
};

}  // namespace dutperf::bench
