#include "fragmentation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "device.h"
#include "measure/testing/arrive.h"
#include "testing/fake_io.h"

namespace dutperf::refdut {
namespace {

using net::testing::reference_frame;
using net::testing::reference_sum;
using net::testing::sample_layout;
using net::testing::tagged_payload;
using testing::Bytes;
using testing::FakeIo;
using testing::tagged;
using Passage = Cut::Passage;

constexpr size_t kIp = 14;
const Bytes kOneTag = {0x81, 0x00, 0x20, 10};
const Bytes kTwoTags = {0x88, 0xa8, 0x00, 100, 0x81, 0x00, 0x20, 10};

uint32_t word(const Bytes& bytes, size_t at) { return bytes[at] * 256U + bytes[at + 1]; }

void set_word(Bytes& bytes, size_t at, uint32_t value) {
  bytes[at] = static_cast<uint8_t>(value >> 8);
  bytes[at + 1] = static_cast<uint8_t>(value);
}

// Where the IP header stands.
size_t ip_of(const Bytes& frame) {
  size_t at = kIp;
  while (word(frame, at - 2) != 0x0800) at += 4;
  return at;
}

Bytes header_of(const Bytes& frame) {
  const auto ip = frame.begin() + static_cast<ptrdiff_t>(ip_of(frame));
  return {ip, ip + (*ip & 15) * 4};
}

bool checksum_holds(const Bytes& frame) { return reference_sum(header_of(frame)) == 0xffff; }

void set_checksum(Bytes& frame) {
  const size_t ip = ip_of(frame);
  set_word(frame, ip + 10, 0);
  set_word(frame, ip + 10, 0xffffU - reference_sum(header_of(frame)));
}

// An IPv4 packet of anything, with so many words of options.
Bytes packet(size_t payload_bytes, std::mt19937_64& random, size_t option_words = 0) {
  Bytes frame(kIp + 20 + 4 * option_words + payload_bytes);
  for (uint8_t& byte : frame) byte = static_cast<uint8_t>(random());
  set_word(frame, 12, 0x0800);
  frame[kIp] = static_cast<uint8_t>(0x45 + option_words);
  set_word(frame, kIp + 2, static_cast<uint32_t>(frame.size() - kIp));
  set_word(frame, kIp + 6, 0);
  set_checksum(frame);
  return frame;
}

// The twin: what RFC 791 3.2 makes of pieces, in any order. They are told apart by their
// identification alone.
class Reassembler {
 public:
  // The frame, once all of its pieces have come.
  std::optional<Bytes> add(const Bytes& frame) {
    const size_t ip = ip_of(frame);
    const uint32_t id = word(frame, ip + 4);
    std::map<size_t, Bytes>& pieces = waiting_[id];
    pieces[word(frame, ip + 6) % 0x2000 * 8] = frame;
    Bytes whole;
    bool more = true;
    for (const auto& [offset, piece] : pieces) {
      const size_t headers = ip_of(piece) + header_of(piece).size();
      if (whole.empty()) whole.assign(piece.begin(), piece.begin() + static_cast<long>(headers));
      if (offset != whole.size() - headers) return {};
      whole.insert(whole.end(), piece.begin() + static_cast<long>(headers), piece.end());
      more = (word(piece, ip_of(piece) + 6) & 0x2000) != 0;
    }
    if (more) return {};
    set_word(whole, ip + 2, static_cast<uint32_t>(whole.size() - ip));
    set_word(whole, ip + 6, word(whole, ip + 6) & 0xdfff);
    set_checksum(whole);
    waiting_.erase(id);
    return whole;
  }

  size_t unfinished() const { return waiting_.size(); }

