#include "control/announcement_messages.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "net/headers.h"

namespace dutperf::control {
namespace {

using dataplane::Side;

constexpr size_t kMost = 4096;
constexpr size_t kLongestPacket = 1500;
constexpr NamesOf<Side, dataplane::kSides> kSideNames = {
    {{"left", Side::kLeft}, {"right", Side::kRight}}};

std::optional<uint8_t> digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  return std::nullopt;
}

std::vector<uint8_t> parse_packet(ObjectReader& reader) {
  const std::string text = reader.text("packet");
  if (text.size() % 2 != 0 || text.size() / 2 < sizeof(net::Ipv4Header) ||
      text.size() / 2 > kLongestPacket) {
    reader.refuse("packet", "must have 20 to 1500 bytes");
  }
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    const auto high = digit_of(text[i]);
    const auto low = digit_of(text[i + 1]);
    if (!high || !low) reader.refuse("packet", "has other characters than 0-9 and a-f");
    bytes.push_back(static_cast<uint8_t>(*high << 4 | *low));
  }
  const int version = bytes[0] >> 4;
  if (version != 4 && version != 6) reader.refuse("packet", "is none of IPv4 or IPv6");
  if (version == 6 && bytes.size() < sizeof(net::Ipv6Header)) {
    reader.refuse("packet", "must have at least 40 bytes, as it is IPv6");
  }
  return bytes;
}

Announcement parse_one(const Json& object, const std::string& where, uint64_t duration_ns) {
  ObjectReader reader(object, where);
  Announcement result;
  result.side = reader.name("port", kSideNames);
  if (reader.has("at_ns") && !reader.at("at_ns").is_null()) {
    result.at_ns = reader.number("at_ns", 0, duration_ns - 1);
  }
  result.dst_mac = reader.mac_or_none("dst_mac");
  result.packet = parse_packet(reader);
  if (reader.has("answered_from") && !reader.at("answered_from").is_null()) {
    result.answered_from = static_cast<uint16_t>(reader.number("answered_from", 1, UINT16_MAX));
  }
  reader.finish();
  return result;
}

}  // namespace

std::vector<Announcement> parse_announcements(ObjectReader& trial, uint64_t duration_ns) {
  std::vector<Announcement> result;
  if (!trial.has("announcements")) return result;
  const Json& list = trial.array("announcements", 0, kMost);
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = element(trial.path("announcements"), i);
    result.push_back(parse_one(list[i], where, duration_ns));
    const auto from = result.back().answered_from;
    const auto other = [&](const Announcement& a) {
      return a.answered_from.value_or(*from) != *from;
    };
    if (from && std::any_of(result.begin(), result.end(), other)) {
      trial.refuse("announcements", "must be answered from one UDP port");
    }
  }
  // No time is less than any.
  std::stable_sort(result.begin(), result.end(),
                   [](const Announcement& a, const Announcement& b) { return a.at_ns < b.at_ns; });
  return result;
}

net::IpAddress Announcement::destination() const {
  const bool is_ipv4 = packet[0] >> 4 == 4;
  return is_ipv4 ? net::IpAddress::from_bytes(4, packet.data() + offsetof(net::Ipv4Header, dst))
                 : net::IpAddress::from_bytes(6, packet.data() + offsetof(net::Ipv6Header, dst));
}

dataplane::AnswerSpec answers_to(const std::vector<Announcement>& announcements, Side side) {
  dataplane::AnswerSpec result;
  for (const Announcement& announcement : announcements) {
    if (announcement.side != side || !announcement.answered_from) continue;
    result.from_port = *announcement.answered_from;
    result.most += 2;
  }
  return result;
}

Json to_json(const dataplane::AnswerLog& log) {
  constexpr char kDigits[] = "0123456789abcdef";
  Json list = Json::array();
  for (const dataplane::Answer& answer : log.answers()) {
    std::string digits;
    for (const uint8_t byte : answer.ip_packet()) {
      digits += kDigits[byte >> 4];
      digits += kDigits[byte & 0x0f];
    }
    list.push_back({{"received_ns", answer.received_ns}, {"packet", std::move(digits)}});
  }
  return list;
}

std::vector<uint8_t> frame_of(const Announcement& announcement, const net::Mac& dst_mac,
                              const net::Mac& src_mac, const net::VlanTags& vlan) {
  const std::vector<uint8_t>& packet = announcement.packet;
  const size_t size = std::max(sizeof(net::EthernetHeader) + packet.size(), net::kMinFrameBytes);
  std::vector<uint8_t> frame(size + net::VlanTags::kMaxBytes);
  net::EthernetHeader ethernet{};
  std::memcpy(ethernet.dst, dst_mac.bytes.data(), sizeof(ethernet.dst));
  std::memcpy(ethernet.src, src_mac.bytes.data(), sizeof(ethernet.src));
  ethernet.ether_type = packet[0] >> 4 == 4 ? net::kEtherTypeIpv4 : net::kEtherTypeIpv6;
  std::memcpy(frame.data(), &ethernet, sizeof(ethernet));
  std::copy(packet.begin(), packet.end(), frame.begin() + sizeof(ethernet));
  frame.resize(vlan.put_in(frame.data(), size));
  return frame;
}

}  // namespace dutperf::control
