#include "device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "measure/testing/arrive.h"
#include "net/inspection.h"
#include "testing/fake_io.h"
#include "testing/tester.h"

namespace dutperf::refdut {
namespace {

using net::testing::reference_frame;
using net::testing::tagged_payload;
using testing::Bytes;
using testing::FakeIo;
using testing::kOwn;
using testing::tagged;

constexpr size_t kRoom = 10'000;

Bytes frame(uint64_t sequence, uint16_t trial = 1, bool background = false, int version = 4,
            std::optional<uint16_t> src_port = {}) {
  net::FrameLayout layout = net::testing::sample_layout(version, 128);
  layout.src_port = src_port.value_or(layout.src_port);
  const net::TagIdentity tag{trial, static_cast<uint8_t>(background),
                             background ? net::kTagFlagBackground : uint8_t{0}};
  return reference_frame(layout, tagged_payload(layout, tag, sequence, 0));
}

// An IP packet that is no test frame, of the size of a small TCP segment.
Bytes stranger(uint8_t number = 0, uint16_t ether_type = 0x0800) {
  Bytes bytes(60, number);
  bytes[12] = static_cast<uint8_t>(ether_type >> 8);
  bytes[13] = static_cast<uint8_t>(ether_type);
  const size_t ip = 14;
  bytes[ip] = 0x45;
  bytes[ip + 6] = bytes[ip + 7] = 0;  // no fragment
  bytes[ip + 9] = 6;                  // TCP
  return bytes;
}

class TheDevice : public ::testing::Test {
 protected:
  void configure(const std::string& behaviour) {
    device_.configure(parse_behaviour(Json::parse(behaviour)));
  }

  // A forward frame every `gap_ns`, each looked for as it comes.
  void send(uint64_t frames, uint64_t gap_ns = 1000, uint16_t trial = 1) {
    for (uint64_t i = 0; i < frames; ++i) {
      io_.arriving[0].push_back(frame(i, trial));
      device_.step();
      io_.clock_ns += gap_ns;
    }
  }

  // Looks often for `ns`.
  void wait(uint64_t ns, uint64_t step_ns = 1000) {
    for (const uint64_t end = io_.clock_ns + ns; io_.clock_ns < end; io_.clock_ns += step_ns) {
      device_.step();
    }
  }

  std::vector<uint64_t> numbers() const {
    std::vector<uint64_t> result;
    for (const auto& departure : io_.left[1]) result.push_back(departure.sequence);
    return result;
  }

  // Strangers forward, each looked for as it comes; their last bytes are numbers from 0 on.
  void send_strangers(uint8_t count, uint64_t gap_ns = 1000) {
    for (uint8_t i = 0; i < count; ++i) {
      io_.arriving[0].push_back(stranger(i));
      device_.step();
      io_.clock_ns += gap_ns;
    }
  }

  std::vector<int> strangers_left() const {
    std::vector<int> result;
    for (const auto& departure : io_.left[1]) {
      if (departure.sequence == UINT64_MAX) result.push_back(departure.bytes.back());
    }
    return result;
  }

  // seen + copies == left + dropped + failed + held, of those beside test frames.
  Json others() {
    const Json json = device_.report()["device"]["forward"];
    const auto count = [&](const char* key) { return json[key].get<uint64_t>(); };
    EXPECT_EQ(count("other_frames") + count("other_copies"),
              count("other_left") + count("other_dropped_by_rule") +
                  count("other_dropped_by_queue") + count("other_failed") + count("held"));
    return json;
  }

  Json account() { return device_.report()["trials"].back()["forward"]["foreground"]; }