 private:
  std::map<uint32_t, std::map<size_t, Bytes>> waiting_;
};

std::vector<Bytes> pieces_of(const Bytes& frame, uint32_t mtu,
                             std::optional<uint16_t> id = std::nullopt) {
  const Cut cut(frame.data(), frame.size(), mtu, id);
  std::vector<Bytes> pieces;
  if (cut.passage() != Passage::kInPieces) return pieces;
  for (uint32_t i = 0; i < cut.pieces(); ++i) {
    Bytes piece(frame.size() + 8);
    piece.resize(cut.write(i, piece.data()));
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

// What each piece must be, beside being of use to who puts them together.
void expect_sound(const std::vector<Bytes>& pieces, const Bytes& frame, uint32_t mtu) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    SCOPED_TRACE(i);
    const Bytes& piece = pieces[i];
    const size_t ip = ip_of(piece);
    const bool last = i + 1 == pieces.size();
    const uint32_t bytes = word(piece, ip + 2);
    ASSERT_EQ(piece.size(), ip + bytes);
    ASSERT_LE(bytes, mtu);
    ASSERT_TRUE(checksum_holds(piece));
    ASSERT_EQ((word(piece, ip + 6) & 0x2000) == 0, last);
    if (!last) {
      ASSERT_EQ((bytes - header_of(piece).size()) % 8, 0U);
      ASSERT_GT(bytes + 8, mtu) << "as long as possible";
    }
    Bytes headers(piece.begin(), piece.begin() + static_cast<long>(ip + header_of(piece).size()));
    for (const size_t changed : {2, 3, 6, 7, 10, 11}) headers[ip + changed] = frame[ip + changed];
    ASSERT_TRUE(std::equal(headers.begin(), headers.end(), frame.begin()));
  }
}

TEST(Cut, MakesPiecesThatCanBePutTogether) {
  std::mt19937_64 random(1);
  const Bytes tags[] = {{}, kOneTag, kTwoTags};
  size_t most = 0;
  for (int i = 0; i < 3000; ++i) {
    const size_t options = random() % 3 == 0 ? random() % 11 : 0;
    const size_t payload_bytes = 1 + random() % (i % 2 == 0 ? 9700 : 200);
    const Bytes frame = tagged(packet(payload_bytes, random, options), tags[random() % 3]);
    const auto mtu = static_cast<uint32_t>(68 + random() % (i % 3 == 0 ? 20 : 3000));
    SCOPED_TRACE("payload " + std::to_string(payload_bytes) + ", mtu " + std::to_string(mtu));
    std::vector<Bytes> pieces = pieces_of(frame, mtu);
    ASSERT_EQ(pieces.empty(), 20 + 4 * options + payload_bytes <= mtu);
    if (pieces.empty()) continue;
    ASSERT_GT(pieces.size(), 1U);
    most = std::max(most, pieces.size());
    ASSERT_NO_FATAL_FAILURE(expect_sound(pieces, frame, mtu));
    std::shuffle(pieces.begin(), pieces.end(), random);
    Reassembler reassembler;
    for (size_t k = 0; k + 1 < pieces.size(); ++k) ASSERT_FALSE(reassembler.add(pieces[k]));
    ASSERT_EQ(reassembler.add(pieces.back()), frame);
  }
  EXPECT_GT(most, 800U) << "the test is about something";
}

// What was an IPv4 packet without DF (RFC 7915 4): the header again with that of the piece behind
// it, whose identification is that of IPv4 (4.1), and then the payload, in order.
TEST(Cut, MakesIpv6PiecesAsATranslatorDoes) {
  std::mt19937_64 random(9);
  const Bytes tags[] = {{}, kOneTag, kTwoTags};
  for (int i = 0; i < 1000; ++i) {
    const net::FrameLayout layout = sample_layout(6, 100 + static_cast<uint32_t>(random() % 9000));
    const Bytes& before = tags[random() % 3];
    const Bytes frame = tagged(reference_frame(layout, tagged_payload(layout, {}, 0, 0)), before);
    const size_t ip = kIp + before.size();
    const auto id = static_cast<uint16_t>(random());
    const auto mtu = static_cast<uint32_t>(68 + random() % (i % 3 == 0 ? 20 : 3000));
    const std::vector<Bytes> pieces = pieces_of(frame, mtu, id);
    ASSERT_EQ(pieces.empty(), frame.size() - ip <= mtu);
    ASSERT_TRUE(pieces_of(frame, mtu).empty());
    if (pieces.empty()) continue;
    ASSERT_GT(pieces.size(), 1U);
    Bytes whole(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(ip + 40));
    for (const Bytes& piece : pieces) {
      const bool last = &piece == &pieces.back();
      ASSERT_LE(piece.size() - ip, mtu);
      ASSERT_GT(piece.size() - ip + 8, last ? 0 : mtu) << "as long as possible";
      ASSERT_EQ(word(piece, ip + 4), piece.size() - ip - 40);
      ASSERT_EQ(piece[ip + 6], 44);
      ASSERT_EQ(word(piece, ip + 40), 17U << 8);
      ASSERT_EQ(word(piece, ip + 42), whole.size() - ip - 40 + (last ? 0 : 1));
      ASSERT_EQ(word(piece, ip + 44), 0U);
      ASSERT_EQ(word(piece, ip + 46), id);
      Bytes headers(piece.begin(), piece.begin() + static_cast<ptrdiff_t>(ip + 40));
      for (const size_t changed : {4, 5, 6}) headers[ip + changed] = frame[ip + changed];
      ASSERT_TRUE(std::equal(headers.begin(), headers.end(), frame.begin()));
      whole.insert(whole.end(), piece.begin() + static_cast<ptrdiff_t>(ip + 48), piece.end());
    }
    ASSERT_EQ(whole, frame);
  }
}

TEST(Cut, MakesPiecesOfPieces) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    const Bytes frame = packet(3000 + random() % 3000, random);
    const auto mtu = static_cast<uint32_t>(200 + random() % 2000);
    const auto narrower = static_cast<uint32_t>(68 + random() % 130);
    Reassembler reassembler;
    std::optional<Bytes> whole;
    for (const Bytes& piece : pieces_of(frame, mtu)) {
      for (const Bytes& smaller : pieces_of(piece, narrower)) {
        ASSERT_FALSE(whole);
        ASSERT_TRUE(checksum_holds(smaller));
        ASSERT_LE(smaller.size(), kIp + narrower);
        whole = reassembler.add(smaller);
      }
      // The last one may be short enough.
      if (piece.size() - kIp <= narrower) whole = reassembler.add(piece);
    }
    ASSERT_EQ(whole, frame);
  }
}

