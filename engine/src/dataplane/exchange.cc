#include "dataplane/exchange.h"

#include <algorithm>
#include <cstring>

#include "net/http.h"

namespace dutperf::dataplane {
namespace {

constexpr bool is_received_by_initiator(Step step) {
  return step == Step::kSynAck || step == Step::kResponse || step == Step::kFinAck;
}

constexpr size_t index_of(Step step) { return static_cast<size_t>(step); }

// std::ranges::equal looks at one byte after the other.
bool is_same(std::span<const uint8_t> one, std::span<const uint8_t> other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size()) == 0;
}

uint32_t bytes_if(bool there, size_t bytes) { return there ? static_cast<uint32_t>(bytes) : 0; }

}  // namespace

Exchange::Exchange(const ExchangeSpec& spec, bool is_initiator, const dpdk::TxQueue& queue,
                   dpdk::FramePool& pool, bool copies)
    : spec_(spec),
      is_initiator_(is_initiator),
      out_(queue),
      pool_(pool),
      copies_(copies),
      response_(net::http_response(spec.object_bytes)),
      piece_bytes_(net::data_bytes(spec.first.mss)),
      pieces_(net::segments_of(response_.size(), spec.first.mss)),
      sent_before_(spec.first.sent_before),
      answered_before_(spec.first.answered_before),
      sent_(sent_before_ + bytes_if(spec.includes(Step::kRequest), net::kHttpRequestBytes)),
      answered_(answered_before_ + bytes_if(spec.includes(Step::kResponse), response_.size())) {
  for (size_t step = 0; step < kSteps; ++step) {
    const bool here = is_received_by_initiator(static_cast<Step>(step)) == is_initiator;
    const uint64_t bits =
        spec.connections * (static_cast<Step>(step) == Step::kResponse ? pieces_ : 1);
    taken_.emplace_back(here && spec.includes(static_cast<Step>(step)) ? bits : 0);
  }
  if (is_initiator && pieces_ > 1 && spec.includes(Step::kResponse)) {
    pieces_taken_.resize(spec.connections);
  }
  const bool may_hold = is_initiator && spec.includes(Step::kSyn) && spec.includes(Step::kRequest);
  held_back_ = ConnectionBits(may_hold ? spec.connections : 0);
}

bool Exchange::is_untranslated(const uint8_t* frame, const net::Segment& segment) const {
  const std::optional<OwnSources>& own = spec_.untranslated;
  return !is_initiator_ && own && own->sent(frame, segment.ip_version);
}

std::optional<uint64_t> Exchange::begins(const net::Segment& segment) const {
  constexpr uint8_t kEnds = net::kTcpSyn | net::kTcpFin | net::kTcpRst;
  if (is_initiator_) return std::nullopt;
  const bool has_data = segment.payload_bytes() > 0;
  bool is_first = false;
  uint32_t before = 1 + sent_before_;
  switch (spec_.first.step) {
    case Step::kAck: is_first = !has_data && (segment.flags & kEnds) == 0; break;
    case Step::kRequest: is_first = has_data && !segment.has(net::kTcpRst); break;
    case Step::kFin: is_first = segment.has(net::kTcpFin); break;
    default: is_first = segment.has(net::kTcpSyn) && !segment.has(net::kTcpAck); before = 0;
  }
  if (!is_first) return std::nullopt;
  const uint64_t connection = spec_.first.numbers.connection_of(segment.sequence - before);
  return connection < spec_.connections ? std::optional(connection) : std::nullopt;
}

// A clock that is a little ahead of ours is none that somebody else has written.
std::optional<uint64_t> Exchange::left_at_ns(uint32_t stamp, const net::Segment& segment,
                                             uint64_t now_ns) {
  constexpr int64_t kAheadNs = 1'000'000;
  const int64_t ago_ns = net::ns_since(stamp, now_ns);
  if (!segment.has_timestamps || ago_ns < -kAheadNs) return std::nullopt;
  if (ago_ns > static_cast<int64_t>(now_ns)) return std::nullopt;
  return now_ns - static_cast<uint64_t>(ago_ns);
}

