#include "server.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace dutperf::refdut {
namespace {

using Wide = __int128;

// The slow twin: time in units of 1 / rate nanoseconds, so a service takes 10^9 of them, exactly;
// it works off each frame's service between the freezes.
class ExactServer {
 public:
  ExactServer(const Service& service, std::vector<Freeze> freezes)
      : service_(service), freezes_(std::move(freezes)) {}

  std::optional<uint64_t> serve(uint64_t now_ns) {
    while (!finishes_.empty() && finishes_.front() <= units(now_ns)) finishes_.pop_front();
    if (finishes_.size() == service_.queue_frames + 1) return std::nullopt;
    Wide at = finishes_.empty() ? units(now_ns) : finishes_.back();
    Wide work = 1'000'000'000;
    for (const Freeze& freeze : freezes_) {
      const Wide begin = units(freeze.at_ns);
      const Wide end = units(freeze.at_ns + freeze.for_ns);
      if (at >= end || at + work <= begin) continue;
      if (at < begin) work -= begin - at;
      at = end;
    }
    finishes_.push_back(at + work);
    const Wide rate = service_.rate_fps;
    return static_cast<uint64_t>((at + work + rate - 1) / rate);
  }

 private:
  Wide units(uint64_t ns) const { return Wide{ns} * service_.rate_fps; }

  Service service_;
  std::vector<Freeze> freezes_;
  std::deque<Wide> finishes_;
};

struct Load {
  Service service;
  std::vector<Freeze> freezes;
};

class ServerOf : public ::testing::TestWithParam<Load> {};

// 64.64 fixed point loses at most 2^-64 ns a frame. A finish lies on a whole nanosecond or at least
// 1 / rate above one, so rounded up it is the exact one.
TEST_P(ServerOf, ServesAndDropsAsExactArithmeticDoes) {
  const Load& load = GetParam();
  for (const double utilisation : {0.3, 0.95, 1.0, 1.05, 3.0}) {
    Server server(load.service, load.freezes);
    ExactServer twin(load.service, load.freezes);
    std::mt19937_64 random(7);
    const double mean_ns = 1e9 / static_cast<double>(load.service.rate_fps) / utilisation;
    std::exponential_distribution<double> gap(1 / mean_ns);
    double at = 0;
    for (int i = 0; i < 20'000; ++i) {
      at += gap(random);
      const auto now_ns = static_cast<uint64_t>(at);
      ASSERT_EQ(server.serve(now_ns), twin.serve(now_ns)) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Loads, ServerOf,
    ::testing::Values(Load{{100'000, 1000}, {}}, Load{{99'991, 10}, {}}, Load{{1'488'095, 0}, {}},
                      Load{{3, 2}, {}}, Load{{1'000'000'000, 100}, {}},
                      Load{{99'991, 50}, {{5'000'000, 3'000'000}, {9'000'000, 1}}},
                      Load{{7'777'777, 50}, {{100'000, 50'000}, {150'000, 333'333}}}));

TEST(Server, HasExactlyItsRateOverAMillionFrames) {
  Server server(Service{99'991, 2'000'000}, {});
  uint64_t last = 0;
  for (int i = 0; i < 1'000'000; ++i) last = *server.serve(0);
  // 10^6 / 99,991 s = 10.000900081007290... s, rounded up to a nanosecond.
  EXPECT_EQ(last, 10'000'900'082U);
}

TEST(Server, LetsOneBeServedAndTheQueueWait) {
  Server server(Service{1'000'000, 3}, {});  // a frame takes 1000 ns
  EXPECT_EQ(server.serve(0), 1000U);
  EXPECT_EQ(server.serve(0), 2000U);
  EXPECT_EQ(server.serve(0), 3000U);
  EXPECT_EQ(server.serve(0), 4000U);
  EXPECT_EQ(server.serve(0), std::nullopt);
  EXPECT_EQ(server.serve(999), std::nullopt);
  EXPECT_EQ(server.serve(1000), 5000U) << "the first has just left";
}

TEST(Server, WithoutARateLetsThroughAtOnce) {
  Server server(std::nullopt, {});
  for (const uint64_t now : {0U, 5U, 5U, 1'000'000U}) EXPECT_EQ(server.serve(now), now);
}

TEST(Server, LetsNothingLeaveInAFreezeOfTheTrial) {
  Server server(std::nullopt, {{100, 50}});
  server.restart(1000);
  EXPECT_EQ(server.serve(1099), 1099U);
  EXPECT_EQ(server.serve(1100), 1150U);
  EXPECT_EQ(server.serve(1149), 1150U);
  EXPECT_EQ(server.serve(1150), 1150U);
  EXPECT_EQ(server.thaw(1120), 1150U) << "a delay may end in the freeze, too";
  server.restart(2000);
  EXPECT_EQ(server.serve(2100), 2150U) << "counted from the next trial's start";
}

}  // namespace
}  // namespace dutperf::refdut