Passage passage(const Bytes& frame, uint32_t mtu = 500) {
  return Cut(frame.data(), frame.size(), mtu, std::nullopt).passage();
}

TEST(Cut, LetsThroughWhatIsNotLonger) {
  std::mt19937_64 random(3);
  EXPECT_EQ(passage(packet(480, random)), Passage::kWhole);
  EXPECT_EQ(passage(packet(481, random)), Passage::kInPieces);
  Bytes padded = packet(20, random);
  padded.resize(1000);
  EXPECT_EQ(passage(padded), Passage::kWhole) << "the packet's length counts, not the frame's";
  for (const uint32_t type : {0x0806U, 0x8847U, 0x88ccU}) {
    Bytes other = packet(2000, random);
    set_word(other, 12, type);
    EXPECT_EQ(passage(other), Passage::kWhole) << type;
  }
  EXPECT_EQ(passage(tagged(tagged(packet(2000, random), kTwoTags), kOneTag)), Passage::kWhole);
}

TEST(Cut, LetsNothingThroughThatMustStayInOne) {
  for (const Bytes& tags : {Bytes{}, kTwoTags}) {
    net::FrameLayout layout = sample_layout(4, 518);
    layout.df = true;
    const auto of = [&](uint32_t size) {
      layout.frame_size = size;
      return passage(tagged(reference_frame(layout, tagged_payload(layout, {}, 0, 0)), tags));
    };
    EXPECT_EQ(of(518), Passage::kWhole);
    EXPECT_EQ(of(519), Passage::kNone);
    layout = sample_layout(6, 518);
    EXPECT_EQ(of(518), Passage::kWhole);
    EXPECT_EQ(of(519), Passage::kNone);
  }
}

TEST(Cut, OfATruncatedFrameEndsAsItDoes) {
  std::mt19937_64 random(4);
  const Bytes frame = packet(1100, random);
  const std::vector<Bytes> pieces = pieces_of(frame, 500);
  Bytes shorter = frame;
  shorter.pop_back();
  std::vector<Bytes> cut = pieces_of(shorter, 500);
  ASSERT_EQ(cut.size(), pieces.size());
  cut.back().push_back(frame.back());
  EXPECT_EQ(cut, pieces);
  shorter.resize(kIp + 20 + 480);
  cut = pieces_of(shorter, 500);
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0], pieces[0]);
  shorter.resize(kIp + 20);
  EXPECT_EQ(passage(shorter), Passage::kWhole) << "there is nothing to cut";
}

