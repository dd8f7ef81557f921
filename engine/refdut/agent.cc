#include "agent.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>

#include "net/frame.h"
#include "net/headers.h"
#include "translation.h"

namespace dutperf::refdut {
namespace {

using Bytes = std::vector<uint8_t>;
using View = std::span<const uint8_t>;

constexpr std::string_view kCommunity = "public";
constexpr uint8_t kHops = 64;

// BER's tags of what SNMP is made of.
constexpr uint8_t kInteger = 0x02;
constexpr uint8_t kOctets = 0x04;
constexpr uint8_t kObject = 0x06;
constexpr uint8_t kSequence = 0x30;
constexpr uint8_t kCounter = 0x41;
constexpr uint8_t kTimeTicks = 0x43;
constexpr uint8_t kGetRequest = 0xa0;
constexpr uint8_t kGetResponse = 0xa2;

constexpr uint8_t kNoSuchName = 2;
constexpr uint32_t kTicksPerSecond = 100;

// 1.3.6.1.2.1.1.3.0, and 1.3.6.1.2.1.2.2.1.x.k with x one of four, k any.
constexpr std::array<uint8_t, 8> kUpTime = {0x2b, 6, 1, 2, 1, 1, 3, 0};
constexpr std::array<uint8_t, 8> kInterfaces = {0x2b, 6, 1, 2, 1, 2, 2, 1};
constexpr std::array<uint8_t, 4> kCounters = {10, 11, 16, 17};

struct Element {
  uint8_t tag = 0;
  View value;
  View whole;  // tag and length, too
};

// Takes the first element off; none when it is longer than what there is.
std::optional<Element> take(View& rest) {
  if (rest.size() < 2) return std::nullopt;
  size_t at = 2;
  size_t length = rest[1];
  if (length >= 0x80) {
    const size_t digits = length & 0x7f;
    if (digits == 0 || digits > 2 || rest.size() < at + digits) return std::nullopt;
    length = 0;
    for (size_t i = 0; i < digits; ++i) length = length << 8 | rest[at++];
  }
  if (rest.size() - at < length) return std::nullopt;
  const Element element{rest[0], rest.subspan(at, length), rest.first(at + length)};
  rest = rest.subspan(at + length);
  return element;
}

// The same, if it has this tag.
std::optional<Element> take(View& rest, uint8_t tag) {
  const auto element = take(rest);
  return element && element->tag == tag ? element : std::nullopt;
}

void append(Bytes& bytes, View more) { bytes.insert(bytes.end(), more.begin(), more.end()); }

Bytes wrapped(uint8_t tag, View value) {
  Bytes result = {tag};
  const auto low = static_cast<uint8_t>(value.size());
  const auto high = static_cast<uint8_t>(value.size() >> 8);
  if (high > 0) {
    result.insert(result.end(), {0x82, high, low});
  } else if (low >= 0x80) {
    result.insert(result.end(), {0x81, low});
  } else {
    result.push_back(low);
  }
  append(result, value);
  return result;
}

// Of a number that is not negative, so its first bit is 0.
Bytes number(uint8_t tag, uint32_t value) {
  Bytes bytes = {0};
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<uint8_t>(value >> shift));
  while (bytes.size() > 1 && bytes[0] == 0 && bytes[1] < 0x80) bytes.erase(bytes.begin());
  return wrapped(tag, bytes);
}

// Empty when there is no such variable.
Bytes value_of(View object, uint32_t answers) {
  if (std::ranges::equal(object, kUpTime)) return number(kTimeTicks, answers * kTicksPerSecond);
  const bool in_table = object.size() == kInterfaces.size() + 2 &&
                        std::ranges::equal(object.first(kInterfaces.size()), kInterfaces);
  const bool known =
      in_table && std::ranges::find(kCounters, object[kInterfaces.size()]) != kCounters.end();
  return known ? number(kCounter, answers) : Bytes{};
}

// Of the variables asked for, each with its value; `missing` tells which one there is not, from 1.
std::optional<Bytes> with_values(View variables, uint32_t answers, uint8_t& missing) {
  Bytes result;
  for (uint8_t place = 1; !variables.empty(); ++place) {
    auto variable = take(variables, kSequence);
    if (!variable) return std::nullopt;
    const auto object = take(variable->value, kObject);
    if (!object) return std::nullopt;
    Bytes told(object->whole.begin(), object->whole.end());
    const Bytes value = value_of(object->value, answers);
    if (value.empty() && missing == 0) missing = place;
    append(told, value);
    append(result, wrapped(kSequence, told));
  }
  return result;
}

}  // namespace

std::optional<Bytes> Agent::answer(const uint8_t* frame, size_t size,
                                   const net::OwnAddresses& own) {
  const auto flow = read_flow(frame, size);
  const bool is_query = flow && flow->protocol == Protocol::kUdp && flow->destination.port == kPort;
  if (!is_query) return std::nullopt;
  if (!own.contains(net::IpAddress::from_bytes(flow->version, flow->destination.address.data()))) {
    return std::nullopt;
  }
  const size_t headers_bytes = net::ip_header_bytes(flow->version) + sizeof(net::UdpHeader);
  const size_t before = sizeof(net::EthernetHeader) + headers_bytes;
  const size_t end = sizeof(net::EthernetHeader) + flow->ip_bytes;
  const std::optional<Bytes> message = answer_to({frame + before, end - before});
  if (!message || message->empty()) return message;
  Bytes result(before);
  auto* ethernet = reinterpret_cast<net::EthernetHeader*>(result.data());
  std::memcpy(ethernet->dst, frame + offsetof(net::EthernetHeader, src), sizeof ethernet->dst);
  std::memcpy(ethernet->src, own.mac.bytes.data(), sizeof ethernet->src);
  ethernet->ether_type = flow->version == 4 ? net::kEtherTypeIpv4 : net::kEtherTypeIpv6;
  append(result, *message);
  const Flow back{flow->version, flow->destination, flow->source, headers_bytes + message->size()};
  write_headers(back, kHops, result.data() + sizeof(net::EthernetHeader));
  result.resize(std::max(result.size(), net::kMinFrameBytes));
  return result;
}

std::optional<Bytes> Agent::answer_to(View message) {
  auto whole = take(message, kSequence);
  if (!whole) return std::nullopt;
  const auto version = take(whole->value, kInteger);
  const auto community = take(whole->value, kOctets);
  auto query = take(whole->value, kGetRequest);
  if (!version || !community || !query) return std::nullopt;
  if (!std::ranges::equal(community->value, kCommunity)) return std::nullopt;
  const auto id = take(query->value, kInteger);
  const auto status = take(query->value, kInteger);
  const auto index = take(query->value, kInteger);
  const auto variables = take(query->value, kSequence);
  if (!id || !status || !index || !variables) return std::nullopt;
  uint8_t missing = 0;
  const auto values = with_values(variables->value, answers_ + 1, missing);
  if (!values) return std::nullopt;
  if (++queries_ % behaviour_.unanswered_every == 0) {
    ++unanswered_;
    return Bytes{};
  }
  ++answers_;
  Bytes told(id->whole.begin(), id->whole.end());
  append(told, number(kInteger, missing > 0 ? kNoSuchName : 0));
  append(told, number(kInteger, missing));
  append(told, missing > 0 ? Bytes(variables->whole.begin(), variables->whole.end())
                           : wrapped(kSequence, *values));
  Bytes result(version->whole.begin(), version->whole.end());
  append(result, community->whole);
  append(result, wrapped(kGetResponse, told));
  return wrapped(kSequence, result);
}

}  // namespace dutperf::refdut
