// A trial's result as the golden messages say.
#include <gtest/gtest.h>

#include "control/messages.h"
#include "control/testing/golden.h"
#include "dataplane/receiver.h"
#include "dataplane/sender.h"
#include "net/testing/addresses.h"

namespace dutperf::control {
namespace {

using dataplane::Side;
using measure::Histogram;
using net::testing::ip;
using net::testing::mac;
using testing::golden_result;

using Values = std::initializer_list<std::pair<uint64_t, uint64_t>>;  // value, times

Histogram histogram(unsigned bits, Values values) {
  Histogram result(bits);
  for (const auto& [value, times] : values) result.record(value, times);
  return result;
}

// How a direction was sent and received, as far as the tester's own part goes.
struct Conduct {
  Histogram lag_ns = Histogram(dataplane::kLagBits);
  Histogram burst_frames = Histogram(dataplane::kBurstBits);
  Histogram send_call_ns = Histogram(dataplane::kCallBits);
  Histogram receive_gap_ns = Histogram(dataplane::kGapBits);

  Conduct() = default;
  Conduct(Values lag, Values bursts, Values call, Values gap)
      : lag_ns(histogram(dataplane::kLagBits, lag)),
        burst_frames(histogram(dataplane::kBurstBits, bursts)),
        send_call_ns(histogram(dataplane::kCallBits, call)),
        receive_gap_ns(histogram(dataplane::kGapBits, gap)) {}
};

DirectionResult direction(Side from, uint64_t rate_fps, const Conduct& conduct,
                          const std::vector<StreamResult>& streams) {
  DirectionResult result{};
  result.from = from;
  result.intended_rate_fps = rate_fps;
  result.lag_ns = &conduct.lag_ns;
  result.burst_frames = &conduct.burst_frames;
  result.send_call_ns = &conduct.send_call_ns;
  result.receive_gap_ns = &conduct.receive_gap_ns;
  result.streams = streams;
  return result;
}

// A stream of which `received` of `sent` frames arrived; series and delays are still missing.
StreamResult stream(uint8_t id, bool background, uint64_t intended, uint64_t sent,
                    uint64_t received, uint64_t duplicate = 0, uint64_t reordered = 0) {
  StreamResult result;
  result.id = id;
  result.background = background;
  result.intended = intended;
  result.sent = sent;
  result.received = received;
  result.duplicate = duplicate;
  result.reordered = reordered;
  result.series_interval_ns = 100'000'000;
  return result;
}

constexpr unsigned kCoarse = 5;

Distribution delays(unsigned bits, uint64_t origin, Values values) {
  measure::AroundOrigin around{origin, Histogram(bits), Histogram(bits)};
  for (const auto& [value, times] : values) {
    if (value < origin) {
      around.below.record(origin - value, times);
    } else {
      around.above.record(value - origin, times);
    }
  }
  return distribution_of(around);
}

// The smallest came early.
Distribution coarse(Values values) { return delays(kCoarse, std::min(values).first, values); }
Distribution fine(Values values) {
  return delays(measure::kDelayBits, std::min(values).first, values);
}

Distribution variation(Values shorter, Values longer) {
  constexpr unsigned kBits = measure::DelayVariation::kBits;
  return distribution_of(
      measure::AroundOrigin{0, histogram(kBits, shorter), histogram(kBits, longer)});
}

Distribution runs(Values values) {
  return distribution_of(histogram(measure::SequenceTracker::kRunBits, values));
}

std::optional<TimedLoss> loss(measure::LossRun run, uint64_t begin_ns, uint64_t last_ns,
                              std::optional<uint64_t> end_ns) {
  return TimedLoss{run, begin_ns, last_ns, end_ns};
}

PortReport report(Side side, const dpdk::PortCounters& before, const dpdk::PortCounters& after) {
  PortReport result{};
  result.id.side = side;
  result.before = before;
  result.after = after;
  return result;
}

TEST(TrialRunResult, IsWrittenAsTheGoldenResultOfAPassSays) {
  const Conduct forward({{84, 1}, {85, 59'989}, {1030, 4}, {1055, 5}, {250'017, 1}}, {{1, 60'000}},
                        {{300, 1}, {303, 59'998}, {5000, 1}},
                        {{900, 1}, {911, 58'999}, {41'000, 1000}});
  const Conduct reverse({{31, 48'719}, {0, 1}}, {{2, 1}, {1, 48'718}}, {{310, 48'720}},
                        {{900, 48'720}});
  StreamResult foreground = stream(0, false, 60'000, 60'000, 60'000);
  foreground.delay_ns = coarse({{20'500, 1}, {21'000, 59'990}, {1'002'000, 9}});
  foreground.sent_by_time = foreground.received_by_time = std::vector<uint64_t>(600, 100);
  foreground.inspected = {984, 12, 3, 1, 7, 9, 46};
  StreamResult background = stream(1, true, 48'720, 48'720, 48'720, 0, 3);
  background.delay_ns = coarse({{30'000, 48'720}});
  for (uint64_t i = 0; i < 600; ++i) {
    background.sent_by_time.push_back(i % 5 == 0 ? 82 : 81);
    background.received_by_time.push_back(i % 5 == 0 ? 82 : 81);
  }

  TrialResult result;
  result.trial_id = 41;
  result.shares = 2;
  result.directions = {direction(Side::kLeft, 1000, forward, {foreground}),
                       direction(Side::kRight, 812, reverse, {background})};
  result.directions[0].longest_silence = {41'020'500, 42'022'000};
  result.directions[1].longest_silence = {615'764, 1'877'291};
  result.directions[0].by_share = {
      {30'000, 30'000, 59'998'000'412, 1055, 0, 30'000, 911},
      {30'000, 30'000, 59'999'000'412, 250'017, 4096, 30'000, 41'000},
  };
  result.directions[0].offered_rate_fps = 1000.0000125;
  result.directions[0].sending_ns = 59'999'000'412;
  result.directions[0].delay_floor_ns = 1024;
  result.directions[0].delay_bound_ns = 46'000;
  result.directions[1].offered_rate_fps = 812;
  result.directions[1].sending_ns = 59'998'768'472;
  result.directions[1].tx_full = 2;
  result.directions[1].port_full_ns = 800;
  result.directions[1].delay_floor_ns = result.directions[1].delay_bound_ns = 1210;
  result.ports = {
      report(Side::kLeft, {12, 13, 0, 0, 0, 0, {}, {}}, {48'733, 60'015, 0, 0, 0, 0, {}, {}}),
      report(Side::kRight, {10, 10, 0, 0, 0, 0, {}, {}}, {60'011, 48'731, 0, 0, 0, 0, {}, {}})};
  result.ports[0].neighbour_requests = 1;
  result.ports[0].neighbour_conflicts = 2;
  result.ports[0].foreign = 2;
  result.ports[1].neighbour_requests = 1;
  result.ports[1].neighbour_conflicts = 2;
  result.ports[1].stale = 4;
  result.ports[1].other_vlan = 3;
  result.ports[1].fragments = 1;
  result.ports[1].incomplete = 1;
  result.ports[1].slow_path = SlowPathReport{31, 29, 2};
  kernel::InterfaceCounters kernel;
  kernel.rx_missed = 1;
  kernel.rx_fifo = 2;
  kernel.rx_over = 3;
  kernel.rx_nohandler = 4;
  kernel.rx_dropped = 5;
  kernel.rx_crc = 6;
  kernel.rx_frame = 7;
  kernel.rx_length = 8;
  kernel.tx_errors = 9;
  kernel.tx_dropped = 10;
  kernel.queue_dropped = 11;
  kernel.driver = {{"rx_missed_errors", 1}, {"rx_queue_0_drops", 12}};
  kernel.socket_full = 13;
  kernel.xdp_dropped = 14;
  kernel.xdp_ring_full = 15;
  kernel.xdp_fill_ring_empty = 16;
  result.ports[0].before.kernel = kernel;
  result.ports[0].before.pauses = {{"rx_xoff_packets", 2}};
  result.ports[0].after.pauses = {{"rx_xoff_packets", 5}};
  kernel.rx_dropped = 305;
  kernel.rx_crc = 7;
  kernel.tx_errors = 11;
  result.ports[0].after.kernel = kernel;
  result.ports[0].interface_drops = 300;
  result.ports[0].send_drops = 2;
  result.ports[0].damaged_on_wire = 1;
  result.input_queues = {{0, 302, 17}, {1, 0, 2}};
  result.input_queue_drops = 2;
  result.neighbours = {{{Side::kLeft}, ip("198.18.0.1"), mac("02:00:00:00:00:0a"), 183402},
                       {{Side::kRight}, ip("198.19.0.1"), mac("02:00:00:00:00:0b"), 201877}};
  result.begin_unix_ns = 1'772'616'600'123'456'789;
  result.total_ns = 64'003'120'991;
  result.overhead_ns = 2'718'281;
  EXPECT_EQ(golden_result("trial.run"), to_json(result));
}

TEST(TrialRunResult, IsWrittenAsTheGoldenResultOfAFailSays) {
  const Conduct conduct({{INT64_MAX, 14'881}}, {{32, 465}, {25, 1}}, {{310, 14'881}},
                        {{900, 14'000}});
  StreamResult foreground = stream(255, false, 14'881, 14'881, 14'000, 5, 17);
  foreground.slower = {{1, 13'999}, {1ULL << 47, 0}};
  foreground.delay_ns = fine({{1, 1}, {30'000, 13'999}});
  foreground.ipdv_ns = variation({{29'999, 1}}, {{0, 13'996}, {29'999, 1}});
  foreground.tags_ns = {measure::TagDelays::kLost};
  foreground.series_interval_ns = 1'000'000;
  foreground.sent_by_time = {14'881};
  foreground.received_by_time = {14'000};
  foreground.loss_runs = runs({{1, 1}, {880, 1}});
  foreground.longest_loss = loss({9000, 880}, 604'801, 663'869, 663'937);
  foreground.last_loss = loss({12'000, 1}, 806'401, 806'401, 806'468);
  TrialResult result;
  result.trial_id = 65535;
  result.directions = {direction(Side::kRight, 14'880'952, conduct, {foreground})};
  result.directions[0].longest_silence = {604'730, 663'910};
  result.directions[0].offered_rate_fps = 14'880'951.5;
  result.directions[0].sending_ns = 999'937;
  result.directions[0].delay_floor_ns = result.directions[0].delay_bound_ns = 1210;
  measure::TrialFacts facts;
  facts.duration_ns = 1'000'000;
  facts.directions = {{"reverse", 14'881, 14'881, 14'000, 5}};
  facts.directions[0].sending_ns = 999'937;
  result.verdict = measure::judge(facts);
  result.ports = {report(Side::kLeft, {}, {14'005, 0, 0, 0, 0, 0}),
                  report(Side::kRight, {}, {0, 14'881, 0, 0, 0, 0})};
  result.ports[1].misdirected = 1;
  result.neighbours = {{{Side::kRight}, ip("2001:2::1"), mac("02:00:00:00:00:0b"), 90210}};
  result.total_ns = 101'900'400;
  EXPECT_EQ(golden_result("trial.run-ipv6"), to_json(result));
}

TEST(TrialRunResult, IsWrittenAsTheGoldenResultOfTwoStreamsSays) {
  const Conduct forward({{5, 1000}}, {{1, 1000}}, {{310, 1000}}, {{900, 997}});
  const Conduct reverse({{5, 999}}, {{1, 999}}, {{310, 999}}, {{900, 999}});
  StreamResult foreground = stream(2, false, 900, 900, 899, 0, 4);
  foreground.delay_ns = coarse({{40'000, 899}});
  foreground.sent_by_time = foreground.received_by_time = std::vector<uint64_t>(10, 90);
  foreground.received_by_time.back() = 89;
  foreground.loss_runs = runs({{1, 1}});
  foreground.longest_loss = foreground.last_loss =
      loss({899, 1}, 999'000'000, 999'000'000, std::nullopt);
  StreamResult background = stream(3, true, 100, 100, 98);
  background.delay_ns = coarse({{41'000, 98}});
  background.sent_by_time = background.received_by_time = std::vector<uint64_t>(10, 10);
  background.received_by_time.back() = 8;
  background.loss_runs = runs({{2, 1}});
  background.longest_loss = background.last_loss =
      loss({98, 2}, 981'000'000, 991'000'000, std::nullopt);
  StreamResult back = stream(4, false, 999, 999, 999);
  back.delay_ns = coarse({{42'000, 999}});
  back.sent_by_time = std::vector<uint64_t>(10, 100);
  back.sent_by_time.back() = 99;
  back.received_by_time = back.sent_by_time;
  TrialResult result;
  result.trial_id = 77;
  result.directions = {direction(Side::kLeft, 1000, forward, {foreground, background}),
                       direction(Side::kRight, 999, reverse, {back})};
  result.directions[0].offered_rate_fps = 1000;
  result.directions[0].sending_ns = 999'000'100;
  result.directions[0].longest_silence = {998'040'000, std::nullopt};
  result.directions[1].longest_silence = {500'500, 1'543'501};
  result.directions[1].offered_rate_fps = 999;
  result.directions[1].sending_ns = 999'000'200;
  for (DirectionResult& each : result.directions) each.delay_floor_ns = each.delay_bound_ns = 1210;
  measure::TrialFacts facts;
  facts.duration_ns = 1'000'000'000;
  facts.directions = {{"forward", 1000, 1000, 997}, {"reverse", 999, 999, 999}};
  facts.directions[0].sending_ns = 999'000'100;
  facts.directions[1].sending_ns = 999'000'200;
  result.verdict = measure::judge(facts);
  result.total_ns = 5'002'000'000;
  result.overhead_ns = 1'999'700;
  EXPECT_EQ(golden_result("trial.run-traffic"), to_json(result));
}

TEST(TrialRunResult, TellsFramesBesideTheStreamApart) {
  const Conduct forward({{5, 1000}}, {{1, 1000}}, {{310, 1000}}, {{900, 990}});
  StreamResult foreground = stream(0, false, 990, 990, 990);
  foreground.delay_ns = coarse({{42'000, 990}});
  foreground.sent_by_time = foreground.received_by_time = std::vector<uint64_t>(10, 99);
  TrialResult result;
  result.trial_id = 82;
  result.directions = {direction(Side::kLeft, 1000, forward, {foreground})};
  result.directions[0].beside = {10, 10, 0};
  result.directions[0].offered_rate_fps = 1000;
  result.directions[0].sending_ns = 999'000'100;
  result.directions[0].longest_silence = {500'500, 1'543'501};
  result.directions[0].delay_floor_ns = result.directions[0].delay_bound_ns = 1210;
  result.total_ns = 5'002'000'000;
  result.overhead_ns = 1'999'700;
  EXPECT_EQ(golden_result("trial.run-beside"), to_json(result));
}

TEST(TrialRunResult, IsWrittenAsTheGoldenResultOfAStoppedTrialSays) {
  const Conduct forward({{5, 700}}, {{1, 700}}, {{310, 700}}, {{900, 670}});
  const Conduct reverse({{5, 699}}, {{1, 699}}, {{310, 699}}, {{900, 699}});
  StreamResult foreground = stream(2, false, 900, 630, 600, 0, 4);
  foreground.delay_ns = coarse({{40'000, 600}});
  foreground.sent_by_time = {90, 90, 90, 90, 90, 90, 90, 0, 0, 0};
  foreground.received_by_time = {90, 60, 90, 90, 90, 90, 90, 0, 0, 0};
  foreground.loss_runs = runs({{30, 1}});
  foreground.longest_loss = foreground.last_loss =
      loss({90, 30}, 100'000'000, 133'000'000, 134'000'000);
  StreamResult background = stream(3, true, 100, 70, 70);
  background.delay_ns = coarse({{41'000, 70}});
  background.sent_by_time = {10, 10, 10, 10, 10, 10, 10, 0, 0, 0};
  background.received_by_time = background.sent_by_time;
  StreamResult back = stream(4, false, 999, 699, 699);
  back.delay_ns = coarse({{42'000, 699}});
  back.sent_by_time = {100, 100, 100, 100, 100, 100, 99, 0, 0, 0};
  back.received_by_time = back.sent_by_time;
  TrialResult result;
  result.trial_id = 77;
  result.ended_early = true;
  result.directions = {direction(Side::kLeft, 1000, forward, {foreground, background}),
                       direction(Side::kRight, 999, reverse, {back})};
  result.directions[0].offered_rate_fps = 1000;
  result.directions[0].sending_ns = 699'000'100;
  result.directions[0].longest_silence = {132'040'000, 134'040'000};
  result.directions[1].longest_silence = {500'500, 1'543'501};
  result.directions[1].offered_rate_fps = 999;
  result.directions[1].sending_ns = 698'698'900;
  for (DirectionResult& each : result.directions) each.delay_floor_ns = each.delay_bound_ns = 1210;
  measure::TrialFacts facts;
  facts.duration_ns = 1'000'000'000;
  facts.ended_early = true;
  facts.directions = {{"forward", 1000, 700, 670}, {"reverse", 999, 699, 699}};
  result.verdict = measure::judge(facts);
  result.total_ns = 4'702'000'000;
  result.overhead_ns = 1'999'700;
  EXPECT_EQ(golden_result("trial.run-stopped"), to_json(result));
}

TEST(TrialRunResult, IsWrittenAsTheGoldenResultOfDelaysSays) {
  const Conduct forward({{40, 4'000'000}}, {{1, 4'000'000}},
                        {{300, 1}, {303, 3'999'998}, {5000, 1}},
                        {{900, 1}, {911, 3'998'997}, {41'000, 1000}});
  const Conduct reverse({{700, 10'000'000}}, {{32, 312'500}}, {{310, 10'000'000}},
                        {{900, 9'950'000}});
  StreamResult foreground = stream(0, false, 2'000'000, 2'000'000, 1'999'998);
  foreground.late = 5;
  foreground.slower = {{100'000, 5}, {1'000'000, 5}, {10'000'000, 0}};
  foreground.delay_ns = fine({{20'500, 1}, {21'000, 1'999'992}, {1'002'000, 5}});
  foreground.ipdv_ns =
      variation({{981'000, 1}, {500, 1}}, {{0, 1'999'992}, {500, 1}, {981'000, 1}});
  foreground.tags_ns = {21'000, measure::TagDelays::kLost, 20'500, 1'002'000};
  foreground.sent_by_time = foreground.received_by_time = std::vector<uint64_t>(10, 200'000);
  foreground.received_by_time[6] -= 2;
  foreground.loss_runs = runs({{2, 1}});
  foreground.longest_loss = foreground.last_loss =
      loss({1'300'000, 2}, 650'000'000, 650'000'500, 650'001'000);
  StreamResult background = stream(1, true, 2'000'000, 2'000'000, 2'000'000);
  background.late = 1;
  background.damaged[net::Damage::kChecksumZero] = 2;
  background.damaged[net::Damage::kLength] = 1;
  background.slower = {{100'000, 1}, {1'000'000, 1}, {10'000'000, 0}};
  background.delay_ns = fine({{30'000, 1'999'999}, {1'500'000, 1}});
  background.ipdv_ns = variation({{1'470'000, 1}}, {{0, 1'999'997}, {1'470'000, 1}});
  background.sent_by_time = background.received_by_time = std::vector<uint64_t>(10, 200'000);
  StreamResult back = stream(2, false, 10'000'000, 10'000'000, 9'950'000, 0, 7);
  back.late = 60'000;
  back.slower = {{100'000, 60'000}, {1'000'000, 60'000}, {10'000'000, 0}};
  back.window_frames = 8'388'608;
  back.unplaced = 1;
  back.delay_ns = delays(measure::kDelayBits, 20'000, {{15'000, 9'890'000}, {2'000'000, 60'000}});
  back.ipdv_ns = variation({{1'985'000, 1}}, {{0, 9'949'987}, {1'985'000, 1}});
  back.lost_in_shadow = 45;
  back.late_in_shadow = 50;
  back.shaded_delay_ns = delays(measure::kDelayBits, 20'000, {{2'000'000, 50}});
  back.shaded_ipdv_ns = variation({{1'985'000, 1}}, {});
  back.tags_ns = {15'000, 15'000, 2'000'000, 15'000};
  back.sent_by_time = std::vector<uint64_t>(10, 1'000'000);
  back.received_by_time = std::vector<uint64_t>(10, 995'000);
  back.loss_runs = runs({{5000, 10}});

  TrialResult result;
  result.trial_id = 78;
  result.directions = {direction(Side::kLeft, 4'000'000, forward, {foreground, background}),
                       direction(Side::kRight, 10'000'000, reverse, {back})};
  result.directions[0].offered_rate_fps = 4'000'000;
  result.directions[0].sending_ns = 999'999'750;
  result.directions[0].longest_silence = {649'999'770, 650'001'520};
  result.directions[1].longest_silence = {500'000'000, 509'502'000};
  result.directions[0].delay_floor_ns = 1024;
  result.directions[0].delay_bound_ns = 46'000;
  result.directions[1].offered_rate_fps = 10'000'000;
  result.directions[1].sending_ns = 999'999'900;
  result.directions[1].tx_full = 4;
  result.directions[1].port_full_ns = 1500;
  result.directions[1].ring_full = 3;
  result.directions[1].stalls = {{500'000'000, 509'500'000, 9'000'000, 8'900'000, 95'000}};
  result.directions[1].shadows = {{{500'000'000, 512'753'664, true, true, 95'000},
                                   {990'000'000, UINT64_MAX, false, false, UINT64_MAX}}};
  result.directions[1].delay_floor_ns = result.directions[1].delay_bound_ns = 1210;
  measure::TrialFacts facts;
  facts.duration_ns = 1'000'000'000;
  facts.frame_timeout_ns = 1'000'000;
  facts.loss_tolerance_ppb = 10'000;
  facts.directions = {{"forward", 4'000'000, 4'000'000, 3'999'998, 0, 6},
                      {"reverse", 10'000'000, 10'000'000, 9'950'000, 0, 60'000}};
  facts.directions[1].lost_in_shadow = 45;
  facts.directions[1].overdue_in_shadow = 50;
  result.verdict = measure::judge(facts);
  result.ports = {report(Side::kLeft, {}, {9'950'008, 4'000'000, 0, 0, 0, 0}),
                  report(Side::kRight, {}, {4'000'001, 10'000'000, 0, 0, 0, 0})};
  result.ports[0].foreign = 7;
  for (int i = 0; i < 3; ++i) result.ports[0].icmp.count({6, 3, 0});
  result.ports[0].icmp.count({4, 11, 0});
  result.ports[0].answers = dataplane::AnswerLog(1);
  const std::vector<uint8_t> answer = {0x45, 0x00};
  result.ports[0].answers.keep(1'250'000, answer);
  result.ports[0].fragments = 7;
  result.ports[0].reassembled = 3;
  result.ports[0].incomplete = 1;
  result.ports[1].damaged = background.damaged;
  result.total_ns = 5'002'000'000;
  result.overhead_ns = 1'999'700;
  EXPECT_EQ(golden_result("trial.run-delays"), to_json(result));
}

// A direction of which `received` of 2500 frames arrived, in four blocks.
DirectionResult quarters(Side from, const Conduct& conduct, uint64_t received,
                         measure::Survival survival) {
  StreamResult foreground = stream(from == Side::kLeft ? 0 : 1, false, 2'500, 2'500, received);
  foreground.delay_ns = coarse({{60, received}});
  foreground.series_interval_ns = 1'000'000'000;
  foreground.sent_by_time = {2'500};
  foreground.received_by_time = {received};
  foreground.survival = std::move(survival);
  DirectionResult result = direction(from, 2'500, conduct, {foreground});
  result.offered_rate_fps = 2'500;
  result.sending_ns = 999'600'000;
  result.delay_floor_ns = result.delay_bound_ns = 80;
  return result;
}

TEST(TrialRunResult, IsWrittenAsTheGoldenResultOfAStatefulTrialSays) {
  const Conduct forth({{40, 2'500}}, {{1, 2'500}}, {{32, 2'500}}, {{48, 2'500}});
  const Conduct back({{40, 2'500}}, {{1, 2'500}}, {{32, 2'500}}, {{48, 2'497}});
  TrialResult result;
  result.trial_id = 80;
  result.directions = {
      quarters(Side::kLeft, forth, 2'500, {625, {625, 625, 625, 625}, {}, 0}),
      quarters(Side::kRight, back, 2'497, {625, {625, 623, 625, 624}, {{700, 2}, {2499, 1}}, 0})};
  result.directions[0].longest_silence = {0, 400'060};
  result.directions[1].longest_silence = {279'800'060, 281'000'060};
  StreamResult& lossy = result.directions[1].streams[0];
  lossy.loss_runs = runs({{1, 1}, {2, 1}});
  lossy.longest_loss = loss({700, 2}, 280'200'000, 280'600'000, 281'000'000);
  lossy.last_loss = loss({2499, 1}, 999'800'000, 999'800'000, std::nullopt);
  ConnectionsResult& connections = lossy.connections.emplace();
  connections.gaps.tenths = {{700, 2, 0}, {550, 0, 1}};
  connections.gaps.back_lost.record(1, 2);
  connections.gaps.open_lost.record(1);
  connections.gaps.last_back = 1951;
  connections.gaps.named = {{1249, 1}, {1250, 2}};
  connections.gaps.block_frames = 1250;
  connections.gaps.out = {0, 2};
  connections.tuples = {LearnedTuple{ip("198.19.0.1"), ip("198.19.0.2"), 40'001, 80}};
  measure::TrialFacts facts;
  facts.directions = {{"forward", 2'500, 2'500, 2'500}, {"reverse", 2'500, 2'500, 2'497}};
  facts.ports = {{"left"}, {"right"}};
  result.verdict = measure::judge(facts);
  result.ports = {report(Side::kLeft, {}, {2'497, 2'500, 0, 0, 0, 0}),
                  report(Side::kRight, {}, {2'500, 2'500, 0, 0, 0, 0})};
  TableResult table;
  table.entries = 3'999;
  table.filled = 3'998;
  table.bytes_per_entry = 12;
  table.memory_bytes = 2'097'152;
  table.hugepages = true;
  table.learned = 2'500;
  table.changed = 7;
  table.unexpected = 2;
  table.unexpected_example = ip("198.19.0.200");
  table.source_example = ip("198.19.0.1");
  table.unlearned_sent = 1;
  table.since_learning_ns = 2'000'100'000;
  table.told = {LearnedTuple{ip("198.19.0.1"), ip("198.19.0.2"), 40'001, 80}, std::nullopt};
  result.table = table;
  result.total_ns = 3'700'000'000;
  result.overhead_ns = 100'000;
  EXPECT_EQ(golden_result("trial.run-stateful"), to_json(result));
}

TEST(TrialRunResult, IsWrittenAsTheGoldenResultOfAnInvalidTrialSays) {
  const Conduct nothing;
  StreamResult foreground = stream(255, false, 14'881, 0, 0);
  foreground.slower = {{1, 0}, {1ULL << 47, 0}};
  foreground.ipdv_ns = Distribution{};
  foreground.tags_ns = {measure::TagDelays::kLost};
  foreground.series_interval_ns = 1'000'000;
  foreground.sent_by_time = foreground.received_by_time = {0};
  TrialResult result;
  result.trial_id = 65535;
  result.directions = {direction(Side::kRight, 14'880'952, nothing, {foreground})};
  result.directions[0].tx_full = 961;
  result.directions[0].port_full_ns = 9'000'000;
  measure::TrialFacts facts;
  facts.directions = {{"reverse", 14'881, 0}};
  facts.ports = {{"left"}};
  facts.ports[0].rx_missed = 12;
  facts.ports[0].rx_nombuf = 1;
  result.verdict = measure::judge(facts);
  result.ports = {report(Side::kLeft, {}, {0, 0, 12, 0, 1, 0}), report(Side::kRight, {}, {})};
  result.ports[1].damaged[net::Damage::kTruncated] = 6;
  result.neighbours = {{{Side::kRight}, ip("2001:2::1"), mac("02:00:00:00:00:0b"), 90210}};
  result.total_ns = 3'101'900'400;
  result.overhead_ns = 12'345;
  EXPECT_EQ(golden_result("trial.run-invalid"), to_json(result));
}

TEST(TrialRunResult, IsWrittenAsTheGoldenResultOfConnectionsSays) {
  TrialResult result;
  result.trial_id = 42;
  ExchangeResult& exchange = result.exchange.emplace();
  const uint64_t sent[] = {1000, 1000, 999, 999, 999, 998, 998, 998};
  const uint64_t received[] = {1000, 999, 999, 999, 998, 998, 998, 998};
  for (size_t step = 0; step < dataplane::kSteps; ++step) {
    exchange.segments[step] = {sent[step], received[step], step == 2 ? 2U : 0U};
  }
  dataplane::ExchangeReport& initiator = exchange.ends[0];
  initiator.resets = 1;
  initiator.unknown = 2;
  initiator.without_stamp = 3;
  for (int i = 0; i < 999; ++i) initiator.first_answer_ns.record(64);
  dataplane::ExchangeReport& responder = exchange.ends[1];
  responder.wrong = 4;
  responder.damaged = 5;
  responder.renumbered = 6;
  responder.untranslated = 9;
  initiator.proxied = 8;
  responder.without_stamp = 7;
  responder.not_sent = 8;
  measure::TrialFacts facts;
  facts.exchange = facts_of(exchange, {});
  result.verdict = measure::judge(facts);
  result.total_ns = 3'101'900'400;
  result.overhead_ns = 12'345;
  EXPECT_EQ(golden_result("trial.run-tcp"), to_json(result));
}

// What a stall of the tester may have cost makes the trial invalid, and no more than that.
// What was sent again, and never came, no stall of the tester has cost.
TEST(ExchangeFacts, OfWhatIsSentAgainNothingIsOurs) {
  ExchangeResult exchange;
  exchange.segments[0].sent = 100;
  const std::vector<measure::Shadow> shadows = {{.may_lose = true, .frames = 2}};
  EXPECT_EQ(facts_of(exchange, shadows).may_be_ours, 2 * 7U);
  exchange.retransmits = true;
  EXPECT_EQ(facts_of(exchange, shadows).may_be_ours, 0U);
}

// A copy that nobody here has sent is the device's.
TEST(ExchangeFacts, MoreCopiesThanWereSentAgainAreStrange) {
  ExchangeResult exchange;
  exchange.segments[1] = {.sent = 100, .received = 100, .duplicate = 3, .retransmitted = 2};
  EXPECT_EQ(facts_of(exchange, {}).strange, 0U);
  exchange.retransmits = true;
  EXPECT_EQ(facts_of(exchange, {}).strange, 1U);
}

TEST(TrialRunResult, SegmentsThatAStallMayHaveCostAreNotTheDevices) {
  ExchangeResult exchange;
  exchange.segments[0] = {1000, 1000, 0};
  exchange.segments[1] = {1000, 930, 0};
  const auto verdict_beside = [&](std::vector<measure::Shadow> shadows) {
    measure::TrialFacts facts;
    facts.exchange = facts_of(exchange, shadows);
    return measure::judge(facts).kind;
  };
  EXPECT_EQ(verdict_beside({}), measure::VerdictKind::kFail);
  EXPECT_EQ(verdict_beside({{0, 10, true, true, 9}}), measure::VerdictKind::kFail);
  EXPECT_EQ(verdict_beside({{0, 10, true, true, 10}}), measure::VerdictKind::kInvalid);
  EXPECT_EQ(verdict_beside({{0, 10, true, true, UINT64_MAX}}), measure::VerdictKind::kInvalid);
  EXPECT_EQ(verdict_beside({{0, 10, false, false, 10}}), measure::VerdictKind::kFail);
}

}  // namespace
}  // namespace dutperf::control
