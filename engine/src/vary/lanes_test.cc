#include "vary/lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "net/byte_order.h"
#include "net/checksum.h"
#include "net/testing/reference_frame.h"
#include "vary/draw.h"
#include "vary/lanes_by_cpu.h"

namespace dutperf::vary {
namespace {

using net::testing::Bytes;

// Numbers of frames and of enumerations are below this.
constexpr uint64_t kEnd48 = 1ULL << 48;

// Calls `check` for bursts of each length, several times; lanes hold random numbers below `end`.
// What stands beyond the burst is anybody's.
class EveryBurst : public ::testing::Test {
 protected:
  void for_each_burst(const std::function<void(uint32_t count)>& check) {
    for (int round = 0; round < 20; ++round) {
      for (uint32_t count = 1; count <= kMaxBurst; ++count) {
        check(count);
        if (HasFatalFailure()) return;
      }
    }
  }

  Lanes lanes_below(uint64_t end) {
    Lanes lanes;
    for (uint64_t& lane : lanes.lane) lane = number_below(end);
    lanes.lane[random_() % kMaxBurst] = end - 1;
    lanes.lane[random_() % kMaxBurst] = 0;
    return lanes;
  }

  uint64_t number_below(uint64_t end) { return (random_() >> (random_() % 64)) % end; }

  static void expect_lanes(const Lanes& actual, uint32_t count,
                           const std::function<uint64_t(uint32_t)>& expected) {
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(actual.lane[i], expected(i)) << "lane " << i << " of " << count;
    }
  }