bool Exchange::take(dpdk::Mbuf* mbuf, uint32_t before, const net::Segment& segment,
                    uint64_t now_ns) noexcept {
  const uint8_t* const frame = dpdk::frame_of(mbuf) + before;
  const size_t headers =
      sizeof(net::EthernetHeader) + segment.ip_headers + size_t{segment.tcp_headers};
  const Received received{
      mbuf, before, segment, {frame + headers, segment.payload_bytes()}, now_ns};
  if (segment.has(net::kTcpRst)) {
    ++report_.resets;
    return false;
  }
  return is_initiator_ ? initiate(received) : respond(received);
}

bool Exchange::takes_known(Step step, uint64_t connection) noexcept {
  if (!spec_.includes(step)) {
    ++report_.unknown;
    return false;
  }
  const bool is_new = taken_[index_of(step)].add(connection);
  ++(is_new ? report_.received : report_.duplicate)[index_of(step)];
  return is_new;
}

bool Exchange::takes(Step step, uint32_t number) noexcept {
  const uint64_t connection = spec_.first.numbers.connection_of(number);
  if (connection < spec_.connections) return takes_known(step, connection);
  if (is_initiator_) {
    ++report_.unknown;
    return false;
  }
  if (!spec_.includes(step)) {
    ++report_.unknown;
    return false;
  }
  ++report_.renumbered;
  ++report_.received[index_of(step)];
  return true;
}

bool Exchange::is_answered(Step step, uint32_t number) noexcept {
  const uint64_t before = report_.duplicate[index_of(step)];
  const bool is_new = takes(step, number);
  is_again_ = report_.duplicate[index_of(step)] > before;
  return is_new || (is_again_ && spec_.retransmit > 0);
}

bool Exchange::is_known_answered(Step step, uint64_t connection) noexcept {
  const bool is_new = takes_known(step, connection);
  is_again_ = !is_new && spec_.includes(step);
  return is_new || (is_again_ && spec_.retransmit > 0);
}

bool Exchange::has(Step step, uint64_t connection) const noexcept {
  if (step == Step::kResponse && pieces_ > 1) return pieces_taken_[connection] == pieces_;
  return taken_[index_of(step)].has(connection);
}

void Exchange::time_answer(Step step, const Received& received) noexcept {
  if (index_of(step) != index_of(spec_.first.step) + 1) return;
  if (const auto left_ns = left_at_ns(received.segment.echo, received.segment, received.now_ns)) {
    report_.first_answer_ns.record(received.now_ns - std::min(received.now_ns, *left_ns));
  } else {
    ++report_.without_stamp;
  }
}

bool Exchange::respond(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  if (segment.has(net::kTcpSyn)) {
    if (segment.has(net::kTcpAck)) {
      ++report_.unknown;
      return false;
    }
    if (!is_answered(Step::kSyn, segment.sequence)) return false;
    return answer(Step::kSynAck, received,
                  {.flags = net::kTcpSyn | net::kTcpAck,
                   .sequence = net::SequenceNumbers::answer_to(segment.sequence),
                   .acknowledgment = segment.sequence + 1,
                   .mss = spec_.first.mss});
  }
  if (!received.payload.empty()) return respond_to_request(received);
  return segment.has(net::kTcpFin) ? respond_to_fin(received) : note_ack(received);
}

bool Exchange::respond_to_request(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  const uint32_t own = net::SequenceNumbers::answer_to(segment.sequence - 1 - sent_before_);
  const std::optional<uint64_t> connection = net::number_in_http_request(received.payload);
  if (!connection || segment.acknowledgment != own + 1 + answered_before_) {
    ++report_.wrong;
    return false;
  }
  if (*connection >= spec_.connections) {
    ++report_.unknown;
    return false;
  }
  if (!is_known_answered(Step::kRequest, *connection)) return false;
  const net::Answer response{
      .flags = net::kTcpAck | net::kTcpPsh,
      .sequence = segment.acknowledgment,
      .acknowledgment = segment.sequence + static_cast<uint32_t>(net::kHttpRequestBytes),
      .payload = response_};
  if (pieces_ > 1) [[unlikely]] {
    return answer(Step::kResponse, received, last_piece(received, response));
  }
  return answer(Step::kResponse, received, response);
}

