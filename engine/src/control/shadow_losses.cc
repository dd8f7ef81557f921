#include "control/shadow_losses.h"

#include <algorithm>

#include "timing/load.h"

namespace dutperf::control {
namespace {

constexpr uint64_t kForeverNs = 1ULL << 48;  // longer than any trial

}  // namespace

uint64_t lost_in_shadow(const dataplane::DirectionSpec& direction, size_t stream,
                        dataplane::Share share, std::vector<measure::Shadow>& shadows,
                        const measure::SequenceTracker& tracker, uint64_t sent) {
  const bool exact = tracker.window_frames() == 0;
  const timing::Load load = direction.load();
  uint64_t lost = 0;
  for (measure::Shadow& shadow : shadows) {
    if (!shadow.may_lose) continue;
    // A frame more at each end, as counts are rounded.
    const uint64_t first = load.frames_in(shadow.begin_ns);
    const uint64_t last = load.frames_in(std::min<uint64_t>(shadow.end_ns, kForeverNs));
    const uint64_t before = direction.frames_of(stream, first - std::min<uint64_t>(first, 1));
    const uint64_t begin = share.frames_among(before);
    const uint64_t end = std::min(share.frames_among(direction.frames_of(stream, last + 1)), sent);
    if (begin >= end) continue;
    const uint64_t missing = exact ? tracker.missing_among(begin, end) : end - begin;
    const uint64_t excused = std::min(shadow.frames, missing);
    if (shadow.frames != UINT64_MAX) shadow.frames -= excused;
    lost += excused;
  }
  return std::min(lost, sent - tracker.received());
}

void share_bursts(std::vector<DirectionResult>& directions) {
  std::vector<std::vector<measure::Shadow>> shadows;
  uint64_t burst_frames = 0;
  uint64_t lost = 0;
  for (const DirectionResult& direction : directions) {
    shadows.insert(shadows.end(), direction.shadows.begin(), direction.shadows.end());
    for (const measure::Stall& stall : direction.stalls) burst_frames += stall.frames;
    for (const StreamResult& stream : direction.streams) lost += stream.lost_in_shadow;
  }
  const uint64_t most = measure::frames_in_all(shadows, burst_frames);
  if (lost <= most) return;
  for (DirectionResult& direction : directions) {
    for (StreamResult& stream : direction.streams) {
      stream.lost_in_shadow =
          static_cast<uint64_t>((unsigned __int128){stream.lost_in_shadow} * most / lost);
    }
  }
}

}  // namespace dutperf::control
