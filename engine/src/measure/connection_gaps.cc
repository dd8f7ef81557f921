#include "measure/connection_gaps.h"

#include <algorithm>

namespace dutperf::measure {
namespace {

// Counts a connection out at the begin of each block from the frame `first`, which was lost, to
// `end`, which was not. Of what stands here the sums up to a block are those that are out.
void add_out(uint64_t first, uint64_t end, ConnectionGaps& gaps) {
  const auto block_after = [&](uint64_t frame) {
    return std::min((frame + gaps.block_frames - 1) / gaps.block_frames, gaps.out.size() - 1);
  };
  ++gaps.out[block_after(first)];
  --gaps.out[block_after(end)];  // may wrap: the sum does not
}

void add_connection(const SequenceTracker& tracker, uint64_t connection, uint64_t connections,
                    uint64_t sent, ConnectionGaps& gaps) {
  uint64_t run = 0;
  uint64_t longest = 0;
  uint64_t frame = connection;
  for (; frame < sent; frame += connections) {
    if ((tracker.seen_word(frame / 64) >> (frame % 64) & 1) == 0) {
      ++run;
      continue;
    }
    if (run == 0) continue;
    add_out(frame - run * connections, frame, gaps);
    longest = std::max(longest, run);
    gaps.last_back = std::max(gaps.last_back, frame);
    run = 0;
  }
  const uint64_t of_all = std::min(connections, sent);
  ConnectionGaps::Tenth& tenth = gaps.tenths[static_cast<size_t>((unsigned __int128){connection} *
                                                                 gaps.tenths.size() / of_all)];
  ++tenth.connections;
  if (run > 0) {
    ++tenth.open;
    gaps.open_lost.record(run);
    add_out(frame - run * connections, UINT64_MAX - gaps.block_frames, gaps);
    if (gaps.named.size() < ConnectionGaps::kMostNamed) gaps.named.push_back({connection, run});
  } else if (longest > 0) {
    ++tenth.back;
    gaps.back_lost.record(longest);
  }
}

}  // namespace

ConnectionGaps gaps_of(const SequenceTracker& tracker, uint64_t connections, uint64_t intended,
                       uint64_t sent, uint64_t blocks) {
  ConnectionGaps gaps;
  gaps.tenths.resize(std::min(ConnectionGaps::kTenths, connections));
  gaps.block_frames = std::max<uint64_t>((intended + blocks - 1) / blocks, 1);
  gaps.out.resize((intended + gaps.block_frames - 1) / gaps.block_frames + 1);
  for (uint64_t connection = 0; connection < std::min(connections, sent); ++connection) {
    add_connection(tracker, connection, connections, sent, gaps);
  }
  uint64_t now = 0;
  for (uint64_t& out : gaps.out) out = now += out;
  gaps.out.pop_back();  // begins behind the last frame
  return gaps;
}

}  // namespace dutperf::measure
