#include "measure/sequence_tracker.h"

#include <algorithm>
#include <bit>

namespace dutperf::measure {

void SequenceTracker::reset(uint64_t frames, uint64_t max_bytes, uint64_t reordering_distance,
                            size_t paths, size_t queues) {
  const uint64_t words = bytes_for(frames) / 8;
  const uint64_t max_words = std::max<uint64_t>(max_bytes / 8, 1);
  if (words <= max_words) {
    window_words_ = words;
    word_mask_ = UINT64_MAX;
  } else {
    window_words_ = std::bit_floor(max_words);
    word_mask_ = window_words_ - 1;
  }
  if (seen_.size() < window_words_) seen_.resize(window_words_);
  std::fill_n(seen_.begin(), window_words_, 0);
  frames_ = frames;
  reordering_distance_ = reordering_distance;
  paths_ = paths;
  in_one_order_ = paths * queues == 1;
  expected_in_.assign(paths * queues, 0);
  newest_word_ = next_expected_ = received_ = duplicate_ = reordered_ = 0;
  impossible_ = unplaced_ = run_ = accounted_words_ = 0;
  loss_runs_.reset();
  longest_loss_ = last_loss_ = {};
}

void SequenceTracker::slide_window(uint64_t word) {
  // Farther than the window is long there is nothing to look at: nobody has come from there.
  const uint64_t last = std::min(word, newest_word_ + window_words_);
  for (uint64_t next = newest_word_ + 1; next <= last; ++next) {
    uint64_t& bits = seen_[next & word_mask_];
    if (next >= window_words_) {
      account_runs(bits, 64);
      ++accounted_words_;
    }
    bits = 0;
  }
  run_ += 64 * (word - last);
  accounted_words_ += word - last;
}

void SequenceTracker::account_runs(uint64_t bits, uint64_t frames) {
  if (bits == UINT64_MAX && run_ == 0) return;
  const uint64_t end = accounted_words_ * 64 + frames;
  while (frames > 0) {
    const auto lost = std::min<uint64_t>(static_cast<uint64_t>(std::countr_zero(bits)), frames);
    run_ += lost;
    frames -= lost;
    if (frames == 0) return;
    end_run(end - frames);
    bits = lost == 0 ? bits : bits >> lost;
    const auto arrived = std::min<uint64_t>(static_cast<uint64_t>(std::countr_one(bits)), frames);
    frames -= arrived;
    bits = arrived == 64 ? 0 : bits >> arrived;
  }
}

void SequenceTracker::end_run(uint64_t end) {
  if (run_ == 0) return;
  loss_runs_.record(run_);
  last_loss_ = {end - run_, run_};
  if (run_ > longest_loss_.frames) longest_loss_ = last_loss_;
  run_ = 0;
}

uint64_t SequenceTracker::missing_among(uint64_t begin, uint64_t end) const {
  uint64_t missing = 0;
  while (begin < end) {
    const uint64_t next = std::min(end, (begin / 64 + 1) * 64);
    const uint64_t mask = (UINT64_MAX >> (64 - (next - begin))) << (begin % 64);
    missing += static_cast<uint64_t>(std::popcount(~seen_[begin / 64] & mask));
    begin = next;
  }
  return missing;
}

void SequenceTracker::finish(uint64_t sent) {
  const uint64_t words = bytes_for(std::min(sent, frames_)) / 8;
  for (; accounted_words_ < words; ++accounted_words_) {
    // Words that the window has not reached yet hold nobody.
    const bool reached = !windowed() || accounted_words_ <= newest_word_;
    const uint64_t bits = reached ? seen_[accounted_words_ & word_mask_] : 0;
    account_runs(bits, std::min<uint64_t>(64, sent - accounted_words_ * 64));
  }
  end_run(sent);
}

void SequenceTracker::finish(std::span<const SequenceTracker* const> shares,
                             std::span<const uint64_t> sent) {
  uint64_t end = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    const SequenceTracker& part = *shares[i];
    const Share share{i, shares.size()};
    put_in_turn(part, share);
    received_ += part.received_;
    duplicate_ += part.duplicate_;
    reordered_ += part.reordered_;
    impossible_ += part.impossible_;
    if (sent[i] > 0) end = std::max(end, share.frame_of(sent[i] - 1) + 1);
  }
  set_unsent(sent, end, true);
  finish(end);
  set_unsent(sent, end, false);
}

void SequenceTracker::put_in_turn(const SequenceTracker& part, Share share) {
  for (uint64_t word = 0; word < bytes_for(part.frames_) / 8; ++word) {
    for (uint64_t bits = part.seen_[word]; bits != 0; bits &= bits - 1) {
      const uint64_t number = word * 64 + static_cast<uint64_t>(std::countr_zero(bits));
      const uint64_t frame = share.frame_of(number);
      seen_[frame / 64] |= 1ULL << (frame % 64);
    }
  }
}

void SequenceTracker::set_unsent(std::span<const uint64_t> sent, uint64_t end, bool present) {
  for (size_t i = 0; i < sent.size(); ++i) {
    const Share share{i, sent.size()};
    for (uint64_t frame = share.frame_of(sent[i]); frame < end; frame += sent.size()) {
      const uint64_t bit = 1ULL << (frame % 64);
      seen_[frame / 64] = present ? seen_[frame / 64] | bit : seen_[frame / 64] & ~bit;
    }
  }
}

}  // namespace dutperf::measure
