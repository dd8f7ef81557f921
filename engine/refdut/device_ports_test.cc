// The device with two pairs of ports.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "device.h"
#include "measure/testing/arrive.h"
#include "net/inspection.h"
#include "testing/fake_io.h"

namespace dutperf::refdut {
namespace {

using net::IpAddress;
using net::Mac;
using testing::Bytes;
using testing::FakeIo;

IpAddress ip(const std::string& text) { return *IpAddress::parse(text); }

// Of the device and of the tester, by port_index().
Mac own_mac(size_t port) { return {{2, 0, 0, 0, 1, static_cast<uint8_t>(port)}}; }
Mac tester_mac(size_t port) { return {{2, 0, 0, 0, 2, static_cast<uint8_t>(port)}}; }

constexpr const char* kRouting = R"({"routing": {
    "left": ["198.18.0.1", "2001:2::1"], "more_left": [["198.18.1.1", "2001:2:0:1::1"]],
    "right": ["198.19.0.1", "2001:2:0:8000::1"],
    "more_right": [["198.19.1.1", "2001:2:0:8001::1"]]}})";

// The device's network at a port, with this host: 1 is the device, 2 the tester.
IpAddress host(int version, size_t port, int number) {
  const std::string pair = std::to_string(port / 2);
  const bool left = side_of(port) == 0;
  const std::string network = version == 4 ? (left ? "198.18." : "198.19.") + pair + "."
                                           : (left ? "2001:2:0:" : "2001:2:0:800") + pair + "::";
  return ip(network + std::to_string(number));
}

// A test frame from the tester at port `from` to the device, for the tester's host at `to`.
Bytes frame_between(uint64_t sequence, size_t from, size_t to, int version = 4, uint16_t trial = 1,
                    uint32_t size = 128) {
  net::FrameLayout layout = net::testing::sample_layout(version, size);
  layout.src_mac = tester_mac(from);
  layout.dst_mac = own_mac(from);
  layout.src_ip = host(version, from, 2);
  layout.dst_ip = host(version, to, 2);
  return net::testing::reference_frame(
      layout, net::testing::tagged_payload(layout, {trial, 0, 0}, sequence, 0));
}

class TwoPairs : public ::testing::Test {
 protected:
  static constexpr size_t kPorts = 4;
  static constexpr std::array<size_t, 2> kLeft = {0, 2};
  static constexpr std::array<size_t, 2> kRight = {1, 3};

  void configure(const std::string& behaviour) {
    device_.configure(parse_behaviour(Json::parse(behaviour)));
  }

  // The tester at that port asks for the device's address there.
  void ask(size_t port, int version = 4) {
    Bytes question(net::kNeighbourFrameBytes);
    question.resize(net::write_request(host(version, port, 2), tester_mac(port),
                                       host(version, port, 1), question.data()));
    io_.arriving[port].push_back(question);
    device_.step();
    device_.step();
  }

  // A router whose neighbours are all known.
  void be_router() {
    configure(kRouting);
    for (size_t port = 0; port < kPorts; ++port) ask(port);
    for (auto& departures : io_.left) departures.clear();
  }

  void wait(uint64_t ns, uint64_t step_ns = 1000) {
    for (const uint64_t end = io_.clock_ns + ns; io_.clock_ns < end; io_.clock_ns += step_ns) {
      device_.step();
    }
  }

  std::vector<uint64_t> numbers(size_t port) const {
    std::vector<uint64_t> result;
    for (const auto& departure : io_.left[port]) result.push_back(departure.sequence);
    return result;
  }

  Json account(const char* direction = "forward") {
    return device_.report()["trials"].back()[direction];
  }

