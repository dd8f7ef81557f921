#include "net/checksum.h"

#include <gtest/gtest.h>

#include <random>

#include "net/testing/reference_frame.h"

namespace dutperf::net {
namespace {

using testing::Bytes;
using testing::reference_sum;

Bytes random_bytes(size_t size, std::mt19937_64& random) {
  Bytes bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

TEST(SumWords, EqualsThePlainLoopForEveryLengthAndAnyAlignment) {
  std::mt19937_64 random(1071);
  const Bytes bytes = random_bytes(4096, random);
  for (size_t size = 0; size <= 2000; ++size) {
    const size_t offset = random() % 64;
    const Bytes part(bytes.begin() + static_cast<ptrdiff_t>(offset),
                     bytes.begin() + static_cast<ptrdiff_t>(offset + size));
    ASSERT_EQ(fold(sum_words(bytes.data() + offset, size)), reference_sum(part))
        << size << " bytes from " << offset;
  }
}

TEST(SumWords, EqualsThePlainLoopWhenEveryWordCarries) {
  for (size_t size = 0; size <= 2000; ++size) {
    const Bytes ones(size, 0xff);
    ASSERT_EQ(fold(sum_words(ones.data(), size)), reference_sum(ones)) << size;
  }
  const Bytes largest(65'535, 0xff);
  EXPECT_EQ(fold(sum_words(largest.data(), largest.size())), reference_sum(largest));
}

TEST(SumWords, OfPartsOfEvenLengthAddUpToTheSumOfTheWhole) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 1000; ++i) {
    const Bytes bytes = random_bytes(2 + random() % 500, random);
    const size_t cut = random() % bytes.size() / 2 * 2;
    const uint64_t sum =
        sum_words(bytes.data(), cut) + sum_words(bytes.data() + cut, bytes.size() - cut);
    ASSERT_EQ(fold(sum), reference_sum(bytes));
  }
}

TEST(SumWords, ReadsNothingOutsideItsBytes) {
  for (size_t size = 0; size < 400; ++size) {
    const auto exact = std::make_unique<uint8_t[]>(size);  // the sanitizer guards its ends
    EXPECT_EQ(sum_words(exact.get(), size), 0U);
  }
}

TEST(Fold, IsTheSumModulo65535AndZeroForZeroOnly) {
  std::mt19937_64 random(3);
  EXPECT_EQ(fold(0), 0);
  EXPECT_EQ(fold(UINT64_MAX), 0xffff);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t sum = (random() >> (random() % 64)) | 1;
    ASSERT_EQ(fold(sum) % 65535, sum % 65535) << sum;
    ASSERT_NE(fold(sum), 0) << sum;
  }
}

TEST(NativeSum, HoldsWhereTheFoldedSumOfTheWordsIsFfff) {
  std::mt19937_64 random(4);
  EXPECT_FALSE(native::holds(0));
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t sum = random() >> (random() % 64);
    for (const uint64_t near : {sum, sum / 0xffff * 0xffff, sum / 0xffff * 0xffff + 1}) {
      ASSERT_EQ(native::holds(near), fold(near) == 0xffff) << near;
    }
  }
  const Bytes covered = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7, 0x22, 0x0d};
  EXPECT_TRUE(native::holds(native::sum(covered.data(), covered.size())));
  EXPECT_FALSE(native::holds(native::sum(covered.data(), covered.size() - 1)));
}

TEST(Finish, IsTheChecksumOfTheExampleInRfc1071) {
  const Bytes example = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  EXPECT_EQ(finish(sum_words(example.data(), example.size())), 0x220d);
}

TEST(FinishUdp, IsNeverZeroAndElseTheChecksum) {
  EXPECT_EQ(finish(0xffff), 0);
  EXPECT_EQ(finish_udp(0xffff), 0xffff);
  for (uint64_t sum = 0; sum <= 0x30000; ++sum) {
    ASSERT_NE(finish_udp(sum), 0) << sum;
    if (finish(sum) != 0) {
      ASSERT_EQ(finish_udp(sum), finish(sum)) << sum;
    }
  }
}

}  // namespace
}  // namespace dutperf::net
