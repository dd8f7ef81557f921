// What leaves by one port next: frames as the port takes them, and what is known of each.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "behaviour.h"
#include "waiting.h"

namespace dutperf::refdut {

// Of one frame: the longest that a port takes, by the least that a piece carries.
inline constexpr uint32_t kMostPieces = (kMaxMtu + 64) / 8;
// No frame more, once so many are in an outbox; the last may be in pieces.
inline constexpr uint32_t kOutboxFrames = 64;

template <typename Frame>
class Outbox {
 public:
  uint32_t size() const { return size_; }
  bool full() const { return size_ >= kOutboxFrames; }
  Frame* frames() { return frames_.data(); }
  const Waiting<Frame>& operator[](uint32_t i) const { return waiting_[i]; }

  // REQUIRES: there is room, of kOutboxFrames and a frame's pieces.
  void put(const Waiting<Frame>& waiting) {
    waiting_[size_] = waiting;
    frames_[size_++] = waiting.frame;
  }

  // REQUIRES: not empty.
  void call_last(Piece piece) { waiting_[size_ - 1].piece = piece; }
  Frame take_last() { return frames_[--size_]; }

  // The first `count` are the port's now.
  void remove(uint32_t count) {
    for (uint32_t i = count; i < size_; ++i) {
      waiting_[i - count] = waiting_[i];
      frames_[i - count] = frames_[i];
    }
    size_ -= count;
  }

  // Each is counted with the last of its pieces.
  uint64_t whole_frames() const {
    return static_cast<uint64_t>(
        std::count_if(waiting_.begin(), waiting_.begin() + size_,
                      [](const auto& waiting) { return waiting.piece != Piece::kNotLast; }));
  }

 private:
  std::array<Waiting<Frame>, kOutboxFrames + kMostPieces> waiting_{};
  std::array<Frame, kOutboxFrames + kMostPieces> frames_{};
  uint32_t size_ = 0;
};

}  // namespace dutperf::refdut
