#include "dataplane/exchange.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "net/frame.h"

namespace dutperf::dataplane {
namespace {

constexpr std::string_view kRequest = "GET /0000000000000000 HTTP/1.1\r\nHost: dutperf\r\n\r\n";
constexpr size_t kNumberAt = 5;
constexpr size_t kNumberDigits = 16;
constexpr std::string_view kDigits = "0123456789abcdef";

constexpr bool is_received_by_initiator(Step step) {
  return step == Step::kSynAck || step == Step::kResponse || step == Step::kFinAck;
}

constexpr size_t index_of(Step step) { return static_cast<size_t>(step); }

}  // namespace

ConnectionTexts::ConnectionTexts(uint32_t object_bytes)
    : request_(kRequest.begin(), kRequest.end()) {
  const std::string header =
      "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(object_bytes) + "\r\n\r\n";
  response_.assign(header.begin(), header.end());
  response_.resize(header.size() + object_bytes);
  net::write_payload(response_.data() + header.size(), object_bytes);
}

std::span<const uint8_t> ConnectionTexts::request_of(uint64_t connection) {
  for (size_t i = kNumberDigits; i-- > 0; connection >>= 4) {
    request_[kNumberAt + i] = static_cast<uint8_t>(kDigits[connection & 0xf]);
  }
  return request_;
}

std::optional<uint64_t> ConnectionTexts::connection_in(std::span<const uint8_t> request) const {
  constexpr size_t kRest = kNumberAt + kNumberDigits;
  if (request.size() != kRequest.size()) return std::nullopt;
  const bool is_one =
      std::memcmp(request.data(), kRequest.data(), kNumberAt) == 0 &&
      std::memcmp(request.data() + kRest, kRequest.data() + kRest, kRequest.size() - kRest) == 0;
  if (!is_one) return std::nullopt;
  uint64_t connection = 0;
  for (size_t i = kNumberAt; i < kRest; ++i) {
    const size_t digit = kDigits.find(static_cast<char>(request[i]));
    if (digit == std::string_view::npos) return std::nullopt;
    connection = connection << 4 | digit;
  }
  return connection;
}

Exchange::Exchange(const ExchangeSpec& spec, bool is_initiator, const dpdk::TxQueue& queue,
                   dpdk::FramePool& pool, bool copies)
    : spec_(spec),
      is_initiator_(is_initiator),
      queue_(queue),
      pool_(pool),
      copies_(copies),
      texts_(spec.object_bytes),
      request_bytes_(
          spec.end == ConnectionEnd::kOpened ? 0 : static_cast<uint32_t>(texts_.request_bytes())),
      response_bytes_(spec.end == ConnectionEnd::kOpened
                          ? 0
                          : static_cast<uint32_t>(texts_.response().size())) {
  for (size_t step = 0; step < kSteps; ++step) {
    const bool here = is_received_by_initiator(static_cast<Step>(step)) == is_initiator;
    taken_.emplace_back(here ? spec.connections : 0);
  }
  waiting_.reserve(kMostWaiting);
  steps_.reserve(kMostWaiting);
}

Exchange::~Exchange() {
  dpdk::free_frames(waiting_.data(), static_cast<uint32_t>(waiting_.size()));
}

std::optional<uint64_t> Exchange::opened_by(const net::Segment& segment) const {
  const uint64_t connection = spec_.numbers.connection_of(segment.sequence);
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
  const bool is_new = taken_[index_of(step)].add(connection);
  ++(is_new ? report_.received : report_.duplicate)[index_of(step)];
  return is_new;
}

bool Exchange::takes(Step step, uint32_t number) noexcept {
  const uint64_t connection = spec_.numbers.connection_of(number);
  if (connection < spec_.connections) return takes_known(step, connection);
  if (is_initiator_) {
    ++report_.unknown;
    return false;
  }
  ++report_.renumbered;
  ++report_.received[index_of(step)];
  return true;
}

bool Exchange::respond(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  if (segment.has(net::kTcpSyn)) {
    if (segment.has(net::kTcpAck)) {
      ++report_.unknown;
      return false;
    }
    report_.without_stamp += left_at_ns(segment.stamp, segment, received.now_ns) ? 0 : 1;
    if (!takes(Step::kSyn, segment.sequence)) return false;
    return answer(Step::kSynAck, received,
                  {.flags = net::kTcpSyn | net::kTcpAck,
                   .sequence = net::SequenceNumbers::answer_to(segment.sequence),
                   .acknowledgment = segment.sequence + 1,
                   .mss = spec_.mss});
  }
  if (!received.payload.empty()) return respond_to_request(received);
  return segment.has(net::kTcpFin) ? respond_to_fin(received) : note_ack(received);
}

bool Exchange::respond_to_request(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  const uint32_t own = net::SequenceNumbers::answer_to(segment.sequence - 1);
  const std::optional<uint64_t> connection = texts_.connection_in(received.payload);
  if (!connection || segment.acknowledgment != own + 1) {
    ++report_.wrong;
    return false;
  }
  if (*connection >= spec_.connections) {
    ++report_.unknown;
    return false;
  }
  if (!takes_known(Step::kRequest, *connection)) return false;
  return answer(Step::kResponse, received,
                {.flags = net::kTcpAck | net::kTcpPsh,
                 .sequence = segment.acknowledgment,
                 .acknowledgment = segment.sequence + request_bytes_,
                 .payload = texts_.response()});
}

bool Exchange::respond_to_fin(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  const uint32_t number = segment.sequence - 1 - request_bytes_;
  const uint32_t own = net::SequenceNumbers::answer_to(number);
  if (segment.acknowledgment != own + 1 + response_bytes_) {
    ++report_.wrong;
    return false;
  }
  if (!takes(Step::kFin, number)) return false;
  return answer(Step::kFinAck, received,
                {.flags = net::kTcpAck | net::kTcpFin,
                 .sequence = segment.acknowledgment,
                 .acknowledgment = segment.sequence + 1});
}

// That of the SYN-ACK, or that of the FIN.
bool Exchange::note_ack(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  const uint32_t opened = segment.sequence - 1;
  const uint32_t closed = segment.sequence - 2 - request_bytes_;
  const auto own = net::SequenceNumbers::answer_to;
  if (segment.acknowledgment == own(opened) + 1) {
    takes(Step::kAck, opened);
  } else if (segment.acknowledgment == own(closed) + 2 + response_bytes_) {
    takes(Step::kLastAck, closed);
  } else {
    ++report_.wrong;
  }
  return false;
}

bool Exchange::initiate(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  if (segment.has(net::kTcpSyn | net::kTcpAck)) return confirm(received);
  if (!received.payload.empty()) return take_response(received);
  if (segment.has(net::kTcpFin)) return take_last_fin(received);
  ++report_.unknown;
  return false;
}

bool Exchange::confirm(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  const uint32_t number = segment.acknowledgment - 1;
  if (!takes(Step::kSynAck, number)) return false;
  if (const auto left_ns = left_at_ns(segment.echo, segment, received.now_ns)) {
    report_.opening_ns.record(received.now_ns - std::min(received.now_ns, *left_ns));
  } else {
    ++report_.without_stamp;
  }
  const net::Answer ack{.flags = net::kTcpAck,
                        .sequence = segment.acknowledgment,
                        .acknowledgment = segment.sequence + 1};
  if (spec_.end == ConnectionEnd::kOpened) return answer(Step::kAck, received, ack);
  answer_beside(Step::kAck, received, ack);
  net::Answer request = ack;
  request.flags = net::kTcpAck | net::kTcpPsh;
  request.payload = texts_.request_of(spec_.numbers.connection_of(number));
  return answer(Step::kRequest, received, request);
}

bool Exchange::take_response(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  if (!std::ranges::equal(received.payload, texts_.response())) {
    ++report_.wrong;
    return false;
  }
  if (!takes(Step::kResponse, segment.acknowledgment - 1 - request_bytes_)) return false;
  if (spec_.end != ConnectionEnd::kClosed) return false;
  return answer(Step::kFin, received,
                {.flags = net::kTcpAck | net::kTcpFin,
                 .sequence = segment.acknowledgment,
                 .acknowledgment = segment.sequence + response_bytes_});
}

bool Exchange::take_last_fin(const Received& received) noexcept {
  const net::Segment& segment = received.segment;
  if (!takes(Step::kFinAck, segment.acknowledgment - 2 - request_bytes_)) return false;
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
  if (waiting_.size() == kMostWaiting) send();
  if (waiting_.size() == kMostWaiting) {
    dpdk::free_frame(mbuf);
    ++report_.not_sent;
    return;
  }
  waiting_.push_back(mbuf);
  steps_.push_back(step);
}

void Exchange::send() noexcept {
  constexpr uint32_t kBurst = 32;
  uint32_t done = 0;
  const auto count = static_cast<uint32_t>(waiting_.size());
  while (done < count) {
    const uint32_t wanted = std::min(kBurst, count - done);
    const uint32_t taken = queue_.send(waiting_.data() + done, wanted);
    for (uint32_t i = done; i < done + taken; ++i) ++report_.sent[index_of(steps_[i])];
    done += taken;
    if (taken < wanted) break;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + done);
  steps_.erase(steps_.begin(), steps_.begin() + done);
}

}  // namespace dutperf::dataplane
