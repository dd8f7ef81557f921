#include "vary/lanes.h"

#include "net/byte_order.h"
#include "net/checksum.h"
#include "vary/draw.h"
#include "vary/simd.h"

namespace dutperf::vary::lanes {

FOR_EACH_CPU
void count_up(uint64_t first, Lanes& out, uint32_t count) {
  const uint32_t n = padded(count);
  for (uint32_t i = 0; i < n; ++i) out.lane[i] = first + i;
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

FOR_EACH_CPU
void random_window(uint64_t key, const Lanes& numbers, uint64_t fixed, const RandomPart& high,
                   const RandomPart& low, Lanes& window, uint32_t count) {
  const uint32_t n = padded(count);
  const RandomPart a = high;  // copies that no lane can alias
  const RandomPart b = low;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t random = draw(key, numbers.lane[i]);
    const uint64_t value_a = a.min + (((random >> 32) * a.size) >> 32);
    const uint64_t value_b = b.min + (((random & 0xffffffff) * b.size) >> 32);
    window.lane[i] = fixed | (value_a << a.shift) | (value_b << b.shift);
  }
}

namespace {

struct Digit {
  uint64_t quotient;
  uint64_t remainder;
};

// Both factors are exact to 2^-53, so the estimate is off by one at most, either way.
[[gnu::always_inline]] inline Digit divide(uint64_t number, uint64_t divisor, double inverse) {
  uint64_t quotient = static_cast<uint64_t>(static_cast<double>(number) * inverse);
  quotient -= quotient * divisor > number ? 1 : 0;
  const uint64_t remainder = number - quotient * divisor;
  const uint64_t short_by_one = remainder >= divisor ? 1 : 0;
  return {quotient + short_by_one, remainder - short_by_one * divisor};
}

}  // namespace

FOR_EACH_CPU
void digits_up(const Lanes& numbers, uint64_t size, uint64_t first, Lanes& quotients, Lanes& out,
               uint32_t count) {
  const uint32_t n = padded(count);
  const double inverse = 1.0 / static_cast<double>(size);
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
  const double inverse = 1.0 / static_cast<double>(size);
  for (uint32_t i = 0; i < n; ++i) {
    const Digit digit = divide(numbers.lane[i], size, inverse);
    quotients.lane[i] = digit.quotient;
    out.lane[i] = first - digit.remainder;
  }
}

FOR_EACH_CPU
void encrypt(const Feistel& network, const Lanes& numbers, Lanes& out, uint32_t count) {
  const uint32_t n = padded(count);
  const Feistel f = network;
  const double inverse = 1.0 / static_cast<double>(f.columns);
  for (uint32_t i = 0; i < n; ++i) {
    const Digit pair = divide(numbers.lane[i], f.columns, inverse);
    out.lane[i] = feistel::encrypt(f, pair.quotient, pair.remainder);
  }
}

FOR_EACH_CPU
void subtract_from(uint64_t from, const Lanes& numbers, Lanes& out, uint32_t count) {
  const uint32_t n = padded(count);
  for (uint32_t i = 0; i < n; ++i) out.lane[i] = from - numbers.lane[i];
}

FOR_EACH_CPU
void place(const Lanes& values, int shift, Lanes& window, uint32_t count) {
  const uint32_t n = padded(count);
  const int left = shift > 0 ? shift : 0;
  const int right = shift < 0 ? -shift : 0;
  for (uint32_t i = 0; i < n; ++i) window.lane[i] |= (values.lane[i] >> right) << left;
}

FOR_EACH_CPU
void add_words(const Lanes& window, Lanes& sums, uint32_t count) {
  const uint32_t n = padded(count);
  for (uint32_t i = 0; i < n; ++i) {
    sums.lane[i] += (window.lane[i] >> 32) + (window.lane[i] & 0xffffffff);
  }
}

namespace {

constexpr uint64_t swap16(uint64_t word) { return ((word & 0xff) << 8) | (word >> 8); }

}  // namespace

FOR_EACH_CPU
void finish(const Lanes& sequences, uint64_t stamp_ns, uint64_t base, bool tag_is_odd,
            const Lanes& sums, Lanes& tag_high, Lanes& checksums, uint32_t count) {
  const uint32_t n = padded(count);
  const uint64_t stamp_high = stamp_ns >> 32;
  const uint64_t stamp_low = stamp_ns & 0xffffffff;
  // At an odd offset the tag's words are byte-swapped; so is their folded sum: times 256 mod 65535.
  const uint32_t odd_shift = tag_is_odd ? 8 : 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t high = (sequences.lane[i] << 16) | stamp_high;
    tag_high.lane[i] = net::byte_swap(high);
    const uint64_t words = (high >> 32) + (high & 0xffffffff) + stamp_low;
    const uint64_t folded = (words & 0xffff) + ((words >> 16) & 0xffff) + (words >> 32);
    uint64_t sum = base + sums.lane[i] + (folded << odd_shift);
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    const uint64_t checksum = sum ^ 0xffff;
    checksums.lane[i] = swap16(checksum == 0 ? 0xffff : checksum);
  }
}

FOR_EACH_CPU
void finish_ipv4(uint64_t base, const Lanes& sums, Lanes& checksums, uint32_t count) {
  const uint32_t n = padded(count);
  for (uint32_t i = 0; i < n; ++i) {
    uint64_t sum = base + sums.lane[i];
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    checksums.lane[i] = swap16(sum ^ 0xffff);
  }
}

}  // namespace dutperf::vary::lanes
