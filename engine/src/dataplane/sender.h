// The send loop. There is one; what is sent is a parameter.
//
// Each step sends the frames that are due, at most a burst at a time: one frame while the sender
// keeps up, more when it is behind; then also a few bursts in a row, each stamped when the one
// before it has been handed over. A frame's stamp is the time at which its burst was found due,
// right before it is built and handed over. Two histograms tell how true that is: the lag
// (departure - due) and the time from the stamp to the end of the send call. Frames that the port
// does not take stay pending for the next step, so a full queue never blocks the other roles of
// this worker; or they are lost at the device's door, where the port says so (`when_full`). For how
// long the port was full is counted: a sender that fell behind for that reason was held back. When
// it was late, and how it caught up, is logged for the receivers (measure/shadow_watch.h).
//
// Where the NIC sends at a time that it is told, frames are handed over a little before they are
// due, and a frame's stamp is the time at which it is due; one that is late leaves at once, and
// counts as any other that left after its stamp.
//
// A sender is driven by one worker. `published_sent` and `report().built_by_time` may be read by
// others at any time; the rest only after the worker has ended.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/frame_source.h"
#include "dataplane/port_times.h"
#include "dataplane/trial_clock.h"
#include "dataplane/trial_spec.h"
#include "dataplane/tx_ports.h"
#include "dpdk/mbuf.h"
#include "dpdk/reply_ring.h"
#include "measure/histogram.h"
#include "measure/stall_meter.h"
#include "measure/time_series.h"
#include "timing/schedule.h"

namespace dutperf::dataplane {

inline constexpr unsigned kLagBits = 5;    // 3 % is plenty for a health figure
inline constexpr unsigned kBurstBits = 7;  // bursts up to 64 exactly
inline constexpr unsigned kCallBits = 5;   // an error bound: 3 % is plenty

struct SendReport {
  uint64_t sent = 0;
  uint64_t first_tsc = 0;  // departures
  uint64_t last_tsc = 0;
  uint64_t tx_full = 0;        // send calls that took less than all
  uint64_t port_full_tsc = 0;  // how long the port had no room, in all
  uint64_t ring_full = 0;      // of `sent`: the device's ring had no room for them
  bool gave_up = false;
  std::optional<measure::Stall> stalled;  // at the end: one that never ended otherwise
  measure::Histogram lag_ns{kLagBits};
  measure::Histogram burst_frames{kBurstBits};
  measure::Histogram call_ns{kCallBits};  // stamp to the end of the send call, by frame
  uint64_t clock_worst_tsc = 0;           // of NICs that send at a time
  // By the intervals of their stamps; the last ones may be of frames that never left.
  measure::TimeSeries built_by_time;

  // What another share of the direction has sent beside.
  void add(const SendReport& other);
};

// A port that a sender sends on, and what else than the trial's frames leaves by it.
struct SendingPort {
  dpdk::TxQueue queue;
  dpdk::ReplyRing* replies;          // null: another share sends them
  const PortTimes* times = nullptr;  // null: the loop decides when a frame leaves
};

class Sender {
 public:
  // `ports`: the side's, by their numbers. Their rings, `pools`, one for each lane of the
  // direction, and `stalls` outlive the sender.
  Sender(const TrialSpec& spec, Side side, Share share, const std::vector<SendingPort>& ports,
         const std::vector<dpdk::FramePool*>& pools, TrialClock& clock, measure::StallLog& stalls);
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // Runs on the worker before the start: writes the frame templates into the pools' buffers.
  void prepare() { source_.prepare(); }
  void start(uint64_t start_tsc);
  void step() noexcept;

  uint64_t frames() const { return frames_; }
  uint64_t published_sent() const { return published_sent_.load(std::memory_order_relaxed); }
  const SendReport& report() const { return report_; }
  // See FrameSource.
  uint64_t unlearned() const { return source_.unlearned(); }

 private:
  // Of a port whose NIC sends at a time.
  struct Pace {
    dpdk::TimeField due;
    timing::PortClock clock;
  };

  bool sending() const { return report_.sent < frames_ && !report_.gave_up; }
  void build_due(uint64_t now) noexcept;
  // Builds up to `due` frames, each with its own stamp and time to leave; returns how many.
  uint32_t build_for_nic(uint32_t due, uint64_t now) noexcept;
  // Returns when the send call was over.
  uint64_t hand_over(uint64_t now) noexcept;
  // Pending frames from `first` on are lost; returns how many.
  uint32_t lose_pending(uint32_t first) noexcept;
  // The sender is late by `lag_tsc`, or was until now.
  void note_stall(uint64_t now, uint64_t lag_tsc) noexcept;
  void note_port_full(bool full, uint64_t now, uint64_t done) noexcept;
  void give_up_if_hopeless(uint64_t now) noexcept;
  void end_if_done(uint64_t now) noexcept;
  bool send_replies() noexcept;  // whether there were any

  static constexpr uint32_t kBurstsPerStep = 4;
  // A sender this many lag limits behind is hopeless: the trial is invalid whatever follows.
  static constexpr uint64_t kHopelessLagLimits = 10;

  uint64_t frames_;          // to be sent; fewer when the trial is stopped
  const uint64_t rate_fps_;  // the highest
  const uint32_t burst_limit_;
  const uint64_t hopeless_tsc_;
  const uint64_t stall_tsc_;  // a sender that is so late is in a stall
  const std::vector<SendingPort> ports_;
  const TxPorts<> queues_;
  std::vector<Pace> paces_;  // one for each port, or none
  const uint64_t lead_tsc_;  // 0 without them
  FrameSource source_;
  TrialClock& clock_;

  uint64_t start_tsc_ = 0;
  timing::Schedule schedule_;
  uint64_t built_ = 0;
  std::array<dpdk::Mbuf*, kMaxBurst> pending_{};
  uint64_t pending_stamp_tsc_ = 0;
  uint32_t pending_first_ = 0;
  uint32_t pending_count_ = 0;
  uint64_t port_full_since_tsc_ = 0;  // 0: it is not
  measure::StallMeter stall_;
  SendReport report_;
  alignas(64) std::atomic<uint64_t> published_sent_{0};
};

}  // namespace dutperf::dataplane
