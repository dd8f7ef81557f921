#include "measure/shadow_watch.h"

namespace dutperf::measure {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

}  // namespace

uint64_t frames_in_all(const std::vector<std::vector<Shadow>>& shadows, uint64_t burst_frames) {
  uint64_t counted = 0;
  uint64_t frames = 0;
  for (const std::vector<Shadow>& of_direction : shadows) {
    counted += of_direction.empty() ? 0 : 1;
    for (const Shadow& shadow : of_direction) {
      if (shadow.frames == UINT64_MAX) return UINT64_MAX;
      frames += shadow.frames;
    }
  }
  const uint64_t again = counted < 2 ? 0 : (counted - 1) * burst_frames;
  return std::max(frames - std::min(frames, again), std::min(frames, burst_frames));
}

std::vector<Shadow> together(const std::vector<std::vector<Shadow>>& shadows) {
  std::vector<Shadow> all;
  for (const std::vector<Shadow>& each : shadows) all.insert(all.end(), each.begin(), each.end());
  std::stable_sort(all.begin(), all.end(), [](const Shadow& one, const Shadow& another) {
    return one.begin_ns < another.begin_ns;
  });
  std::vector<Shadow> result;
  for (const Shadow& shadow : all) {
    if (result.empty() || shadow.begin_ns > result.back().end_ns) {
      result.push_back(shadow);
      continue;
    }
    Shadow& last = result.back();
    last.end_ns = std::max(last.end_ns, shadow.end_ns);
    last.of_sender |= shadow.of_sender;
    last.may_lose |= shadow.may_lose;
    last.frames =
        shadow.frames > UINT64_MAX - last.frames ? UINT64_MAX : last.frames + shadow.frames;
  }
  return result;
}

uint64_t DelayLevel::usual_ns() const {
  const size_t known = std::min(count_, kSlots);
  if (known < kFewSlots) return 0;
  std::array<uint64_t, kSlots> sorted = slots_ns_;
  auto* const quartile = sorted.begin() + known * 3 / 4;
  std::nth_element(sorted.begin(), quartile, sorted.begin() + known);
  return *quartile + *quartile / 16 + 500;
}

void ShadowWatch::look(bool away, uint64_t drained_ns, uint64_t received_ns, uint64_t first_sent_ns,
                       uint64_t last_sent_ns) noexcept {
  note_stalls();
  if (away) {
    // The frames that waited, from the first on, and those after them that found no room.
    const uint64_t away_ns = received_ns - drained_ns;
    // No more can have waited than there are.
    const auto waited = static_cast<uint64_t>(std::min(
        (unsigned __int128){away_ns} * rate_fps_ / kNsPerSecond, (unsigned __int128){frames_}));
    // Half of the ring is for the DUT's own bursts.
    const bool may_lose = waited >= room_frames_ / 2;
    Open& cause = waiting(drained_ns, std::min(first_sent_ns, drained_ns));
    cause.calm_from_ns = received_ns;
    cause.latest_ns = received_ns + kPatience * away_ns;
    current_.may_lose |= may_lose;
    if (may_lose) {
      current_.frames += waited + 1 - std::min(waited + 1, waited_frames_);
      waited_frames_ = std::max(waited_frames_, waited + 1);
    }
  }
  for (size_t i = 0; i < open_count_;) {
    Open& cause = open_[i];
    learn_end(cause);
    uint64_t end_ns = UINT64_MAX;
    if (last_sent_ns > cause.latest_ns) end_ns = cause.latest_ns;
    if (level_.complete_begin_ns() >= cause.calm_from_ns &&
        level_.complete_ns() <= cause.usual_ns) {
      end_ns = std::min(end_ns, level_.complete_begin_ns() + DelayLevel::kSlotNs);
    }
    if (end_ns == UINT64_MAX) {
      ++i;
      continue;
    }
    current_.end_ns = std::max(current_.end_ns, end_ns);
    cause = open_[--open_count_];
    if (open_count_ == 0) close();
  }
}

