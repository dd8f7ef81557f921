#include "net/reassembly.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <span>

#include "net/classify.h"
#include "net/testing/reference_frame.h"

namespace dutperf::net {
namespace {

using testing::Bytes;
using testing::kTag;
using testing::reference_frame;
using testing::reference_sum;
using testing::sample_layout;
using testing::tagged_payload;
using testing::word_at;

constexpr size_t kEthernet = 14;
constexpr size_t kMostIpBytes = 9'000;

void put_word(Bytes& frame, size_t at, size_t word) {
  frame[at] = static_cast<uint8_t>(word >> 8);
  frame[at + 1] = static_cast<uint8_t>(word);
}

size_t header_bytes(const Bytes& frame) { return frame[kEthernet] % 16 * 4U; }

Bytes with_checksum(Bytes frame) {
  put_word(frame, kEthernet + 10, 0);
  const Bytes header(frame.begin() + kEthernet,
                     frame.begin() + static_cast<std::ptrdiff_t>(kEthernet + header_bytes(frame)));
  put_word(frame, kEthernet + 10, 0xffffU - reference_sum(header));
  return frame;
}

// Frame `number`, as it would arrive whole.
Bytes frame_of(uint32_t frame_size, uint64_t number, size_t options = 0) {
  FrameLayout layout = sample_layout(4, frame_size);
  layout.extra = ipv4_options(std::vector<Ipv4Option>(options, Ipv4Option::kNop));
  Bytes frame = reference_frame(layout, tagged_payload(layout, kTag, number, 77));
  put_word(frame, kEthernet + 4, number % 65536);
  return with_checksum(frame);
}

// Cut as RFC 791 3.2 says for a link of this MTU.
std::vector<Bytes> pieces_of(const Bytes& frame, size_t mtu) {
  const size_t header = header_bytes(frame);
  const size_t payload = frame.size() - kEthernet - header;
  const size_t most = (mtu - header) / 8 * 8;
  std::vector<Bytes> pieces;
  for (size_t offset = 0; offset < payload; offset += most) {
    const size_t bytes = std::min(most, payload - offset);
    const auto from = frame.begin() + static_cast<std::ptrdiff_t>(kEthernet + header + offset);
    Bytes piece(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(kEthernet + header));
    piece.insert(piece.end(), from, from + static_cast<std::ptrdiff_t>(bytes));
    put_word(piece, kEthernet + 2, header + bytes);
    put_word(piece, kEthernet + 6, (offset + bytes < payload ? 0x2000U : 0U) + offset / 8);
    pieces.push_back(with_checksum(piece));
  }
  return pieces;
}

// MAC addresses are not kept.
Bytes without_macs(const Bytes& frame) { return {frame.begin() + 12, frame.end()}; }

Bytes add(Reassembly& reassembly, const Bytes& piece) {
  const auto whole = reassembly.add(piece.data(), piece.size());
  return {whole.begin(), whole.end()};
}

void expect_whole(const Bytes& found, const Bytes& frame) {
  ASSERT_EQ(found.size(), frame.size());
  ASSERT_EQ(without_macs(found), without_macs(frame));
  const Classified classified = classify(found.data(), found.size());
  ASSERT_EQ(classified.kind, FrameKind::kTest);
  ASSERT_TRUE(checksums_hold(found.data(), classified));
}

// Each size around those at which one more piece is needed, for small and usual MTUs.
TEST(Reassembly, PutsEachSizeTogether) {
  for (const size_t mtu : {68, 576, 1280, 1500, 4352}) {
    Reassembly reassembly(kMostIpBytes);
    for (uint32_t size = static_cast<uint32_t>(mtu); size < kMostIpBytes; size += 1 + size / 64) {
      for (const size_t options : {0, 1, 10}) {
        const Bytes frame = frame_of(std::max(size, 128U), size, options);
        const std::vector<Bytes> pieces = pieces_of(frame, mtu);
        if (pieces.size() == 1) continue;
        for (size_t i = 0; i + 1 < pieces.size(); ++i) {
          ASSERT_EQ(classify(pieces[i].data(), pieces[i].size()).kind, FrameKind::kFragment);
          ASSERT_TRUE(add(reassembly, pieces[i]).empty());
        }
        expect_whole(add(reassembly, pieces.back()), frame);
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_EQ(reassembly.incomplete(), 0);
  }
}

// Against sets of bytes: pieces of a hundred packets in any order, some of them lost, some twice.
TEST(Reassembly, OnlyWhatIsWholeArrives) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 40; ++round) {
    Reassembly reassembly(kMostIpBytes);
    struct Piece {
      uint64_t number;
      size_t index;
      Bytes bytes;
    };
    std::map<uint64_t, Bytes> frames;
    std::map<uint64_t, size_t> cut_into;
    std::vector<Piece> arriving;
    for (uint64_t number = 0; number < 100; ++number) {
      const uint32_t size = 700 + static_cast<uint32_t>(random() % 8'000);
      frames[number] = frame_of(size, number, random() % 11);
      const auto pieces = pieces_of(frames[number], 68 + random() % 600);
      cut_into[number] = pieces.size();
      for (size_t i = 0; i < pieces.size(); ++i) {
        if (random() % 50 != 0) arriving.push_back({number, i, pieces[i]});
      }
    }
    std::shuffle(arriving.begin(), arriving.end(), random);
    std::map<uint64_t, std::set<size_t>> there;
    uint64_t whole = 0;
    for (const Piece& piece : arriving) {
      std::set<size_t>& of_packet = there[piece.number];
      of_packet.insert(piece.index);
      const Bytes found = add(reassembly, piece.bytes);
      const bool completes = of_packet.size() == cut_into[piece.number];
      ASSERT_EQ(!found.empty(), completes);
      if (!completes) {
        if (random() % 20 == 0) {
          ASSERT_TRUE(add(reassembly, piece.bytes).empty());
        }
        continue;
      }
      ++whole;
      expect_whole(found, frames[piece.number]);
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(reassembly.whole(), whole);
    EXPECT_EQ(reassembly.incomplete(), there.size() - whole);
  }
}

// The last piece of a packet, the first of the next: what lies between is lost, and no frame is
// made of both.
TEST(Reassembly, PiecesOfTwoPacketsAreNeverJoined) {
  Reassembly reassembly(kMostIpBytes);
  const auto one = pieces_of(frame_of(3'000, 7), 1500);
  const auto other = pieces_of(frame_of(3'000, 7 + Reassembly::kPlaces), 1500);
  EXPECT_TRUE(add(reassembly, one[0]).empty());
  EXPECT_TRUE(add(reassembly, other[1]).empty());
  EXPECT_TRUE(add(reassembly, one[2]).empty());
  EXPECT_TRUE(add(reassembly, other[0]).empty());
  EXPECT_EQ(reassembly.whole(), 0);
  EXPECT_EQ(reassembly.incomplete(), 4);  // each takes the place of the one before
}

// An identification comes again after 65,536 frames: pieces that an earlier packet lacked are not
// made good by a later one.
TEST(Reassembly, AnIdentificationComesAgain) {
  Reassembly reassembly(kMostIpBytes);
  const auto early = pieces_of(frame_of(3'000, 7), 1500);
  EXPECT_TRUE(add(reassembly, early[0]).empty());
  for (uint64_t number = 8; number < 7 + 65'536; ++number) {
    const Bytes frame = frame_of(100, number);
    for (const Bytes& piece : pieces_of(frame, 68)) add(reassembly, piece);
  }
  const Bytes late = frame_of(3'000, 7 + 65'536);
  const auto pieces = pieces_of(late, 1500);
  EXPECT_TRUE(add(reassembly, pieces[1]).empty());
  EXPECT_TRUE(add(reassembly, pieces[2]).empty());
  expect_whole(add(reassembly, pieces[0]), late);
}

TEST(Reassembly, AFrameThatIsWholeStaysWhileItsBurstIsRead) {
  Reassembly reassembly(kMostIpBytes);
  std::vector<std::pair<std::span<const uint8_t>, Bytes>> found;
  for (uint64_t number = 0; number < Reassembly::kKept; ++number) {
    const Bytes frame = frame_of(3'000, number * Reassembly::kPlaces);
    std::span<const uint8_t> whole;
    for (const Bytes& piece : pieces_of(frame, 1500)) {
      whole = reassembly.add(piece.data(), piece.size());
    }
    found.emplace_back(whole, frame);
  }
  for (const auto& [whole, frame] : found) expect_whole({whole.begin(), whole.end()}, frame);
}

struct Bad {
  const char* name;
  void (*change)(Bytes& piece);
};

class BadPiece : public ::testing::TestWithParam<Bad> {};

// Any one of the three is as if it had not come; when it comes as it should the frame is whole.
TEST_P(BadPiece, IsAsIfItHadNotCome) {
  for (size_t bad = 0; bad < 3; ++bad) {
    Reassembly reassembly(kMostIpBytes);
    const Bytes frame = frame_of(4'000, 7);
    const auto pieces = pieces_of(frame, 1500);
    ASSERT_EQ(pieces.size(), 3);
    for (size_t i = 0; i < 3; ++i) {
      Bytes piece = pieces[i];
      if (i == bad) GetParam().change(piece);
      EXPECT_TRUE(add(reassembly, piece).empty());
    }
    expect_whole(add(reassembly, pieces[bad]), frame);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Reassembly, BadPiece,
    ::testing::Values(
        Bad{"its_header_is_damaged", [](Bytes& piece) { piece[kEthernet + 8] ^= 1; }},
        Bad{"it_is_cut_short", [](Bytes& piece) { piece.pop_back(); }},
        Bad{"it_has_nothing_but_a_header", [](Bytes& piece) { piece.resize(kEthernet + 20); }},
        Bad{"it_ends_within_its_header", [](Bytes& piece) { piece.resize(kEthernet + 19); }},
        Bad{"it_is_longer_than_it_says",
            [](Bytes& piece) {
              put_word(piece, kEthernet + 2, word_at(piece, kEthernet + 2) + 1);
              piece = with_checksum(piece);
            }},
        Bad{"its_header_is_shorter_than_any",
            [](Bytes& piece) {
              piece[kEthernet] = 0x44;
              piece = with_checksum(piece);
            }},
        Bad{"it_lies_beyond_the_longest_packet",
            [](Bytes& piece) {
              put_word(piece, kEthernet + 6, 0x1fff);
              piece = with_checksum(piece);
            }},
        Bad{"it_is_of_another_protocol",
            [](Bytes& piece) {
              piece[kEthernet + 9] = 6;
              put_word(piece, kEthernet + 4, 8);  // in a place of its own
              piece = with_checksum(piece);
            }}),
    [](const auto& test) { return test.param.name; });

// More is there than the last piece says.
TEST(Reassembly, NothingIsWholeThatHasMoreThanItsEnd) {
  Reassembly reassembly(kMostIpBytes);
  const auto pieces = pieces_of(frame_of(4'000, 7), 1500);
  Bytes beyond = pieces[1];
  put_word(beyond, kEthernet + 6, 0x2000 + 600);
  EXPECT_TRUE(add(reassembly, with_checksum(beyond)).empty());
  EXPECT_TRUE(add(reassembly, pieces[0]).empty());
  EXPECT_TRUE(add(reassembly, pieces[2]).empty());
  EXPECT_TRUE(add(reassembly, pieces[1]).empty());
  EXPECT_EQ(reassembly.incomplete(), 1);
}

// Some ports hand over what fills a frame up to its least length.
TEST(Reassembly, PaddingIsNoPartOfThePacket) {
  Reassembly reassembly(kMostIpBytes);
  const Bytes frame = frame_of(14 + 20 + 1480 + 4 + 8, 7);
  auto pieces = pieces_of(frame, 1500);
  ASSERT_EQ(pieces.size(), 2);
  pieces[1].resize(60);
  EXPECT_TRUE(add(reassembly, pieces[1]).empty());
  expect_whole(add(reassembly, pieces[0]), frame);
}

TEST(Reassembly, OtherVersionsAreNoneOfIt) {
  Reassembly reassembly(kMostIpBytes);
  const FrameLayout layout = sample_layout(6, 200);
  EXPECT_TRUE(add(reassembly, reference_frame(layout, tagged_payload(layout, kTag, 1, 2))).empty());
  EXPECT_EQ(reassembly.incomplete(), 0);
}

}  // namespace
}  // namespace dutperf::net