[[gnu::noinline]] net::Answer Exchange::last_piece(const Received& received,
                                                   net::Answer response) noexcept {
  const uint8_t flags = response.flags;
  response.flags = net::kTcpAck;
  for (uint32_t i = 0; i + 1 < pieces_; ++i, response.sequence += piece_bytes_) {
    response.payload = piece(i);
    answer_beside(Step::kResponse, received, response);
  }
  response.flags = flags;
  response.payload = piece(pieces_ - 1);
  return response;
}

std::span<const uint8_t> Exchange::piece(uint32_t index) const noexcept {
  const size_t at = size_t{index} * piece_bytes_;
  return {response_.data() + at, std::min<size_t>(piece_bytes_, response_.size() - at)};
}

bool Exchange::respond_to_fin(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  const uint32_t number = segment.sequence - 1 - sent_;
  const uint32_t own = net::SequenceNumbers::answer_to(number);
  if (segment.acknowledgment != own + 1 + answered_) {
    ++report_.wrong;
    return false;
  }
  if (!is_answered(Step::kFin, number)) return false;
  return answer(Step::kFinAck, received,
                {.flags = net::kTcpAck | net::kTcpFin,
                 .sequence = segment.acknowledgment,
                 .acknowledgment = segment.sequence + 1});
}

// That of the SYN-ACK, or that of the FIN.
bool Exchange::note_ack(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  const uint32_t opened = segment.sequence - 1;
  const uint32_t closed = segment.sequence - 2 - sent_;
  const auto own = net::SequenceNumbers::answer_to;
  if (segment.acknowledgment == own(opened) + 1) {
    takes(Step::kAck, opened);
  } else if (segment.acknowledgment == own(closed) + 2 + answered_) {
    takes(Step::kLastAck, closed);
  } else {
    ++report_.wrong;
  }
  return false;
}

bool Exchange::initiate(const Received& received) noexcept {
  is_again_ = false;
  const net::Segment& segment = received.segment;
  if (segment.has(net::kTcpSyn | net::kTcpAck)) return confirm(received);
  if (!received.payload.empty()) return take_response(received);
  if (segment.has(net::kTcpFin)) return take_last_fin(received);
  if (segment.window > 0 && segment.has(net::kTcpAck)) return ask(received);
  ++report_.unknown;
  return false;
}

// Who answers in the responder's place first says that there is no room for data (a window of 0),
// as it has no responder yet, and then that there is.
bool Exchange::confirm(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  const uint32_t number = segment.acknowledgment - 1;
  if (!takes(Step::kSynAck, number)) return false;
  time_answer(Step::kSynAck, received);
  const bool is_renumbered = segment.sequence != net::SequenceNumbers::answer_to(number);
  report_.renumbered += is_renumbered ? 1 : 0;
  report_.proxied += is_renumbered && segment.window != net::kTcpWindow ? 1 : 0;
  if (!spec_.includes(Step::kAck)) return false;
  const uint64_t connection = spec_.first.numbers.connection_of(number);
  const net::Answer ack{.flags = net::kTcpAck,
                        .sequence = segment.acknowledgment,
                        .acknowledgment = segment.sequence + 1};
  const bool asks = spec_.includes(Step::kRequest);
  if (asks && segment.window == 0) held_back_.add(connection);
  if (!asks || segment.window == 0) return answer(Step::kAck, received, ack);
  answer_beside(Step::kAck, received, ack);
  return request(received, number, segment.sequence + 1);
}

// That there is room for data now.
bool Exchange::ask(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  const uint32_t number = segment.acknowledgment - 1;
  const uint64_t connection = spec_.first.numbers.connection_of(number);
  if (connection < spec_.connections && held_back_.remove(connection)) {
    return request(received, number, segment.sequence);
  }
  ++report_.unknown;
  return false;
}

bool Exchange::request(const Received& received, uint32_t number,
                       uint32_t acknowledgment) noexcept {
  uint8_t text[net::kHttpRequestBytes];
  net::write_http_request(text, spec_.first.numbers.connection_of(number));
  return answer(Step::kRequest, received,
                {.flags = net::kTcpAck | net::kTcpPsh,
                 .sequence = number + 1,
                 .acknowledgment = acknowledgment,
                 .payload = text});
}

