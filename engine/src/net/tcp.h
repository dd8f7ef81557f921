// TCP segments (RFC 9293) that account for themselves: nothing is kept of a connection that can be
// computed.
//
//   initiator                                         responder
//     SYN         seq = c(k)                            ->
//                                                       <-  SYN-ACK   seq = s(c), ack = c + 1
//     ACK         seq = c + 1, ack = s + 1              ->
//     request     seq = c + 1, ack = s + 1              ->
//                                                       <-  response  seq = s + 1, ack = c + 1 + n
//     FIN         seq = c + 1 + n, ack = s + 1 + m      ->
//                                                       <-  FIN       seq = s + 1 + m, ack = c + n
//                                                       + 2
//     ACK         seq = c + n + 2, ack = s + m + 2      ->
//
// c(k) is a permutation of the connection numbers, so the initiator reads k from what is
// acknowledged; s(c) follows from c, so the responder knows its own number again from the
// initiator's, whatever a device has made of that. The request names k in its text.
//
// A trial may begin with any of the initiator's segments, on connections that an earlier one has
// opened. Or test frames are data of both ends on them, as often as they come: each lies in the
// window that the other end has offered, and nothing is acknowledged.
//
// When a SYN left stands in the value of its timestamps (RFC 7323), in units of 64 ns, and comes
// back in the echo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "net/headers.h"
#include "net/http.h"

namespace dutperf::net {

// Segments of a connection, in the order in which they are sent.
enum class Step : uint8_t {
  kSyn,
  kSynAck,
  kAck,
  kRequest,
  kResponse,
  kFin,
  kFinAck,
  kLastAck,
};
inline constexpr size_t kSteps = 8;

// Initial sequence numbers of a trial's connections.
struct SequenceNumbers {
  SequenceNumbers() = default;
  explicit SequenceNumbers(uint64_t key);

  // REQUIRES: connection < 2^32.
  uint32_t of(uint64_t connection) const {
    return static_cast<uint32_t>(connection) * factor + first;
  }
  uint64_t connection_of(uint32_t number) const {
    const uint32_t connection = (number - first) * inverse;
    return connection;
  }
  // The responder's, to the initiator's `number`.
  static constexpr uint32_t kAnswerFactor = 0x9e3779b1;
  static constexpr uint32_t kAnswerFirst = 0x7f4a7c15;
  static uint32_t answer_to(uint32_t number) { return number * kAnswerFactor + kAnswerFirst; }

  bool operator==(const SequenceNumbers&) const = default;

  uint32_t factor = 1;  // odd
  uint32_t inverse = 1;
  uint32_t first = 0;
};

// Of times since the start of a trial.
inline constexpr unsigned kTcpStampShift = 6;
inline uint32_t tcp_stamp(uint64_t time_ns) {
  return static_cast<uint32_t>(time_ns >> kTcpStampShift);
}
// How long before `now_ns` the stamp is; negative: after it. Of times that are less than 137 s
// apart.
inline int64_t ns_since(uint32_t stamp, uint64_t now_ns) {
  return int64_t{static_cast<int32_t>(tcp_stamp(now_ns) - stamp)} * (1 << kTcpStampShift);
}

// What a SYN has behind its header.
struct SynOptions {
  TcpMss mss;
  TcpTimestamps timestamps;
};
static_assert(sizeof(SynOptions) == 16);
inline constexpr size_t kSynBytes = sizeof(TcpHeader) + sizeof(SynOptions);

// A connection's segment that needs no other one to be made from: its SYN, or what its initiator
// sends later, as the numbers of both ends follow from the connection's own.
struct SegmentLayout {
  Step step = Step::kSyn;  // or kAck, kRequest, kFin, kLastAck
  SequenceNumbers numbers;
  uint16_t mss = 1460;           // of a SYN
  uint32_t sent_before = 0;      // bytes of data, by the initiator
  uint32_t answered_before = 0;  // and by the responder
  bool is_data = false;          // that ends in the wire tag, of any size; with kAck
  bool by_responder = false;     // of data

  bool operator==(const SegmentLayout&) const = default;

  size_t header_bytes() const {
    return step == Step::kSyn ? kSynBytes : sizeof(TcpHeader) + sizeof(TcpTimestamps);
  }
  // Without the data of test frames.
  size_t bytes() const { return header_bytes() + (step == Step::kRequest ? kHttpRequestBytes : 0); }
  // From the TCP header to the value of its timestamps.
  size_t stamp_at() const {
    const size_t options = step == Step::kSyn ? offsetof(SynOptions, timestamps) : 0;
    return sizeof(TcpHeader) + options + offsetof(TcpTimestamps, value);
  }
};

// What a segment of that MSS holds: options are part of it (RFC 6691).
constexpr uint32_t data_bytes(uint16_t mss) { return mss - uint32_t{sizeof(TcpTimestamps)}; }
constexpr uint32_t segments_of(size_t bytes, uint16_t mss) {
  return static_cast<uint32_t>((bytes + data_bytes(mss) - 1) / data_bytes(mss));
}

// View into a received frame. Valid while the frame is.
struct Segment {
  uint8_t ip_version = 4;
  uint16_t ip_headers = 0;  // from the IP header to TCP's
  uint16_t tcp_headers = 0;
  uint32_t ip_bytes = 0;
  uint8_t flags = 0;
  uint16_t window = 0;
  uint32_t sequence = 0;
  uint32_t acknowledgment = 0;
  bool has_timestamps = false;
  uint32_t stamp = 0;
  uint32_t echo = 0;

  uint32_t payload_bytes() const { return ip_bytes - ip_headers - tcp_headers; }
  bool has(uint8_t all_of) const { return (flags & all_of) == all_of; }
};

// Of a frame without VLAN tags; none: it is no whole segment, or has IPv4 options or IPv6 extension
// headers.
std::optional<Segment> segment_in(const uint8_t* frame, size_t size);
// Of IPv4's header, and TCP's. REQUIRES: `segment` is of this frame.
bool checksums_hold(const uint8_t* frame, const Segment& segment);

// All that we send has this window, and hardly anybody else's SYN-ACK: it tells whether ours came.
inline constexpr uint16_t kTcpWindow = 65531;

// What a segment is answered by.
struct Answer {
  uint8_t flags = 0;
  uint32_t sequence = 0;
  uint32_t acknowledgment = 0;
  uint16_t mss = 0;  // of a SYN; else 0
  uint32_t stamp = 0;
  std::span<const uint8_t> payload;
};

// The most that an answer has beside its payload.
inline constexpr size_t kMostAnswerHeaders =
    sizeof(EthernetHeader) + sizeof(Ipv6Header) + kSynBytes;

// Writes the answer over the frame that it answers, or over a copy of its headers: all ends
// swapped. It has timestamps if `segment` has. `mac`: where the frame's MAC addresses are, before
// its VLAN tags. Returns its size, without tags.
size_t write_answer(uint8_t* mac, uint8_t* frame, const Segment& segment, const Answer& answer);

// Of a template, from the header on: without numbers, stamp and checksum, and the request of
// connection 0.
void write_segment(uint8_t* out, uint16_t src_port, uint16_t dst_port, const SegmentLayout& layout);

// Of the pseudo-header and the segment at `tcp`.
uint64_t tcp_sum(int ip_version, const uint8_t* ip_header, const uint8_t* tcp, size_t bytes);

}  // namespace dutperf::net
