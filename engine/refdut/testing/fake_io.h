// The device's outside world in a test: a clock that the test moves, ports that are lists, buffers
// that are counted. Every buffer must be freed exactly once per owner, whatever happens.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "../ports.h"
#include "net/classify.h"
#include "net/testing/reference_frame.h"

namespace dutperf::refdut::testing {

using net::testing::Bytes;

// With `tags` behind its MACs.
inline Bytes tagged(Bytes frame, const Bytes& tags) {
  frame.insert(frame.begin() + 12, tags.begin(), tags.end());
  return frame;
}

struct Buffer {
  Bytes bytes;
  size_t size = 0;
  int owners = 1;
  bool held = false;
};

class FakeIo {
 public:
  using Frame = Buffer*;

  struct Departure {
    Bytes bytes;
    uint64_t at_ns;
    uint64_t sequence = UINT64_MAX;  // of test frames
  };

  uint64_t clock_ns = 1'000'000;
  std::optional<uint64_t> raw_clock_ns;  // none: goes as the other one
  size_t hold_room = SIZE_MAX;
  size_t most_frame_bytes = 2048;
  bool ports_refuse = false;
  uint32_t port_takes = UINT32_MAX;             // at once
  std::optional<size_t> dead_port;              // it takes nothing
  std::deque<Bytes> arriving[2 * kMostPairs];   // by port; those of the first pair are the sides
  std::vector<Departure> left[2 * kMostPairs];  // by the port where they left

  uint8_t* bytes(Frame frame) { return frame->bytes.data(); }
  size_t room(Frame /*frame*/) { return most_frame_bytes; }
  size_t size(Frame frame) { return frame->size; }
  void set_size(Frame frame, size_t size) { frame->size = size; }
  Frame share(Frame frame) {
    ++frame->owners;
    return frame;
  }
  Frame keep(Frame frame) {
    Frame copy = nullptr;
    if (held_ < hold_room) {
      copy = make({frame->bytes.begin(), frame->bytes.end()});
      copy->size = frame->size;
      copy->held = true;
      ++held_;
    }
    free(frame);
    return copy;
  }
  Frame blank() {
    if (held_ >= hold_room) return nullptr;
    const Frame blank = make(Bytes(kLongestFrame));
    blank->held = true;
    ++held_;
    return blank;
  }
  void free(Frame frame) {
    ASSERT_GT(frame->owners, 0);
    if (--frame->owners == 0) held_ -= frame->held;
  }
  uint64_t now_ns() const { return clock_ns; }
  uint64_t raw_ns() const { return raw_clock_ns ? *raw_clock_ns : clock_ns + 7; }

  uint32_t receive(size_t port, Frame* frames, uint32_t limit) {
    uint32_t count = 0;
    for (; count < limit && !arriving[port].empty(); ++count) {
      frames[count] = make(arriving[port].front());
      arriving[port].pop_front();
    }
    return count;
  }
  uint32_t transmit(size_t port, Frame* frames, uint32_t count) {
    if (ports_refuse || port == dead_port) return 0;
    count = std::min(count, port_takes);
    for (uint32_t i = 0; i < count; ++i) {
      const auto classified = net::classify(frames[i]->bytes.data(), frames[i]->size);
      const bool is_test = classified.kind == net::FrameKind::kTest;
      Bytes sent(frames[i]->bytes.begin(),
                 frames[i]->bytes.begin() + static_cast<ptrdiff_t>(frames[i]->size));
      left[port].push_back(
          {std::move(sent), clock_ns, is_test ? classified.tag->sequence() : UINT64_MAX});
      free(frames[i]);
    }
    return count;
  }

  // Buffers that somebody still owns.
  size_t owned() const {
    size_t count = 0;
    for (const auto& buffer : buffers_) count += buffer->owners > 0;
    return count;
  }

 private:
  static constexpr size_t kLongestFrame = 10'000;

  Frame make(Bytes bytes) {
    const size_t size = bytes.size();
    // A reply may be longer than its question, and what leaves may have more tags than what came,
    // or IPv6's header.
    bytes.resize(std::max<size_t>(size + 20, 128) + net::VlanTags::kMaxBytes);
    buffers_.push_back(std::make_unique<Buffer>(Buffer{std::move(bytes), size}));
    return buffers_.back().get();
  }

  std::vector<std::unique_ptr<Buffer>> buffers_;
  size_t held_ = 0;
};

}  // namespace dutperf::refdut::testing