bool Exchange::take_response(const Received& received) noexcept {
  if (pieces_ > 1) [[unlikely]]
    return take_piece(received);
  if (!is_same(received.payload, response_)) {
    ++report_.wrong;
    return false;
  }
  if (!takes(Step::kResponse, received.segment.acknowledgment - 1 - sent_)) return false;
  return end_response(received, static_cast<uint32_t>(response_.size()));
}

// By its place in the stream, which no device may have changed.
[[gnu::noinline]] bool Exchange::take_piece(const Received& received) noexcept {
  const uint32_t number = received.segment.acknowledgment - 1 - sent_;
  const uint64_t connection = spec_.first.numbers.connection_of(number);
  if (connection >= spec_.connections || !spec_.includes(Step::kResponse)) {
    ++report_.unknown;
    return false;
  }
  const uint32_t begin = net::SequenceNumbers::answer_to(number) + 1 + answered_before_;
  const uint32_t at = received.segment.sequence - begin;
  const uint32_t index = at / piece_bytes_;
  const bool is_one =
      index < pieces_ && at == index * piece_bytes_ && is_same(received.payload, piece(index));
  if (!is_one) {
    ++report_.wrong;
    return false;
  }
  constexpr size_t kStep = index_of(Step::kResponse);
  const bool is_new = taken_[kStep].add(connection * pieces_ + index);
  ++(is_new ? report_.received : report_.duplicate)[kStep];
  if (!is_new || ++pieces_taken_[connection] < pieces_) return false;
  return end_response(received, static_cast<uint32_t>(response_.size()) - at);
}

bool Exchange::end_response(const Received& received, uint32_t rest) noexcept {
  const net::Segment& segment = received.segment;
  time_answer(Step::kResponse, received);
  if (!spec_.includes(Step::kFin)) return false;
  return answer(Step::kFin, received,
                {.flags = net::kTcpAck | net::kTcpFin,
                 .sequence = segment.acknowledgment,
                 .acknowledgment = segment.sequence + rest});
}

bool Exchange::take_last_fin(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  if (!takes(Step::kFinAck, segment.acknowledgment - 2 - sent_)) return false;
  time_answer(Step::kFinAck, received);
  return answer(Step::kLastAck, received,
                {.flags = net::kTcpAck,
                 .sequence = segment.acknowledgment,
                 .acknowledgment = segment.sequence + 1});
}

bool Exchange::answer(Step step, const Received& received, net::Answer answer) noexcept {
  const size_t most = received.before + net::kMostAnswerHeaders + answer.payload.size();
  if (copies_ || dpdk::room_of(received.mbuf) < most) {
    answer_beside(step, received, answer);
    return false;
  }
  answer.stamp = net::tcp_stamp(received.now_ns);
  uint8_t* const mac = dpdk::frame_of(received.mbuf);
  const size_t size = net::write_answer(mac, mac + received.before, received.segment, answer);
  dpdk::set_size(received.mbuf, size + received.before);
  put(step, received.mbuf);
  return true;
}

void Exchange::answer_beside(Step step, const Received& received, net::Answer answer) noexcept {
  dpdk::Mbuf* mbuf = nullptr;
  if (!pool_.get(&mbuf, 1)) {
    ++report_.not_sent;
    return;
  }
  answer.stamp = net::tcp_stamp(received.now_ns);
  const net::Segment& segment = received.segment;
  const size_t headers =
      received.before + sizeof(net::EthernetHeader) + segment.ip_headers + sizeof(net::TcpHeader);
  uint8_t* const mac = dpdk::frame_of(mbuf);
  std::memcpy(mac, dpdk::frame_of(received.mbuf), headers);
  const size_t size = net::write_answer(mac, mac + received.before, segment, answer);
  dpdk::set_size(mbuf, size + received.before);
  put(step, mbuf);
}

void Exchange::put(Step step, dpdk::Mbuf* mbuf) noexcept {
  auto& counts = is_again_ ? report_.retransmitted : report_.sent;
  if (!out_.put(mbuf, counts[index_of(step)])) ++report_.not_sent;
}

}  // namespace dutperf::dataplane
