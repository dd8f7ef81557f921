// The loops with NICs that say when a frame came and send it when it is due, in buffers of DPDK's.
// The NICs are the test's: their clocks have rates of their own, and between them is a cable of a
// known delay, so what is measured is known to the clocks' doubt, whatever the loops' CPU does.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <memory>

#include "dataplane/accuracy.h"
#include "dataplane/receiver.h"
#include "dataplane/sender.h"
#include "dataplane/trial_run.h"
#include "dpdk/testing/memory.h"
#include "dpdk/testing/wire.h"
#include "timing/testing/drifting_clock.h"

namespace dutperf::dataplane {
namespace {

using dpdk::testing::came_field;
using dpdk::testing::due_field;
using timing::testing::DriftingClock;

constexpr uint64_t kCableNs = 40'000;
constexpr uint64_t kFrames = 2'000;

const timing::TscClock& tsc_clock() {
  static const timing::TscClock clock = timing::calibrate_tsc(20'000'000);
  return clock;
}

timing::PortClock::Read reader_of(const DriftingClock& clock) {
  return [&clock] {
    const uint64_t before_tsc = timing::read_tsc();
    const uint64_t ticks = clock.ticks_at(timing::read_tsc());
    return timing::ClockReading{before_tsc, ticks, timing::read_tsc()};
  };
}

// A port without a device: what it sends stands in one ring, what it receives comes from another.
struct RingPort {
  RingPort(const std::string& name, size_t number)
      : rings(number), port(options(name), &rings), side({&port}, 1518) {}

  static dpdk::PortOptions options(const std::string& name) {
    dpdk::PortOptions options;
    options.name = name;
    options.driver = dpdk::Driver::kRing;
    options.rx_descriptors = 256;
    options.tx_descriptors = 1024;
    return options;
  }

  dpdk::RingPair rings;
  dpdk::Port port;
  SideResources side;
};

// Both NICs and the cable from left to right.
class Nics {
 public:
  Nics(rte_ring* sent, rte_ring* received) : sent_(sent), received_(received) {}
  ~Nics() {
    for (const Frame& frame : on_the_way_) dpdk::free_frame(frame.mbuf);
  }

  void step() {
    dpdk::Mbuf* mbufs[64];
    const uint32_t count = dpdk::testing::take_from(sent_, mbufs, 64);
    for (uint32_t i = 0; i < count; ++i) {
      const auto due = due_field().ticks_in(mbufs[i]);
      const uint64_t left_tsc = due ? left.tsc_at(*due) : timing::read_tsc();
      left_at_tsc.push_back(left_tsc);
      on_the_way_.push_back({mbufs[i], left_tsc + tsc_clock().to_tsc(kCableNs)});
    }
    while (!on_the_way_.empty() && on_the_way_.front().comes_tsc <= timing::read_tsc()) {
      Frame frame = on_the_way_.front();
      on_the_way_.pop_front();
      if (in_two_buffers_every > 0 && (came_ + 1) % in_two_buffers_every == 0) {
        frame.mbuf = split(frame.mbuf);
      }
      stamp(frame);
      ASSERT_TRUE(dpdk::testing::put_into(received_, frame.mbuf));
    }
  }
  bool idle() const { return on_the_way_.empty() && dpdk::testing::is_empty(sent_); }

  DriftingClock left{.ticks_per_tsc = 0.41, .first_tsc = timing::read_tsc(), .off_ppm = -70};
  DriftingClock right{.ticks_per_tsc = 0.37, .first_tsc = timing::read_tsc(), .off_ppm = 90};
  std::vector<uint64_t> left_at_tsc;
  uint64_t in_two_buffers_every = 0;
  uint64_t without_stamp_every = 0;
  uint64_t from_the_future_every = 0;

 private:
  struct Frame {
    dpdk::Mbuf* mbuf;
    uint64_t comes_tsc;
  };

  // Into two buffers of a driver's own that are too small.
  static dpdk::Mbuf* split(dpdk::Mbuf* mbuf) {
    constexpr uint16_t kRest = 20;
    static rte_mempool* const pool =
        rte_pktmbuf_pool_create("too_small", 1023, 0, 0, 256, SOCKET_ID_ANY);
    dpdk::Mbuf* const first = rte_pktmbuf_copy(mbuf, pool, 0, mbuf->pkt_len - kRest);
    dpdk::Mbuf* const rest = rte_pktmbuf_copy(mbuf, pool, mbuf->pkt_len - kRest, kRest);
    dpdk::free_frame(mbuf);
    EXPECT_EQ(rte_pktmbuf_chain(first, rest), 0);
    return first;
  }

