// Any bytes as a received frame: classified, checked, answered. The input is the frame.
//
// The frame lies in a heap block of exactly its size, so that the sanitizer sees a read outside.
// Checksums have a slow twin here, which shares no code with the engine.
#include <algorithm>
#include <cstring>
#include <memory>

#include "fuzz/require.h"
#include "fuzz/sample.h"
#include "net/classify.h"
#include "net/dns.h"
#include "net/inspection.h"
#include "net/neighbour.h"
#include "net/reassembly.h"
#include "net/testing/reference_frame.h"

namespace dutperf::fuzz {
namespace {

using net::testing::Bytes;

constexpr size_t kIp = 14;

uint32_t number(const Bytes& bytes, size_t offset) {
  return bytes[offset] * 256U + bytes[offset + 1];
}

void check_test_frame(const uint8_t* frame, size_t size, const net::Classified& classified) {
  const int version = classified.ip_version;
  require(version == 4 || version == 6, "a test frame is IPv4 or IPv6");
  const auto* tag = reinterpret_cast<const uint8_t*>(classified.tag);
  const size_t payload = net::payload_offset(frame, classified);
  require(payload >= net::testing::udp_offset(version) + sizeof(net::UdpHeader),
          "a payload stands behind headers");
  require(tag >= frame + payload && tag + sizeof(net::WireTag) <= frame + size,
          "a tag lies in the frame's payload");
  require(tag + sizeof(net::WireTag) == frame + kIp + classified.ip_bytes,
          "a tag ends where the IP packet ends");
  require(classified.tag->magic == net::kTagMagic, "a tag is one of ours");
  net::Inspected found;
  net::inspect(frame, {}, found);
  require(found.frames <= 1 && found.ttl == 0 && found.least_ttl == found.most_ttl,
          "a frame is inspected within its IP packet");
  require(classified.tag->sequence() >> 48 == 0 && classified.tag->stamp_ns() >> 48 == 0,
          "numbers and stamps have 48 bits");
  const bool of_tcp = net::is_segment(frame, classified);
  const size_t extra = classified.ip_headers - net::ip_header_bytes(version);
  const bool whole = net::checksums_hold(frame, classified);
  // None of ours has options and TCP.
  const bool expected =
      !(of_tcp && extra > 0) && net::testing::reference_whole(Bytes(frame, frame + size), version,
                                                              classified.ip_bytes, extra);
  require(whole == expected, "checksums hold as the slow twin says");
  if (whole) return;
  const size_t udp = net::testing::udp_offset(version) + extra;
  const Bytes bytes(frame, frame + size);
  const bool length = !of_tcp && number(bytes, udp + 4) != kIp + classified.ip_bytes - udp;
  const bool absent = !of_tcp && version == 6 && number(bytes, udp + 6) == 0;
  require(net::damage_of(frame, classified, classified.ip_bytes) ==
              (length   ? net::Damage::kLength
               : absent ? net::Damage::kChecksumZero
                        : net::Damage::kChecksumWrong),
          "the damage is the first that the book names");
}

void check_truncated(const uint8_t* frame, size_t size, const net::Classified& classified) {
  require(kIp + classified.ip_bytes > size, "what is truncated ends too early");
  const auto* tag = reinterpret_cast<const uint8_t*>(classified.tag);
  if (tag == nullptr) return;
  require(tag + net::kTagIdentityBytes <= frame + size, "its identity lies in the frame");
  require(tag + sizeof(net::WireTag) == frame + kIp + classified.ip_bytes,
          "a tag ends where the IP packet should end");
  require(classified.tag->magic == net::kTagMagic, "a tag is one of ours");
}

void check_answer(const uint8_t* frame, size_t size, net::FrameKind kind) {
  static const net::OwnAddresses own = own_addresses();
  const std::unique_ptr<uint8_t[]> reply(new uint8_t[net::kNeighbourFrameBytes]);
  const size_t reply_size = net::write_reply(frame, size, own, reply.get());
  const auto heard = net::parse_answer(frame, size);
  if (reply_size > 0 || heard) {
    require(kind == net::FrameKind::kNeighbour, "who asks or answers is a neighbour");
    require((reply_size > 0) != heard.has_value(), "a question is no answer");
  }
  if (reply_size == 0) return;
  require(reply_size == net::kMinFrameBytes || reply_size == net::kNeighbourFrameBytes,
          "a reply is an ARP frame or an advertisement");
  const auto answer = net::parse_answer(reply.get(), reply_size);
  require(answer.has_value(), "a reply is an answer");
  require(answer->mac == own.mac && own.contains(answer->ip), "a reply tells what is our own");
  uint8_t echo[net::kNeighbourFrameBytes];
  require(net::write_reply(reply.get(), reply_size, own, echo) == 0, "nobody replies to a reply");
}

// Whatever has a counter of its own must be told from the rest.
void check_kind(const Bytes& frame, net::FrameKind kind) {
  const uint32_t ether_type = frame.size() < 34 ? 0 : number(frame, 12);
  const bool arp = ether_type == 0x0806;
  const bool discovery = ether_type == 0x86dd && frame.size() >= 78 && frame[20] == 58 &&
                         (frame[54] == 135 || frame[54] == 136);
  require((kind == net::FrameKind::kNeighbour) == (arp || discovery), "neighbours");
  const bool ipv4_piece = ether_type == 0x0800 && number(frame, 20) % 0x4000 != 0;
  const bool ipv6 = ether_type == 0x86dd && frame.size() >= 54;
  const bool ipv6_piece = ipv6 && frame[20] == 44 &&
                          (frame.size() < 62 || number(frame, 56) / 8 * 8 + frame[57] % 2 > 0);
  const bool is_chain = ipv6 && (frame[20] == 0 || frame[20] == 43 || frame[20] == 44 ||
                                 frame[20] == 51 || frame[20] == 60 || frame[20] == 135);
  // Behind other headers there may be a piece, too.
  require(is_chain || (kind == net::FrameKind::kFragment) == ipv4_piece, "fragments");
  require(!ipv6_piece || kind == net::FrameKind::kFragment, "fragments of IPv6");
}

// A frame with the port's tags is what stands behind them, whatever that is.
void check_tagged(const uint8_t* frame, size_t size) {
  constexpr net::VlanTag kTags[] = {{0x88a8, 10}, {0x8100, 100}};
  const net::VlanTags vlan(kTags);
  require(net::classify_behind({}, frame, size).kind == net::classify(frame, size).kind,
          "no tags change nothing");
  net::classify_behind(vlan, frame, size);
  if (size < sizeof(net::EthernetHeader)) return;
  const std::unique_ptr<uint8_t[]> tagged(new uint8_t[size + vlan.bytes()]);
  std::copy_n(frame, size, tagged.get());
  const size_t tagged_size = vlan.put_in(tagged.get(), size);
  const net::Classified behind = net::classify_behind(vlan, tagged.get(), tagged_size);
  require(behind.kind == net::classify(frame, size).kind, "tags hide nothing");
  require(vlan.take_out(tagged.get(), tagged_size) == size &&
              std::equal(frame, frame + size, tagged.get()),
          "what is put in is taken out");
}

// As a message of DNS: what asks is answered, and the answer is to that question.
void check_dns(const uint8_t* bytes, size_t size) {
  constexpr net::DnsZone kZone{.trial = 1, .aaaa_percent = 50};
  const std::optional<net::DnsQuestion> question = net::dns_question_in({bytes, size});
  if (!question) return;
  if (const auto query = kZone.query_of(*question)) {
    net::dns_reply({bytes, size}, *question, *query, kZone);
  }
  Bytes answer(net::kDnsQueryBytes + net::kMostDnsAnswerBytes);
  std::copy_n(bytes, net::kDnsQueryBytes, answer.begin());
  answer.resize(net::write_dns_answer(answer.data(), *question, kZone));
  const std::optional<net::DnsQuestion> answered = net::dns_question_in(answer);
  require(answered && answered->number == question->number && answered->type == question->type,
          "an answer is to its question");
}

// A packet in a tunnel is what it is without, and nobody asks in there.
void check_tunnelled(const uint8_t* frame, size_t size) {
  for (const net::Tunnel kind :
       {net::Tunnel::kIp, net::Tunnel::kGre, net::Tunnel::kVxlan, net::Tunnel::kSrv6}) {
    for (const char* address : {"10.0.0.1", "2001:db8::1"}) {
      net::TunnelEnds ends;
      ends.kind = kind;
      ends.local = ends.remote = *net::IpAddress::parse(address);
      if (kind == net::Tunnel::kSrv6) {
        // Of IPv6 alone, with a header and without one.
        ends.sent = {{net::IpAddress{6, {}}}, 0, ends.local.version == 4, 0};
        ends.local.version = ends.remote.version = 6;
        ends.received = ends.sent;
      }
      const net::Encapsulation outer(ends);
      net::classify_tunnelled({}, outer, frame, size);
      if (size < kIp + 20) continue;
      const uint16_t type = static_cast<uint16_t>(number(Bytes(frame, frame + size), 12));
      if (type != net::ether_type_of(frame + kIp)) continue;
      const std::unique_ptr<uint8_t[]> inside(new uint8_t[size + outer.bytes()]);
      std::copy_n(frame, size, inside.get());
      const size_t inside_size = outer.put_in(inside.get(), size);
      const net::FrameKind bare = net::classify(frame, size).kind;
      const net::FrameKind found =
          net::classify_tunnelled({}, outer, inside.get(), inside_size).kind;
      const bool asks = bare == net::FrameKind::kNeighbour;
      require(found == (asks ? net::FrameKind::kForeign : bare), "a tunnel hides nothing");
      require(outer.take_out(inside.get(), inside_size) == size &&
                  std::equal(frame, frame + size, inside.get()),
              "what was put in is taken out");
    }
  }
}

// Where the header of an IPv6 piece begins; 0: the frame ends before.
size_t piece_header_of(const Bytes& frame) {
  size_t at = kIp + 40;
  for (uint8_t next = frame[kIp + 6]; at + 8 <= frame.size();) {
    if (next == 44 && (number(frame, at + 2) & 0xfff9) != 0) return at;
    const uint8_t own = next;
    next = frame[at];
    const size_t length = frame[at + 1];
    at += own == 44 ? 8 : own == 51 ? std::max<size_t>(8, length * 4 + 8) : length * 8 + 8;
  }
  return 0;
}

// Offset in units of 8 bytes and whether it is the last one; with a header checksum that holds: no
// input would find that by chance.
void call_piece(Bytes& frame, size_t header, size_t units, bool last) {
  if (header > kIp) {
    const size_t field = units % 0x2000 * 8 + (last ? 0 : 1);
    frame[header + 2] = static_cast<uint8_t>(field >> 8);
    frame[header + 3] = static_cast<uint8_t>(field);
    return;
  }
  auto* ip = reinterpret_cast<net::Ipv4Header*>(frame.data() + kIp);
  ip->flags_fragment = static_cast<uint16_t>((last ? 0U : 0x2000U) | units % 0x2000);
  ip->checksum = 0;
  ip->checksum = net::finish(net::sum_words(frame.data() + kIp, frame[kIp] % 16U * 4));
}

// The frame as a piece of a packet, as the last one behind it, and as both again.
void check_pieces(const Bytes& frame) {
  const bool ipv6 = number(frame, 12) == 0x86dd;
  const size_t header = ipv6 ? piece_header_of(frame) : kIp;
  if (header == 0) return;
  const size_t payload_at = ipv6 ? header + 8 : kIp + frame[kIp] % 16U * 4;
  if (payload_at < kIp + 20 || payload_at > frame.size()) return;
  const size_t end = kIp + (ipv6 ? 40 + number(frame, kIp + 4) : number(frame, kIp + 2));
  const size_t offset = ipv6 ? number(frame, header + 2) / 8 : number(frame, kIp + 6) % 0x2000;
  constexpr size_t kMost = 64;  // what is larger takes its time to clear
  net::Reassembly reassembly(kMost);
  for (const bool last : {false, true, true, false}) {
    Bytes piece = frame;
    const size_t behind = last && end > payload_at ? (end - payload_at) / 8 : 0;
    call_piece(piece, header, offset + behind, last);
    const std::unique_ptr<uint8_t[]> exact(new uint8_t[piece.size()]);
    std::copy(piece.begin(), piece.end(), exact.get());
    const auto whole = reassembly.add(exact.get(), piece.size());
    if (whole.empty()) continue;
    require(
        whole.size() > kIp + 20 && whole.size() <= kIp + net::Reassembly::kMostHeaderBytes + kMost,
        "a packet has its size");
    const net::Classified classified = net::classify(whole.data(), whole.size());
    require(ipv6 || classified.kind != net::FrameKind::kFragment, "a whole packet is no piece");
    if (classified.kind == net::FrameKind::kTest) {
      check_test_frame(whole.data(), whole.size(), classified);
    }
  }
}

void check(const uint8_t* frame, size_t size) {
  check_dns(frame, size);
  check_tagged(frame, size);
  check_tunnelled(frame, size);
  const net::Classified classified = net::classify(frame, size);
  if (classified.kind == net::FrameKind::kTest) {
    check_test_frame(frame, size, classified);
  } else if (classified.kind == net::FrameKind::kTruncated) {
    check_truncated(frame, size, classified);
  } else {
    require(classified.tag == nullptr && classified.ip_bytes == 0, "only test frames have a tag");
  }
  check_kind(Bytes(frame, frame + size), classified.kind);
  check_answer(frame, size, classified.kind);
  if (classified.kind == net::FrameKind::kFragment) check_pieces(Bytes(frame, frame + size));
}

}  // namespace
}  // namespace dutperf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::unique_ptr<uint8_t[]> frame(new uint8_t[size]);
  std::copy_n(data, size, frame.get());
  dutperf::fuzz::check(frame.get(), size);
  return 0;
}