  FakeIo io_;
  Device<FakeIo> device_{io_, kOwn, kRoom};
};

// The tester's clock may be wrong without either side's seeing it: both calibrate it alike.
TEST_F(TheDevice, TellsResidenceByAClockOfItsOwn) {
  configure(R"({"forward": {"rules": [{"every": 1, "do": {"delay_ns": 5000}}]}})");
  io_.raw_clock_ns = 70'000;
  io_.arriving[0].push_back(frame(0));
  device_.step();
  io_.clock_ns += 5000;
  io_.raw_clock_ns = 76'000;
  device_.step();
  const Json forward = device_.report()["trials"][0]["forward"];
  EXPECT_EQ(forward["foreground"]["residence_ns"]["sum"], 5000);
  EXPECT_EQ(forward["foreground"]["witnessed"]["sum_ns"], 6000);
  EXPECT_EQ(forward["foreground"]["witnessed"]["frames"], 1);
  EXPECT_EQ(forward["background"]["witnessed"]["frames"], 0);
  EXPECT_EQ(forward["readings"]["read"], 1);
  EXPECT_EQ(forward["readings"]["wrong_sums"], 0);
}

TEST_F(TheDevice, IsAWireBeforeItIsToldAnything) {
  device_.configure({});
  const Bytes stranger(60, 7);
  io_.arriving[0] = {frame(0), stranger, frame(1, 1, true, 6)};
  io_.arriving[1] = {frame(0)};
  device_.step();
  ASSERT_EQ(io_.left[1].size(), 3U);
  EXPECT_EQ(io_.left[1][0].bytes, frame(0));
  EXPECT_EQ(io_.left[1][1].bytes, stranger);
  EXPECT_EQ(io_.left[1][2].bytes, frame(1, 1, true, 6));
  EXPECT_EQ(io_.left[0].size(), 1U);
  const Json report = device_.report();
  EXPECT_EQ(report["device"]["forward"]["other_frames"], 1);
  EXPECT_EQ(report["trials"][0]["forward"]["background"]["left"], 1);
  EXPECT_EQ(report["trials"][0]["reverse"]["foreground"]["left"], 1);
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(TheDevice, DropsWhatItsRulesSayAndListsIt) {
  configure(R"({"forward": {"rules": [{"every": 3, "do": "drop"}]}})");
  send(10);
  EXPECT_EQ(numbers(), (std::vector<uint64_t>{0, 1, 3, 4, 6, 7, 9}));
  EXPECT_EQ(account()["dropped_by_rule"], 3);
  EXPECT_EQ(account()["left"], 7);
  const Json losses = device_.report()["trials"][0]["forward"]["losses"];
  EXPECT_EQ(losses[0]["first"], 2);
  EXPECT_EQ(losses[0]["from_ns"], 2000);
}

TEST_F(TheDevice, SendsCopiesRightBehindTheirOriginals) {
  configure(R"({"forward": {"rules": [{"every": 2, "do": "duplicate"},
                                      {"every": 4, "do": {"delay_ns": 1500}}]}})");
  send(5);
  wait(5000);
  EXPECT_EQ(numbers(), (std::vector<uint64_t>{0, 1, 1, 2, 4, 3, 3}));
  EXPECT_EQ(account()["copies_left"], 2);
  EXPECT_EQ(account()["out_of_order"], 1);
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(TheDevice, DisplacesByTheDistance) {
  configure(R"({"forward": {"rules": [{"every": 4, "do": {"reorder": {"distance": 2}}}]}})");
  send(10);
  EXPECT_EQ(numbers(), (std::vector<uint64_t>{0, 1, 2, 4, 5, 3, 6, 8, 9, 7}));
  EXPECT_EQ(account()["displaced"], 2);
  EXPECT_EQ(account()["out_of_order"], 2);
}

// Frames that never leave, or leave later, do not go before a displaced one.
TEST_F(TheDevice, CountsADisplacementOnlyOverFramesThatLeft) {
  configure(R"({"forward": {"rules": [{"every": 4, "do": {"reorder": {"distance": 2}}},
                                      {"every": 5, "do": "drop"}]}})");
  send(10);
  // 4 is dropped, so 3 left behind 5 only; 7 left behind 8, as 9 is dropped, too.
  EXPECT_EQ(numbers(), (std::vector<uint64_t>{0, 1, 2, 5, 3, 6, 8, 7}));
  EXPECT_EQ(account()["displaced"], 0);
  EXPECT_EQ(account()["displaced_less"], 2);
}

TEST_F(TheDevice, CountsNoDisplacementByFramesThatAreDisplacedThemselves) {
  configure(R"({"forward": {"rules": [{"every": 2, "do": {"reorder": {"distance": 2}}}]}})");
  send(8);
  wait(1'000'000'000);
  // 1 waits for 2 and 3, but 3 waits itself.
  EXPECT_EQ(numbers(), (std::vector<uint64_t>{0, 2, 1, 4, 3, 6, 5, 7}));
  EXPECT_EQ(account()["displaced"], 0);
  EXPECT_EQ(account()["displaced_less"], 4);
}

TEST_F(TheDevice, CountsNoDisplacementBehindFramesThatWait) {
  configure(R"({"forward": {"rules": [{"every": 4, "do": {"reorder": {"distance": 2}}},
                                      {"every": 5, "do": {"delay_ns": 5000000}}]}})");
  send(7);
  wait(10'000'000);
  EXPECT_EQ(numbers(), (std::vector<uint64_t>{0, 1, 2, 5, 3, 6, 4}));
  EXPECT_EQ(account()["displaced"], 0);
  EXPECT_EQ(account()["displaced_less"], 1);
}

// What an earlier trial lost has no part in it.
TEST_F(TheDevice, CountsDisplacementsAfterLossesOfOtherFrames) {
  configure(R"({"forward": {"service": {"rate_fps": 1000, "queue_frames": 1},
                            "rules": [{"every": 40, "do": {"reorder": {"distance": 1}}}]}})");
  send(30);
  wait(1'000'000'000);
  configure(R"({"forward": {"rules": [{"every": 4, "do": {"reorder": {"distance": 2}}}]}})");
  const uint64_t lost = account()["dropped_by_queue"];
  EXPECT_GT(lost, 0U);
  send(10, 1000, 2);
  EXPECT_EQ(account()["displaced"], 2);
}

TEST_F(TheDevice, LetsADisplacedFrameGoWhenTooFewCome) {
  configure(R"({"forward": {"rules": [{"every": 4, "do": {"reorder":
                                       {"distance": 2, "at_most_ns": 50000}}}]}})");
  send(5);
  EXPECT_EQ(numbers(), (std::vector<uint64_t>{0, 1, 2, 4}));
  wait(100'000);
  EXPECT_EQ(numbers(), (std::vector<uint64_t>{0, 1, 2, 4, 3}));
  EXPECT_EQ(io_.left[1].back().at_ns, 1'003'000U + 50'000);
  EXPECT_EQ(account()["displaced"], 0);
  EXPECT_EQ(account()["displaced_less"], 1);
}

TEST_F(TheDevice, DelaysToTheNanosecondThatItLooksAt) {
  configure(R"({"forward": {"rules": [{"every": 10, "do": {"delay_ns": 1000000}}]}})");
  send(20);
  wait(2'000'000);
  std::map<uint64_t, uint64_t> at;
  for (const auto& departure : io_.left[1]) at[departure.sequence] = departure.at_ns;
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(at[i], 1'000'000 + 1000 * i + ((i + 1) % 10 == 0 ? 1'000'000 : 0));
  }
  EXPECT_EQ(account()["delayed"], 2);
  EXPECT_EQ(account()["residence_ns"]["max"], 1'000'000);
  EXPECT_EQ(device_.report()["trials"][0]["forward"]["own_error_ns"]["max"], 0);
}

