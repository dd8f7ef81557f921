#include "witness.h"

#include <ctime>

namespace dutperf::refdut {
namespace {

// A sum of 16-bit words, most significant byte first (RFC 1071), a byte at a time.
class ByteSum {
 public:
  void add(const uint8_t* bytes, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      sum_ += i % 2 == 0 ? uint64_t{bytes[i]} * 256 : uint64_t{bytes[i]};
    }
  }
  void add(uint64_t word) { sum_ += word; }
  bool is_right() const {
    uint64_t folded = sum_;
    while (folded > 0xffff) folded = folded % 0x10000 + folded / 0x10000;
    return folded == 0xffff;
  }

 private:
  uint64_t sum_ = 0;
};

size_t two(const uint8_t* at) { return size_t{at[0]} * 256 + at[1]; }

constexpr size_t kIpAt = 14;
constexpr uint8_t kUdp = 17;
constexpr size_t kUdpHeaderSize = 8;
constexpr size_t kTag = 18;

// Where UDP begins behind extension headers of a known length; 0: there is something else.
size_t udp_of_ipv6(const uint8_t* ip, size_t size) {
  size_t at = 40;
  uint8_t next = ip[6];
  while (next == 0 || next == 43 || next == 60) {  // hop-by-hop, routing, destination options
    if (at + 8 > size) return 0;
    next = ip[at];
    at += 8 + size_t{ip[at + 1]} * 8;
  }
  return next == kUdp ? at : 0;
}

}  // namespace

uint64_t monotonic_raw_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

control::Json WitnessedTimes::to_json() const {
  return {{"frames", frames}, {"sum_ns", sum_ns}, {"least_ns", least_ns}, {"most_ns", most_ns}};
}

std::optional<PlainFrame> read_plainly(const uint8_t* frame, size_t size) {
  if (size < kIpAt + 40) return std::nullopt;
  const uint8_t* const ip = frame + kIpAt;
  const size_t room = size - kIpAt;
  const bool is_ipv4 = two(frame + 12) == 0x0800 && ip[0] / 16 == 4;
  const bool is_ipv6 = two(frame + 12) == 0x86dd && ip[0] / 16 == 6;
  size_t at = 0;
  ByteSum header;
  ByteSum udp;
  if (is_ipv4) {
    const bool in_pieces = (ip[6] & 0x3f) != 0 || ip[7] != 0;
    at = ip[9] == kUdp && !in_pieces ? size_t{ip[0]} % 16 * 4 : 0;
    header.add(ip, std::min(at, room));
    udp.add(ip + 12, 8);
  } else if (is_ipv6) {
    at = udp_of_ipv6(ip, room);
    header.add(0xffff);
    udp.add(ip + 8, 32);
  }
  if (at == 0 || at + kUdpHeaderSize + kTag > room) return std::nullopt;
  const size_t length = two(ip + at + 4);
  if (length < kUdpHeaderSize + kTag || at + length > room) return std::nullopt;
  udp.add(kUdp);
  udp.add(length);
  udp.add(ip + at, length);
  const bool has_none = is_ipv4 && two(ip + at + 6) == 0;  // RFC 768
  const uint8_t* const tag = ip + at + length - kTag;
  PlainFrame plain;
  plain.trial = static_cast<uint16_t>(two(tag + 2));
  plain.stream = tag[4];
  for (size_t i = 6; i < 12; ++i) plain.sequence = plain.sequence * 256 + tag[i];
  plain.sums_hold = header.is_right() && (has_none || udp.is_right());
  return plain;
}

void PlainReadings::look(const uint8_t* frame, size_t size, uint16_t trial, uint8_t stream,
                         uint64_t sequence) {
  if (came++ % kEvery != 0) return;
  const auto plain = read_plainly(frame, size);
  if (!plain) {
    ++unreadable;
    return;
  }
  ++read;
  wrong_sums += !plain->sums_hold;
  other_tags += plain->trial != trial || plain->stream != stream || plain->sequence != sequence;
}

control::Json PlainReadings::to_json() const {
  return {{"read", read},
          {"unreadable", unreadable},
          {"wrong_sums", wrong_sums},
          {"other_tags", other_tags}};
}

}  // namespace dutperf::refdut
