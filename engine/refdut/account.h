// What the device did, by its own account: exact counts per trial, direction and class of streams.
//
//   seen == left + dropped by a rule, the queue or routing, or as too big + incomplete + failures
//           + what is still held
//
// A failure is something that nobody told the device to do: it had no buffer, or the port did not
// take the frame. While all failures are 0, the account is the known answer.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "behaviour.h"
#include "fate.h"
#include "measure/histogram.h"
#include "ports.h"
#include "servers.h"
#include "witness.h"

namespace dutperf::refdut {

// kCounts: without histograms and lists of losses, which take a hundred times as long to tell.
enum class Detail : uint8_t { kAll, kCounts };

// 0.1 % wide buckets, exact minimum and maximum.
class Durations {
 public:
  void record(uint64_t ns) {
    histogram_.record(ns);
    sum_ns_ += ns;
  }
  void reset() {
    if (histogram_.count() == 0) return;
    histogram_.reset();
    sum_ns_ = 0;
  }
  uint64_t count() const { return histogram_.count(); }
  Json to_json() const;

 private:
  measure::Histogram histogram_{10};
  uint64_t sum_ns_ = 0;
};

using DamageLeft = std::array<uint64_t, kDamageNames.size()>;  // by Damage

// Of frames that leave in pieces.
struct PieceCounts {
  uint64_t frames = 0;   // that left so, with all their pieces
  uint64_t left = 0;     // pieces of any frame
  uint64_t dropped = 0;  // pieces that were to be lost
};

// Originals unless it says copies.
struct ClassCounts {
  uint64_t seen = 0;
  uint64_t left = 0;  // the corrupted ones included
  uint64_t copies_left = 0;
  uint64_t dropped_by_rule = 0;
  uint64_t dropped_by_queue = 0;
  uint64_t dropped_by_nat = 0;
  uint64_t dropped_by_routing = 0;  // TTL at its end, not for the router, no neighbour known
  uint64_t dropped_too_big = 0;     // for the link that they leave by, and not to be fragmented
  uint64_t incomplete = 0;          // a piece of them was to be lost; the others left
  uint64_t delayed = 0;             // a rule made them wait
  uint64_t displaced = 0;           // left behind as many frames as they were told to
  uint64_t displaced_less = 0;      // fewer: too few came in time, or some were lost or displaced
  // Intact ones that left behind one of their stream with a higher number that came and left by
  // the same ports, whatever the reason.
  uint64_t out_of_order = 0;
  DamageLeft corrupted_left{};
  DamageLeft corrupted_copies_left{};
  PieceCounts pieces;  // those of copies, too, which are no frames here
  uint64_t failed_no_buffer = 0;
  uint64_t failed_refused = 0;  // by the port, for a second

  uint64_t failures() const { return failed_no_buffer + failed_refused; }
};

// Frames that are no test frames, once the device decided to let them through:
// seen + copies == left + dropped_by_rule + dropped_too_big + incomplete + failed + what is still
// held.
struct OtherCounts {
  uint64_t seen = 0;
  uint64_t copies = 0;  // that rules added
  uint64_t left = 0;    // the copies included
  uint64_t dropped_by_rule = 0;
  uint64_t dropped_by_queue = 0;
  uint64_t dropped_too_big = 0;
  uint64_t incomplete = 0;
  PieceCounts pieces;
  uint64_t failed = 0;  // no buffer, or the port did not take them
};

enum class LossCause : uint8_t {
  kRule,
  kQueue,
  kRouting,
  kNat,
  kTooBig,
  kIncomplete,
  kNoBuffer,
  kRefused,
};

constexpr bool is_failure(LossCause cause) {
  return cause == LossCause::kNoBuffer || cause == LossCause::kRefused;
}

// Frames first .. first + count - 1 of a stream, lost one after the other for the same reason.
struct LossRun {
  uint8_t stream = 0;
  LossCause cause = LossCause::kRule;
  uint64_t first = 0;
  uint64_t count = 0;
  uint64_t from_ns = 0;  // since the trial's first frame
  uint64_t to_ns = 0;
};

// What its tag says.
struct TestFrame {
  uint16_t trial = 0;
  uint8_t stream = 0;
  bool background = false;
  uint64_t sequence = 0;
};

Json rule_counts_json(const std::vector<RuleCount>& counts);
Json piece_counts_json(const PieceCounts& counts);

class DirectionAccount {
 public:
  static constexpr size_t kMaxLossRuns = 10'000;

  DirectionAccount() { losses_.reserve(kMaxLossRuns); }
  void reset();

  ClassCounts& of(bool background) { return classes_[background]; }
  void lose(bool background, uint8_t stream, uint64_t sequence, uint64_t at_ns, LossCause cause);
  // An original or copy has left.
  enum class Displacement : uint8_t { kNone, kFull, kLess };
  struct Departure {
    uint8_t stream = 0;
    uint8_t in = 0;  // the numbers of the ports by which it came and left
    uint8_t out = 0;
    bool background = false;
    bool copy = false;
    bool delayed = false;
    bool in_pieces = false;
    Displacement displacement = Displacement::kNone;
    bool corrupted = false;
    Damage damage = Damage::kPayload;
    uint64_t sequence = 0;
    uint64_t residence_ns = 0;
    uint64_t late_ns = 0;       // after it was due
    uint64_t witnessed_ns = 0;  // as residence_ns, by another clock
  };
  void leave(const Departure& departure);

  // It came in by the port of that number.
  void see(uint8_t port, const TestFrame& frame) {
    ++classes_[frame.background].seen;
    saw_by_ |= bit(port);
    if (frame.sequence < kMostPairs) saw_first_[frame.stream] |= bit(frame.sequence);
  }
  bool saw_any_by(uint8_t port) const { return (saw_by_ & bit(port)) != 0; }
  // Frame `sequence` of a stream, one of the first kMostPairs.
  bool saw_first(uint8_t stream, uint64_t sequence) const {
    return (saw_first_[stream] & bit(sequence)) != 0;
  }
  // Frames were found at the port `ns` after it had last been looked at.
  void look(uint64_t ns) { poll_gap_.record(ns); }

  PlainReadings readings;
  std::vector<RuleCount> rules;
  std::vector<QueueCount> queues;  // empty where there is one
  uint64_t pieces_reached = 0;     // that came to the link, to leave or to be lost

  Json to_json(Detail detail = Detail::kAll) const;

 private:
  std::array<ClassCounts, 2> classes_{};
  std::array<Durations, 2> residence_;
  std::array<WitnessedTimes, 2> witnessed_;
  Durations own_error_;
  Durations poll_gap_;
  static constexpr uint8_t bit(uint64_t number) { return static_cast<uint8_t>(1U << number); }

  // By the ports of the way, and by stream.
  std::array<std::array<uint64_t, 256>, kMostPairs * kMostPairs> next_expected_{};
  std::array<uint8_t, 256> saw_first_{};  // a bit for each number
  uint8_t saw_by_ = 0;                    // a bit for each port
  std::vector<LossRun> losses_;
  uint64_t loss_runs_left_out_ = 0;
};

struct TrialAccount {
  uint64_t run = 0;  // counts the trials that the device has seen, from 1; 0: none
  uint16_t trial_id = 0;
  uint64_t began_ns = 0;  // the device's clock
  uint64_t last_ns = 0;   // the last arrival
  std::array<DirectionAccount, 2> directions;

  void reset();
  Json to_json(Detail detail = Detail::kAll) const;
};

}  // namespace dutperf::refdut