TEST_F(TheDevice, TellsHowLateItWasItself) {
  configure(R"({"forward": {"rules": [{"do": {"delay_ns": 1500}}]}})");
  io_.arriving[0] = {frame(0)};
  device_.step();
  io_.clock_ns += 1700;
  device_.step();
  EXPECT_EQ(device_.report()["trials"][0]["forward"]["own_error_ns"]["max"], 200);
  EXPECT_EQ(account()["residence_ns"]["max"], 1700);
}

TEST_F(TheDevice, ServesAtItsRateAndDropsWhatItsQueueCannotHold) {
  configure(R"({"forward": {"service": {"rate_fps": 100000, "queue_frames": 5}}})");
  send(1000, 5000);  // twice what it serves
  wait(100'000);
  // Served from 0 on without a pause, until 4995 us at which the last came: 500 by then, and the
  // one in service and the queue afterwards.
  EXPECT_EQ(account()["left"], 505);
  EXPECT_EQ(account()["dropped_by_queue"], 495);
  EXPECT_EQ(io_.left[1].size(), 505U);
}

// The frames of each queue, by a hash of our own of what they came in with.
std::vector<int> by_queue(RssFields fields, uint32_t queues, const std::vector<Bytes>& frames) {
  const Rss rss(fields, queues);
  std::vector<int> result(queues);
  for (const Bytes& bytes : frames) ++result[rss.queue_of(bytes.data(), 4)];
  return result;
}

TEST_F(TheDevice, ServesEachReceiveQueueAtItsRate) {
  std::vector<Bytes> frames;
  for (uint16_t i = 0; i < 400; ++i) frames.push_back(frame(i, 1, false, 4, 1024 + i));
  for (const std::string hash : {"addresses", "addresses_and_ports"}) {
    SCOPED_TRACE(hash);
    const auto fields = hash == "addresses" ? RssFields::kAddresses : RssFields::kAddressesAndPorts;
    // Ten frames in service or queue of each, and nothing served while all come at once.
    configure(R"({"forward": {"service": {"rate_fps": 1000, "queue_frames": 9, "queues": 4,
                                          "hash": ")" +
              hash + R"("}}})");
    io_.arriving[0].assign(frames.begin(), frames.end());
    while (!io_.arriving[0].empty()) device_.step();
    wait(20'000'000);
    const std::vector<int> expected = by_queue(fields, 4, frames);
    const Json queues = device_.report()["trials"].back()["forward"]["queues"];
    ASSERT_EQ(queues.size(), 4U);
    int served = 0;
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(queues[i]["served"], std::min(10, expected[i])) << i;
      EXPECT_EQ(queues[i]["dropped"], expected[i] - std::min(10, expected[i])) << i;
      served += queues[i]["served"].get<int>();
    }
    EXPECT_EQ(served, hash == "addresses" ? 10 : 40);
    EXPECT_EQ(account()["left"], served);
    EXPECT_EQ(account()["dropped_by_queue"], 400 - served);
    EXPECT_EQ(io_.owned(), 0U);
  }
}

TEST_F(TheDevice, HasOneQueueUnlessItIsToldOtherwise) {
  configure(R"({"forward": {"service": {"rate_fps": 1000, "queue_frames": 9}}})");
  send(20);
  EXPECT_EQ(device_.report()["trials"][0]["forward"]["queues"], Json::array());
}

TEST_F(TheDevice, LeavesFramesInThePortWhenItWithholdsDescriptors) {
  configure(
      R"({"forward": {"service": {"rate_fps": 100000, "queue_frames": 5, "withhold": true}}})");
  for (uint64_t i = 0; i < 40; ++i) io_.arriving[0].push_back(frame(i));
  device_.step();
  EXPECT_EQ(io_.arriving[0].size(), 34U);  // one in service and the queue
  wait(410'000);
  EXPECT_EQ(io_.arriving[0].size(), 0U);
  EXPECT_EQ(account()["dropped_by_queue"], 0);
  EXPECT_EQ(account()["left"], 40);
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(TheDevice, LetsNothingLeaveInAFreeze) {
  configure(R"({"forward": {"freezes": [{"at_ns": 5000, "for_ns": 10000}],
                            "rules": [{"every": 4, "do": {"delay_ns": 3000}}]}})");
  send(30);
  for (const auto& departure : io_.left[1]) {
    const uint64_t since = departure.at_ns - 1'000'000;
    EXPECT_TRUE(since < 5000 || since >= 15'000) << since;
  }
  EXPECT_EQ(account()["left"].get<int>() + device_.report()["device"]["forward"]["held"].get<int>(),
            30);
}

TEST_F(TheDevice, DamagesWhatItsRulesSay) {
  configure(R"({"forward": {"rules": [{"every": 2, "do": {"corrupt": "checksum"}},
                                      {"every": 4, "do": "duplicate"},
                                      {"every": 5, "do": {"corrupt": "truncation"}}]}})");
  send(20);
  uint64_t damaged = 0;
  uint64_t short_ones = 0;
  for (const auto& departure : io_.left[1]) {
    const auto classified = net::classify(departure.bytes.data(), departure.bytes.size());
    short_ones += classified.kind != net::FrameKind::kTest;
    damaged += classified.kind == net::FrameKind::kTest &&
               !net::checksums_hold(departure.bytes.data(), classified);
  }
  const Json counts = account();
  const Json& left = counts["corrupted_left"];
  const Json& copies = counts["corrupted_copies_left"];
  EXPECT_EQ(left, Json::parse(R"({"payload": 0, "checksum": 8, "truncation": 4,
                                  "checksum_zero": 0, "length": 0, "number": 0})"));
  EXPECT_EQ(copies, Json::parse(R"({"payload": 0, "checksum": 4, "truncation": 1,
                                    "checksum_zero": 0, "length": 0, "number": 0})"));
  EXPECT_EQ(damaged, 12U);
  EXPECT_EQ(short_ones, 5U);
}

