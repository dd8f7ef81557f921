#include "timing/port_clock.h"

#include <gtest/gtest.h>

#include <random>

#include "timing/testing/drifting_clock.h"

namespace dutperf::timing {
namespace {

using testing::DriftingClock;

const TscClock kTsc(2'500'000'000);
constexpr uint64_t kSecond = 2'500'000'000;
constexpr uint64_t kMs = kSecond / 1000;

// A time at which somebody looks at a clock that needs a microsecond to be read.
class World {
 public:
  explicit World(DriftingClock clock) : clock_(clock) {}

  PortClock::Read reader() {
    return [this] {
      const ClockReading reading = clock_.read_at(now_tsc, window_tsc);
      now_tsc = reading.after_tsc;
      ++readings;
      return reading;
    };
  }
  ClockReading now() { return reader()(); }
  // How far the clock's own time of `tsc` is off, as the port clock tells it.
  uint64_t off_at(const PortClock& clock, uint64_t tsc) const {
    const auto off = static_cast<int64_t>(clock.to_tsc(clock_.ticks_at(tsc)) - tsc);
    return static_cast<uint64_t>(off < 0 ? -off : off);
  }
  const DriftingClock& clock() const { return clock_; }

  uint64_t now_tsc = kSecond;
  uint64_t window_tsc = 2500;
  uint64_t readings = 0;

 private:
  DriftingClock clock_;
};

DriftingClock steady() { return {.ticks_per_tsc = 0.4, .first_tsc = kSecond, .off_ppm = 80}; }

DriftingClock wandering() {
  DriftingClock clock = steady();
  clock.wander_ppm = 5;
  clock.wander_tsc = 3.0 * kSecond;
  return clock;
}

TEST(PortClock, TellsTheTimesOfAClockOfAnotherRate) {
  World world(steady());
  const ClockReading opened = world.now();
  world.now_tsc += 500 * kMs;
  const PortClock clock(world.reader(), opened, kTsc);
  for (uint64_t ms = 0; ms < 100; ++ms) {
    const uint64_t tsc = world.now_tsc + ms * kMs;
    EXPECT_LE(world.off_at(clock, tsc), 5) << ms;
    EXPECT_LE(clock.to_tsc(clock.to_ticks(tsc)) - tsc + 5, 10) << ms;
  }
  // A frame may have come before the clock was read.
  EXPECT_LE(world.off_at(clock, opened.after_tsc), 5);
}

TEST(PortClock, FollowsAClockThatWandersAndTellsHowFarItWasOff) {
  World world(wandering());
  const ClockReading opened = world.now();
  world.now_tsc += 300 * kMs;
  PortClock clock(world.reader(), opened, kTsc);
  uint64_t farthest = 0;
  for (uint64_t step = 0; step < 30'000; ++step) {
    world.now_tsc += kMs / 5;
    farthest = std::max(farthest, world.off_at(clock, world.now_tsc));
    clock.read_if_due(world.now_tsc);
  }
  EXPECT_LE(farthest, clock.worst_tsc());
  EXPECT_LE(clock.worst_tsc(), kTsc.to_tsc(3'000));
  // Without reading again it would have been far away.
  const double wandered_tsc = 5e-6 * kSecond * 3 / (2 * M_PI);
  EXPECT_LT(static_cast<double>(clock.worst_tsc()), wandered_tsc / 2);
}

TEST(PortClock, IsReadOftenAtFirstAndThenEachPeriod) {
  World world(steady());
  const ClockReading opened = world.now();
  world.now_tsc += 100 * kMs;
  PortClock clock(world.reader(), opened, kTsc);
  world.readings = 0;
  for (int i = 0; i < 10 * 20; ++i) {
    world.now_tsc += kMs / 20;
    clock.read_if_due(world.now_tsc);
  }
  EXPECT_EQ(world.readings, 4 * PortClock::kTries);  // at once, after 1, 3 and 7 ms
  world.readings = 0;
  for (int i = 0; i < 1000; ++i) {
    world.now_tsc += kMs;
    clock.read_if_due(world.now_tsc);
  }
  EXPECT_GE(world.readings, 10 * PortClock::kTries);
  EXPECT_LE(world.readings, 14 * PortClock::kTries);
}

TEST(PortClock, TakesTheFastestReading) {
  World world(steady());
  const ClockReading opened = world.now();
  world.now_tsc += 100 * kMs;
  std::mt19937_64 random(7);
  const PortClock::Read reader = [&] {
    // Two of three are interrupted before the clock answers: their middle is far from it.
    const bool interrupted = ++world.readings % 3 != 0;
    const uint64_t late = interrupted ? 10'000 + random() % kMs : 0;
    const uint64_t answered = world.now_tsc + late + 100;
    const ClockReading reading{world.now_tsc, world.clock().ticks_at(answered), answered + 100};
    world.now_tsc = reading.after_tsc;
    return reading;
  };
  PortClock clock(reader, opened, kTsc);
  for (int i = 0; i < 100; ++i) {
    world.now_tsc += 10 * kMs;
    clock.read_if_due(world.now_tsc);
    EXPECT_LE(world.off_at(clock, world.now_tsc), 300) << i;
  }
}

TEST(PortClock, SurvivesThatItsTicksOverflow) {
  DriftingClock ticks = steady();
  ticks.first_ticks = UINT64_MAX - static_cast<uint64_t>(0.4 * 400 * kMs);
  World world(ticks);
  const ClockReading opened = world.now();
  world.now_tsc += 300 * kMs;
  PortClock clock(world.reader(), opened, kTsc);
  for (int i = 0; i < 200; ++i) {
    world.now_tsc += kMs;
    clock.read_if_due(world.now_tsc);
    EXPECT_LE(world.off_at(clock, world.now_tsc), 1000) << i;
  }
}

TEST(PortClock, SaysThatAClockStandsStill) {
  World world(steady());
  const ClockReading opened = world.now();
  bool stands = false;
  const ClockReading standing = world.clock().read_at(world.now_tsc + 300 * kMs, 100);
  world.now_tsc = standing.after_tsc;
  const PortClock::Read reader = [&] {
    if (!stands) return world.now();
    return ClockReading{world.now_tsc, standing.ticks, world.now_tsc + 100};
  };
  PortClock clock(reader, opened, kTsc);
  EXPECT_LT(clock.worst_tsc(), kMs);
  stands = true;
  for (int i = 0; i < 10; ++i) {
    world.now_tsc += 100 * kMs;
    clock.read_if_due(world.now_tsc);
  }
  EXPECT_EQ(clock.worst_tsc(), PortClock::kUnknownTsc);
}

}  // namespace
}  // namespace dutperf::timing