  std::mt19937_64 random_{8};
  Lanes out_;
};

TEST(Padded, IsTheNextMultipleOf8) {
  for (uint32_t count = 0; count <= kMaxBurst; ++count) {
    EXPECT_EQ(padded(count), (count + 7) / 8 * 8);
  }
}

TEST_F(EveryBurst, IsCountedUp) {
  for_each_burst([&](uint32_t count) {
    const uint64_t first = number_below(kEnd48);
    lanes::count_up(first, out_, count);
    expect_lanes(out_, count, [&](uint32_t i) { return first + i; });
    const auto step = static_cast<uint32_t>(2 + number_below(30));
    lanes::count_up(first, out_, count, step);
    expect_lanes(out_, count, [&](uint32_t i) { return first + uint64_t{i} * step; });
  });
}

TEST_F(EveryBurst, IsDrawnFor) {
  for_each_burst([&](uint32_t count) {
    const uint64_t key = random_();
    const Lanes numbers = lanes_below(kEnd48);
    lanes::draw_all(key, numbers, out_, count);
    expect_lanes(out_, count, [&](uint32_t i) { return draw(key, numbers.lane[i]); });
  });
}

TEST_F(EveryBurst, IsFilled) {
  for_each_burst([&](uint32_t count) {
    const uint64_t value = random_();
    lanes::fill(value, out_, count);
    expect_lanes(out_, count, [&](uint32_t) { return value; });
  });
}

TEST_F(EveryBurst, GetsRandomValuesOfARange) {
  for_each_burst([&](uint32_t count) {
    const Lanes draws = lanes_below(UINT64_MAX);
    const uint32_t shift = count % 2 == 0 ? 0 : 32;
    const uint64_t size = 1 + number_below(1ULL << 32);
    const uint64_t min = number_below((1ULL << 32) - size + 1);
    lanes::random_values(draws, shift, min, size, out_, count);
    expect_lanes(out_, count, [&](uint32_t i) {
      return min + to_range(static_cast<uint32_t>(draws.lane[i] >> shift), size);
    });
  });
}

// As they are chosen, and all that this CPU can run.
const std::vector<lanes::Kernels>& all_kernels() {
  static const std::vector<lanes::Kernels> kernels = [] {
    std::vector<lanes::Kernels> result = lanes::kernels_here();
    result.push_back({lanes::random_windows, lanes::draw_indices, lanes::encrypt});
    return result;
  }();
  return kernels;
}

TEST_F(EveryBurst, GetsIndicesBelowACount) {
  for_each_burst([&](uint32_t count) {
    const uint64_t key = random_();
    const uint64_t size = 1 + number_below(1ULL << 40);
    const Lanes numbers = lanes_below(kEnd48);
    for (const lanes::Kernels& kernels : all_kernels()) {
      kernels.draw_indices(key, size, numbers, out_, count);
      expect_lanes(out_, count, [&](uint32_t i) {
        return static_cast<uint64_t>((unsigned __int128){draw(key, numbers.lane[i])} * size >> 64);
      });
    }
  });
}

TEST_F(EveryBurst, GetsWindowsOfTwoRandomValues) {
  // Two fields that share the window's 64 bits.
  const auto part = [&](uint32_t first_bit, uint32_t bits, uint64_t& size, uint32_t& shift) {
    const auto width = static_cast<uint32_t>(1 + random_() % std::min(bits, 32U));
    shift = first_bit + static_cast<uint32_t>(random_() % (bits - width + 1));
    size = random_() % 4 == 0 ? 1ULL << width : 1 + number_below(1ULL << width);
    size = std::min<uint64_t>(size, UINT32_MAX);
    return lanes::RandomPart(size, width, shift);
  };
  for_each_burst([&](uint32_t count) {
    const Lanes numbers = lanes_below(kEnd48);
    lanes::RandomWindow windows[2];
    uint64_t size_a = 0;
    uint64_t size_b = 0;
    uint32_t shift_a = 0;
    uint32_t shift_b = 0;
    const auto middle = static_cast<uint32_t>(1 + random_() % 63);
    windows[0] = {1, random_(), random_(), part(middle, 64 - middle, size_a, shift_a),
                  part(0, middle, size_b, shift_b)};
    windows[1] = {0, random_(), random_(), {}, windows[0].high};
    for (const lanes::Kernels& kernels : all_kernels()) {
      Lanes out[2];
      kernels.random_windows(windows, 2, numbers, out, count);
      expect_lanes(out[1], count, [&](uint32_t i) {
        const uint64_t bits = draw(windows[0].key, numbers.lane[i]);
        const uint64_t a = to_range(static_cast<uint32_t>(bits >> 32), size_a);
        const uint64_t b = to_range(static_cast<uint32_t>(bits), size_b);
        return windows[0].fixed + (a << shift_a) + (b << shift_b);
      });
      expect_lanes(out[0], count, [&](uint32_t i) {
        const uint64_t bits = draw(windows[1].key, numbers.lane[i]);
        const uint64_t b = to_range(static_cast<uint32_t>(bits), size_a);
        return windows[1].fixed + (b << shift_a);
      });
    }
  });
}

TEST_F(EveryBurst, IsTakenApartIntoDigitsThatRise) {
  for_each_burst([&](uint32_t count) {
    const Lanes numbers = lanes_below(1ULL << 49);
    const uint64_t size = 1 + number_below(kEnd48);
    const uint64_t first = number_below(1ULL << 32);
    Lanes quotients;
    lanes::digits_up(numbers, size, first, quotients, out_, count);
    expect_lanes(quotients, count, [&](uint32_t i) { return numbers.lane[i] / size; });
    expect_lanes(out_, count, [&](uint32_t i) { return first + numbers.lane[i] % size; });
  });
}

TEST_F(EveryBurst, IsTakenApartIntoDigitsThatFall) {
  for_each_burst([&](uint32_t count) {
    const Lanes numbers = lanes_below(1ULL << 49);
    const uint64_t size = 1 + number_below(kEnd48);
    const uint64_t first = size - 1 + number_below(1ULL << 32);
    Lanes quotients;
    lanes::digits_down(numbers, size, first, quotients, out_, count);
    expect_lanes(quotients, count, [&](uint32_t i) { return numbers.lane[i] / size; });
    expect_lanes(out_, count, [&](uint32_t i) { return first - numbers.lane[i] % size; });
  });
}

TEST_F(EveryBurst, IsTakenApartExactlyBesideEachMultiple) {
  for_each_burst([&](uint32_t count) {
    const uint64_t size = 1 + number_below(kEnd48);
    Lanes numbers;
    for (uint64_t& number : numbers.lane) {
      const uint64_t multiple = (1 + number_below(((1ULL << 49) - 2) / size)) * size;
      number = multiple - 1 + random_() % 3;
    }
    Lanes quotients;
    lanes::digits_up(numbers, size, 0, quotients, out_, count);
    expect_lanes(quotients, count, [&](uint32_t i) { return numbers.lane[i] / size; });
    expect_lanes(out_, count, [&](uint32_t i) { return numbers.lane[i] % size; });
  });
}

TEST_F(EveryBurst, MayBeTakenApartInPlace) {
  for_each_burst([&](uint32_t count) {
    const Lanes numbers = lanes_below(kEnd48);
    const uint64_t size = 1 + number_below(kEnd48);
    Lanes places = numbers;
    lanes::digits_up(places, size, 5, places, out_, count);
    expect_lanes(places, count, [&](uint32_t i) { return numbers.lane[i] / size; });
    expect_lanes(out_, count, [&](uint32_t i) { return 5 + numbers.lane[i] % size; });
  });
}

TEST_F(EveryBurst, IsEncryptedLikeSingleNumbers) {
  for_each_burst([&](uint32_t count) {
    constexpr uint64_t kMost = 1ULL << 31;
    const uint64_t columns = random_() % 4 == 0 ? kMost : 1 + number_below(kMost);
    const uint64_t most = std::min<uint64_t>(kEnd48 / columns, kMost);
    const uint64_t rows = random_() % 4 == 0 ? most : 1 + number_below(most);
    const Feistel network(rows, columns, {random_(), random_(), random_(), random_()});
    const Lanes numbers = lanes_below(rows * columns);
    for (const lanes::Kernels& kernels : all_kernels()) {
      Lanes left;
      kernels.encrypt(network, numbers, left, out_, count);
      for (uint32_t i = 0; i < count; ++i) {
        const feistel::Pair pair{numbers.lane[i] / columns, numbers.lane[i] % columns};
        const feistel::Pair image{left.lane[i], out_.lane[i]};
        ASSERT_EQ(image, feistel::encrypt(network, pair));
        ASSERT_EQ(feistel::decrypt(network, image), pair);
      }
    }
  });
}

TEST_F(EveryBurst, IsJoined) {
  for_each_burst([&](uint32_t count) {
    const uint64_t columns = 1 + number_below(1ULL << 32);
    const Lanes left = lanes_below(1 << 16);
    const Lanes right = lanes_below(columns);
    out_ = right;
    lanes::join(left, columns, out_, count);
    expect_lanes(out_, count, [&](uint32_t i) { return left.lane[i] * columns + right.lane[i]; });
  });
}

TEST_F(EveryBurst, IsPlacedInWindowsBesideWhatIsThere) {
  for_each_burst([&](uint32_t count) {
    const Lanes values = lanes_below(1ULL << 31);
    const uint64_t first = number_below(1ULL << 31);
    for (const int shift : {-31, -8, -1, 0, 1, 7, 32}) {
      Lanes window;
      lanes::fill(1ULL << 63, window, kMaxBurst);
      lanes::place(values, first, shift, window, count);
      expect_lanes(window, count, [&](uint32_t i) {
        const uint64_t value = first + values.lane[i];
        return 1ULL << 63 | (shift < 0 ? value >> -shift : value << shift);
      });
    }
  });
}

TEST_F(EveryBurst, IsSummedModulo65535) {
  for_each_burst([&](uint32_t count) {
    const Lanes windows = lanes_below(UINT64_MAX);
    const Lanes before = lanes_below(1ULL << 40);
    Lanes first;
    lanes::sum_words(windows, first, count);
    out_ = before;
    lanes::add_words(windows, out_, count);
    for (uint32_t i = 0; i < count; ++i) {
      uint64_t sum = 0;
      for (int word = 0; word < 4; ++word) sum += windows.lane[i] >> (16 * word) & 0xffff;
      ASSERT_EQ(net::fold(first.lane[i]) % 65535, sum % 65535);
      ASSERT_EQ(net::fold(out_.lane[i]) % 65535, (before.lane[i] + sum) % 65535);
    }
  });
}

uint16_t on_the_wire(uint16_t number) { return static_cast<uint16_t>(number << 8 | number >> 8); }

// The tag's 12 bytes as they stand in the frame, after `lead` zeros.
Bytes tag_bytes(uint64_t sequence, uint64_t stamp_ns, size_t lead) {
  Bytes bytes(lead);
  for (int i = 5; i >= 0; --i) bytes.push_back(static_cast<uint8_t>(sequence >> (8 * i)));
  for (int i = 5; i >= 0; --i) bytes.push_back(static_cast<uint8_t>(stamp_ns >> (8 * i)));
  return bytes;
}

// A big-endian number at the start of a lane that stands as on the wire.
uint64_t read_wire(uint64_t lane) { return net::byte_swap(lane); }

TEST_F(EveryBurst, GetsTagsAndUdpHeaders) {
  for_each_burst([&](uint32_t count) {
    const Lanes sequences = lanes_below(kEnd48);
    const uint64_t stamp_ns = number_below(kEnd48);
    const uint64_t base = number_below(1ULL << 40);
    const Lanes sums = lanes_below(1ULL << 40);
    Lanes ports = lanes_below(UINT64_MAX);
    for (uint64_t& header : ports.lane) header &= ~0xffffULL;
    const bool odd = count % 2 == 0;
    Lanes tags;
    lanes::finish(sequences, stamp_ns, odd, base, sums, ports, out_, tags, count);
    for (uint32_t i = 0; i < count; ++i) {
      const size_t lead = odd ? 1 : 0;  // an odd tag starts in the lower half of a word
      const Bytes tag = tag_bytes(sequences.lane[i], stamp_ns, lead);
      ASSERT_EQ(std::memcmp(&tags.lane[i], tag.data() + lead, 8), 0);
      const uint64_t sum = base + sums.lane[i] + (ports.lane[i] >> 48) +
                           (ports.lane[i] >> 32 & 0xffff) + net::testing::reference_sum(tag);
      ASSERT_EQ(read_wire(out_.lane[i]), ports.lane[i] | net::finish_udp(sum));
    }
  });
}

TEST_F(EveryBurst, NeverGetsAZeroUdpChecksum) {
  Lanes zeros;
  lanes::fill(0, zeros, kMaxBurst);
  Lanes sums;
  Lanes tags;
  int hits = 0;
  for (uint64_t base = 0; base < 0x40000; base += kMaxBurst) {
    lanes::count_up(base, sums, kMaxBurst);
    lanes::finish(zeros, 0, false, 0, sums, zeros, out_, tags, kMaxBurst);
    for (const uint64_t udp : out_.lane) {
      ASSERT_NE(read_wire(udp), 0U);
      hits += read_wire(udp) == 0xffff ? 1 : 0;
    }
  }
  EXPECT_GE(hits, 4);  // of sums 0, 65535 and each further multiple
}

TEST_F(EveryBurst, GetsIpv4Checksums) {
  for_each_burst([&](uint32_t count) {
    const uint64_t base = number_below(1ULL << 40);
    const Lanes sums = lanes_below(1ULL << 40);
    const Lanes windows = lanes_below(UINT64_MAX);
    Lanes addresses;
    lanes::finish_ipv4(base, sums, windows, out_, addresses, count);
    expect_lanes(out_, count,
                 [&](uint32_t i) { return on_the_wire(net::finish(base + sums.lane[i])); });
    expect_lanes(addresses, count, [&](uint32_t i) { return net::byte_swap(windows.lane[i]); });
  });
}

}  // namespace
}  // namespace dutperf::vary
