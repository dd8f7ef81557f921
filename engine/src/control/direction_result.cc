#include "control/direction_result.h"

#include <algorithm>
#include <utility>

#include "control/shadow_losses.h"
#include "dataplane/accuracy.h"

namespace dutperf::control {
namespace {

using dataplane::index_of;
using dataplane::other;
using dataplane::Side;

// Frames a second between the first and the last departure.
double offered_rate(const dataplane::SendReport& report, const timing::TscClock& clock) {
  const uint64_t ns = clock.to_ns(report.last_tsc - report.first_tsc);
  if (report.sent < 2 || ns == 0) return 0;
  return static_cast<double>(report.sent - 1) * 1e9 / static_cast<double>(ns);
}

// How many of a stream's frames carry a stamp of each interval, of those that left.
std::vector<uint64_t> sent_by_time(const dataplane::DirectionSpec& direction, size_t stream,
                                   const dataplane::SendReport& report) {
  std::vector<uint64_t> result;
  uint64_t built = 0;
  uint64_t before = 0;
  for (const uint64_t count : report.built_by_time.counts()) {
    built += count;
    const uint64_t sent = direction.frames_of(stream, std::min(built, report.sent));
    result.push_back(sent - before);
    before = sent;
  }
  return result;
}

// Longest and shortest time that the tester itself may have put into a delay.
void add_accuracy(const dataplane::SendReport& sent, const dataplane::ReceiveReport& received,
                  const timing::TscClock& clock, DirectionResult& result) {
  result.send_call_ns = &sent.call_ns;
  result.receive_gap_ns = &received.gap_ns;
  const auto accuracy = dataplane::accuracy_of(sent, received, clock);
  if (!accuracy) return;
  result.delay_floor_ns = accuracy->floor_ns;
  result.delay_bound_ns = accuracy->bound_ns;
}

// With a window nobody knows any more which ones they were.
void add_losses(const dataplane::DirectionSpec& direction, const timing::Load& load, size_t stream,
                const measure::SequenceTracker& tracker, uint64_t end, StreamResult& result) {
  if (tracker.window_frames() > 0) return;
  result.longest_loss = timed(direction, load, stream, tracker.longest_loss(), end);
  result.last_loss = timed(direction, load, stream, tracker.last_loss(), end);
}

// How many of the stream's lost frames the tester may have lost, share by share.
uint64_t lost_in_shadows(const dataplane::DirectionSpec& direction, size_t stream,
                         const dataplane::TrialRun& run, Side from, uint64_t sent,
                         std::vector<std::vector<measure::Shadow>>& shadows) {
  uint64_t lost = 0;
  for (uint64_t i = 0; i < run.shares(); ++i) {
    const uint64_t of_share = run.shares() == 1 ? sent : run.sent_from(from, i).sent;
    lost += lost_in_shadow(direction, stream, {i, run.shares()}, shadows[i],
                           run.recorder_of(run.receiver_of(from), stream, i).tracker(), of_share);
  }
  return lost;
}

void add_shares(const dataplane::DirectionSpec& direction, const dataplane::TrialRun& run,
                Side from, const timing::TscClock& clock, DirectionResult& result) {
  for (uint64_t share = 0; share < run.shares(); ++share) {
    const dataplane::SendReport& sent = run.sent_from(from, share);
    ShareReport& report = result.by_share.emplace_back();
    report.intended = dataplane::Share{share, run.shares()}.frames_among(direction.frames);
    report.sent = sent.sent;
    report.sending_ns = sent.sent == 0 ? 0 : clock.to_ns(sent.last_tsc - run.start_tsc());
    report.max_lag_ns = sent.lag_ns.max();
    report.port_full_ns = clock.to_ns(sent.port_full_tsc);
    report.received = run.recorder_of(run.receiver_of(from), 0, share).tracker().received();
    report.longest_gap_ns = run.received_at(run.receiver_of(from), share).gap_ns.max();
  }
}

}  // namespace

DirectionResult direction_result(const TrialRequest& request, Side from, dataplane::TrialRun& run,
                                 const timing::TscClock& clock) {
  const dataplane::TrialSpec& spec = request.spec;
  const dataplane::DirectionSpec& direction = spec.from[index_of(from)];
  const dataplane::SendReport& report = run.sent_from(from);
  DirectionResult result{};
  result.from = from;
  result.intended_rate_fps = direction.rate_fps;
  result.offered_rate_fps = offered_rate(report, clock);
  result.sending_ns = report.sent == 0 ? 0 : clock.to_ns(report.last_tsc - run.start_tsc());
  result.tx_full = report.tx_full;
  result.port_full_ns = clock.to_ns(report.port_full_tsc);
  result.ring_full = report.ring_full;
  result.lag_ns = &report.lag_ns;
  result.burst_frames = &report.burst_frames;
  add_accuracy(report, run.received_at(run.receiver_of(from)), clock, result);
  result.stalls = run.stalls_of(from);
  result.stalled = report.stalled;
  for (uint64_t share = 0; share < run.shares(); ++share) {
    result.shadows.push_back(run.shadows_at(run.receiver_of(from), share));
  }
  const timing::Load load = direction.load();
  const uint64_t end = run.end_of(from);
  const uint64_t last = direction.last_expected_among(std::max<uint64_t>(end, 1));
  result.longest_silence = run.silence_at(run.receiver_of(from), load.due_ns(last));
  if (run.shares() > 1) add_shares(direction, run, from, clock, result);
  std::vector<std::vector<measure::Shadow>> shadows = result.shadows;
  for (size_t i = 0; i < direction.streams.size(); ++i) {
    const dataplane::StreamSpec& stream = direction.streams[i];
    StreamResult entry;
    entry.id = stream.id;
    entry.background = (stream.tag.flags & net::kTagFlagBackground) != 0;
    entry.intended = direction.frames_of(i, direction.frames);
    entry.sent = direction.frames_of(i, report.sent);
    const measure::StreamRecorder& recorder =
        run.finish_recorder(run.receiver_of(from), i, entry.sent);
    if (stream.is_beside()) {
      result.beside = {entry.intended, entry.sent, recorder.tracker().received()};
      continue;
    }
    add_recorded(spec, recorder, request.fine_delays, entry);
    // Of shares that were stopped apart nobody can tell which numbers beyond the last are meant.
    const bool in_a_row = direction.frames_of(i, end) == entry.sent;
    if (!in_a_row) entry.survival.reset();
    if (spec.connection_blocks > 0 && stream.tuples && in_a_row) {
      entry.connections = {measure::gaps_of(recorder.tracker(), stream.tuples->count,
                                            entry.intended, entry.sent, spec.connection_blocks),
                           {}};
    }
    entry.inspected = run.received_at(run.receiver_of(from)).inspected[i];
    // What was sent again, and never came, no stall has cost.
    const bool once = !spec.exchange || spec.exchange->retransmit == 0;
    entry.lost_in_shadow = once ? lost_in_shadows(direction, i, run, from, entry.sent, shadows) : 0;
    add_losses(direction, load, i, recorder.tracker(), direction.frames_of(i, end), entry);
    entry.sent_by_time = sent_by_time(direction, i, report);
    result.streams.push_back(std::move(entry));
  }
  return result;
}

}  // namespace dutperf::control
