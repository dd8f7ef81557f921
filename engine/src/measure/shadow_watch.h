// Which of a direction's frames stood in the shadow of the tester's own stalls (docs/adr/0001).
//
// A sender that was away makes up for it with a burst that the DUT did not ask for, and what the
// DUT loses or delays then may be the tester's doing: in both directions, as they may share a queue
// or a CPU. The shadow begins with the stall. It ends when delays are back where they were before,
// or when the sender has been on schedule for kPatience times as long as it was late: a DUT of 2 %
// more capacity than the load has drained the burst by then, and one that never drains it must not
// be excused for ever; nor can a burst cost more frames than left at once instead of evenly (what a
// queue that serves in order drops of them beyond what it drops of an even stream). A receiver that
// was away casts a shadow on the frames that it let wait, and on those that may have found its ring
// full.
//
// Times are of sending, since the start of the trial. One receiver drives it, a receive call at a
// time; read after the trial.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "measure/stall_log.h"

namespace dutperf::measure {

// A stall is noted from 64 frames' time on, but not below 100 us (a loop that is busy is no stall)
// and from 1 ms on at any rate.
constexpr uint64_t stall_ns_at(uint64_t rate_fps) {
  return std::clamp<uint64_t>(64'000'000'000 / std::max<uint64_t>(rate_fps, 1), 100'000, 1'000'000);
}

// How long frames take usually: the delays of the last few slots of about a millisecond, each of
// which counts as its shortest one. One delay for each receive call is enough, of its last frame.
class DelayLevel {
 public:
  static constexpr uint64_t kSlotNs = 1 << 20;
  static constexpr size_t kSlots = 64;
  static constexpr size_t kFewSlots = 4;  // tell nothing

  void add(uint64_t sent_ns, uint64_t delay_ns) {
    const uint64_t slot = sent_ns / kSlotNs;
    if (slot > slot_) [[unlikely]]
      enter(slot);
    shortest_ns_ = std::min(shortest_ns_, delay_ns);
  }

  // Three of four slots were not slower than that, with a little to spare; 0: nobody knows.
  uint64_t usual_ns() const;
  // The slot before the current one that was complete: when its frames were sent, and its delay.
  uint64_t complete_begin_ns() const { return complete_slot_ * kSlotNs; }
  uint64_t complete_ns() const { return complete_ns_; }

 private:
  void enter(uint64_t slot) {
    if (shortest_ns_ != UINT64_MAX) {
      complete_slot_ = slot_;
      complete_ns_ = shortest_ns_;
      slots_ns_[count_++ % kSlots] = shortest_ns_;
    }
    slot_ = slot;
    shortest_ns_ = UINT64_MAX;
  }

  uint64_t slot_ = 0;
  uint64_t shortest_ns_ = UINT64_MAX;
  uint64_t complete_slot_ = 0;
  uint64_t complete_ns_ = UINT64_MAX;
  size_t count_ = 0;
  std::array<uint64_t, kSlots> slots_ns_{};
};

struct Shadow {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  bool of_sender = false;  // else of the receiver alone
  bool may_lose = false;   // a burst, or a receiver's ring that may have overflowed
  uint64_t frames = 0;     // that it can have cost, of each direction; UINT64_MAX: nobody knows

  bool operator==(const Shadow&) const = default;
};

// What the shadows on all directions can have cost together: a sender's burst of the
// `burst_frames`, which is in the shadows of each direction, costs no frame twice.
uint64_t frames_in_all(const std::vector<std::vector<Shadow>>& shadows, uint64_t burst_frames);

// Of several watches of one direction, as one list: what overlaps is one shadow, which may have
// cost what they may together (a burst that is in all of them costs no frame twice: frames_in_all).
std::vector<Shadow> together(const std::vector<std::vector<Shadow>>& shadows);

class ShadowWatch {
 public:
  static constexpr size_t kMaxShadows = 1024;
  static constexpr uint64_t kPatience = 50;

  // `frames` come at `rate_fps` at most. A receiver that left them waiting for a stall's time was
  // away; its ring has room for `room_frames`, at least, before it loses some that no counter tells
  // of. `senders` (any may be null) outlive the watch.
  ShadowWatch(std::vector<const StallLog*> senders, uint64_t frames, uint64_t rate_fps,
              uint64_t room_frames)
      : senders_(std::move(senders)),
        frames_(frames),
        rate_fps_(rate_fps),
        away_ns_(stall_ns_at(rate_fps)),
        room_frames_(room_frames),
        noted_of_(senders_.size()) {
    shadows_.reserve(kMaxShadows);
    noted_until_.reserve(kMaxShadows * senders_.size());
  }

  // A receive call ended at `received_ns` with frames that may have waited since `drained_ns`; the
  // first and the last of them were sent then. Whether they stand in a shadow.
  bool covers(uint64_t drained_ns, uint64_t received_ns, uint64_t first_sent_ns,
              uint64_t last_sent_ns) noexcept {
    const bool away = received_ns - drained_ns >= away_ns_;
    if (away || open_count_ > 0 || begun() != noted_) [[unlikely]]
      look(away, drained_ns, received_ns, first_sent_ns, last_sent_ns);
    level_.add(last_sent_ns, received_ns - std::min(received_ns, last_sent_ns));
    return open_count_ > 0;
  }

  // After the trial: ends what nothing has ended.
  void finish();

  // In rising order, apart from each other.
  const std::vector<Shadow>& shadows() const { return shadows_; }

 private:
  struct Open {
    const StallLog* sender = nullptr;  // none: the receiver, or its end is known
    size_t place = 0;
    uint64_t drained_ns = UINT64_MAX;  // by the receiver, that was away since; else none
    uint64_t usual_ns = 0;
    uint64_t calm_from_ns = UINT64_MAX;  // nothing ends it before
    uint64_t latest_ns = UINT64_MAX;     // it ends then
  };
  static constexpr size_t kMaxOpen = 16;

  size_t begun() const {
    size_t result = 0;
    for (const StallLog* sender : senders_) result += sender == nullptr ? 0 : sender->begun();
    return result;
  }
  void look(bool away, uint64_t drained_ns, uint64_t received_ns, uint64_t first_sent_ns,
            uint64_t last_sent_ns) noexcept;
  void note_stalls() noexcept;
  Open& waiting(uint64_t drained_ns, uint64_t begin_ns) noexcept;
  void open(const Open& cause, uint64_t begin_ns, bool of_sender, bool may_lose) noexcept;
  void learn_end(Open& cause) noexcept;
  void close() noexcept;
  uint64_t frames_of(size_t sender, size_t first, size_t last) const;

  const std::vector<const StallLog*> senders_;
  const uint64_t frames_;
  const uint64_t rate_fps_;
  const uint64_t away_ns_;
  const uint64_t room_frames_;
  DelayLevel level_;
  uint64_t waiting_since_ns_ = UINT64_MAX;
  uint64_t waited_frames_ = 0;    // since then, that are counted
  std::vector<size_t> noted_of_;  // of each sender's stalls, so far
  size_t noted_ = 0;
  std::array<Open, kMaxOpen> open_{};
  size_t open_count_ = 0;
  bool finished_ = false;
  Shadow current_;  // its frames and those below: the receiver's part, until finish()
  std::vector<Shadow> shadows_;
  std::vector<size_t> noted_until_;  // of each sender's stalls, shadow by shadow
};

}  // namespace dutperf::measure
