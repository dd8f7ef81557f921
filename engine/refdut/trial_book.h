// The accounts of the last trials. A trial begins with the first frame of another trial id, or with
// frame 0 of a stream that has had its frame 0: the same id was used again. With several pairs of
// ports a stream has a first frame for each port where it comes in, of numbers below their count:
// any of these may be looked at first.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "account.h"

namespace dutperf::refdut {

// What of the accounts is to be told.
struct Asked {
  std::optional<uint16_t> trial = std::nullopt;  // only those with this id
  bool brief = false;                            // the counts of the last trial
};

class TrialBook {
 public:
  static constexpr size_t kKept = 8;

  explicit TrialBook(size_t pairs = 1) : pairs_(pairs) {
    for (size_t i = 0; i <= kKept; ++i) accounts_.push_back(std::make_unique<TrialAccount>());
  }

  // The account of the trial that a frame belongs to; null before the first.
  TrialAccount* current() { return run_ == 0 ? nullptr : &at(run_); }
  // Null when it is forgotten.
  TrialAccount* find(uint64_t run) {
    TrialAccount& account = at(run);
    return run != 0 && run + kKept > run_ && account.run == run ? &account : nullptr;
  }

  // Of a frame that came in by the port of that number.
  TrialAccount& of_frame(Direction direction, uint8_t port, const TestFrame& frame,
                         uint64_t now_ns) {
    if (TrialAccount* account = current()) {
      const DirectionAccount& here = account->directions[direction];
      const bool is_first = frame.sequence < pairs_;
      if (frame.trial == account->trial_id &&
          !(is_first && here.saw_first(frame.stream, frame.sequence))) {
        return *account;
      }
      // Other ports are in the next trial already; this frame waited in a queue meanwhile.
      TrialAccount* before = find(run_ - 1);
      if (before != nullptr && frame.trial == before->trial_id && !here.saw_any_by(port) &&
          !is_first) {
        return *before;
      }
    }
    return begin(frame.trial, now_ns);
  }

  // Clearing an account takes a while: call when there is nothing else to do, so that the next
  // trial finds a clean one.
  void prepare_next() {
    TrialAccount& next = at(run_ + 1);
    if (next.run != 0) next.reset();
  }

  // From the oldest to the newest; a brief one is of the last trial.
  Json to_json(const Asked& asked) {
    const Detail detail = asked.brief ? Detail::kCounts : Detail::kAll;
    const uint64_t kept = asked.brief ? 1 : kKept;
    Json list = Json::array();
    for (uint64_t run = run_ > kept ? run_ - kept + 1 : 1; run <= run_; ++run) {
      const TrialAccount* account = find(run);
      if (account != nullptr && asked.trial.value_or(account->trial_id) == account->trial_id) {
        list.push_back(account->to_json(detail));
      }
    }
    return list;
  }

 private:
  TrialAccount& at(uint64_t run) { return *accounts_[run % accounts_.size()]; }

  TrialAccount& begin(uint16_t trial, uint64_t now_ns) {
    prepare_next();
    TrialAccount& account = at(++run_);
    account.run = run_;
    account.trial_id = trial;
    account.began_ns = account.last_ns = now_ns;
    return account;
  }

  size_t pairs_;
  uint64_t run_ = 0;
  std::vector<std::unique_ptr<TrialAccount>> accounts_;  // one more than is kept: the next
};

}  // namespace dutperf::refdut
