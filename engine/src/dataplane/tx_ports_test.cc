#include "dataplane/tx_ports.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "dataplane/trial_spec.h"

namespace dutperf::dataplane {
namespace {

// A port that takes what it has room for.
struct FakeQueue {
  uint32_t send(dpdk::Mbuf** mbufs, uint32_t count) const {
    const uint32_t taken = std::min(count, *room);
    *room -= taken;
    sent->insert(sent->end(), mbufs, mbufs + taken);
    return taken;
  }
  bool had_no_room() const { return *room == 0; }

  uint32_t* room;
  std::deque<dpdk::Mbuf*>* sent;
  dpdk::WhenFull when_full = dpdk::WhenFull::kWait;
};

// Frames that nobody looks into: only by which port they leave.
std::vector<dpdk::Mbuf> frames_of(const std::vector<uint16_t>& ports) {
  std::vector<dpdk::Mbuf> frames(ports.size());
  for (size_t i = 0; i < ports.size(); ++i) dpdk::set_leaves_by(&frames[i], ports[i]);
  return frames;
}

TEST(TxPorts, HandsEachFrameToItsPortInOrderAndKeepsTheRestBehind) {
  std::mt19937 random(5);
  const auto draw = [&](size_t below) { return static_cast<uint32_t>(random() % below); };
  for (int round = 0; round < 2'000; ++round) {
    const uint32_t ports = 1 + draw(kMaxPorts);
    std::vector<uint32_t> room(ports);
    std::vector<std::deque<dpdk::Mbuf*>> sent(ports);
    std::vector<FakeQueue> queues;
    for (uint32_t i = 0; i < ports; ++i) {
      room[i] = draw(40);
      queues.push_back({&room[i], &sent[i]});
    }
    const std::vector<uint32_t> room_before = room;
    std::vector<uint16_t> leaves_by(1 + draw(vary::kMaxBurst));
    for (uint16_t& port : leaves_by) port = static_cast<uint16_t>(draw(ports));
    std::vector<dpdk::Mbuf> frames = frames_of(leaves_by);
    std::vector<dpdk::Mbuf*> burst;
    for (dpdk::Mbuf& frame : frames) burst.push_back(&frame);

    // The obvious twin: frame by frame, while its port has room.
    std::vector<std::deque<dpdk::Mbuf*>> expected(ports);
    std::vector<std::deque<dpdk::Mbuf*>> left(ports);
    for (dpdk::Mbuf* frame : burst) {
      const uint16_t port = dpdk::leaves_by(frame);
      const bool fits = expected[port].size() < room_before[port];
      (fits ? expected : left)[port].push_back(frame);
    }
    size_t most = 0;
    for (const auto& each : expected) most += each.size();

    const TxPorts<FakeQueue> all(queues);
    const uint32_t taken = all.send(burst.data(), static_cast<uint32_t>(burst.size()));
    ASSERT_EQ(taken, most);
    EXPECT_EQ(sent, expected);
    std::vector<std::deque<dpdk::Mbuf*>> kept(ports);
    for (size_t i = taken; i < burst.size(); ++i)
      kept[dpdk::leaves_by(burst[i])].push_back(burst[i]);
    EXPECT_EQ(kept, left);
    const bool any_full = std::find(room.begin(), room.end(), 0U) != room.end();
    EXPECT_EQ(all.had_no_room(), any_full);
  }
}

}  // namespace
}  // namespace dutperf::dataplane