// Whatever comes in; the sanitizer watches.
TEST(Cut, OfNonsenseLooksAtNoByteBeyondTheFrame) {
  std::mt19937_64 random(5);
  uint64_t cut = 0;
  for (int i = 0; i < 20'000; ++i) {
    Bytes frame = packet(random() % 600, random);
    frame[kIp] = static_cast<uint8_t>(random());
    set_word(frame, kIp + 2, static_cast<uint32_t>(random() % 2000));
    set_word(frame, kIp + 6, static_cast<uint32_t>(random()));
    if (i % 5 == 0) set_word(frame, 12, 0x86dd);
    if (i % 4 == 0) frame = tagged(frame, kTwoTags);
    frame.resize(random() % 3 == 0 ? random() % (frame.size() + 1) : frame.size());
    frame.shrink_to_fit();
    const auto mtu = static_cast<uint32_t>(68 + random() % 500);
    cut += !pieces_of(frame, mtu, i % 2 == 0 ? std::optional<uint16_t>(7) : std::nullopt).empty();
  }
  EXPECT_GT(cut, 1000U);
}

constexpr size_t kPieceRoom = 10'000;

class ANarrowerLink : public ::testing::Test {
 protected:
  // With `more` of the direction's keys.
  void configure(const std::string& fragments, const std::string& more = "") {
    device_.configure(
        parse_behaviour(Json::parse(R"({"forward": {"fragments": )" + fragments + more + "}}")));
  }

  // A test frame whose identification is its number.
  static Bytes frame(uint64_t sequence, uint32_t size, uint16_t trial = 1,
                     bool background = false) {
    const net::FrameLayout layout = sample_layout(4, size);
    const net::TagIdentity tag{trial, static_cast<uint8_t>(background),
                               background ? net::kTagFlagBackground : uint8_t{0}};
    Bytes bytes = reference_frame(layout, tagged_payload(layout, tag, sequence, 0));
    set_word(bytes, kIp + 4, static_cast<uint32_t>(sequence));
    set_checksum(bytes);
    return bytes;
  }

  void send(const Bytes& bytes, uint64_t gap_ns = 1000) {
    io_.arriving[0].push_back(bytes);
    device_.step();
    io_.clock_ns += gap_ns;
  }

  void wait(uint64_t ns, uint64_t step_ns = 1000) {
    for (const uint64_t end = io_.clock_ns + ns; io_.clock_ns < end; io_.clock_ns += step_ns) {
      device_.step();
    }
  }

  // What left, with pieces put together where all of them came.
  std::vector<Bytes> put_together() {
    std::vector<Bytes> result;
    for (const auto& departure : io_.left[1]) {
      if (auto whole = reassembler_.add(departure.bytes)) result.push_back(*whole);
    }
    io_.left[1].clear();
    return result;
  }

  Json forward() { return device_.report()["trials"].back()["forward"]; }
  Json account() { return forward()["foreground"]; }

  Json device() { return device_.report()["device"]["forward"]; }

  // With no test frame on its way.
  Json others() {
    const Json json = device();
    const auto count = [&](const char* key) { return json[key].get<uint64_t>(); };
    EXPECT_EQ(count("other_frames") + count("other_copies"),
              count("other_left") + count("other_dropped_by_rule") +
                  count("other_dropped_too_big") + count("other_incomplete") +
                  count("other_failed") + count("held"));
    return json;
  }

  FakeIo io_;
  Reassembler reassembler_;
  Device<FakeIo> device_{io_, std::array<net::Mac, 2>{}, kPieceRoom};
};

Json pieces(uint64_t frames, uint64_t left, uint64_t dropped) {
  return {{"frames", frames}, {"left", left}, {"dropped", dropped}};
}