TEST_F(TheDevice, AltersWhatItsRulesSayAndLeavesItWhole) {
  configure(R"({"forward": {"rules": [{"do": {"alter": {"hops": 2}}},
                                      {"every": 2, "do": {"alter": {"dscp": 46}}},
                                      {"every": 4, "do": {"alter": "payload"}}]}})");
  send(20);
  net::Inspected found;
  for (const auto& departure : io_.left[1]) {
    const auto classified = net::classify(departure.bytes.data(), departure.bytes.size());
    ASSERT_TRUE(net::checksums_hold(departure.bytes.data(), classified));
    net::inspect(departure.bytes.data(), {}, found);
  }
  const uint8_t sent = net::testing::sample_layout(4, 128).ttl;
  EXPECT_EQ(found.most_ttl, sent - 2);
  EXPECT_EQ(found.least_ttl, sent - 2);
  EXPECT_EQ(found.dscp, 10U);
  EXPECT_EQ(found.other_dscp, 46);
  EXPECT_EQ(found.payload, 5U);
  EXPECT_EQ(account()["left"], 20);
}

TEST_F(TheDevice, SaysWhenItHasNoRoom) {
  io_.hold_room = 3;
  configure(R"({"forward": {"rules": [{"do": {"delay_ns": 1000000}}]}})");
  send(10);
  wait(2'000'000);
  EXPECT_EQ(account()["left"], 3);
  EXPECT_EQ(account()["failed_no_buffer"], 7);
  EXPECT_EQ(device_.report()["trials"][0]["forward"]["losses"][0]["cause"], "no_buffer");
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(TheDevice, WaitsForAPortThatTakesNothingButNotForEver) {
  device_.configure({});
  io_.ports_refuse = true;
  send(200);
  wait(500'000'000, 1'000'000);
  io_.ports_refuse = false;
  wait(10'000);
  EXPECT_EQ(account()["left"], 200) << "it has only been late";
  io_.ports_refuse = true;
  send(200, 1000, 2);
  wait(1'500'000'000, 1'000'000);
  EXPECT_EQ(account()["failed_refused"], 200);
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(TheDevice, CountsFromZeroWithEachTrial) {
  configure(R"({"forward": {"rules": [{"every": 3, "do": "drop"}]}})");
  send(5, 1000, 1);
  send(5, 1000, 2);
  const Json trials = device_.report()["trials"];
  ASSERT_EQ(trials.size(), 2U);
  for (const Json& trial : trials) {
    EXPECT_EQ(trial["forward"]["losses"][0]["first"], 2);
    EXPECT_EQ(trial["forward"]["rules"], Json::parse(R"([{"reached": 5, "chosen": 1}])"));
    EXPECT_EQ(trial["lasted_ns"], 4000);
  }
  EXPECT_EQ(device_.report({.trial = 2})["trials"].size(), 1U);
  const Json brief = device_.report({.brief = true})["trials"];
  ASSERT_EQ(brief.size(), 1U);
  EXPECT_EQ(brief[0]["trial_id"], 2);
  EXPECT_FALSE(brief[0]["forward"].contains("losses"));
  EXPECT_EQ(brief[0]["forward"]["foreground"]["dropped_by_rule"], 1);
}

TEST_F(TheDevice, CanBeToldSomethingElseInMidTrial) {
  configure(R"({"forward": {"rules": [{"do": {"reorder": {"distance": 100}}}]}})");
  send(5);
  EXPECT_TRUE(numbers().empty());
  configure(R"({"forward": {"rules": [{"when": {"from_ns": 1000, "since": "configured"},
                                       "do": "drop"}]}})");
  for (uint64_t i = 5; i < 8; ++i) {
    io_.arriving[0].push_back(frame(i));
    device_.step();
    io_.clock_ns += 1000;
  }
  EXPECT_EQ(numbers(), (std::vector<uint64_t>{0, 1, 2, 3, 4, 5}));
  ASSERT_EQ(device_.report()["trials"].size(), 1U) << "the trial goes on";
  EXPECT_EQ(account()["dropped_by_rule"], 2);
}

TEST_F(TheDevice, LeavesOtherPacketsAloneUnlessARuleIsAboutThem) {
  configure(R"({"forward": {"service": {"rate_fps": 1, "queue_frames": 0},
                            "rules": [{"do": "drop"}]}})");
  send_strangers(5);
  EXPECT_EQ(strangers_left(), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(others()["other_dropped_by_rule"], 0);
  EXPECT_EQ(others()["other_left"], 5);
}

TEST_F(TheDevice, ServesOtherPacketsWhereThatIsSaid) {
  configure(R"({"forward": {"service": {"rate_fps": 250000, "queue_frames": 1, "others": true}}})");
  send_strangers(9);
  wait(10'000);
  // One each 4 us, one more may wait: of those that come each 1 us it takes 0, 1, 4 and 8.
  EXPECT_EQ(strangers_left(), (std::vector<int>{0, 1, 4, 8}));
  EXPECT_EQ(others()["other_dropped_by_queue"], 5);
  send(1);
  EXPECT_THROW(configure(R"({"forward": {"service": {"rate_fps": 1, "queue_frames": 0,
                             "queues": 2, "hash": "addresses", "others": true}}})"),
               control::ProtocolError);
}

