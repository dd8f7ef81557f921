#include "net/reassembly.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
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
constexpr uint8_t kFragmentHeader = 44;

void put_word(Bytes& frame, size_t at, size_t word) {
  frame[at] = static_cast<uint8_t>(word >> 8);
  frame[at + 1] = static_cast<uint8_t>(word);
}

bool is_ipv4(const Bytes& frame) { return frame[kEthernet] >> 4 == 4; }

// Of the IPv4 header, or of IPv6 up to UDP or the header of a piece.
size_t header_bytes(const Bytes& frame) {
  if (is_ipv4(frame)) return frame[kEthernet] % 16 * 4U;
  size_t at = 40;
  for (uint8_t next = frame[kEthernet + 6]; next != 17 && next != kFragmentHeader;) {
    next = frame[kEthernet + at];
    at += 8 + frame[kEthernet + at + 1] * 8U;
  }
  return at;
}

Bytes with_checksum(Bytes frame) {
  if (!is_ipv4(frame)) return frame;
  put_word(frame, kEthernet + 10, 0);
  const Bytes header(frame.begin() + kEthernet,
                     frame.begin() + static_cast<std::ptrdiff_t>(kEthernet + header_bytes(frame)));
  put_word(frame, kEthernet + 10, 0xffffU - reference_sum(header));
  return frame;
}

// Frame `number`, as it would arrive whole, with so many options, or extension headers.
Bytes frame_of(int version, uint32_t frame_size, uint64_t number, size_t extra = 0) {
  FrameLayout layout = sample_layout(version, frame_size);
  using enum Ipv6Extension;
  const std::vector<Ipv6Extension> chain = {kHopByHop, kRouting, kDestinationOptions};
  layout.extra = version == 4 ? ipv4_options(std::vector<Ipv4Option>(extra, Ipv4Option::kNop))
                              : ipv6_extensions(std::span(chain).first(std::min<size_t>(extra, 3)));
  Bytes frame = reference_frame(layout, tagged_payload(layout, kTag, number, 77));
  if (version == 4) put_word(frame, kEthernet + 4, number % 65536);
  return with_checksum(frame);
}

// The bytes from `offset` of what follows the frame's headers, as a piece of the packet `id`; of
// IPv6 behind the first `before` of these, or all (RFC 8200 4.5).
Bytes piece_of(const Bytes& frame, uint64_t id, size_t offset, size_t bytes, bool last,
               size_t before = 0) {
  const size_t headers = before > 0 ? before : header_bytes(frame);
  const auto from = frame.begin() + static_cast<std::ptrdiff_t>(kEthernet + headers + offset);
  Bytes piece(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(kEthernet + headers));
  if (is_ipv4(frame)) {
    put_word(piece, kEthernet + 2, headers + bytes);
    put_word(piece, kEthernet + 4, id);
    put_word(piece, kEthernet + 6, (last ? 0U : 0x2000U) + offset / 8);
  } else {
    size_t said_at = 6;
    for (size_t at = 40; at < headers; at += 8 + piece[kEthernet + at + 1] * 8U) said_at = at;
    piece.resize(piece.size() + 8);
    std::swap(piece[kEthernet + said_at], piece[kEthernet + headers]);
    piece[kEthernet + said_at] = kFragmentHeader;
    piece[kEthernet + headers] = frame[kEthernet + said_at];
    put_word(piece, kEthernet + headers + 2, offset + (last ? 0 : 1));
    put_word(piece, kEthernet + headers + 4, id >> 16);
    put_word(piece, kEthernet + headers + 6, id & 0xffff);
    put_word(piece, kEthernet + 4, headers + 8 + bytes - 40);
  }
  piece.insert(piece.end(), from, from + static_cast<std::ptrdiff_t>(bytes));
  return with_checksum(piece);
}

