// Frames made of a table while another thread changes it: the way the engine reads, from the draw
// of the index to the bytes of the frame. Every frame carries a four-tuple that was written as it
// is (its last word is a checksum over the others), and its own checksums are right.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "net/classify.h"
#include "net/testing/reference_frame.h"
#include "state/table_memory.h"
#include "state/testing/checked_tuples.h"
#include "vary/frame_writer.h"

namespace dutperf::vary {
namespace {

constexpr uint64_t kEntries = 96;          // few, so that reader and writer meet
constexpr uint64_t kLeastBursts = 40'000;  // of the reader, and of the writer meanwhile
constexpr uint64_t kMostBursts = 400'000;  // of either

class TornFrame : public ::testing::TestWithParam<int> {
 protected:
  TornFrame() { churner_.fill(); }

  // The tuple as it was learned: a frame carries it with its ends swapped.
  std::vector<uint32_t> learned_tuple(const uint8_t* frame) const {
    const size_t bytes = state::TupleTable::bytes_per_entry(GetParam());
    const size_t address = (bytes - 4) / 2;
    const uint8_t* const carried = state::TupleTable::tuple_of(frame, GetParam());
    std::vector<uint8_t> tuple(carried + address, carried + 2 * address);
    tuple.insert(tuple.end(), carried, carried + address);
    tuple.insert(tuple.end(), carried + bytes - 2, carried + bytes);
    tuple.insert(tuple.end(), carried + bytes - 4, carried + bytes - 2);
    std::vector<uint32_t> words(bytes / 4);
    std::memcpy(words.data(), tuple.data(), bytes);
    return words;
  }

  void read() {
    std::mt19937_64 random(2);
    std::vector<std::vector<uint8_t>> buffers(kMaxBurst, writer_.template_bytes());
    std::array<uint8_t*, kMaxBurst> frames;
    for (uint32_t i = 0; i < kMaxBurst; ++i) frames[i] = buffers[i].data();
    uint64_t sequence = 0;
    FrameWriter::Burst burst;
    const auto enough = [&](uint64_t done) {
      return done >= kLeastBursts && churner_.written_bursts() >= kLeastBursts;
    };
    for (uint64_t done = 0; done < kMostBursts && !enough(done); ++done) {
      const auto count = static_cast<uint32_t>(1 + random() % kMaxBurst);
      Lanes sequences;
      lanes::count_up(sequence, sequences, count);
      writer_.compose(sequences, count, done, burst);
      writer_.store(burst, frames.data(), 0);
      sequence += count;
      unlearned_ += burst.unlearned();
      for (uint32_t i = 0; i < count; ++i) look_at(buffers[i]);
    }
    readers_ = 0;
  }

  void look_at(const std::vector<uint8_t>& frame) {
    const std::vector<uint32_t> tuple = learned_tuple(frame.data());
    ++(state::testing::is_whole(tuple.data(), tuple.size()) ? whole_ : torn_);
    const net::Classified classified = net::classify(frame.data(), frame.size());
    const bool is_right =
        classified.kind == net::FrameKind::kTest && net::checksums_hold(frame.data(), classified);
    wrong_ += is_right ? 0 : 1;
  }

  state::TableMemory memory_{state::TupleTable::bytes_for(GetParam(), kEntries)};
  state::TupleTable table_{GetParam(), kEntries, memory_.data()};
  state::testing::CheckedWriter churner_{table_};
  const FrameWriter writer_{net::testing::sample_layout(GetParam(), 128),
                            {1, 0, 0},
                            {},
                            Tuples{IndexSource::kLearned, IndexOrder::kRandom, kEntries, &table_}};
  std::atomic<int> readers_ = 1;
  uint64_t whole_ = 0;
  uint64_t torn_ = 0;
  uint64_t wrong_ = 0;
  uint64_t unlearned_ = 0;
};

TEST_P(TornFrame, IsNeverSent) {
  std::thread churner([this] { churner_.churn(readers_, kMostBursts); });
  read();
  churner.join();
  EXPECT_EQ(torn_, 0U);
  EXPECT_EQ(wrong_, 0U);
  EXPECT_EQ(unlearned_, 0U);
  EXPECT_GT(whole_, 10'000U);
  EXPECT_GT(churner_.counts().changed, 10'000U);
}

INSTANTIATE_TEST_SUITE_P(FrameWriter, TornFrame, ::testing::Values(4, 6));

}  // namespace
}  // namespace dutperf::vary