  void stamp(const Frame& frame) {
    ++came_;
    frame.mbuf->ol_flags &= ~came_field().flag;
    if (without_stamp_every > 0 && came_ % without_stamp_every == 0) return;
    const bool future = from_the_future_every > 0 && came_ % from_the_future_every == 0;
    const uint64_t later_tsc = future ? tsc_clock().to_tsc(1'000'000'000) : 0;
    came_field().put(frame.mbuf, right.ticks_at(frame.comes_tsc + later_tsc));
  }

  rte_ring* sent_;
  rte_ring* received_;
  std::deque<Frame> on_the_way_;
  uint64_t came_ = 0;
};

TrialSpec trial_from_left() {
  TrialSpec spec;
  spec.trial_id = 9;
  spec.lag_limit_ns = 1'000'000'000;
  spec.residual_wait_ns = 1'000'000;
  DirectionSpec& direction = spec.from[index_of(Side::kLeft)];
  direction.rate_fps = 100'000;
  direction.frames = kFrames;
  StreamSpec stream;
  stream.id = 1;
  stream.tag = {9, 1, 0};
  stream.layout.src_ip = *net::IpAddress::parse("198.18.0.2");
  stream.layout.dst_ip = *net::IpAddress::parse("198.19.0.2");
  direction.streams = {stream};
  return spec;
}

class NicTimes : public ::testing::Test {
 protected:
  NicTimes()
      : memory_(dpdk::testing::memory()),
        left_("left", 21),
        right_("right", 22),
        nics_(left_.rings.left_to_right()[0], right_.rings.left_to_right()[0]) {
    left_.side.ports[0]->times = times_of(nics_.left);
    right_.side.ports[0]->times = times_of(nics_.right);
    usleep(60'000);  // the clocks' rates are known from half a period on
  }

  static PortTimes times_of(const DriftingClock& clock) {
    const timing::PortClock::Read read = reader_of(clock);
    return {read, timing::PortClock::best_reading(read), came_field(), due_field()};
  }

  // `pause` before what came meanwhile is received; the sender starts so late.
  template <typename Pause>
  void run(Pause pause, uint64_t late_ns = 0) {
    TrialClock clock(tsc_clock(), 1, 1, spec_.residual_wait_ns);
    StreamRecorders& recorders = right_.side.recorders(0);
    for (measure::StreamRecorder& recorder : recorders) recorder.reset(spec_.record, kFrames, {});
    sender_ = std::make_unique<Sender>(spec_, Side::kLeft, Share{}, left_.side.sending({}),
                                       left_.side.pools(0, 1), clock, stalls_[0]);
    receiver_ = std::make_unique<Receiver>(spec_, Side::kRight, Share{}, right_.side.receiving({}),
                                           recorders, right_.side.hand_over(1), tsc_clock(),
                                           SenderStalls{&stalls_[0], &stalls_[1]});
    sender_->prepare();
    start_tsc_ = clock.meet_at_start() - tsc_clock().to_tsc(late_ns);
    sender_->start(start_tsc_);
    receiver_->start(start_tsc_);
    for (uint64_t step = 0; !clock.ended() || !nics_.idle(); ++step) {
      sender_->step();
      pause(step);
      nics_.step();
      receiver_->step();
    }
    receiver_->step();
    for (measure::StreamRecorder& recorder : recorders) recorder.finish(kFrames);
  }
  void run() {
    run([](uint64_t) {});
  }

  const measure::Delays& delays() { return right_.side.recorders(0)[0].delays(); }
  uint64_t shortest_ns() {
    const measure::AroundOrigin all = delays().around_origin();
    return all.origin - (all.below.count() > 0 ? all.below.max() : 0);
  }
  uint64_t longest_ns() {
    const measure::AroundOrigin all = delays().around_origin();
    return all.origin + all.above.max();
  }
  uint64_t received() { return right_.side.recorders(0)[0].tracker().received(); }
  // How well both clocks were known.
  uint64_t doubt_ns() const {
    return tsc_clock().to_ns(sender_->report().clock_worst_tsc +
                             receiver_->report().clock_worst_tsc) +
           10;
  }
  Accuracy accuracy() const {
    return accuracy_of(sender_->report(), receiver_->report(), tsc_clock()).value();
  }
  void expect_the_cables_delay() {
    EXPECT_EQ(received(), kFrames);
    if (doubt_ns() < kCableNs) {
      EXPECT_EQ(delays().negative(), 0U);
    }
    EXPECT_GE(shortest_ns() + doubt_ns(), kCableNs);
    EXPECT_LE(longest_ns(), kCableNs + doubt_ns());
  }

  const dpdk::Eal& memory_;
  TrialSpec spec_ = trial_from_left();
  RingPort left_;
  RingPort right_;
  Nics nics_;
  std::array<measure::StallLog, kSides> stalls_;
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<Receiver> receiver_;
  uint64_t start_tsc_ = 0;
};

TEST_F(NicTimes, GiveTheDelayOfTheCable) {
  run();
  expect_the_cables_delay();
  EXPECT_EQ(receiver_->report().stamped, kFrames);
  EXPECT_EQ(receiver_->report().unstamped, 0U);
}

// A preemption while a port was opened: delays may be wrong by more than the cable's, and say so.
TEST_F(NicTimes, AreDoubtedWhenAClockWasReadSlowly) {
  timing::ClockReading& opened = right_.side.ports[0]->times->opened;
  opened.before_tsc -= tsc_clock().to_tsc(8'000'000);
  run();
  expect_the_cables_delay();
  EXPECT_GE(accuracy().bound_ns, 4'000'000U);
}

TEST_F(NicTimes, AreNotThoseOfALoopThatWasAway) {
  run([](uint64_t step) {
    if (step % 16 == 8) usleep(3'000);
  });
  expect_the_cables_delay();
  // The tester was away for the frames all the same.
  EXPECT_GE(receiver_->report().gap_ns.max(), 3'000'000U);
  EXPECT_LE(accuracy().bound_ns, sender_->report().call_ns.max() + doubt_ns());
}

TEST_F(NicTimes, LetFramesLeaveAsTheScheduleSays) {
  run();
  ASSERT_EQ(nics_.left_at_tsc.size(), kFrames);
  const uint64_t off_tsc = sender_->report().clock_worst_tsc + 10;
  for (uint64_t k = 0; k < kFrames; ++k) {
    const uint64_t due_tsc = start_tsc_ + tsc_clock().to_tsc(k * 10'000);
    EXPECT_GE(nics_.left_at_tsc[k] + off_tsc, due_tsc) << k;
    EXPECT_LE(nics_.left_at_tsc[k], due_tsc + off_tsc) << k;
  }
}

TEST_F(NicTimes, SayThatFramesWereHandedOverTooLate) {
  run([](uint64_t) {}, 7'000'000);
  EXPECT_EQ(received(), kFrames);
  EXPECT_GE(sender_->report().lag_ns.max(), 6'000'000U);
  EXPECT_GE(accuracy().bound_ns, 6'000'000U);
}

TEST_F(NicTimes, OfFramesWithoutOneAreTheLoops) {
  nics_.without_stamp_every = 4;
  run();
  EXPECT_EQ(received(), kFrames);
  EXPECT_EQ(receiver_->report().unstamped, kFrames / 4);
  EXPECT_EQ(receiver_->report().stamped, kFrames - kFrames / 4);
  EXPECT_GE(shortest_ns() + doubt_ns(), kCableNs);
}

TEST_F(NicTimes, ThatAreStillToComeAreNotBelieved) {
  nics_.from_the_future_every = 10;
  run();
  EXPECT_EQ(received(), kFrames);
  EXPECT_EQ(receiver_->report().unstamped, kFrames / 10);
  EXPECT_GE(accuracy().bound_ns, receiver_->report().gap_ns.max());
  EXPECT_LT(longest_ns(), 1'000'000'000U);
}

TEST_F(NicTimes, OfFramesInSeveralBuffersAreNobodysAndTheTesterIsToBlame) {
  nics_.in_two_buffers_every = 10;
  run();
  EXPECT_EQ(received(), kFrames - kFrames / 10);
  EXPECT_EQ(receiver_->arrivals(0).in_several, kFrames / 10);
  EXPECT_EQ(receiver_->arrivals(0).damaged.total(), 0U);
  EXPECT_EQ(receiver_->arrivals(0).cut_short, 0U);
  right_.port.add_in_several(receiver_->arrivals(0).in_several);
  EXPECT_EQ(right_.port.counters().rx_nombuf, kFrames / 10);
}

TEST_F(NicTimes, OfOneSideAloneAreUsedToo) {
  left_.side.ports[0]->times.reset();
  run();
  EXPECT_EQ(received(), kFrames);
  EXPECT_EQ(receiver_->report().stamped, kFrames);
  EXPECT_EQ(sender_->report().clock_worst_tsc, 0U);
  EXPECT_GE(shortest_ns() + doubt_ns(), kCableNs);
}

}  // namespace
}  // namespace dutperf::dataplane