  FakeIo io_;
  std::array<Mac, kPorts> macs_ = {own_mac(0), own_mac(1), own_mac(2), own_mac(3)};
  Device<FakeIo, kMostPairs> device_{io_, macs_, 10'000};
};

TEST_F(TwoPairs, SendEachFrameByThePortOfItsDestination) {
  be_router();
  uint64_t sequence = 0;
  for (const int version : {4, 6}) {
    for (const auto& [inputs, outputs] : {std::pair{kLeft, kRight}, std::pair{kRight, kLeft}}) {
      for (const size_t from : inputs) {
        for (const size_t to : outputs) {
          io_.arriving[from] = {frame_between(sequence, from, to, version)};
          device_.step();
          ASSERT_EQ(io_.left[to].size(), 1U) << version << ": " << from << " to " << to;
          net::FrameLayout layout = net::testing::sample_layout(version, 128);
          layout.src_mac = own_mac(to);
          layout.dst_mac = tester_mac(to);
          layout.src_ip = host(version, from, 2);
          layout.dst_ip = host(version, to, 2);
          --layout.ttl;
          EXPECT_EQ(io_.left[to][0].bytes,
                    net::testing::reference_frame(
                        layout, net::testing::tagged_payload(layout, {1, 0, 0}, sequence, 0)));
          io_.left[to].clear();
          for (const auto& departures : io_.left) EXPECT_TRUE(departures.empty());
          ++sequence;
        }
      }
    }
  }
  EXPECT_EQ(account("forward")["foreground"]["left"], 8);
  EXPECT_EQ(account("reverse")["foreground"]["left"], 8);
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(TwoPairs, AnswerAtEachPortForItsOwnAddressOnly) {
  configure(kRouting);
  for (const int version : {4, 6}) {
    for (size_t port = 0; port < kPorts; ++port) {
      ask(port, version);
      ASSERT_EQ(io_.left[port].size(), 1U);
      const Bytes& reply = io_.left[port][0].bytes;
      const auto answer = net::parse_answer(reply.data(), reply.size());
      EXPECT_EQ(answer->mac, own_mac(port));
      EXPECT_EQ(answer->ip, host(version, port, 1));
      io_.left[port].clear();
      for (const auto& departures : io_.left) EXPECT_TRUE(departures.empty());
    }
  }
  Bytes question(net::kNeighbourFrameBytes);
  question.resize(
      net::write_request(ip("198.18.0.2"), tester_mac(2), ip("198.18.0.1"), question.data()));
  io_.arriving[2] = {question};
  device_.step();
  device_.step();
  for (const auto& departures : io_.left) EXPECT_TRUE(departures.empty());
}

TEST_F(TwoPairs, DropWhatIsForAPortWhoseNeighbourIsUnknown) {
  configure(kRouting);
  ask(1);
  io_.arriving[0] = {frame_between(0, 0, 1), frame_between(1, 0, 3)};
  device_.step();
  EXPECT_EQ(account()["foreground"]["left"], 1);
  EXPECT_EQ(account()["foreground"]["dropped_by_routing"], 1);
  EXPECT_TRUE(io_.left[3].empty());
  ask(3);
  io_.arriving[0] = {frame_between(2, 0, 3)};
  device_.step();
  EXPECT_EQ(numbers(3).back(), 2U);
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(TwoPairs, SendWhatIsInNoNetworkToTheNearest) {
  be_router();
  Bytes packets[] = {frame_between(0, 0, 1), frame_between(1, 0, 3)};
  for (Bytes& bytes : packets) bytes[30] = 10;  // 10.19.0.2 and 10.19.1.2
  for (const Bytes& bytes : packets) io_.arriving[0].push_back(bytes);
  device_.step();
  EXPECT_EQ(io_.left[1].size(), 1U);
  EXPECT_EQ(io_.left[3].size(), 1U);
}

TEST_F(TwoPairs, AreTwoWiresUntilTheyAreARouter) {
  configure("{}");
  const Bytes stranger(60, 7);
  io_.arriving[0] = {frame_between(0, 0, 3)};
  io_.arriving[2] = {frame_between(1, 2, 1), stranger};
  io_.arriving[3] = {stranger};
  device_.step();
  ASSERT_EQ(io_.left[1].size(), 1U);
  EXPECT_EQ(io_.left[1][0].bytes, frame_between(0, 0, 3));
  ASSERT_EQ(io_.left[3].size(), 2U);
  EXPECT_EQ(io_.left[3][0].bytes, frame_between(1, 2, 1));
  EXPECT_EQ(io_.left[3][1].bytes, stranger);
  ASSERT_EQ(io_.left[2].size(), 1U);
  EXPECT_EQ(io_.left[2][0].bytes, stranger);
}

TEST_F(TwoPairs, ShareTheRulesOfTheirDirection) {
  be_router();
  configure(R"({"forward": {"rules": [{"every": 3, "do": "drop"}]}})");
  for (uint64_t i = 0; i < 12; ++i) {
    io_.arriving[kLeft[i % 2]].push_back(frame_between(i, kLeft[i % 2], kRight[i / 2 % 2]));
    device_.step();
  }
  EXPECT_EQ(numbers(1), (std::vector<uint64_t>{0, 1, 4, 9}));
  EXPECT_EQ(numbers(3), (std::vector<uint64_t>{3, 6, 7, 10}));
  EXPECT_EQ(account()["rules"][0]["reached"], 12);
  EXPECT_EQ(account()["rules"][0]["chosen"], 4);
}

TEST_F(TwoPairs, ShareTheServiceOfTheirDirection) {
  be_router();
  configure(R"({"forward": {"service": {"rate_fps": 1000000, "queue_frames": 4}}})");
  for (uint64_t i = 0; i < 10; ++i) {
    io_.arriving[kLeft[i % 2]].push_back(frame_between(i, kLeft[i % 2], kRight[i / 2 % 2]));
  }
  const uint64_t began_ns = io_.clock_ns;
  wait(20'000, 100);
  EXPECT_EQ(account()["foreground"]["left"], 5);
  EXPECT_EQ(account()["foreground"]["dropped_by_queue"], 5);
  std::vector<uint64_t> times_ns;
  for (const size_t port : kRight) {
    for (const auto& departure : io_.left[port]) times_ns.push_back(departure.at_ns - began_ns);
  }
  std::sort(times_ns.begin(), times_ns.end());
  EXPECT_EQ(times_ns, (std::vector<uint64_t>{1000, 2000, 3000, 4000, 5000}));
}

// Whatever the time between two that are let in, none of the ports is left out.
TEST_F(TwoPairs, AreWithheldAlike) {
  be_router();
  configure(
      R"({"forward": {"service": {"rate_fps": 100000, "queue_frames": 0, "withhold": true}}})");
  constexpr size_t kFrames = 200;
  for (uint64_t i = 0; i < kFrames; ++i) {
    for (const size_t port : kLeft)
      io_.arriving[port].push_back(frame_between(2 * i + port / 2, port, 1));
  }
  for (const uint64_t step_ns : {1000U, 2000U, 5000U}) {
    std::array<size_t, 2> before = {io_.arriving[0].size(), io_.arriving[2].size()};
    wait(500'000, step_ns);
    const size_t first = before[0] - io_.arriving[0].size();
    const size_t second = before[1] - io_.arriving[2].size();
    EXPECT_NEAR(static_cast<double>(first + second), 50, 1);
    EXPECT_NEAR(static_cast<double>(first), static_cast<double>(second), 1);
  }
  EXPECT_EQ(account()["foreground"]["dropped_by_queue"], 0);
}

TEST_F(TwoPairs, SendOtherPacketsAndPiecesByThePortOfTheirDestination) {
  be_router();
  configure(R"({"forward": {"fragments": {"mtu": 68}}})");
  Bytes other = frame_between(0, 0, 3);
  other[other.size() - sizeof(net::WireTag)] ^= 0xff;  // its tag is none
  const Bytes whole = frame_between(0, 0, 3, 4, 1, 64);
  io_.arriving[0] = {frame_between(1, 0, 3), whole, other};
  device_.step();
  EXPECT_TRUE(io_.left[1].empty());
  EXPECT_EQ(io_.left[3].size(), 2U + 1U + 2U);  // 90 bytes behind the IP header, of 48 at most
  EXPECT_EQ(account()["foreground"]["pieces"]["frames"], 1);
  EXPECT_EQ(device_.report()["device"]["forward"]["other_pieces"]["frames"], 1);
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(TwoPairs, LoseWhatAPortDoesNotTakeAndGoOnAtTheOther) {
  be_router();
  io_.dead_port = 3;
  io_.arriving[0] = {frame_between(0, 0, 1), frame_between(1, 0, 3), frame_between(2, 0, 1),
                     frame_between(3, 0, 3)};
  device_.step();
  EXPECT_EQ(numbers(1), (std::vector<uint64_t>{0, 2}));
  EXPECT_EQ(device_.report()["device"]["forward"]["held"], 2);
  wait(1'100'000'000, 1'000'000);
  EXPECT_EQ(account()["foreground"]["failed_refused"], 2);
  EXPECT_EQ(device_.report()["device"]["forward"]["held"], 0);
  EXPECT_EQ(io_.owned(), 0U);
}

// More than an outbox holds: those behind them wait, and keep their order.
TEST_F(TwoPairs, KeepTheOrderBehindAPortThatIsFull) {
  be_router();
  io_.dead_port = 3;
  constexpr uint64_t kForTheDead = kOutboxFrames + 1;
  for (uint64_t i = 0; i < kForTheDead; ++i) io_.arriving[0].push_back(frame_between(i, 0, 3));
  for (uint64_t i = 0; i < 10; ++i) io_.arriving[0].push_back(frame_between(kForTheDead + i, 0, 1));
  wait(10'000);
  EXPECT_TRUE(io_.left[1].empty());
  io_.dead_port.reset();
  wait(10'000);
  EXPECT_EQ(io_.left[3].size(), kForTheDead);
  EXPECT_EQ(io_.left[1].size(), 10U);
  EXPECT_EQ(account()["foreground"]["out_of_order"], 0);
}

TEST_F(TwoPairs, RefuseWhatNeedsOnePair) {
  be_router();
  for (const char* text : {R"({"routing": {"left": ["198.18.0.1"], "right": ["198.19.0.1"]}})",
                           R"({"nat": {"kind": "nat44", "public": {"first_address": "198.19.0.1"},
                    "table": {"entries": 9}}, "forward": {"rules": [{"do": "drop"}]}})"}) {
    EXPECT_THROW(configure(text), control::ProtocolError) << text;
  }
  EXPECT_EQ(device_.gateway(), nullptr);
  io_.arriving[0] = {frame_between(0, 0, 3)};
  device_.step();
  EXPECT_EQ(io_.left[3].size(), 1U) << "it goes on as before";
}

// Everything at once, at random: each port's tester agrees with the account.
TEST_F(TwoPairs, AccountForEveryFrameWhateverTheyDo) {
  be_router();
  configure(R"({"seed": 4, "forward": {
    "service": {"rate_fps": 900000, "queue_frames": 20},
    "rules": [{"probability": 0.02, "do": "drop"},
              {"probability": 0.1, "do": "duplicate"},
              {"probability": 0.1, "do": {"delay_ns": {"from": 0, "to": 40000}}},
              {"every": 7, "do": {"reorder": {"distance": 5}}},
              {"probability": 0.05, "do": {"corrupt": "payload"}}]}})");
  constexpr uint64_t kFrames = 6000;
  std::mt19937_64 random(6);
  for (uint64_t i = 0; i < kFrames; ++i) {
    const size_t from = kLeft[i % 2];
    io_.arriving[from].push_back(frame_between(i, from, kRight[i / 2 % 2]));
    if (random() % 3 == 0) device_.step();
    io_.clock_ns += random() % 2000;
  }
  wait(1'000'000);

  uint64_t received = 0;
  uint64_t duplicate = 0;
  uint64_t reordered = 0;
  for (const size_t port : kRight) {
    measure::SequenceTracker tracker;
    tracker.reset(kFrames, UINT64_MAX, 0, kRight.size() * kLeft.size());
    for (const auto& departure : io_.left[port]) {
      EXPECT_EQ(kRight[departure.sequence / 2 % 2], port);
      const auto classified = net::classify(departure.bytes.data(), departure.bytes.size());
      if (!net::checksums_hold(departure.bytes.data(), classified)) continue;
      measure::testing::arrive(tracker, departure.sequence);
    }
    received += tracker.received();
    duplicate += tracker.duplicate();
    reordered += tracker.reordered();
  }
  const Json c = account()["foreground"];
  const auto count = [&](const char* key) { return c[key].get<uint64_t>(); };
  EXPECT_EQ(count("seen"), kFrames);
  EXPECT_EQ(count("seen"), count("left") + count("dropped_by_rule") + count("dropped_by_queue"));
  EXPECT_EQ(received, count("left") - c["corrupted_left"]["payload"].get<uint64_t>());
  EXPECT_EQ(duplicate,
            count("copies_left") - c["corrupted_copies_left"]["payload"].get<uint64_t>());
  EXPECT_EQ(reordered, count("out_of_order"));
  for (const char* key : {"dropped_by_rule", "dropped_by_queue", "copies_left", "out_of_order",
                          "displaced", "delayed"}) {
    EXPECT_GT(count(key), 10U) << key << ": the test is about something";
  }
  EXPECT_EQ(io_.owned(), 0U);
}

}  // namespace
}  // namespace dutperf::refdut