TEST_F(TheDevice, DoesToOtherPacketsWhatRulesForThemSay) {
  configure(R"({"forward": {"rules": [{"match": "other", "every": 3, "do": "drop"},
                                      {"match": "other", "every": 4, "do": "duplicate"},
                                      {"match": "other", "every": 2, "do": {"delay_ns": 2500}}]}})");
  send_strangers(9);
  send(6);
  wait(5000);
  // 2, 5 and 8 are dropped; of 0, 1, 3, 4, 6, 7 the fourth has a copy, and each second waits, the
  // fourth and its copy, too.
  EXPECT_EQ(strangers_left(), (std::vector<int>{0, 3, 1, 6, 4, 4, 7}));
  EXPECT_EQ(numbers().size(), 7U + 6);
  EXPECT_EQ(account()["left"], 6) << "test frames are none of their business";
  EXPECT_EQ(account()["delayed"], 0);
  const Json json = others();
  EXPECT_EQ(json["other_frames"], 9);
  EXPECT_EQ(json["other_dropped_by_rule"], 3);
  EXPECT_EQ(json["other_copies"], 1);
  EXPECT_EQ(json["other_left"], 7);
  EXPECT_EQ(json["held"], 0);
  EXPECT_EQ(json["other_rules"], Json::parse(R"([{"reached": 9, "chosen": 3},
                                                 {"reached": 6, "chosen": 1},
                                                 {"reached": 6, "chosen": 3}])"));
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(TheDevice, DelaysOtherPacketsToTheNanosecondThatItLooksAt) {
  configure(R"({"forward": {"rules": [{"match": "other", "do": {"delay_ns": 1000000}}]}})");
  send_strangers(3);
  EXPECT_EQ(others()["held"], 3);
  wait(2'000'000);
  ASSERT_EQ(io_.left[1].size(), 3U);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(io_.left[1][i].at_ns, 2'000'000 + 1000 * i);
}

TEST_F(TheDevice, DrawsTheSameForOtherPacketsWhateverTrialsRun) {
  const std::string chance = R"({"seed": 3, "forward": {"rules": [
      {"match": "other", "probability": 0.3, "do": "drop"},
      {"match": "other", "do": {"delay_ns": {"from": 0, "to": 9000}}}]}})";
  configure(chance);
  send_strangers(100);
  wait(10'000);
  const std::vector<int> first = strangers_left();
  EXPECT_LT(first.size(), 90U);
  EXPECT_GT(first.size(), 50U);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end())) << "they may overtake each other";
  io_.left[1].clear();
  configure(chance);
  send_strangers(50);
  send(2, 0, 7);  // a trial begins
  for (uint8_t i = 50; i < 100; ++i) {
    io_.arriving[0].push_back(stranger(i));
    device_.step();
    io_.clock_ns += 1000;
  }
  wait(10'000);
  EXPECT_EQ(strangers_left(), first);
}

TEST_F(TheDevice, CountsTheTimeOfOtherPacketsSinceItWasConfigured) {
  send(3);
  io_.left[1].clear();
  configure(R"({"forward": {"rules": [{"match": "other", "when": {"from_ns": 1000, "to_ns": 3000},
                                       "do": "drop"}]}})");
  send_strangers(5);
  EXPECT_EQ(strangers_left(), (std::vector<int>{0, 3, 4}));
}

TEST_F(TheDevice, TakesNoNeighbourDiscoveryAndNoOtherProtocolForAnOtherPacket) {
  configure(R"({"forward": {"rules": [{"match": "other", "do": "drop"}]}})");
  Bytes question(net::kNeighbourFrameBytes);
  question.resize(net::write_request(*net::IpAddress::parse("2001:2::2"), {{2, 0, 0, 0, 0, 9}},
                                     *net::IpAddress::parse("2001:2::1"), question.data()));
  io_.arriving[0] = {question,     stranger(1, 0x0806), stranger(2, 0x88cc),
                     Bytes(13, 0), stranger(3),         stranger(4, 0x86dd),
                     frame(0)};
  device_.step();
  ASSERT_EQ(io_.left[1].size(), 5U);
  EXPECT_EQ(others()["other_dropped_by_rule"], 2);
}

