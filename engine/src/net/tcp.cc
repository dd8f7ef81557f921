#include "net/tcp.h"

#include <algorithm>
#include <cstring>

#include "net/checksum.h"
#include "net/turn.h"

namespace dutperf::net {
namespace {

constexpr uint8_t kEndOfOptions = 0;
constexpr uint8_t kNoOperation = 1;
constexpr uint8_t kTimestampsKind = 8;
constexpr uint8_t kTimestampsBytes = 10;

uint32_t number_at(const uint8_t* bytes) {
  Be32 number;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

void take_timestamps(const uint8_t* option, Segment& segment) {
  segment.has_timestamps = true;
  segment.stamp = number_at(option + 2);
  segment.echo = number_at(option + 6);
}

// Where they stand in what we send, or anywhere.
void find_timestamps(const uint8_t* tcp, Segment& segment) {
  const uint8_t* const options = tcp + sizeof(TcpHeader);
  const size_t bytes = segment.tcp_headers - sizeof(TcpHeader);
  const size_t usual = segment.has(kTcpSyn) ? offsetof(SynOptions, timestamps) : 0;
  if (bytes >= usual + sizeof(TcpTimestamps) && number_at(options + usual) == kTcpTimestampsKind) {
    return take_timestamps(options + usual + 2, segment);
  }
  for (size_t at = 0; at < bytes && options[at] != kEndOfOptions;) {
    if (options[at] == kNoOperation) {
      ++at;
      continue;
    }
    if (at + 1 >= bytes || options[at + 1] < 2 || at + options[at + 1] > bytes) return;
    if (options[at] == kTimestampsKind && options[at + 1] == kTimestampsBytes) {
      return take_timestamps(options + at, segment);
    }
    at += options[at + 1];
  }
}

uint8_t data_offset(size_t bytes) { return static_cast<uint8_t>(bytes / 4 << 4); }

TcpMss mss_option(uint16_t bytes) { return {kTcpMssKind, sizeof(TcpMss), bytes}; }

}  // namespace

// The inverse modulo 2^32: each step doubles the bits that are right, three to begin with.
SequenceNumbers::SequenceNumbers(uint64_t key)
    : factor(static_cast<uint32_t>(key) | 1U), first(static_cast<uint32_t>(key >> 32)) {
  inverse = factor;
  for (int i = 0; i < 4; ++i) inverse *= 2 - factor * inverse;
}

std::optional<Segment> segment_in(const uint8_t* frame, size_t size) {
  constexpr size_t kAt = sizeof(EthernetHeader);
  if (size < kAt + sizeof(Ipv4Header) + sizeof(TcpHeader)) return std::nullopt;
  const uint16_t ether_type = reinterpret_cast<const EthernetHeader*>(frame)->ether_type;
  Segment result;
  if (ether_type == kEtherTypeIpv4) {
    const auto* header = reinterpret_cast<const Ipv4Header*>(frame + kAt);
    const bool whole = (header->flags_fragment & kMoreFragmentsOrOffset) == 0;
    if (header->version_ihl != 0x45 || header->protocol != kProtocolTcp || !whole) {
      return std::nullopt;
    }
    result.ip_headers = sizeof(Ipv4Header);
    result.ip_bytes = header->total_length;
  } else if (ether_type == kEtherTypeIpv6 && size >= kAt + sizeof(Ipv6Header) + sizeof(TcpHeader)) {
    const auto* header = reinterpret_cast<const Ipv6Header*>(frame + kAt);
    if (header->next_header != kProtocolTcp) return std::nullopt;
    result.ip_version = 6;
    result.ip_headers = sizeof(Ipv6Header);
    result.ip_bytes = static_cast<uint32_t>(sizeof(Ipv6Header)) + header->payload_length;
  } else {
    return std::nullopt;
  }
  const uint8_t* const tcp = frame + kAt + result.ip_headers;
  const auto* header = reinterpret_cast<const TcpHeader*>(tcp);
  result.tcp_headers = static_cast<uint16_t>(header->data_offset >> 4 << 2);
  const bool fits = result.tcp_headers >= sizeof(TcpHeader) && kAt + result.ip_bytes <= size &&
                    result.ip_headers + size_t{result.tcp_headers} <= result.ip_bytes;
  if (!fits) return std::nullopt;
  result.flags = header->flags;
  result.window = header->window;
  result.sequence = header->sequence;
  result.acknowledgment = header->acknowledgment;
  if (result.tcp_headers > sizeof(TcpHeader)) find_timestamps(tcp, result);
  return result;
}

bool checksums_hold(const uint8_t* frame, const Segment& segment) {
  const uint8_t* const ip = frame + sizeof(EthernetHeader);
  const size_t bytes = segment.ip_bytes - segment.ip_headers;
  uint64_t addresses = 0;
  if (segment.ip_version == 4) {
    if (!native::holds(native::sum(ip, sizeof(Ipv4Header)))) return false;
    addresses = native::sum(ip + offsetof(Ipv4Header, src), 8);
  } else {
    addresses = native::sum(ip + offsetof(Ipv6Header, src), 32);
  }
  constexpr uint64_t kProtocol = byte_swap(uint16_t{kProtocolTcp});
  const uint64_t pseudo =
      native::add(addresses, kProtocol + byte_swap(static_cast<uint16_t>(bytes)));
  return native::holds(native::add(pseudo, native::sum(ip + segment.ip_headers, bytes)));
}

uint64_t tcp_sum(int ip_version, const uint8_t* ip_header, const uint8_t* tcp, size_t bytes) {
  const uint64_t addresses =
      ip_version == 4 ? sum_words(reinterpret_cast<const Ipv4Header*>(ip_header)->src, 8)
                      : sum_words(reinterpret_cast<const Ipv6Header*>(ip_header)->src, 32);
  return addresses + kProtocolTcp + bytes + sum_words(tcp, bytes);
}

size_t write_answer(uint8_t* mac, uint8_t* frame, const Segment& segment, const Answer& answer) {
  turn_ethernet(mac);
  uint8_t* const ip = frame + sizeof(EthernetHeader);
  uint8_t* const tcp = ip + segment.ip_headers;
  uint8_t* options = tcp + sizeof(TcpHeader);
  if (answer.mss > 0) {
    const TcpMss mss = mss_option(answer.mss);
    std::memcpy(options, &mss, sizeof(mss));
    options += sizeof(mss);
  }
  if (segment.has_timestamps) {
    const TcpTimestamps timestamps{kTcpTimestampsKind, answer.stamp, segment.stamp};
    std::memcpy(options, &timestamps, sizeof(timestamps));
    options += sizeof(timestamps);
  }
  const auto headers = static_cast<size_t>(options - tcp);
  if (!answer.payload.empty()) {
    std::memcpy(options, answer.payload.data(), answer.payload.size());
  }
  const size_t bytes = headers + answer.payload.size();
  auto* header = reinterpret_cast<TcpHeader*>(tcp);
  const uint16_t from_port = header->dst_port;
  header->dst_port = static_cast<uint16_t>(header->src_port);
  header->src_port = from_port;
  header->sequence = answer.sequence;
  header->acknowledgment = answer.acknowledgment;
  header->data_offset = data_offset(headers);
  header->flags = answer.flags;
  header->window = kTcpWindow;
  header->checksum = 0;
  header->urgent = 0;
  turn_ip(ip, segment.ip_version, bytes);
  header->checksum = finish(tcp_sum(segment.ip_version, ip, tcp, bytes));
  const size_t size = sizeof(EthernetHeader) + segment.ip_headers + bytes;
  if (size >= kMinFrameBytes) return size;
  std::memset(frame + size, 0, kMinFrameBytes - size);
  return kMinFrameBytes;
}

void write_segment(uint8_t* out, uint16_t src_port, uint16_t dst_port,
                   const SegmentLayout& layout) {
  constexpr uint8_t kFlags[kSteps] = {kTcpSyn,           0, kTcpAck, kTcpAck | kTcpPsh, 0,
                                      kTcpAck | kTcpFin, 0, kTcpAck};
  auto* header = reinterpret_cast<TcpHeader*>(out);
  *header = {};
  header->src_port = src_port;
  header->dst_port = dst_port;
  header->data_offset = data_offset(layout.header_bytes());
  header->flags = layout.is_data ? kTcpAck | kTcpPsh : kFlags[static_cast<size_t>(layout.step)];
  header->window = kTcpWindow;
  const SynOptions options{mss_option(layout.mss), {kTcpTimestampsKind, 0, 0}};
  if (layout.step == Step::kSyn) {
    std::memcpy(out + sizeof(TcpHeader), &options, sizeof(options));
    return;
  }
  std::memcpy(out + sizeof(TcpHeader), &options.timestamps, sizeof(options.timestamps));
  if (layout.step == Step::kRequest)
    write_http_request(out + sizeof(TcpHeader) + sizeof(TcpTimestamps), 0);
}

}  // namespace dutperf::net
