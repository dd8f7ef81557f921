#include "vary/lanes.h"

#include <bit>

#include "net/byte_order.h"
#include "net/simd.h"
#include "vary/draw.h"
#include "vary/lanes_by_cpu.h"

namespace dutperf::vary::lanes {
namespace {

const Kernels& best() {
  static const Kernels chosen = kernels_here().front();
  return chosen;
}

}  // namespace

FOR_EACH_CPU
void count_up(uint64_t first, Lanes& out, uint32_t count, uint32_t step) {
  const uint32_t n = padded(count);
  if (step == 1) {
    for (uint32_t i = 0; i < n; ++i) out.lane[i] = first + i;
  } else {
    for (uint32_t i = 0; i < n; ++i) out.lane[i] = first + uint64_t{i} * step;
  }
}

FOR_EACH_CPU
void draw_all(uint64_t key, const Lanes& numbers, Lanes& out, uint32_t count) {
  const uint32_t n = padded(count);
  for (uint32_t i = 0; i < n; ++i) out.lane[i] = draw(key, numbers.lane[i]);
}

FOR_EACH_CPU
void fill(uint64_t value, Lanes& out, uint32_t count) {
  const uint32_t n = padded(count);
  for (uint32_t i = 0; i < n; ++i) out.lane[i] = value;
}

FOR_EACH_CPU
void random_values(const Lanes& draws, uint32_t draw_shift, uint64_t min, uint64_t size, Lanes& out,
                   uint32_t count) {
  const uint32_t n = padded(count);
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t random = (draws.lane[i] >> draw_shift) & 0xffffffff;
    out.lane[i] = min + ((random * size) >> 32);
  }
}

namespace {

[[gnu::always_inline]] inline uint64_t placed(uint64_t random, const RandomPart& part) {
  return std::rotl(random * part.size, static_cast<int>(part.turn)) & part.mask;
}

}  // namespace

FOR_EACH_CPU
void random_window(const RandomWindow& window, const Lanes& numbers, Lanes& out, uint32_t count) {
  const uint32_t n = padded(count);
  const RandomWindow w = window;  // a copy that no lane can alias
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t random = draw(w.key, numbers.lane[i]);
    out.lane[i] = w.fixed + (placed(random >> 32, w.high) | placed(random & 0xffffffff, w.low));
  }
}

namespace {

void random_windows_plainly(const RandomWindow* windows, uint32_t window_count,
                            const Lanes& numbers, Lanes* out, uint32_t count) {
  for (uint32_t i = 0; i < window_count; ++i)
    random_window(windows[i], numbers, out[windows[i].place], count);
}

}  // namespace

void random_windows(const RandomWindow* windows, uint32_t window_count, const Lanes& numbers,
                    Lanes* out, uint32_t count) {
  best().random_windows(windows, window_count, numbers, out, count);
}

// By halves, because SIMD has no 128-bit product; exact.
FOR_EACH_CPU
void draw_indices_plainly(uint64_t key, uint64_t size, const Lanes& numbers, Lanes& out,
                          uint32_t count) {
  constexpr uint64_t kLow = 0xffffffff;
  const uint32_t n = padded(count);
  const uint64_t size_high = size >> 32;
  const uint64_t size_low = size & kLow;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t random = draw(key, numbers.lane[i]);
    const uint64_t high = random >> 32;
    const uint64_t low = random & kLow;
    const uint64_t middle = high * size_low + ((low * size_low) >> 32);
    const uint64_t other = low * size_high + (middle & kLow);
    out.lane[i] = high * size_high + (middle >> 32) + (other >> 32);
  }
}

void draw_indices(uint64_t key, uint64_t size, const Lanes& numbers, Lanes& out, uint32_t count) {
  best().draw_indices(key, size, numbers, out, count);
}

namespace {

struct Digit {
  uint64_t quotient;
  uint64_t remainder;
};

[[gnu::always_inline]] inline Digit divide(uint64_t number, uint64_t divisor, double inverse) {
  const auto quotient = static_cast<uint64_t>(static_cast<double>(number) * inverse);
  return {quotient, number - quotient * divisor};
}

}  // namespace

FOR_EACH_CPU
void digits_up(const Lanes& numbers, uint64_t size, uint64_t first, Lanes& quotients, Lanes& out,
               uint32_t count) {
  const uint32_t n = padded(count);
  const double inverse = reciprocal(size);
  for (uint32_t i = 0; i < n; ++i) {
    const Digit digit = divide(numbers.lane[i], size, inverse);
    quotients.lane[i] = digit.quotient;
    out.lane[i] = first + digit.remainder;
  }
}

FOR_EACH_CPU
void digits_down(const Lanes& numbers, uint64_t size, uint64_t first, Lanes& quotients, Lanes& out,
                 uint32_t count) {
  const uint32_t n = padded(count);
  const double inverse = reciprocal(size);
  for (uint32_t i = 0; i < n; ++i) {
    const Digit digit = divide(numbers.lane[i], size, inverse);
    quotients.lane[i] = digit.quotient;
    out.lane[i] = first - digit.remainder;
  }
}