TEST_F(TheDevice, SaysWhenItHasNoRoomForOtherPackets) {
  io_.hold_room = 3;
  configure(R"({"forward": {"rules": [{"match": "other", "do": "duplicate"},
                                      {"match": "other", "do": {"delay_ns": 1000000}}]}})");
  send_strangers(5);
  EXPECT_EQ(others()["other_failed"], 7);
  wait(2'000'000);
  EXPECT_EQ(others()["other_left"], 3);
  EXPECT_EQ(others()["other_failures"], 7);
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(TheDevice, GivesUpOtherPacketsThatAPortRefuses) {
  configure(R"({"forward": {"rules": [{"match": "other", "do": "duplicate"}]}})");
  io_.ports_refuse = true;
  send_strangers(50);
  wait(1'500'000'000, 1'000'000);
  EXPECT_EQ(others()["other_failed"], 100);
  EXPECT_EQ(io_.owned(), 0U);
}

// What a rule for others delayed leaves as it was told, whatever comes after.
TEST_F(TheDevice, ForgetsNoOtherPacketWhenItIsToldSomethingElse) {
  configure(R"({"forward": {"rules": [{"match": "other", "do": {"delay_ns": 50000}}]}})");
  send_strangers(3);
  configure("{}");
  io_.arriving[0].push_back(stranger(9));
  wait(100'000);
  EXPECT_EQ(strangers_left(), (std::vector<int>{9, 0, 1, 2}));
  EXPECT_EQ(others()["other_rules"], Json::array());
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(TheDevice, RoutesOtherPacketsBeforeItsRulesSeeThem) {
  configure(R"({"routing": {"left": ["198.18.0.1"], "right": ["198.19.0.1"]},
                "reverse": {"rules": [{"match": "other", "every": 2, "do": "drop"}]}})");
  io_.arriving[0] = {stranger(200)};  // to learn a neighbour; for somebody else, so dropped
  device_.step();
  Bytes through = stranger(64);
  std::copy(kOwn[1].bytes.begin(), kOwn[1].bytes.end(), through.begin());
  io_.arriving[1] = {through, stranger(64), through, through};
  device_.step();
  ASSERT_EQ(io_.left[0].size(), 2U);
  EXPECT_EQ(io_.left[0][0].bytes[22], 63) << "TTL 64 less one";
  const Json device = device_.report()["device"];
  EXPECT_EQ(device["forward"]["other_dropped"], 1);
  EXPECT_EQ(device["reverse"]["other_dropped"], 1);
  EXPECT_EQ(device["reverse"]["other_frames"], 3);
  EXPECT_EQ(device["reverse"]["other_dropped_by_rule"], 1);
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(TheDevice, AnswersAsARouterAndRoutes) {
  configure(R"({"routing": {"left": ["198.18.0.1"], "right": ["198.19.0.1"]}})");
  const auto ask = [&](size_t side, const char* own, const char* target) {
    Bytes question(net::kNeighbourFrameBytes);
    question.resize(net::write_request(*net::IpAddress::parse(own), {{2, 0, 0, 0, 0, 9}},
                                       *net::IpAddress::parse(target), question.data()));
    io_.arriving[side].push_back(question);
    device_.step();
    device_.step();
  };
  ask(0, "198.18.0.2", "198.18.0.1");
  ask(1, "198.19.0.2", "198.19.0.1");
  for (const size_t side : {0, 1}) {
    ASSERT_EQ(io_.left[side].size(), 1U);
    const Bytes& reply = io_.left[side][0].bytes;
    EXPECT_EQ(net::parse_answer(reply.data(), reply.size())->mac, kOwn[side]);
  }
  Bytes through = frame(0);
  std::copy(kOwn[0].bytes.begin(), kOwn[0].bytes.end(), through.begin());
  io_.arriving[0] = {through, frame(1)};  // the second is for somebody else
  device_.step();
  ASSERT_EQ(io_.left[1].size(), 2U);
  EXPECT_EQ(io_.left[1][1].sequence, 0U);
  EXPECT_EQ(io_.left[1][1].bytes[22], 9) << "TTL 10 less one";
  EXPECT_EQ(account()["dropped_by_routing"], 1);
  configure("{}");
  EXPECT_EQ(device_.report()["device"]["forward"]["other_dropped"], 0);
  io_.arriving[0] = {frame(2)};
  device_.step();
  EXPECT_EQ(account()["dropped_by_routing"], 2) << "without the key it stays a router";
}

// Everything at once, at random: what left agrees with the account, and a tester's tracker with it.
TEST_F(TheDevice, AccountsForEveryFrameWhateverItDoes) {
  configure(R"({"seed": 4, "forward": {
    "service": {"rate_fps": 900000, "queue_frames": 20},
    "freezes": [{"at_ns": 2000000, "for_ns": 30000}],
    "rules": [{"probability": 0.02, "do": "drop"},
              {"probability": 0.1, "do": "duplicate"},
              {"probability": 0.1, "do": {"delay_ns": {"from": 0, "to": 40000}}},
              {"every": 7, "do": {"reorder": {"distance": 5}}},
              {"every": 50, "do": {"reorder": {"distance": 11, "at_most_ns": 3000}}},
              {"probability": 0.05, "do": {"corrupt": "payload"}},
              {"when": {"from_ns": 3000000, "to_ns": 3100000}, "do": "drop"}]}})");
  constexpr uint64_t kFrames = 6000;
  std::mt19937_64 random(6);
  for (uint64_t i = 0; i < kFrames; ++i) {
    io_.arriving[0].push_back(frame(i));
    if (random() % 3 == 0) device_.step();
    io_.clock_ns += random() % 2000;
  }
  wait(1'000'000);

  measure::SequenceTracker tracker;
  tracker.reset(kFrames);
  uint64_t corrupt = 0;
  for (const auto& departure : io_.left[1]) {
    const auto classified = net::classify(departure.bytes.data(), departure.bytes.size());
    if (net::checksums_hold(departure.bytes.data(), classified)) {
      measure::testing::arrive(tracker, departure.sequence);
    } else {
      ++corrupt;
    }
  }
  const Json c = account();
  const auto count = [&](const char* key) { return c[key].get<uint64_t>(); };
  const auto damaged = c["corrupted_left"]["payload"].get<uint64_t>();
  const auto damaged_copies = c["corrupted_copies_left"]["payload"].get<uint64_t>();
  EXPECT_EQ(count("seen"), kFrames);
  EXPECT_EQ(count("seen"), count("left") + count("dropped_by_rule") + count("dropped_by_queue"));
  EXPECT_EQ(tracker.received(), count("left") - damaged);
  EXPECT_EQ(tracker.duplicate(), count("copies_left") - damaged_copies);
  EXPECT_EQ(tracker.reordered(), count("out_of_order"));
  EXPECT_EQ(corrupt, damaged + damaged_copies);
  for (const char* key : {"dropped_by_rule", "dropped_by_queue", "copies_left", "out_of_order",
                          "displaced", "displaced_less", "delayed"}) {
    EXPECT_GT(count(key), 10U) << key << ": the test is about something";
  }
  EXPECT_EQ(io_.owned(), 0U);
}

constexpr const char* kTenToHundreds =
    R"({"vlan": {"left": [{"id": 10}], "right": [{"tpid": 34984, "id": 100}, {"id": 10, "pcp": 1}]},
        "forward": {"rules": [{"every": 3, "do": "duplicate"}, {"match": "other", "do": "duplicate"}]}})";
