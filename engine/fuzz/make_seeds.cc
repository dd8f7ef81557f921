// Writes the seeds of frame_fuzz and stream_fuzz into DIR/frame and DIR/stream, a file each.
// Usage: fuzz_seeds DIR
#include <filesystem>
#include <fstream>
#include <string>

#include "fuzz/sample.h"
#include "fuzz/trace.h"
#include "net/dns.h"
#include "net/frame.h"
#include "net/neighbour.h"
#include "net/testing/reference_frame.h"

namespace dutperf::fuzz {
namespace {

using net::testing::Bytes;

constexpr uint64_t kLargest = (1ULL << 48) - 1;

class Folder {
 public:
  explicit Folder(std::filesystem::path path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
  }

  void put(const std::string& name, const Bytes& bytes) const {
    std::ofstream file(path_ / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::filesystem::path path_;
};

Bytes changed(Bytes frame, size_t offset, const Bytes& bytes) {
  std::copy(bytes.begin(), bytes.end(), frame.begin() + static_cast<ptrdiff_t>(offset));
  return frame;
}

Bytes inserted(Bytes frame, size_t offset, const Bytes& bytes) {
  frame.insert(frame.begin() + static_cast<ptrdiff_t>(offset), bytes.begin(), bytes.end());
  return frame;
}

Bytes resized(Bytes frame, size_t size) {
  frame.resize(size, 0x5a);
  return frame;
}

Bytes test_frame(int version, uint32_t size, uint64_t sequence = 42,
                 uint64_t stamp_ns = 1'000'000) {
  const net::FrameLayout layout = net::testing::sample_layout(version, size);
  return net::testing::reference_frame(
      layout, net::testing::tagged_payload(layout, {kTrial, kStream, 0}, sequence, stamp_ns));
}

// Of a tester that has no tags, or other ones.
Bytes other_frame(int version, const Bytes& payload) {
  return net::testing::reference_frame(net::testing::sample_layout(version, 128), payload);
}

Bytes question(const char* target) {
  const net::IpAddress asked = *net::IpAddress::parse(target);
  const net::IpAddress asker =
      *net::IpAddress::parse(asked.version == 4 ? "198.19.0.1" : "2001:2:0:8000::1");
  Bytes frame(net::kNeighbourFrameBytes);
  frame.resize(
      net::write_request(asker, *net::Mac::parse("02:00:00:00:00:01"), asked, frame.data()));
  return frame;
}

Bytes answer_to(const Bytes& frame) {
  Bytes reply(net::kNeighbourFrameBytes);
  reply.resize(net::write_reply(frame.data(), frame.size(), own_addresses(), reply.data()));
  return reply;
}

void put_test_frames(const Folder& folder, int version) {
  const std::string ip = version == 4 ? "ipv4-" : "ipv6-";
  const size_t udp = net::testing::udp_offset(version);
  const uint32_t smallest = net::minimum_frame_size(version);
  const Bytes frame = test_frame(version, 128);
  for (const uint32_t size : {smallest, 96U, 101U, 128U}) {
    folder.put(ip + std::to_string(size), test_frame(version, size));
  }
  folder.put(ip + "largest-numbers", test_frame(version, smallest, kLargest, kLargest));
  folder.put(ip + "wrapped-stamp", test_frame(version, smallest, 1ULL << 32, 1ULL << 32));
  folder.put(ip + "padded", resized(test_frame(version, smallest), 110));
  folder.put(ip + "truncated", resized(frame, frame.size() - 1));
  folder.put(ip + "headers-only", resized(frame, udp + 8));
  folder.put(ip + "cut-header", resized(frame, udp - 1));
  folder.put(ip + "udp-checksum-none", changed(frame, udp + 6, {0, 0}));
  folder.put(ip + "udp-length-short", changed(frame, udp + 5, {9}));
  folder.put(ip + "ip-length-huge", changed(frame, version == 4 ? 16 : 18, {0xff, 0xff}));
  folder.put(ip + "ip-length-zero", changed(frame, version == 4 ? 16 : 18, {0, 0}));
  folder.put(ip + "payload-flipped", changed(frame, frame.size() - 20, {0xff}));
  folder.put(ip + "tcp", changed(frame, version == 4 ? 23 : 20, Bytes{6}));
  folder.put(ip + "vlan", inserted(frame, 12, {0x81, 0, 0, 1}));
  folder.put(ip + "other-tester-zeros", other_frame(version, Bytes(80)));
  folder.put(ip + "other-tester-text", other_frame(version, Bytes(64, 'A')));
}

void put_frames(const Folder& folder) {
  Bytes query(net::kDnsQueryBytes + net::kMostDnsAnswerBytes);
  net::write_dns_query(query.data(), {.trial = 1, .number = 42, .id = net::dns_id(42)});
  const Bytes asked(query.begin(), query.begin() + net::kDnsQueryBytes);
  folder.put("dns-query", asked);
  const net::DnsZone zone{.trial = 1, .aaaa_percent = 100};
  query.resize(net::write_dns_answer(query.data(), *net::dns_question_in(asked), zone));
  folder.put("dns-answer", query);
  put_test_frames(folder, 4);
  put_test_frames(folder, 6);
  folder.put("ipv4-first-fragment", changed(test_frame(4, 128), 20, {0x20, 0}));
  folder.put("ipv4-later-fragment", changed(test_frame(4, 128), 20, {0, 5}));
  folder.put("ipv4-options", inserted(changed(test_frame(4, 128), 14, {0x46}), 34, {1, 1, 1, 0}));
  folder.put("ipv6-fragment", changed(test_frame(6, 128), 20, {44}));
  const Bytes piece = inserted(changed(test_frame(6, 90), 20, {44}), 54, {17, 0, 0, 1, 0, 0, 0, 7});
  folder.put("ipv6-first-fragment", changed(piece, 18, {0, 0x28}));
  folder.put("ipv6-later-fragment", changed(changed(piece, 18, {0, 0x28}), 57, {0x29}));
  folder.put("ipv6-hop-by-hop", changed(test_frame(6, 128), 20, {0}));
  folder.put("arp-request", question("198.19.0.2"));
  folder.put("arp-request-in-range", question("198.19.1.99"));
  folder.put("arp-request-in-steps", question("198.19.255.1"));
  folder.put("arp-request-of-others", question("198.18.0.2"));
  folder.put("arp-request-cut", resized(question("198.19.0.2"), 41));
  folder.put("arp-reply", answer_to(question("198.19.0.2")));
  const Bytes solicitation = question("2001:2:0:8000::2");
  folder.put("nd-solicitation", solicitation);
  folder.put("nd-solicitation-in-range", question("2001:2:0:8009::1"));
  folder.put("nd-solicitation-anonymous", changed(solicitation, 22, Bytes(16)));
  folder.put("nd-solicitation-without-option", resized(changed(solicitation, 19, {24}), 78));
  folder.put("nd-solicitation-cut", resized(solicitation, 77));
  folder.put("nd-solicitation-routed", changed(solicitation, 21, {254}));
  folder.put("nd-advertisement", answer_to(solicitation));
  folder.put("icmpv6-echo", changed(solicitation, 54, {128}));
  folder.put("lldp", changed(Bytes(60), 12, {0x88, 0xcc}));
  folder.put("zeros", Bytes(60));
  folder.put("empty", {});
}

struct Trace {
  explicit Trace(uint8_t options) : bytes{options} {}

  void add(uint64_t sequence, uint64_t stamp_ns, uint32_t after = 1, uint16_t trial = kTrial,
           uint8_t stream = kStream) {
    TraceEntry entry;
    entry.after = after;
    entry.tag.magic = net::kTagMagic;
    entry.tag.trial = trial;
    entry.tag.stream = stream;
    entry.tag.flags = 0;
    entry.tag.sequence_stamp_high = (sequence << 16) | (stamp_ns >> 32);
    entry.tag.stamp_low = static_cast<uint32_t>(stamp_ns);
    const auto* first = reinterpret_cast<const uint8_t*>(&entry);
    bytes.insert(bytes.end(), first, first + sizeof(entry));
  }

  Bytes bytes;
};

void put_traces(const Folder& folder, const std::string& name, uint8_t options) {
  Trace in_order(options);
  for (uint64_t i = 0; i < 80; ++i) in_order.add(i, 1000 * i, i % 40 == 0 ? 100 : 0);
  folder.put(name + "-in-order", in_order.bytes);

  Trace disorder(options);  // a permutation with gaps, each third twice
  for (uint64_t i = 0; i < 60; ++i) {
    const uint64_t sequence = 490 + i * 37 % 64;
    disorder.add(sequence, 1000 * i, static_cast<uint32_t>(i % 3));
    if (i % 3 == 0) disorder.add(sequence, 1000 * i, 0);
  }
  folder.put(name + "-disorder", disorder.bytes);

  Trace sliding(options);  // leaps over the window, and stragglers from before it
  const std::initializer_list<uint64_t> leaps = {0,   63,  64,   511,  512,  1, 1023,
                                                 512, 511, 1999, 1488, 1487, 0};
  for (const uint64_t sequence : leaps) {
    sliding.add(sequence, 1000 * sequence, 1000);
  }
  folder.put(name + "-sliding", sliding.bytes);

  Trace strange(options);  // numbers never sent, stamps of the future, other trials and streams
  strange.add(0, 0);
  strange.add(kLargest, 0);
  strange.add(2000, 0, 0);
  strange.add(1, kLargest);
  strange.add(2, 1ULL << 32, 0);
  strange.add(3, 0, UINT32_MAX);
  strange.add(3, 0, 1, kTrial - 1);
  strange.add(4, 0, 1, 0, 0);
  strange.add(5, 0, 0, kTrial, kStream + 1);
  strange.add(1999, 5000);
  folder.put(name + "-strange", strange.bytes);
}

}  // namespace
}  // namespace dutperf::fuzz

int main(int argc, char** argv) {
  using namespace dutperf::fuzz;
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  put_frames(Folder(folder / "frame"));
  const Folder stream(folder / "stream");
  put_traces(stream, "all", kWithVariation | kWithTags);
  put_traces(stream, "window", kWithVariation | kWithTags | kWithWindow);
  put_traces(stream, "distance", kWithWindow | kWithDistance);
  return 0;
}
