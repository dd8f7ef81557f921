#include "measure/survival.h"

#include <gtest/gtest.h>

#include <random>

namespace dutperf::measure {
namespace {

// A tracker that saw the frames with arrived[k].
SequenceTracker tracker_of(const std::vector<bool>& arrived) {
  SequenceTracker tracker;
  tracker.reset(arrived.size());
  for (uint64_t k = 0; k < arrived.size(); ++k) {
    Arrival arrival{k, 0};
    if (arrived[k]) tracker.record(&arrival, 1);
  }
  return tracker;
}

// Frame by frame.
Survival slow_survival(const std::vector<bool>& arrived, uint64_t sent, uint64_t blocks) {
  Survival result;
  const uint64_t intended = arrived.size();
  result.block_frames = (intended + blocks - 1) / blocks;
  for (uint64_t begin = 0; begin < intended; begin += result.block_frames) {
    result.received.push_back(0);
  }
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (uint64_t k = 0; k < sent; ++k) {
    if (arrived[k]) {
      ++result.received[k / result.block_frames];
    } else if (k > 0 && !arrived[k - 1]) {
      ++ranges.back().second;
    } else {
      ranges.emplace_back(k, 1);
    }
  }
  const size_t kept = std::min(ranges.size(), kMaxLostRanges);
  result.lost_ranges.assign(ranges.begin(), ranges.begin() + static_cast<ptrdiff_t>(kept));
  result.more_ranges = ranges.size() - kept;
  return result;
}

void expect_same(const Survival& found, const Survival& expected) {
  EXPECT_EQ(found.block_frames, expected.block_frames);
  EXPECT_EQ(found.received, expected.received);
  EXPECT_EQ(found.lost_ranges, expected.lost_ranges);
  EXPECT_EQ(found.more_ranges, expected.more_ranges);
}

TEST(Survival, IsWhatCountingFrameByFrameFinds) {
  std::mt19937_64 random(20260901);
  for (int round = 0; round < 300; ++round) {
    const uint64_t intended = 1 + random() % 700;
    const uint64_t sent = random() % 3 == 0 ? random() % (intended + 1) : intended;
    const uint64_t blocks = 1 + random() % (intended + 3);
    const uint64_t stickiness = 1 + random() % 100;  // long runs and short ones
    std::vector<bool> arrived(intended);
    bool now = random() % 2 == 0;
    for (uint64_t k = 0; k < sent; ++k) {
      if (random() % stickiness == 0) now = !now;
      arrived[k] = now;
    }
    SCOPED_TRACE(::testing::Message() << "round " << round);
    expect_same(survival_of(tracker_of(arrived), intended, sent, blocks),
                slow_survival(arrived, sent, blocks));
  }
}

TEST(Survival, OfFramesThatNeverLeftSaysNothing) {
  const Survival survival = survival_of(tracker_of(std::vector<bool>(100, false)), 100, 0, 4);
  EXPECT_EQ(survival.received, (std::vector<uint64_t>{0, 0, 0, 0}));
  EXPECT_TRUE(survival.lost_ranges.empty());
}

TEST(Survival, CountsRangesThatAreTooMany) {
  std::vector<bool> arrived(2 * (kMaxLostRanges + 10), false);
  for (size_t k = 0; k < arrived.size(); k += 2) arrived[k] = true;
  const Survival survival = survival_of(tracker_of(arrived), arrived.size(), arrived.size(), 1);
  EXPECT_EQ(survival.lost_ranges.size(), kMaxLostRanges);
  EXPECT_EQ(survival.more_ranges, 10);
}

}  // namespace
}  // namespace dutperf::measure
