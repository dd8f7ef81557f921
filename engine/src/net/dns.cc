#include "net/dns.h"

#include <cstring>
#include <string_view>

#include "net/digits.h"

namespace dutperf::net {
namespace {

constexpr std::string_view kName(
    "\x0d"
    "0000-00000000\x07"
    "dutperf\x04"
    "test\0",
    kDnsNameBytes);
constexpr size_t kZoneAt = 1 + 13;  // in the name
constexpr uint16_t kRecursionDesired = 0x0100;
constexpr uint16_t kInternet = 1;
constexpr uint16_t kPointer = 0xc000;
constexpr uint32_t kTtlS = 3600;
constexpr std::array<uint8_t, 12> kNative = {0x20, 0x01, 0, 2, 0, 0, 0xaa, 0xaa, 0, 0, 0, 0};

// Behind the name to which a pointer leads.
struct RecordHead {
  Be16 name;
  Be16 type;
  Be16 klass;
  Be32 ttl;
  Be16 bytes;
};
static_assert(sizeof(RecordHead) == 12);

struct Soa {
  Be16 server;  // names as pointers
  Be16 mailbox;
  Be32 serial;
  Be32 refresh;
  Be32 retry;
  Be32 expire;
  Be32 minimum;
};
static_assert(sizeof(RecordHead) + sizeof(Soa) == kMostDnsAnswerBytes);

template <typename T>
T read(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

uint64_t load(const uint8_t* at) { return read<uint64_t>(at); }

// In lower case; bytes that are no letters may become others.
std::array<uint8_t, kDnsNameBytes> lowered(const uint8_t* name) {
  std::array<uint8_t, kDnsNameBytes> result;
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 0x20 : name[i];
  }
  return result;
}

// Trial and number; none: no name of ours.
std::optional<std::pair<uint16_t, uint32_t>> read_name(const uint8_t* name) {
  const bool is_ours =
      name[0] == 13 && name[5] == '-' &&
      std::memcmp(name + kZoneAt, kName.data() + kZoneAt, kDnsNameBytes - kZoneAt) == 0;
  if (!is_ours) return std::nullopt;
  const uint64_t number_text = load(name + 6);
  uint64_t trial_text = digits::kZeros;
  std::memcpy(reinterpret_cast<uint8_t*>(&trial_text) + 4, name + 1, 4);
  const uint32_t number = digits::number_of(number_text);
  const uint32_t trial = digits::number_of(trial_text);
  if (digits::text_of(number) != number_text || digits::text_of(trial) != trial_text) {
    return std::nullopt;
  }
  return std::pair{static_cast<uint16_t>(trial), number};
}

void write_head(uint8_t* out, size_t name_at, DnsType type, size_t bytes) {
  RecordHead head;
  head.name = static_cast<uint16_t>(kPointer | name_at);
  head.type = static_cast<uint16_t>(type);
  head.klass = kInternet;
  head.ttl = kTtlS;
  head.bytes = static_cast<uint16_t>(bytes);
  std::memcpy(out, &head, sizeof(head));
}

// Behind a name as it may stand in a message; 0: it is not whole.
size_t behind_name(std::span<const uint8_t> message, size_t at) {
  constexpr uint8_t kMostLabel = 63;
  while (at < message.size()) {
    const uint8_t length = message[at];
    if (length == 0) return at + 1;
    if (length > kMostLabel)
      return (length & 0xc0) == 0xc0 && at + 2 <= message.size() ? at + 2 : 0;
    at += 1 + size_t{length};
  }
  return 0;
}

// Calls `take`, with type and data, for the answers of class IN from `at` on, until it is false.
// False: a record is not whole.
template <typename Take>
bool each_answer(std::span<const uint8_t> message, size_t at, Take take) {
  const uint16_t answers = read<DnsHeader>(message.data()).answers;
  for (uint16_t i = 0; i < answers; ++i) {
    const size_t end = behind_name(message, at);
    constexpr size_t kRest = sizeof(RecordHead) - sizeof(Be16);
    if (end == 0 || end + kRest > message.size()) return false;
    const uint16_t type = read<Be16>(message.data() + end);
    const uint16_t klass = read<Be16>(message.data() + end + 2);
    const uint16_t bytes = read<Be16>(message.data() + end + 8);
    at = end + kRest + bytes;
    if (at > message.size()) return false;
    if (klass == kInternet && !take(type, message.subspan(end + kRest, bytes))) return true;
  }
  return true;
}

}  // namespace

void write_dns_query(uint8_t* out, const DnsName& asked, DnsType asked_type) {
  DnsHeader header{};
  header.id = asked.id;
  header.flags = kRecursionDesired;
  header.questions = uint16_t{1};
  header.answers = header.authorities = header.additionals = uint16_t{0};
  std::memcpy(out, &header, sizeof(header));
  uint8_t* const name = out + sizeof(header);
  std::memcpy(name, kName.data(), kName.size());
  const uint64_t trial_text = digits::text_of(asked.trial);
  const uint64_t number_text = digits::text_of(asked.number);
  std::memcpy(name + 1, reinterpret_cast<const uint8_t*>(&trial_text) + 4, 4);
  std::memcpy(name + 6, &number_text, sizeof(number_text));
  const Be16 type = static_cast<uint16_t>(asked_type);
  const Be16 klass = kInternet;
  std::memcpy(name + kDnsNameBytes, &type, sizeof(type));
  std::memcpy(name + kDnsNameBytes + 2, &klass, sizeof(klass));
}

std::array<uint8_t, 16> ipv4_behind(const std::array<uint8_t, 12>& prefix, uint8_t bits,
                                    std::span<const uint8_t, 4> ipv4) {
  constexpr size_t kZero = 8;
  std::array<uint8_t, 16> address{};
  size_t at = bits / 8U;
  std::memcpy(address.data(), prefix.data(), at);
  for (const uint8_t byte : ipv4) {
    if (at == kZero) ++at;
    address[at++] = byte;
  }
  return address;
}

std::array<uint8_t, 16> DnsZone::aaaa_of(uint32_t number) const {
  const bool own = has_aaaa(number);
  const Be32 last = own ? number : a_of(number);
  std::array<uint8_t, 4> bytes;
  std::memcpy(bytes.data(), &last, sizeof(last));
  return own ? ipv4_behind(kNative, 96, bytes) : ipv4_behind(prefix, prefix_bits, bytes);
}

std::optional<DnsQuestion> dns_question_in(std::span<const uint8_t> message) {
  if (message.size() < kDnsQueryBytes) return std::nullopt;
  const auto header = read<DnsHeader>(message.data());
  if (header.questions != 1) return std::nullopt;
  const uint8_t* const name = message.data() + sizeof(DnsHeader);
  const uint16_t klass = read<Be16>(name + kDnsNameBytes + 2);
  if (klass != kInternet) return std::nullopt;
  auto found = read_name(name);
  if (!found) [[unlikely]]
    found = read_name(lowered(name).data());
  if (!found) return std::nullopt;
  return DnsQuestion{header.id, header.flags, found->first, found->second,
                     read<Be16>(name + kDnsNameBytes)};
}

size_t write_dns_answer(uint8_t* message, const DnsQuestion& question, const DnsZone& zone) {
  auto header = read<DnsHeader>(message);
  header.flags = static_cast<uint16_t>(kDnsResponse | kDnsAuthoritative |
                                       (question.flags & (kDnsOpcode | kRecursionDesired)));
  uint8_t* const record = message + kDnsQueryBytes;
  uint8_t* const data = record + sizeof(RecordHead);
  const bool is_a = question.type == static_cast<uint16_t>(DnsType::kA);
  const bool is_aaaa =
      question.type == static_cast<uint16_t>(DnsType::kAaaa) && zone.has_aaaa(question.number);
  header.answers = static_cast<uint16_t>(is_a || is_aaaa ? 1 : 0);
  header.authorities = static_cast<uint16_t>(is_a || is_aaaa ? 0 : 1);
  header.additionals = uint16_t{0};
  std::memcpy(message, &header, sizeof(header));
  if (is_a) {
    const Be32 address = DnsZone::a_of(question.number);
    write_head(record, sizeof(DnsHeader), DnsType::kA, sizeof(address));
    std::memcpy(data, &address, sizeof(address));
    return kDnsQueryBytes + sizeof(RecordHead) + sizeof(address);
  }
  if (is_aaaa) {
    const std::array<uint8_t, 16> address = zone.aaaa_of(question.number);
    write_head(record, sizeof(DnsHeader), DnsType::kAaaa, address.size());
    std::memcpy(data, address.data(), address.size());
    return kDnsQueryBytes + sizeof(RecordHead) + address.size();
  }
  constexpr size_t kZone = sizeof(DnsHeader) + kZoneAt;
  write_head(record, kZone, DnsType::kSoa, sizeof(Soa));
  Soa soa;
  soa.server = soa.mailbox = static_cast<uint16_t>(kPointer | kZone);
  soa.serial = uint32_t{1};
  soa.refresh = soa.retry = soa.expire = soa.minimum = kTtlS;
  std::memcpy(data, &soa, sizeof(soa));
  return kDnsQueryBytes + sizeof(RecordHead) + sizeof(Soa);
}

DnsReply dns_reply(std::span<const uint8_t> message, const DnsQuestion& question, uint32_t query,
                   const DnsZone& zone) {
  const bool is_one = (question.flags & kDnsResponse) != 0 && (question.flags & kDnsOpcode) == 0 &&
                      question.id == zone.asked_by(query).id &&
                      question.type == static_cast<uint16_t>(zone.record);
  if (!is_one) return DnsReply::kMalformed;
  if ((question.flags & kDnsTruncated) != 0) return DnsReply::kTruncated;
  if ((question.flags & kDnsRcode) != 0) return DnsReply::kRefused;
  std::array<uint8_t, 16> address = zone.aaaa_of(question.number);
  const bool is_a = zone.record == DnsType::kA;
  if (is_a) {
    const Be32 own = DnsZone::a_of(question.number);
    std::memcpy(address.data(), &own, sizeof(own));
  }
  const size_t bytes = is_a ? sizeof(uint32_t) : address.size();
  DnsReply found = DnsReply::kEmpty;
  const auto take = [&](uint16_t type, std::span<const uint8_t> data) {
    if (type != static_cast<uint16_t>(zone.record)) return true;
    if (data.size() != bytes) {
      found = DnsReply::kMalformed;
      return false;
    }
    // Exactly one, and that one.
    const bool is_it = std::memcmp(data.data(), address.data(), data.size()) == 0;
    found = found == DnsReply::kEmpty && is_it ? DnsReply::kValid : DnsReply::kWrongAddress;
    return found == DnsReply::kValid;
  };
  return each_answer(message, kDnsQueryBytes, take) ? found : DnsReply::kMalformed;
}

std::optional<DnsPlainQuestion> dns_plain_question_in(std::span<const uint8_t> message) {
  if (message.size() < sizeof(DnsHeader)) return std::nullopt;
  const auto header = read<DnsHeader>(message.data());
  const size_t end = behind_name(message, sizeof(DnsHeader));
  constexpr size_t kTypeAndClass = 4;
  if (header.questions != 1 || end == 0 || end + kTypeAndClass > message.size() ||
      message[end - 1] != 0 || read<Be16>(message.data() + end + 2) != kInternet) {
    return std::nullopt;
  }
  return DnsPlainQuestion{
      header.id, header.flags, read<Be16>(message.data() + end),
      message.subspan(sizeof(DnsHeader), end + kTypeAndClass - sizeof(DnsHeader))};
}

std::optional<std::span<const uint8_t>> dns_data_in(std::span<const uint8_t> message, size_t at,
                                                    DnsType type, size_t bytes) {
  std::optional<std::span<const uint8_t>> found;
  const auto take = [&](uint16_t of, std::span<const uint8_t> data) {
    if (of != static_cast<uint16_t>(type) || data.size() != bytes) return true;
    found = data;
    return false;
  };
  return each_answer(message, at, take) ? found : std::nullopt;
}

void write_dns_record(uint8_t* out, DnsType type, std::span<const uint8_t> data) {
  write_head(out, sizeof(DnsHeader), type, data.size());
  std::memcpy(out + sizeof(RecordHead), data.data(), data.size());
}

}  // namespace dutperf::net