const Bytes kTen = {0x81, 0x00, 0x00, 10};
const Bytes kHundredTen = {0x88, 0xa8, 0x00, 100, 0x81, 0x00, 0x20, 10};

TEST_F(TheDevice, GivesFramesTheTagsOfTheSideWhereTheyLeave) {
  configure(kTenToHundreds);
  for (uint64_t i = 0; i < 3; ++i) io_.arriving[0].push_back(tagged(frame(i), kTen));
  io_.arriving[0].push_back(tagged(stranger(), kTen));
  io_.arriving[1].push_back(tagged(frame(0), kHundredTen));
  device_.step();
  ASSERT_EQ(io_.left[1].size(), 6U);
  const uint64_t expected[] = {0, 1, 2, 2};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(io_.left[1][i].bytes, tagged(frame(expected[i]), kHundredTen)) << i;
  }
  for (size_t i = 4; i < 6; ++i) {
    EXPECT_EQ(io_.left[1][i].bytes, tagged(stranger(), kHundredTen)) << i;
  }
  ASSERT_EQ(io_.left[0].size(), 1U);
  EXPECT_EQ(io_.left[0][0].bytes, tagged(frame(0), kTen));
  EXPECT_EQ(account()["seen"], 3);
  configure(R"({"vlan": {}})");
  io_.arriving[0].push_back(tagged(frame(0), kTen));
  device_.step();
  EXPECT_EQ(io_.left[1].back().bytes, tagged(frame(0), kTen)) << "a wire leaves tags alone";
}

TEST_F(TheDevice, DropsFramesOfOtherNetworks) {
  configure(kTenToHundreds);
  for (const Bytes& tags : {Bytes{}, Bytes{0x81, 0, 0, 11}, Bytes{0x88, 0xa8, 0, 10}}) {
    io_.arriving[0].push_back(tagged(frame(0), tags));
  }
  io_.arriving[0].push_back({1, 2, 3});
  device_.step();
  EXPECT_TRUE(io_.left[1].empty());
  EXPECT_EQ(device_.report()["device"]["forward"]["other_dropped"], 4);
  EXPECT_EQ(io_.owned(), 0U);
}

// As the tester's end puts them in.
Bytes tunnelled(Bytes bytes) {
  net::TunnelEnds ends;
  ends.kind = net::Tunnel::kIp;
  ends.local = *net::IpAddress::parse("2001:2::2");
  ends.remote = *net::IpAddress::parse("2001:2::1");
  const net::Encapsulation outer(ends);
  const size_t size = bytes.size();
  bytes.resize(size + outer.bytes());
  outer.put_in(bytes.data(), size);
  return bytes;
}
// As they arrive there.
Bytes from_device(Bytes bytes) {
  bytes = tunnelled(std::move(bytes));
  std::swap_ranges(bytes.begin() + 22, bytes.begin() + 38, bytes.begin() + 38);
  return bytes;
}
constexpr const char* kTunnelOnTheLeft =
    R"({"encapsulation": {"left": {"kind": "ip", "local": "2001:2::1", "remote": "2001:2::2"}}})";

TEST_F(TheDevice, TakesOuterHeadersOutAndPutsThemIn) {
  configure(kTunnelOnTheLeft);
  io_.arriving[0] = {tunnelled(frame(0)), tunnelled(frame(1)), tunnelled(stranger())};
  io_.arriving[1] = {frame(0), stranger()};
  device_.step();
  ASSERT_EQ(io_.left[1].size(), 3U);
  EXPECT_EQ(io_.left[1][0].bytes, frame(0));
  EXPECT_EQ(io_.left[1][1].bytes, frame(1));
  EXPECT_EQ(io_.left[1][2].bytes, stranger());
  ASSERT_EQ(io_.left[0].size(), 2U);
  EXPECT_EQ(io_.left[0][0].bytes, from_device(frame(0)));
  EXPECT_EQ(io_.left[0][1].bytes, from_device(stranger()));
  EXPECT_EQ(account()["seen"], 2);
  configure(R"({"encapsulation": {}})");
  io_.arriving[0].push_back(tunnelled(frame(2)));
  device_.step();
  EXPECT_EQ(io_.left[1].back().bytes, tunnelled(frame(2))) << "a wire leaves them alone";
}

TEST_F(TheDevice, DropsTestFramesBesideTheTunnelAndThoseThatHaveNoRoomInIt) {
  configure(kTunnelOnTheLeft);
  io_.arriving[0] = {frame(0)};
  io_.most_frame_bytes = frame(1).size() + 39;
  io_.arriving[1] = {frame(1)};
  device_.step();
  EXPECT_TRUE(io_.left[0].empty());
  EXPECT_TRUE(io_.left[1].empty());
  EXPECT_EQ(device_.report()["device"]["forward"]["other_dropped"], 1);
  EXPECT_EQ(io_.owned(), 0U);
}

Bytes inside_tunnel(Bytes bytes, const char* src, const char* dst) {
  net::TunnelEnds ends;
  ends.kind = net::Tunnel::kIp;
  ends.local = *net::IpAddress::parse(src);
  ends.remote = *net::IpAddress::parse(dst);
  const net::Encapsulation outer(ends);
  const size_t size = bytes.size();
  bytes.resize(size + outer.bytes());
  outer.put_in(bytes.data(), size);
  return bytes;
}

