// What a side does with the TCP segments that it receives: it accounts for them and answers, by the
// rules of net/tcp.h. One object for each side of a trial whose streams are SYNs; it belongs to the
// worker that receives and sends there.
//
// An answer is written over the segment that it answers and leaves by the side's own transmit
// queue, at the end of the receiver's step. Nothing is kept of a connection but a bit for each step
// that it has taken and, of a response of several segments, how many have come. These leave all at
// once, as they fit the window, and are answered when the response is whole. What the port has no
// room for waits; what there is no room to wait for is the tester's own loss, and counted. Nothing
// is sent twice: a segment that is lost stays lost. Unless the trial retransmits: then what comes
// again is answered again, and the initiator sends again what it waits for the answer to
// (dataplane/retransmission.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/answers_out.h"
#include "dataplane/connection_bits.h"
#include "dataplane/trial_spec.h"
#include "dpdk/frame_pool.h"
#include "dpdk/mbuf.h"
#include "measure/histogram.h"
#include "net/tcp.h"

namespace dutperf::dataplane {

using net::kSteps;
using net::Step;

struct ExchangeReport {
  static constexpr unsigned kTimeBits = 7;

  std::array<uint64_t, kSteps> sent{};
  std::array<uint64_t, kSteps> received{};  // each connection's first
  std::array<uint64_t, kSteps> duplicate{};
  std::array<uint64_t, kSteps> retransmitted{};  // beside `sent`
  uint64_t resets = 0;
  uint64_t unknown = 0;        // of no connection of the trial
  uint64_t wrong = 0;          // acknowledge, or hold, what nobody has sent
  uint64_t damaged = 0;        // their checksums do not hold
  uint64_t renumbered = 0;     // received with sequence numbers that a device has changed
  uint64_t proxied = 0;        // SYN-ACKs of somebody else, who answers in the responder's place
  uint64_t untranslated = 0;   // with the initiator's own address, where it should have another
  uint64_t without_stamp = 0;  // or with one that nobody can have sent
  uint64_t not_sent = 0;       // answers that the tester had no room for
  measure::Histogram first_answer_ns{kTimeBits};  // from the first segment on, where that left
};

class Exchange {
 public:
  // `queue` and `pool`, of buffers for what answers no segment in place, are this side's. `copies`:
  // buffers that come in are the other side's, and must stay as they are.
  Exchange(const ExchangeSpec& spec, bool is_initiator, const dpdk::TxQueue& queue,
           dpdk::FramePool& pool, bool copies);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Takes a whole segment, whose headers stand `before` bytes behind those of a frame without VLAN
  // tags. True when its buffer leaves as an answer.
  bool take(dpdk::Mbuf* mbuf, uint32_t before, const net::Segment& segment,
            uint64_t now_ns) noexcept;
  // Sends what waits; as much as the port takes.
  void send() noexcept { out_.send(); }
  // After the trial: what waits still was never sent.
  void finish() noexcept { report_.not_sent += out_.waiting(); }

  bool is_initiator() const { return is_initiator_; }
  // When a segment left, or the one that it answers, by its timestamps; none: they do not tell,
  // or a device has written others.
  static std::optional<uint64_t> left_at_ns(uint32_t stamp, const net::Segment& segment,
                                            uint64_t now_ns);
  // Whether it has the initiator's own address, and should not.
  bool is_untranslated(const uint8_t* frame, const net::Segment& segment) const;
  // Whose first segment of the trial it is; none: nobody's, by its number.
  std::optional<uint64_t> begins(const net::Segment& segment) const;
  // Whether the segment has come of the connection, or all of them; for the worker of the other
  // end, too, but of responses. REQUIRES: it comes to this side, in this trial.
  bool has(Step step, uint64_t connection) const noexcept;
  // Whether its first segment has come, where it is sent again if need be: then it is no duplicate.
  bool has_begun(uint64_t connection) const {
    return spec_.retransmit > 0 && has(spec_.first.step, connection);
  }
  // Whether the initiator may not ask yet, as somebody between has said.
  bool holds_back(uint64_t connection) const { return held_back_.has(connection); }
  ExchangeReport& report() { return report_; }
  const ExchangeReport& report() const { return report_; }

 private:
  struct Received {
    dpdk::Mbuf* mbuf;
    uint32_t before;
    const net::Segment& segment;
    std::span<const uint8_t> payload;
    uint64_t now_ns;
  };

  bool respond(const Received& received) noexcept;
  bool respond_to_request(const Received& received) noexcept;
  bool respond_to_fin(const Received& received) noexcept;
  bool note_ack(const Received& received) noexcept;
  bool initiate(const Received& received) noexcept;
  bool confirm(const Received& received) noexcept;
  bool take_response(const Received& received) noexcept;
  // Of a response of several segments.
  bool take_piece(const Received& received) noexcept;
  // The response is whole; `rest` of it began with this segment.
  bool end_response(const Received& received, uint32_t rest) noexcept;
  std::span<const uint8_t> piece(uint32_t index) const noexcept;
  // Sends all of them but the last, which this is then.
  net::Answer last_piece(const Received& received, net::Answer response) noexcept;
  bool take_last_fin(const Received& received) noexcept;
  bool ask(const Received& received) noexcept;
  bool request(const Received& received, uint32_t number, uint32_t acknowledgment) noexcept;
  // When the first segment left, if this is its answer.
  void time_answer(Step step, const Received& received) noexcept;
  // Whether the connection takes the step for the first time. By its initiator's first number; a
  // responder counts those, too, whose numbers a device has changed.
  bool takes(Step step, uint32_t number) noexcept;
  bool takes_known(Step step, uint64_t connection) noexcept;
  // The same of what is answered: what came before is, too, if the trial retransmits.
  bool is_answered(Step step, uint32_t number) noexcept;
  bool is_known_answered(Step step, uint64_t connection) noexcept;
  // Sends the answer; true when it is in the segment's own buffer.
  bool answer(Step step, const Received& received, net::Answer answer) noexcept;
  // As one more frame.
  void answer_beside(Step step, const Received& received, net::Answer answer) noexcept;
  void put(Step step, dpdk::Mbuf* mbuf) noexcept;

  const ExchangeSpec spec_;
  const bool is_initiator_;
  AnswersOut out_;
  dpdk::FramePool& pool_;
  const bool copies_;
  const std::vector<uint8_t> response_;
  const uint32_t piece_bytes_;  // of the response that a segment holds, but for the last one
  const uint32_t pieces_;
  const uint32_t sent_before_;  // data of each connection, before the trial
  const uint32_t answered_before_;
  const uint32_t sent_;  // and with its requests and responses
  const uint32_t answered_;
  // By step; empty where this side does not receive it. Of the response a bit for each segment.
  std::vector<ConnectionBits> taken_;
  std::vector<uint8_t> pieces_taken_;  // by connection, where a response is several segments
  ConnectionBits held_back_;           // what the initiator has no leave to ask for yet
  bool is_again_ = false;              // what is answered now has been before
  ExchangeReport report_;
};

}  // namespace dutperf::dataplane