FOR_EACH_CPU
void encrypt_plainly(const Feistel& network, const Lanes& numbers, Lanes& left, Lanes& right,
                     uint32_t count) {
  const uint32_t n = padded(count);
  const Feistel f = network;
  for (uint32_t i = 0; i < n; ++i) {
    const Digit pair = divide(numbers.lane[i], f.columns, f.inverse_columns);
    const feistel::Pair image = feistel::encrypt(f, {pair.quotient, pair.remainder});
    left.lane[i] = image.left;
    right.lane[i] = image.right;
  }
}

void encrypt(const Feistel& network, const Lanes& numbers, Lanes& left, Lanes& right,
             uint32_t count) {
  best().encrypt(network, numbers, left, right, count);
}

const Kernels kPlain = {random_windows_plainly, draw_indices_plainly, encrypt_plainly};

std::vector<Kernels> kernels_here() {
  std::vector<Kernels> result;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    result.push_back(kAvx512);
  }
  if (__builtin_cpu_supports("avx2")) result.push_back(kAvx2);
#endif
  result.push_back(kPlain);
  return result;
}

FOR_EACH_CPU
void join(const Lanes& left, uint64_t columns, Lanes& number, uint32_t count) {
  const uint32_t n = padded(count);
  for (uint32_t i = 0; i < n; ++i) number.lane[i] += left.lane[i] * columns;
}

FOR_EACH_CPU
void add(uint64_t number, const Lanes& numbers, Lanes& out, uint32_t count) {
  const uint32_t n = padded(count);
  for (uint32_t i = 0; i < n; ++i) out.lane[i] = number + numbers.lane[i];
}

FOR_EACH_CPU
void copy_bits(const Lanes& from, uint32_t from_shift, uint64_t mask, uint32_t to_shift,
               Lanes& window, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    window.lane[i] |= ((from.lane[i] >> from_shift) & mask) << to_shift;
  }
}

FOR_EACH_CPU
void place(const Lanes& values, uint64_t first, int shift, Lanes& window, uint32_t count) {
  const uint32_t n = padded(count);
  const int left = shift > 0 ? shift : 0;
  const int right = shift < 0 ? -shift : 0;
  for (uint32_t i = 0; i < n; ++i) window.lane[i] |= ((first + values.lane[i]) >> right) << left;
}

namespace {

// The words of 64 bits, unfolded: 2^16 = 1 mod 65535.
[[gnu::always_inline]] inline uint64_t words(uint64_t bits) {
  return (bits >> 32) + (bits & 0xffffffff);
}

// The one's complement sum of 64 bits, in 17 bits; 0 for 0 alone.
[[gnu::always_inline]] inline uint64_t nearly_folded(uint64_t sum) {
  const uint64_t both = (sum + std::rotl(sum, 32)) >> 32;  // the carry comes round
  return (both & 0xffff) + (both >> 16);
}

}  // namespace

FOR_EACH_CPU
void sum_words(const Lanes& window, Lanes& sums, uint32_t count) {
  const uint32_t n = padded(count);
  for (uint32_t i = 0; i < n; ++i) sums.lane[i] = words(window.lane[i]);
}

FOR_EACH_CPU
void add_words(const Lanes& window, Lanes& sums, uint32_t count) {
  const uint32_t n = padded(count);
  for (uint32_t i = 0; i < n; ++i) sums.lane[i] += words(window.lane[i]);
}

FOR_EACH_CPU
void finish_ipv4(uint64_t base, const Lanes& sums, const Lanes& window, Lanes& checksums,
                 Lanes& addresses, uint32_t count) {
  const uint32_t n = padded(count);
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t sum = nearly_folded(base + sums.lane[i]);
    const uint64_t checksum = ~(sum + (sum >> 16)) & 0xffff;
    checksums.lane[i] = net::byte_swap(checksum) >> 48;
    addresses.lane[i] = net::byte_swap(window.lane[i]);
  }
}

FOR_EACH_CPU
void finish(const Lanes& sequences, uint64_t stamp_ns, bool tag_is_odd, uint64_t base,
            const Lanes& sums, const Lanes& ports, Lanes& udp, Lanes& tag_high, uint32_t count) {
  const uint32_t n = padded(count);
  const uint64_t stamp_high = stamp_ns >> 32;
  // At an odd offset the tag's words are byte-swapped; so is their folded sum: times 256 mod 65535.
  const uint32_t odd_shift = tag_is_odd ? 8 : 0;
  const uint64_t burst_base = base + (stamp_ns << odd_shift);
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t sequence = sequences.lane[i];
    tag_high.lane[i] = net::byte_swap((sequence << 16) | stamp_high);
    const uint64_t sum =
        burst_base + sums.lane[i] + (ports.lane[i] >> 32) + (sequence << odd_shift);
    // The sum's complement is its negative mod 65535, and folds to 1 .. 65535: never to "none".
    const uint64_t checksum = nearly_folded(~sum);
    udp.lane[i] = net::byte_swap(ports.lane[i] | ((checksum + (checksum >> 16)) & 0xffff));
  }
}