// Cut as RFC 791 3.2 and RFC 8200 4.5 say for a link of this MTU. IPv6 packets are numbered as
// translators do (RFC 7915 4.1).
std::vector<Bytes> pieces_of(const Bytes& frame, size_t mtu, uint64_t id, size_t before = 0) {
  const size_t headers = before > 0 ? before : header_bytes(frame);
  const size_t payload = frame.size() - kEthernet - headers;
  const size_t most = (mtu - headers - (is_ipv4(frame) ? 0 : 8)) / 8 * 8;
  std::vector<Bytes> pieces;
  for (size_t offset = 0; offset < payload; offset += most) {
    const size_t bytes = std::min(most, payload - offset);
    const bool last = offset + bytes == payload;
    pieces.push_back(piece_of(frame, id % 65536, offset, bytes, last, before));
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

class Reassembling : public ::testing::TestWithParam<int> {
 protected:
  static Bytes frame_of(uint32_t frame_size, uint64_t number, size_t extra = 0) {
    return net::frame_of(GetParam(), frame_size, number, extra);
  }
};

INSTANTIATE_TEST_SUITE_P(OfIpv, Reassembling, ::testing::Values(4, 6),
                         ::testing::PrintToStringParamName());

// Each size around those at which one more piece is needed, for small and usual MTUs.
TEST_P(Reassembling, PutsEachSizeTogether) {
  for (const size_t mtu : {GetParam() == 4 ? 68 : 124, 576, 1280, 1500, 4352}) {
    Reassembly reassembly(kMostIpBytes);
    for (uint32_t size = static_cast<uint32_t>(mtu); size < kMostIpBytes; size += 1 + size / 64) {
      for (const size_t extra : {0, 1, 10}) {
        const Bytes frame = frame_of(std::max(size, 128U), size, extra);
        const std::vector<Bytes> pieces = pieces_of(frame, mtu, size);
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

// A piece as its header has it. `place`: its packet's.
struct SlowPiece {
  uint64_t place;
  size_t begin;
  size_t end;
  bool last;
  Bytes bytes;

  bool overlaps(const SlowPiece& other) const { return begin < other.end && other.begin < end; }
  bool operator==(const SlowPiece&) const = default;
};

// The twin: lists of pieces. What RFC 791 leaves open, of pieces that are at odds, the first that
// came is right; RFC 8200 4.5 has no packet of them.
class SlowReassembly {
 public:
  explicit SlowReassembly(int version) : version_(version) {}

  // Whether it completes its packet.
  bool add(const SlowPiece& piece) {
    Packet& packet = packets_[piece.place];
    if (packet.spoiled) return false;
    for (const SlowPiece& other : packet.pieces) {
      if (other == piece) return false;
    }
    for (const SlowPiece& other : packet.pieces) {
      const bool beyond =
          (other.last && piece.end > other.end) || (piece.last && other.end > piece.end);
      if (!beyond && !piece.overlaps(other)) continue;
      packet.spoiled = version_ == 6;
      return false;
    }
    packet.pieces.push_back(piece);
    size_t there = 0;
    size_t all = SIZE_MAX;
    for (const SlowPiece& each : packet.pieces) {
      there += each.end - each.begin;
      if (each.last) all = each.end;
    }
    if (there != all) return false;
    packets_.erase(piece.place);
    return true;
  }

  size_t incomplete() const { return packets_.size(); }

 private:
  struct Packet {
    std::vector<SlowPiece> pieces;
    bool spoiled = false;
  };

  int version_;
  std::map<uint64_t, Packet> packets_;
};

// Pieces of a hundred packets in any order, behind VLAN tags or not; some are lost, some come
// twice, some are at odds with others, and of those some have other bytes.
TEST_P(Reassembling, OnlyWhatIsWholeArrives) {
  std::mt19937_64 random(1);
  const auto below = [&](uint64_t n) { return random() % n; };
  constexpr VlanTag kTags[] = {{kEtherTypeServiceVlan, 10}, {kEtherTypeVlan, 100}};
  size_t whole = 0;
  for (int round = 0; round < 20; ++round) {
    Reassembly reassembly(kMostIpBytes);
    SlowReassembly slow(GetParam());
    const VlanTags vlan(std::span<const VlanTag>(kTags).first(below(3)));
    std::vector<Bytes> frames;
    std::vector<std::pair<SlowPiece, Bytes>> arriving;
    for (uint64_t number = 0; number < 100; ++number) {
      frames.push_back(frame_of(900 + static_cast<uint32_t>(below(8'000)), number, below(11)));
      const Bytes& frame = frames.back();
      const size_t headers = header_bytes(frame);
      // Destination options may stand behind the header of the piece, too.
      const bool shorter = GetParam() == 6 && headers == 80 && below(2) == 0;
      const size_t before = shorter ? headers - 8 : headers;
      const size_t all = frame.size() - kEthernet - before;
      const size_t most = (144 + below(600)) / 8 * 8;
      const auto put = [&](size_t begin, size_t end) {
        const bool last = end == all;
        const Bytes bytes = piece_of(frame, number, begin, end - begin, last, before);
        const auto payload = bytes.end() - static_cast<std::ptrdiff_t>(end - begin);
        arriving.push_back({{number, begin, end, last, Bytes(payload, bytes.end())}, bytes});
      };
      for (size_t begin = 0; begin < all; begin += most) {
        if (below(200) != 0) put(begin, std::min(begin + most, all));
        if (below(40) == 0 && !arriving.empty()) arriving.push_back(arriving.back());
      }
      if (below(4) != 0) continue;
      const size_t begin = below(all / 8) * 8;
      const size_t end = std::min(begin + 8 + below(2 * most) / 8 * 8, all);
      if (begin == 0 && end == all) continue;  // no piece
      put(begin, end);
      if (below(2) == 0) continue;
      arriving.back().first.bytes.back() ^= 1;
      arriving.back().second.back() ^= 1;
    }
    std::shuffle(arriving.begin(), arriving.end(), random);
    for (const auto& [piece, bytes] : arriving) {
      Bytes frame(bytes);
      frame.resize(bytes.size() + vlan.bytes());
      vlan.put_in(frame.data(), bytes.size());
      ASSERT_EQ(classify_behind(vlan, frame.data(), frame.size()).kind, FrameKind::kFragment);
      const bool completes = slow.add(piece);
      const auto found = reassembly.add(frame.data() + vlan.bytes(), bytes.size());
      ASSERT_EQ(!found.empty(), completes);
      whole += completes;
      if (!completes) continue;
      ASSERT_EQ(found.size(), frames[piece.place].size());
      const Bytes got(found.begin(), found.end());
      if (checksums_hold(got.data(), classify(got.data(), got.size()))) {
        expect_whole(got, frames[piece.place]);
      }
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(reassembly.incomplete(), slow.incomplete());
  }
  EXPECT_GT(whole, 500U) << "the test is about something";
}

// The last piece of a packet, the first of the next: what lies between is lost, and no frame is
// made of both.
TEST_P(Reassembling, PiecesOfTwoPacketsAreNeverJoined) {
  Reassembly reassembly(kMostIpBytes);
  const auto one = pieces_of(frame_of(3'000, 7), 1500, 7);
  const auto other = pieces_of(frame_of(3'000, 8), 1500, 7 + Reassembly::kPlaces);
  EXPECT_TRUE(add(reassembly, one[0]).empty());
  EXPECT_TRUE(add(reassembly, other[1]).empty());
  EXPECT_TRUE(add(reassembly, one[2]).empty());
  EXPECT_TRUE(add(reassembly, other[0]).empty());
  EXPECT_EQ(reassembly.whole(), 0);
  EXPECT_EQ(reassembly.incomplete(), 4);  // each takes the place of the one before
}

// An identification comes again after 65,536 frames: pieces that an earlier packet lacked are not
// made good by a later one.
TEST_P(Reassembling, AnIdentificationComesAgain) {
  Reassembly reassembly(kMostIpBytes);
  const auto early = pieces_of(frame_of(3'000, 7), 1500, 7);
  EXPECT_TRUE(add(reassembly, early[0]).empty());
  const Bytes between = frame_of(120, 8);
  for (uint64_t id = 7 + Reassembly::kPlaces; id < 7 + 65'536; id += Reassembly::kPlaces) {
    for (const Bytes& piece : pieces_of(between, 100, id)) add(reassembly, piece);
  }
  const Bytes late = frame_of(3'000, 7 + 65'536);
  const auto pieces = pieces_of(late, 1500, 7 + 65'536);
  EXPECT_TRUE(add(reassembly, pieces[1]).empty());
  EXPECT_TRUE(add(reassembly, pieces[2]).empty());
  expect_whole(add(reassembly, pieces[0]), late);
}

TEST_P(Reassembling, AFrameThatIsWholeStaysWhileItsBurstIsRead) {
  Reassembly reassembly(kMostIpBytes);
  std::vector<std::pair<std::span<const uint8_t>, Bytes>> found;
  for (uint64_t number = 0; number < Reassembly::kKept; ++number) {
    const Bytes frame = frame_of(3'000, number * Reassembly::kPlaces);
    std::span<const uint8_t> whole;
    for (const Bytes& piece : pieces_of(frame, 1500, number * Reassembly::kPlaces)) {
      whole = reassembly.add(piece.data(), piece.size());
    }
    found.emplace_back(whole, frame);
  }
  for (const auto& [whole, frame] : found) expect_whole({whole.begin(), whole.end()}, frame);
}

// What makes a piece one of another packet, or of none that may be.
struct Bad {
  const char* name;
  int version;
  void (*change)(Bytes& piece);
};

class BadPiece : public ::testing::TestWithParam<Bad> {};

// Any one of the three is as if it had not come; when it comes as it should the frame is whole.
TEST_P(BadPiece, IsAsIfItHadNotCome) {
  for (size_t bad = 0; bad < 3; ++bad) {
    Reassembly reassembly(kMostIpBytes);
    const Bytes frame = frame_of(GetParam().version, 4'000, 7);
    const auto pieces = pieces_of(frame, 1500, 7);
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
        Bad{"its_header_is_damaged", 4, [](Bytes& piece) { piece[kEthernet + 8] ^= 1; }},
        Bad{"it_is_cut_short", 4, [](Bytes& piece) { piece.pop_back(); }},
        Bad{"of_ipv6_it_is_cut_short", 6, [](Bytes& piece) { piece.pop_back(); }},
        Bad{"it_has_nothing_but_a_header", 4, [](Bytes& piece) { piece.resize(kEthernet + 20); }},
        Bad{"of_ipv6_it_has_nothing_but_headers", 6,
            [](Bytes& piece) {
              piece.resize(kEthernet + 48);
              put_word(piece, kEthernet + 4, 8);
            }},
        Bad{"it_ends_within_its_header", 4, [](Bytes& piece) { piece.resize(kEthernet + 19); }},
        Bad{"of_ipv6_it_ends_within_its_header", 6,
            [](Bytes& piece) { piece.resize(kEthernet + 39); }},
        Bad{"of_ipv6_it_ends_within_the_pieces_header", 6,
            [](Bytes& piece) {
              piece.resize(kEthernet + 47);
              put_word(piece, kEthernet + 4, 7);
            }},
        Bad{"it_is_longer_than_it_says", 4,
            [](Bytes& piece) {
              put_word(piece, kEthernet + 2, word_at(piece, kEthernet + 2) + 1);
              piece = with_checksum(piece);
            }},
        Bad{"its_header_is_shorter_than_any", 4,
            [](Bytes& piece) {
              piece[kEthernet] = 0x44;
              piece = with_checksum(piece);
            }},
        Bad{"it_lies_beyond_the_longest_packet", 4,
            [](Bytes& piece) {
              put_word(piece, kEthernet + 6, 0x1fff);
              piece = with_checksum(piece);
            }},
        Bad{"of_ipv6_it_lies_beyond_the_longest_packet", 6,
            [](Bytes& piece) { put_word(piece, kEthernet + 42, 0xfff8); }},
        Bad{"it_is_of_another_protocol", 4,
            [](Bytes& piece) {
              piece[kEthernet + 9] = 6;
              put_word(piece, kEthernet + 4, 8);  // in a place of its own
              piece = with_checksum(piece);
            }},
        Bad{"of_ipv6_it_is_for_somebody_else", 6,
            [](Bytes& piece) {
              piece[kEthernet + 39] ^= 1;
              put_word(piece, kEthernet + 46, 8);
            }},
        Bad{"of_ipv6_it_stands_behind_more_than_there_is_room_for", 6,
            [](Bytes& piece) {
              piece[kEthernet + 6] = 60;
              const Bytes options = {kFragmentHeader, 11, 1, 92};
              const auto at = piece.begin() + kEthernet + 40;
              piece.insert(piece.insert(at, 92, 0), options.begin(), options.end());
              put_word(piece, kEthernet + 4, word_at(piece, kEthernet + 4) + 96);
            }}),
    [](const auto& test) { return test.param.name; });

// More is there than the last piece says.
TEST_P(Reassembling, NothingIsWholeThatHasMoreThanItsEnd) {
  Reassembly reassembly(kMostIpBytes);
  const Bytes frame = frame_of(4'000, 7);
  const auto pieces = pieces_of(frame, 1500, 7);
  const Bytes longer = frame_of(7'000, 7);
  EXPECT_TRUE(add(reassembly, piece_of(longer, 7, 4'800, 1'000, false)).empty());
  EXPECT_TRUE(add(reassembly, pieces[0]).empty());
  EXPECT_TRUE(add(reassembly, pieces[2]).empty());
  EXPECT_TRUE(add(reassembly, pieces[1]).empty());
  EXPECT_EQ(reassembly.incomplete(), 1);
}

// Some ports hand over what fills a frame up to its least length.
TEST_P(Reassembling, PaddingIsNoPartOfThePacket) {
  Reassembly reassembly(kMostIpBytes);
  const size_t room = GetParam() == 4 ? 1480 : 1448;
  const Bytes frame =
      frame_of(static_cast<uint32_t>(1518 - 1500 + (GetParam() == 4 ? 20 : 40) + room + 8), 7);
  auto pieces = pieces_of(frame, 1500, 7);
  ASSERT_EQ(pieces.size(), 2);
  pieces[1].resize(80);
  EXPECT_TRUE(add(reassembly, pieces[1]).empty());
  expect_whole(add(reassembly, pieces[0]), frame);
}

// Whose it is, all 32 bits of the identification say (RFC 8200 4.5), and what follows it does not:
// that of the first piece is right.
TEST(Reassembly, OfIpv6OneIsToldByItsAddressesAndIdentification) {
  Reassembly reassembly(kMostIpBytes);
  const Bytes frame = frame_of(6, 4'000, 7);
  const uint32_t id = 0xfedc0007;
  const auto piece = [&](size_t offset, size_t bytes, bool last, uint32_t of) {
    return piece_of(frame, of, offset, bytes, last);
  };
  const size_t all = frame.size() - kEthernet - 40;
  EXPECT_TRUE(add(reassembly, piece(0, 1'448, false, id)).empty());
  Bytes second = piece(1'448, 1'448, false, id);
  second[kEthernet + 40] = 6;
  EXPECT_TRUE(add(reassembly, second).empty());
  expect_whole(add(reassembly, piece(2'896, all - 2'896, true, id)), frame);
  EXPECT_TRUE(add(reassembly, piece(0, 1'448, false, id)).empty());
  EXPECT_TRUE(add(reassembly, piece(1'448, all - 1'448, true, id & 0xffff)).empty());
  EXPECT_EQ(reassembly.whole(), 1);
}

// A fragment header of a whole packet is an extension header as others.
TEST(Reassembly, OfIpv6AnAtomicFragmentIsPassedOver) {
  Reassembly reassembly(kMostIpBytes);
  FrameLayout layout = sample_layout(6, 4'000);
  using enum Ipv6Extension;
  layout.extra = ipv6_extensions(std::vector{kFragment, kDestinationOptions});
  const Bytes frame = reference_frame(layout, tagged_payload(layout, kTag, 1, 2));
  for (const size_t before : {48, 56}) {
    const size_t all = frame.size() - kEthernet - before;
    EXPECT_TRUE(add(reassembly, piece_of(frame, 9, 0, 2'000, false, before)).empty());
    expect_whole(add(reassembly, piece_of(frame, 9, 2'000, all - 2'000, true, before)), frame);
  }
}

// Nothing that is left of it arrives, nor is counted as another packet, however often it comes
// (RFC 8200 4.5); the packet that takes its place is another one.
TEST(Reassembly, OfIpv6NothingIsMadeOfPiecesThatOverlap) {
  Reassembly reassembly(kMostIpBytes);
  const Bytes frame = frame_of(6, 4'000, 7);
  const auto pieces = pieces_of(frame, 1500, 7);
  EXPECT_TRUE(add(reassembly, pieces[0]).empty());
  EXPECT_TRUE(add(reassembly, pieces[0]).empty()) << "a copy is no overlap";
  EXPECT_TRUE(add(reassembly, piece_of(frame, 7, 8, 1'440, false)).empty());
  for (const Bytes& piece : pieces) EXPECT_TRUE(add(reassembly, piece).empty());
  EXPECT_EQ(reassembly.incomplete(), 1);
  EXPECT_EQ(reassembly.whole(), 0);
  const auto next = pieces_of(frame, 1500, 7 + Reassembly::kPlaces);
  EXPECT_TRUE(add(reassembly, next[0]).empty());
  EXPECT_TRUE(add(reassembly, next[1]).empty());
  expect_whole(add(reassembly, next[2]), frame);
  EXPECT_EQ(reassembly.incomplete(), 1);
}

TEST(Reassembly, WhatIsNoPieceIsNoneOfIt) {
  Reassembly reassembly(kMostIpBytes);
  EXPECT_TRUE(add(reassembly, frame_of(6, 200, 7)).empty());
  EXPECT_TRUE(add(reassembly, frame_of(6, 200, 7, 3)).empty());
  Bytes of_no_version = pieces_of(frame_of(6, 200, 7), 100, 7)[0];
  of_no_version[kEthernet] = 0x50;
  EXPECT_TRUE(add(reassembly, of_no_version).empty());
  EXPECT_EQ(reassembly.incomplete(), 0);
}

}  // namespace
}  // namespace dutperf::net