// RFC 7597: a border relay for one rule, its edges on the left.
TEST_F(TheDevice, AsABorderRelayTakesFramesOfTheirEdgesAndFindsWhereTheyGo) {
  configure(
      R"({"encapsulation": {"left": {"kind": "ip", "local": "2001:2::1", "remote": "2001:db8::",
                                           "remote_bits": 40}},
                "map": {"left": {"ipv6_prefix": "2001:db8::/40", "ipv4_prefix": "198.18.0.0/24",
                                 "ea_bits": 16}}})");
  const auto ip = [](const char* text) { return *net::IpAddress::parse(text); };
  const auto packet = [&](const char* src, uint16_t src_port, const char* dst, uint16_t dst_port) {
    net::FrameLayout layout = net::testing::sample_layout(4, 128);
    layout.src_ip = ip(src);
    layout.src_port = src_port;
    layout.dst_ip = ip(dst);
    layout.dst_port = dst_port;
    return net::testing::reference_frame(layout,
                                         net::testing::tagged_payload(layout, {1, 0, 0}, 0, 0));
  };
  constexpr const char* kEdge = "2001:db8:12:3400:0:c612:12:34";
  const Bytes own = packet("198.18.0.18", 1232, "198.19.0.2", 7);
  const Bytes answer = packet("198.19.0.2", 7, "198.18.0.18", 1235);
  io_.arriving[0] = {
      inside_tunnel(own, kEdge, "2001:2::1"),
      inside_tunnel(own, "2001:db8:12:3500:0:c612:12:35", "2001:2::1"),
      inside_tunnel(packet("198.18.0.18", 1236, "198.19.0.2", 7), kEdge, "2001:2::1"),
      inside_tunnel(packet("198.18.0.18", 1023, "198.19.0.2", 7), kEdge, "2001:2::1")};
  io_.arriving[1] = {answer, packet("198.19.0.2", 7, "198.18.0.18", 1023),
                     packet("198.19.0.2", 7, "198.18.1.18", 1235)};
  device_.step();
  ASSERT_EQ(io_.left[1].size(), 1U);
  EXPECT_EQ(io_.left[1][0].bytes, own);
  const Json counts = device_.report()["device"]["forward"];
  EXPECT_EQ(counts["other_dropped"], 3);
  EXPECT_EQ(counts["other_dropped_of_another"], 2);
  EXPECT_EQ(counts["other_dropped_of_nobody"], 1);
  ASSERT_EQ(io_.left[0].size(), 1U);
  EXPECT_EQ(io_.left[0][0].bytes, inside_tunnel(answer, "2001:2::1", kEdge));
  EXPECT_EQ(io_.owned(), 0U);
}

// RFC 5969: a border relay of a 6rd domain, its edges on the left.
TEST_F(TheDevice, AsABorderRelayOf6rdTakesWhatItsPrefixesSayAndSendsToTheAddressInThem) {
  configure(
      R"({"encapsulation": {"left": {"kind": "ip", "local": "198.18.0.1", "remote": "10.0.0.0",
                                     "remote_bits": 8}},
          "sixrd": {"left": {"ipv6_prefix": "2001:db8::/32", "ipv4_prefix": "10.0.0.0/8"}}})");
  const auto ip = [](const char* text) { return *net::IpAddress::parse(text); };
  const auto packet = [&](const char* src, const char* dst) {
    net::FrameLayout layout = net::testing::sample_layout(6, 128);
    layout.src_ip = ip(src);
    layout.dst_ip = ip(dst);
    return net::testing::reference_frame(layout,
                                         net::testing::tagged_payload(layout, {1, 0, 0}, 0, 0));
  };
  const Bytes own = packet("2001:db8:102:300::1", "2001:2:0:8000::2");
  const Bytes answer = packet("2001:2:0:8000::2", "2001:db8:405:600::1");
  io_.arriving[0] = {
      inside_tunnel(own, "10.1.2.3", "198.18.0.1"), inside_tunnel(own, "10.1.2.4", "198.18.0.1"),
      inside_tunnel(packet("2001:db9::1", "2001:2:0:8000::2"), "10.1.2.3", "198.18.0.1")};
  io_.arriving[1] = {answer, packet("2001:2:0:8000::2", "2001:db9::1")};
  device_.step();
  ASSERT_EQ(io_.left[1].size(), 1U);
  EXPECT_EQ(io_.left[1][0].bytes, own);
  const Json counts = device_.report()["device"]["forward"];
  EXPECT_EQ(counts["other_dropped_of_another"], 1);
  EXPECT_EQ(counts["other_dropped_of_nobody"], 1);
  ASSERT_EQ(io_.left[0].size(), 1U);
  EXPECT_EQ(io_.left[0][0].bytes, inside_tunnel(answer, "198.18.0.1", "10.4.5.6"));
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(TheDevice, AnswersItsNeighboursWithTheirTags) {
  configure(R"({"routing": {"left": ["198.18.0.1"], "right": ["198.19.0.1"]},
                "vlan": {"left": [{"id": 10}]}})");
  uint8_t question[net::kTaggedNeighbourFrameBytes];
  const auto ip = [](const char* text) { return *net::IpAddress::parse(text); };
  const size_t size =
      net::write_request(ip("198.18.0.2"), {{2, 0, 0, 0, 0, 1}}, ip("198.18.0.1"), question);
  io_.arriving[0].push_back(tagged({question, question + size}, kTen));
  device_.step();
  device_.step();
  ASSERT_EQ(io_.left[0].size(), 1U);
  Bytes reply = io_.left[0][0].bytes;
  EXPECT_EQ(Bytes(reply.begin() + 12, reply.begin() + 16), kTen);
  reply.erase(reply.begin() + 12, reply.begin() + 16);
  const auto answer = net::parse_answer(reply.data(), reply.size());
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->mac, kOwn[0]);
}

}  // namespace
}  // namespace dutperf::refdut
