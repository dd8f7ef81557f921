// Exact loss, duplicates, reordering and loss runs of one stream: one bit per intended frame.
//
// 60 s at 14.88 Mfps take 112 MB (107 MiB). `received + lost == sent` holds by construction: a
// frame is counted as received the first time only.
//
// A stream that has more frames than there is memory for gets a window that slides with the highest
// number seen. What arrives from beyond it cannot be told from a duplicate; it counts as `unplaced`
// and not as received. Without a window nothing is ever unplaced.
//
// Frames arrive in bursts; `record` takes one at a time and keeps what later stages may use.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/arrival.h"
#include "measure/histogram.h"
#include "measure/share.h"

namespace dutperf::measure {

// Frames lost in a row; none: nothing was lost.
struct LossRun {
  uint64_t first = 0;
  uint64_t frames = 0;

  bool operator==(const LossRun&) const = default;
};

class SequenceTracker {
 public:
  static constexpr unsigned kRunBits = 10;

  static constexpr uint64_t bytes_for(uint64_t frames) { return (frames + 63) / 64 * 8; }

  // Prepares for `frames` frames with numbers 0 .. frames-1; keeps memory of earlier trials. At
  // most `max_bytes` of bits, at least one word. A frame is reordered when one whose number is
  // higher by more than `reordering_distance` was here before: of the same of `paths`, which the
  // frames take in turn, and by the same of `queues`, for ports and queues are looked at one after
  // the other.
  void reset(uint64_t frames, uint64_t max_bytes = UINT64_MAX, uint64_t reordering_distance = 0,
             size_t paths = 1, size_t queues = 1);

  // Counts `count` arrivals by one queue, at least one, and moves those that are here for the first
  // time to the front. Returns how many these are. Numbers that are none of the stream's add to
  // `impossible()`.
  uint32_t record(Arrival* arrivals, uint32_t count, size_t queue = 0) {
    if (paths_ == 1 && record_row(arrivals, count, queue)) return count;
    uint32_t first = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t sequence = arrivals[i].sequence;
      if (sequence >= frames_) [[unlikely]] {
        ++impossible_;
        continue;
      }
      const uint64_t word = sequence / 64;
      if (word > newest_word_) {
        slide(word);
      } else if (newest_word_ - word >= window_words_) [[unlikely]] {
        ++unplaced_;
        continue;
      }
      uint64_t& bits = seen_[word & word_mask_];
      const uint64_t bit = 1ULL << (sequence % 64);
      if ((bits & bit) != 0) [[unlikely]] {
        ++duplicate_;
        continue;
      }
      bits |= bit;
      uint64_t& expected = in_one_order_ ? next_expected_ : expected_of(sequence, queue);
      if (sequence + reordering_distance_ + 1 < expected) ++reordered_;
      expected = sequence < expected ? expected : sequence + 1;
      next_expected_ = std::max(next_expected_, expected);
      arrivals[first++] = arrivals[i];
    }
    received_ += first;
    return first;
  }

  // After the trial: completes the loss runs, given that frames 0 .. sent-1 left.
  void finish(uint64_t sent);
  // The same in place of recording: as if all that the shares' trackers have had come here, of
  // whose frames the first `sent` left. REQUIRES: reset for all frames; nobody has a window.
  void finish(std::span<const SequenceTracker* const> shares, std::span<const uint64_t> sent);

  uint64_t received() const { return received_; }
  uint64_t duplicate() const { return duplicate_; }
  uint64_t reordered() const { return reordered_; }
  uint64_t impossible() const { return impossible_; }
  uint64_t unplaced() const { return unplaced_; }
  // What it keeps from trial to trial.
  uint64_t held_bytes() const { return 8 * seen_.size(); }
  // How far back duplicates are told apart, in frames; 0: all the way.
  uint64_t window_frames() const { return windowed() ? window_words_ * 64 : 0; }
  // Bit k: frame 64 * word + k arrived. REQUIRES: no window, word below bytes_for(frames) / 8.
  uint64_t seen_word(uint64_t word) const { return seen_[word]; }
  // How many of the frames begin .. end-1 did not arrive. REQUIRES: no window, end <= frames.
  uint64_t missing_among(uint64_t begin, uint64_t end) const;
  // How many frames were lost in a row; complete after finish().
  const Histogram& loss_runs() const { return loss_runs_; }
  // The first of the longest ones, and the last one; complete after finish().
  const LossRun& longest_loss() const { return longest_loss_; }
  const LossRun& last_loss() const { return last_loss_; }

 private:
  // The usual case: all arrivals are new and follow each other. False, and nothing done, otherwise.
  bool record_row(const Arrival* arrivals, uint32_t count, size_t queue) {
    const uint64_t first = arrivals[0].sequence;
    const uint64_t end = first + count;
    if (first < next_expected_ || first >= frames_ || end > frames_ || count > 64) return false;
    uint64_t gaps = 0;
    for (uint32_t i = 0; i < count; ++i) gaps |= arrivals[i].sequence ^ (first + i);
    if (gaps != 0) return false;
    // Nobody has come from next_expected_ on, so none of the bits is set.
    const uint64_t bits = UINT64_MAX >> (64 - count);
    if (first / 64 > newest_word_) slide(first / 64);
    seen_[first / 64 & word_mask_] |= bits << (first % 64);
    if ((end - 1) / 64 > newest_word_) {
      slide((end - 1) / 64);
      seen_[(end - 1) / 64 & word_mask_] |= bits >> (64 - first % 64);
    }
    received_ += count;
    next_expected_ = end;
    if (!in_one_order_) expected_in_[queue] = end;
    return true;
  }

  uint64_t& expected_of(uint64_t sequence, size_t queue) {
    return expected_in_[queue * paths_ + sequence % paths_];
  }
  void put_in_turn(const SequenceTracker& part, Share share);
  // Frames that never left, of those before `end`, are no losses; `present`: or are again.
  void set_unsent(std::span<const uint64_t> sent, uint64_t end, bool present);

  bool windowed() const { return word_mask_ != UINT64_MAX; }
  // Makes `word` the newest one of the window.
  void slide(uint64_t word) {
    if (windowed()) slide_window(word);
    newest_word_ = word;
  }
  void slide_window(uint64_t word);
  // Adds the word's frames to the loss runs. Words come in order.
  void account_runs(uint64_t bits, uint64_t frames);
  // The frame `end` is not lost, or was not sent.
  void end_run(uint64_t end);

  std::vector<uint64_t> seen_;
  uint64_t frames_ = 0;
  uint64_t window_words_ = 0;
  uint64_t word_mask_ = UINT64_MAX;
  uint64_t newest_word_ = 0;
  uint64_t reordering_distance_ = 0;
  uint64_t next_expected_ = 0;  // of all
  uint64_t paths_ = 1;
  bool in_one_order_ = true;           // one path and one queue
  std::vector<uint64_t> expected_in_;  // else of each path, by queue
  uint64_t received_ = 0;
  uint64_t duplicate_ = 0;
  uint64_t reordered_ = 0;
  uint64_t impossible_ = 0;
  uint64_t unplaced_ = 0;
  uint64_t run_ = 0;  // frames lost in a row up to the last accounted one
  uint64_t accounted_words_ = 0;
  Histogram loss_runs_{kRunBits};
  LossRun longest_loss_;
  LossRun last_loss_;
};

}  // namespace dutperf::measure