TEST_F(ANarrowerLink, TakesLongerFramesInPieces) {
  configure(R"({"mtu": 500})");
  const std::vector<Bytes> sent = {frame(0, 518), frame(1, 519), frame(2, 1518)};
  for (const Bytes& bytes : sent) send(bytes);
  ASSERT_EQ(io_.left[1].size(), 1U + 2 + 4);
  EXPECT_EQ(io_.left[1][0].bytes, sent[0]);
  for (size_t i = 1; i < 7; ++i) {
    EXPECT_EQ(net::classify(io_.left[1][i].bytes.data(), io_.left[1][i].bytes.size()).kind,
              net::FrameKind::kFragment);
  }
  EXPECT_EQ(put_together(), sent);
  EXPECT_EQ(account()["left"], 3);
  EXPECT_EQ(account()["pieces"], pieces(2, 6, 0));
  EXPECT_EQ(account()["residence_ns"]["count"], 3);
  EXPECT_EQ(forward()["background"]["pieces"], pieces(0, 0, 0));
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(ANarrowerLink, TakesTheLastPieceFirst) {
  const Bytes sent = frame(7, 1518);
  configure(R"({"mtu": 500})");
  send(sent);
  std::vector<Bytes> in_order;
  for (const auto& departure : io_.left[1]) in_order.push_back(departure.bytes);
  io_.left[1].clear();
  configure(R"({"mtu": 500, "reversed": true})");
  send(sent);
  ASSERT_EQ(io_.left[1].size(), in_order.size());
  for (size_t i = 0; i < in_order.size(); ++i) {
    EXPECT_EQ(io_.left[1][i].bytes, in_order[in_order.size() - 1 - i]);
  }
  EXPECT_EQ(put_together(), std::vector<Bytes>{sent});
}

TEST_F(ANarrowerLink, LosesEverySoManythPiece) {
  for (const bool reversed : {false, true}) {
    const uint16_t trial = 1 + reversed;
    configure(R"({"mtu": 500, "lose_every": 5, "reversed": )" +
              std::string(reversed ? "true}" : "false}"));
    std::vector<Bytes> whole;
    uint64_t reached = 0;
    uint64_t sent_pieces = 0;
    for (uint64_t i = 0; i < 100; ++i) {
      const uint32_t size = i % 7 == 0 ? 500 : 1100;  // three pieces
      const Bytes bytes = frame(i, size, trial);
      send(bytes);
      bool lost = false;
      for (int piece = 0; size > 518 && piece < 3; ++piece) {
        const bool this_one = ++reached % 5 == 0;
        lost |= this_one;
        sent_pieces += !this_one;
      }
      if (!lost) whole.push_back(bytes);
    }
    EXPECT_EQ(io_.left[1].size(), sent_pieces + 15);
    EXPECT_EQ(put_together(), whole);
    EXPECT_EQ(account()["left"], whole.size());
    EXPECT_EQ(account()["incomplete"], 100 - whole.size());
    EXPECT_EQ(account()["pieces"], pieces(whole.size() - 15, sent_pieces, reached / 5));
    EXPECT_EQ(account()["residence_ns"]["count"], whole.size());
    const Json losses = forward()["losses"];
    EXPECT_EQ(losses[0], Json::parse(R"({"stream": 0, "cause": "incomplete", "first": 2,
                                         "count": 1, "from_ns": 2000, "to_ns": 2000})"));
    EXPECT_EQ(io_.owned(), 0U);
    reassembler_ = {};
  }
}

TEST_F(ANarrowerLink, MayLoseEveryPiece) {
  configure(R"({"mtu": 500, "lose_every": 1})");
  send(frame(0, 1518));
  send(frame(1, 64));
  EXPECT_EQ(put_together(), std::vector<Bytes>{frame(1, 64)});
  EXPECT_EQ(account()["left"], 1);
  EXPECT_EQ(account()["incomplete"], 1);
  EXPECT_EQ(account()["pieces"], pieces(0, 0, 4));
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(ANarrowerLink, CountsItsPiecesFromZeroWithEachTrial) {
  configure(R"({"mtu": 500, "lose_every": 3})");
  for (uint16_t trial = 1; trial <= 3; ++trial) {
    send(frame(0, 600, trial));
    send(frame(1, 600, trial, true));
    EXPECT_EQ(forward()["foreground"]["pieces"], pieces(1, 2, 0));
    EXPECT_EQ(forward()["background"]["pieces"], pieces(0, 1, 1));
    EXPECT_EQ(forward()["background"]["incomplete"], 1);
  }
}

TEST_F(ANarrowerLink, DropsWhatIsTooBig) {
  configure(R"({"mtu": 500})", R"(, "rules": [{"do": "duplicate"}])");
  for (const int version : {4, 6}) {
    net::FrameLayout layout = sample_layout(version, 518);
    layout.df = version == 4;
    for (const uint64_t sequence : {0, 1, 2}) {
      layout.frame_size = sequence == 1 ? 518 : 1000;
      const auto trial = static_cast<uint16_t>(version);
      send(reference_frame(layout, tagged_payload(layout, {trial, 0, 0}, sequence, 0)));
    }
    ASSERT_EQ(io_.left[1].size(), 2U);
    EXPECT_EQ(io_.left[1][0].sequence, 1U);
    EXPECT_EQ(account()["left"], 1);
    EXPECT_EQ(account()["copies_left"], 1);
    EXPECT_EQ(account()["dropped_too_big"], 2);
    EXPECT_EQ(forward()["losses"][1],
              Json::parse(R"({"stream": 0, "cause": "too_big", "first": 2, "count": 1,
                              "from_ns": 2000, "to_ns": 2000})"));
    io_.left[1].clear();
  }
  EXPECT_EQ(others()["other_failures"], 0) << "a copy that is too big was told so, too";
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(ANarrowerLink, TakesCopiesInPiecesToo) {
  configure(R"({"mtu": 500})", R"(, "rules": [{"do": "duplicate"}, {"do": {"delay_ns": 5000}}])");
  const Bytes sent = frame(0, 1518);
  send(sent);
  EXPECT_TRUE(io_.left[1].empty());
  EXPECT_EQ(device()["held"], 2);
  wait(10'000);
  EXPECT_EQ(put_together(), (std::vector<Bytes>{sent, sent}));
  EXPECT_EQ(account()["left"], 1);
  EXPECT_EQ(account()["copies_left"], 1);
  EXPECT_EQ(account()["residence_ns"]["max"], 5000);
  EXPECT_EQ(account()["pieces"], pieces(1, 8, 0));
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(ANarrowerLink, GivesEachPieceTheTagsOfItsSide) {
  device_.configure(parse_behaviour(Json::parse(
      R"({"vlan": {"right": [{"tpid": 34984, "id": 100}, {"id": 10, "pcp": 1}]},
          "forward": {"fragments": {"mtu": 500}}})")));
  send(frame(0, 1518));
  ASSERT_EQ(io_.left[1].size(), 4U);
  for (const auto& departure : io_.left[1]) {
    EXPECT_TRUE(std::equal(kTwoTags.begin(), kTwoTags.end(), departure.bytes.begin() + 12));
  }
  EXPECT_EQ(io_.left[1][0].bytes.size(), kIp + kTwoTags.size() + 500);
  EXPECT_EQ(put_together(), std::vector<Bytes>{tagged(frame(0, 1518), kTwoTags)});
}

TEST_F(ANarrowerLink, TreatsOtherPacketsTheSameAndCountsThemApart) {
  configure(R"({"mtu": 500, "lose_every": 4})");
  std::mt19937_64 random(6);
  std::vector<Bytes> sent;
  for (int i = 0; i < 5; ++i) sent.push_back(packet(900, random));
  for (const Bytes& bytes : sent) {
    send(bytes);
    send(frame(static_cast<uint64_t>(&bytes - sent.data()), 64));
  }
  Bytes too_big = packet(900, random);
  set_word(too_big, kIp + 6, 0x4000);
  send(too_big);
  const std::vector<Bytes> whole = put_together();
  // Of two pieces each, the second of every other one is lost.
  EXPECT_EQ(whole.size(), 3U + 5);
  for (const size_t i : {0, 2, 4})
    EXPECT_NE(std::find(whole.begin(), whole.end(), sent[i]), whole.end());
  const Json json = others();
  EXPECT_EQ(json["other_frames"], 6);
  EXPECT_EQ(json["other_left"], 3);
  EXPECT_EQ(json["other_incomplete"], 2);
  EXPECT_EQ(json["other_dropped_too_big"], 1);
  EXPECT_EQ(json["other_pieces"], pieces(3, 8, 2));
  EXPECT_EQ(json["other_failures"], 0);
  EXPECT_EQ(account()["pieces"], pieces(0, 0, 0));
  configure(R"({"mtu": 500, "lose_every": 2})");
  send(sent[0]);
  EXPECT_EQ(others()["other_pieces"], pieces(3, 9, 3)) << "they count anew";
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(ANarrowerLink, SaysWhenItHasNoRoomForAllPieces) {
  io_.hold_room = 3;
  configure(R"({"mtu": 500})");
  send(frame(0, 1518));
  send(frame(1, 1100));
  EXPECT_EQ(put_together(), std::vector<Bytes>{frame(1, 1100)});
  EXPECT_EQ(account()["failed_no_buffer"], 1);
  EXPECT_EQ(account()["pieces"], pieces(1, 3, 0));
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(ANarrowerLink, WaitsForAPortThatTakesNotAllPieces) {
  configure(R"({"mtu": 68})");
  io_.port_takes = 3;
  std::vector<Bytes> sent;
  for (uint64_t i = 0; i < 20; ++i) {
    sent.push_back(frame(i, 1518));
    send(sent.back());
  }
  const Json json = forward()["foreground"];
  EXPECT_EQ(json["left"].get<int>() + device()["held"].get<int>(), 20);
  EXPECT_GT(device()["held"], 10);
  io_.port_takes = UINT32_MAX;
  wait(100'000);
  EXPECT_EQ(put_together(), sent);
  EXPECT_EQ(account()["left"], 20);
  io_.port_takes = 3;
  send(frame(0, 1518, 2));
  io_.ports_refuse = true;
  wait(1'500'000'000, 1'000'000);
  EXPECT_EQ(account()["failed_refused"], 1);
  EXPECT_EQ(account()["pieces"], pieces(0, 3, 0));
  EXPECT_EQ(io_.owned(), 0U);
}

TEST_F(ANarrowerLink, SaysWhenAFrameHasMorePiecesThanItHasRoomFor) {
  configure(R"({"mtu": 68})");
  std::mt19937_64 random(7);
  send(packet(9766 - 14 - 60, random, 10));
  EXPECT_EQ(others()["other_pieces"], pieces(1, 1212, 0));
  send(packet(60'000, random));
  EXPECT_EQ(others()["other_failed"], 1);
  EXPECT_EQ(io_.owned(), 0U);
}

// Everything at once, at random: who puts together what left finds what the account says.
TEST_F(ANarrowerLink, AccountsForEveryFrameWhateverTheDeviceDoes) {
  configure(R"({"mtu": 576, "lose_every": 17, "reversed": true})", R"(,
    "service": {"rate_fps": 900000, "queue_frames": 20},
    "rules": [{"probability": 0.02, "do": "drop"},
              {"probability": 0.1, "do": {"delay_ns": {"from": 0, "to": 40000}}},
              {"every": 7, "do": {"reorder": {"distance": 5}}},
              {"probability": 0.05, "do": {"corrupt": "payload"}}])");
  constexpr uint64_t kFrames = 4000;
  std::mt19937_64 random(8);
  std::vector<Bytes> sent;
  for (uint64_t i = 0; i < kFrames; ++i) {
    sent.push_back(frame(i, 64 + static_cast<uint32_t>(random() % 2000)));
    if (random() % 5 == 0) {  // with DF
      set_word(sent.back(), kIp + 6, 0x4000);
      set_checksum(sent.back());
    }
    io_.arriving[0].push_back(sent.back());
    if (random() % 3 == 0) device_.step();
    io_.clock_ns += random() % 2000;
  }
  wait(20'000'000, 10'000);
  measure::SequenceTracker tracker;
  tracker.reset(kFrames);
  uint64_t corrupt = 0;
  for (const Bytes& whole : put_together()) {
    const auto classified = net::classify(whole.data(), whole.size());
    ASSERT_EQ(classified.kind, net::FrameKind::kTest);
    if (net::checksums_hold(whole.data(), classified)) {
      ASSERT_EQ(whole, sent[classified.tag->sequence()]);
      measure::testing::arrive(tracker, classified.tag->sequence());
    } else {
      ++corrupt;
    }
  }
  const Json c = account();
  const auto count = [&](const char* key) { return c[key].get<uint64_t>(); };
  const auto damaged = c["corrupted_left"]["payload"].get<uint64_t>();
  EXPECT_EQ(kFrames, count("left") + count("dropped_by_rule") + count("dropped_by_queue") +
                         count("dropped_too_big") + count("incomplete"));
  EXPECT_EQ(tracker.received(), count("left") - damaged);
  EXPECT_EQ(tracker.reordered(), count("out_of_order"));
  EXPECT_EQ(corrupt, damaged);
  EXPECT_EQ(reassembler_.unfinished(), count("incomplete"));
  for (const char* key : {"dropped_by_rule", "dropped_by_queue", "dropped_too_big", "incomplete",
                          "out_of_order", "displaced"}) {
    EXPECT_GT(count(key), 10U) << key << ": the test is about something";
  }
  EXPECT_EQ(io_.owned(), 0U);
}

}  // namespace
}  // namespace dutperf::refdut