// The cause for a receiver that has drained nothing since `drained_ns`: while it is in overload,
// each call meets the frames that wait already, and some more.
ShadowWatch::Open& ShadowWatch::waiting(uint64_t drained_ns, uint64_t begin_ns) noexcept {
  for (size_t i = 0; i < open_count_; ++i) {
    if (open_[i].drained_ns == drained_ns) return open_[i];
  }
  if (drained_ns != waiting_since_ns_) waited_frames_ = 0;
  waiting_since_ns_ = drained_ns;
  Open cause;
  cause.drained_ns = drained_ns;
  cause.usual_ns = level_.usual_ns();
  open(cause, begin_ns, false, false);
  return open_[open_count_ - 1];
}

void ShadowWatch::note_stalls() noexcept {
  for (size_t i = 0; i < senders_.size(); ++i) {
    const StallLog* const sender = senders_[i];
    if (sender == nullptr) continue;
    for (const size_t begun = sender->begun(); noted_of_[i] < begun; ++noted_of_[i]) {
      Open cause;
      cause.sender = sender;
      cause.place = noted_of_[i];
      cause.usual_ns = level_.usual_ns();
      ++noted_;
      open(cause, sender->begin_ns(cause.place), true, true);
    }
  }
}

void ShadowWatch::open(const Open& cause, uint64_t begin_ns, bool of_sender,
                       bool may_lose) noexcept {
  if (open_count_ == 0) current_ = {begin_ns, 0, false, false, 0};
  current_.begin_ns = std::min(current_.begin_ns, begin_ns);
  current_.of_sender |= of_sender;
  current_.may_lose |= may_lose;
  if (open_count_ < kMaxOpen) {
    open_[open_count_++] = cause;
    return;
  }
  // Too many at once: the newest one takes the last one's place, which ends no sooner.
  const uint64_t latest_ns = open_.back().latest_ns;
  open_.back() = cause;
  if (latest_ns != UINT64_MAX) current_.end_ns = std::max(current_.end_ns, latest_ns);
}

void ShadowWatch::learn_end(Open& cause) noexcept {
  if (cause.sender == nullptr || cause.place >= cause.sender->ended()) return;
  const Stall& stall = cause.sender->stall(cause.place);
  cause.sender = nullptr;
  cause.calm_from_ns = stall.caught_up_ns;
  cause.latest_ns = stall.caught_up_ns + kPatience * stall.max_lag_ns;
}

void ShadowWatch::close() noexcept {
  const bool touches = !shadows_.empty() && current_.begin_ns <= shadows_.back().end_ns;
  // Without a place left it is not told from the one before.
  if (touches || shadows_.size() == kMaxShadows) {
    Shadow& last = shadows_.back();
    last.end_ns = std::max(last.end_ns, current_.end_ns);
    last.of_sender |= current_.of_sender;
    last.may_lose |= current_.may_lose;
    last.frames += current_.frames;
    noted_until_.resize(noted_until_.size() - noted_of_.size());
  } else {
    shadows_.push_back(current_);
  }
  noted_until_.insert(noted_until_.end(), noted_of_.begin(), noted_of_.end());
}

uint64_t ShadowWatch::frames_of(size_t sender, size_t first, size_t last) const {
  uint64_t frames = 0;
  for (size_t place = first; place < last; ++place) {
    if (place >= senders_[sender]->ended()) return UINT64_MAX;
    frames += senders_[sender]->stall(place).frames;
  }
  return frames;
}

void ShadowWatch::finish() {
  if (finished_) return;
  finished_ = true;
  note_stalls();  // of which nothing arrived any more
  for (size_t i = 0; i < open_count_; ++i) {
    learn_end(open_[i]);
    current_.end_ns = std::max(current_.end_ns, open_[i].latest_ns);
  }
  if (open_count_ > 0) close();
  open_count_ = 0;
  std::vector<size_t> first(senders_.size());
  const size_t* until = noted_until_.data();
  for (Shadow& shadow : shadows_) {
    for (size_t i = 0; i < senders_.size(); ++i) {
      const uint64_t frames = frames_of(i, first[i], *until);
      shadow.frames = frames > UINT64_MAX - shadow.frames ? UINT64_MAX : shadow.frames + frames;
      first[i] = *until++;
    }
  }
}

}  // namespace dutperf::measure