FOR_EACH_CPU
void finish_segment(const Lanes& numbers, const Following& sequence,
                    const Following& acknowledgment, uint32_t stamp, uint64_t base,
                    const Lanes& sums, const Lanes& ports, Lanes& heads, Lanes& acks,
                    uint32_t count) {
  const uint32_t n = padded(count);
  const uint64_t burst_base = base + stamp;
  const Following from = sequence;
  const Following to = acknowledgment;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t number = numbers.lane[i] & 0xffffffff;
    const uint64_t sent = (number * from.factor + from.first) & 0xffffffff;
    const uint64_t acked = (number * to.factor + to.first) & 0xffffffff;
    const uint64_t both = ports.lane[i] >> 32;
    heads.lane[i] = net::byte_swap(both << 32 | sent);
    const uint64_t sum = nearly_folded(burst_base + sums.lane[i] + both + sent + acked);
    const uint64_t checksum = ~(sum + (sum >> 16)) & 0xffff;
    acks.lane[i] = net::byte_swap(acked << 32 | checksum << 16);
  }
}

FOR_EACH_CPU
void finish_data(const Lanes& sequences, const Lanes& connections, const DataNumbers& numbers,
                 uint64_t base, const Lanes& sums, const Lanes& ports, Lanes& heads, Lanes& acks,
                 Lanes& tag_high, uint32_t count) {
  const uint32_t n = padded(count);
  const uint64_t stamp_high = numbers.stamp_ns >> 32;
  const uint32_t odd_shift = numbers.tag_is_odd ? 8 : 0;
  const uint64_t burst_base = base + numbers.tcp_stamp + (numbers.stamp_ns << odd_shift);
  const Following from = numbers.sequence;
  const Following to = numbers.acknowledgment;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t frame = sequences.lane[i];
    const uint64_t number = connections.lane[i] & 0xffffffff;
    const uint64_t within = frame % kWindowSegments * kSegmentBytes;
    const uint64_t sent = (number * from.factor + from.first + within) & 0xffffffff;
    const uint64_t acked = (number * to.factor + to.first) & 0xffffffff;
    const uint64_t both = ports.lane[i] >> 32;
    tag_high.lane[i] = net::byte_swap((frame << 16) | stamp_high);
    heads.lane[i] = net::byte_swap(both << 32 | sent);
    const uint64_t sum =
        nearly_folded(burst_base + sums.lane[i] + both + sent + acked + (frame << odd_shift));
    const uint64_t checksum = ~(sum + (sum >> 16)) & 0xffff;
    acks.lane[i] = net::byte_swap(acked << 32 | checksum << 16);
  }
}

namespace {

// An entry's ports, source first in memory, as the UDP header's first words: destination first.
[[gnu::always_inline]] inline uint64_t swapped_ports(uint64_t ports) {
  const uint64_t number = net::byte_swap(ports);
  return (number << 16 & 0xffff'0000'0000'0000) | (number >> 16 & 0x0000'ffff'0000'0000);
}

[[gnu::always_inline]] inline uint64_t swapped_udp(uint64_t ports, uint64_t fixed) {
  return swapped_ports(ports) | (fixed & 0xffffffff);
}

}  // namespace

FOR_EACH_CPU
uint32_t swap_ipv4(const state::Entries& entries, const Learned& learned, Lanes* windows,
                   uint32_t count) {
  const uint32_t n = padded(count);
  const Learned at = learned;
  Lanes& udps = windows[0];
  Lanes& addresses = windows[at.address_windows[0]];
  uint64_t empty = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t both = entries.addresses[0][i];
    const bool is_empty = (both | entries.ports[i]) == 0;
    const uint64_t swapped = std::rotl(net::byte_swap(both), 32);
    addresses.lane[i] = is_empty ? at.fixed_addresses[0] : swapped;
    udps.lane[i] = is_empty ? at.fixed_udp : swapped_udp(entries.ports[i], at.fixed_udp);
    empty += is_empty && i < count ? 1 : 0;
  }
  return static_cast<uint32_t>(empty);
}

FOR_EACH_CPU
uint32_t swap_ipv6(const state::Entries& entries, const Learned& learned, Lanes* windows,
                   uint32_t count) {
  const uint32_t n = padded(count);
  const Learned at = learned;
  Lanes is_empty;
  uint64_t empty = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const auto& from = entries.addresses;
    const uint64_t any = from[0][i] | from[1][i] | from[2][i] | from[3][i] | entries.ports[i];
    is_empty.lane[i] = any == 0 ? 1 : 0;
    empty += any == 0 && i < count ? 1 : 0;
    windows[0].lane[i] = any == 0 ? at.fixed_udp : swapped_udp(entries.ports[i], at.fixed_udp);
  }
  for (uint32_t part = 0; part < 4; ++part) {
    const uint64_t* const from = entries.addresses[(part + 2) % 4];
    Lanes& window = windows[at.address_windows[part]];
    const uint64_t fixed = at.fixed_addresses[part];
    for (uint32_t i = 0; i < n; ++i) {
      window.lane[i] = is_empty.lane[i] != 0 ? fixed : net::byte_swap(from[i]);
    }
  }
  return static_cast<uint32_t>(empty);
}

}  // namespace dutperf::vary::lanes
