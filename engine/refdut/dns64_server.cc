#include "dns64_server.h"

#include <algorithm>
#include <cstring>

#include "net/checksum.h"
#include "net/dns.h"
#include "net/frame.h"

namespace dutperf::refdut {
namespace {

using control::ObjectReader;

constexpr control::NamesOf<size_t, 2> kSides = {{{"left", 0}, {"right", 1}}};
constexpr uint32_t kIdBits = 16;
constexpr uint32_t kSlots = 1U << 20;
constexpr uint16_t kFirstPort = 32768;  // the upper bits of a slot follow it
constexpr uint8_t kHops = 64;
constexpr uint64_t kMostEvery = (1ULL << 48) - 1;
constexpr uint16_t kServerFailure = 2;
constexpr uint16_t kRecursionAvailable = 0x0080;
constexpr uint16_t kRecursionDesired = 0x0100;
constexpr size_t kAtIp = sizeof(net::EthernetHeader);

constexpr auto kAaaa = static_cast<uint16_t>(net::DnsType::kAaaa);
constexpr auto kA = static_cast<uint16_t>(net::DnsType::kA);

bool holds(const net::Datagram& datagram, const uint8_t* frame) {
  const uint8_t* const ip = frame + kAtIp;
  const uint8_t* const udp = ip + datagram.ip_headers;
  const uint16_t checksum = reinterpret_cast<const net::UdpHeader*>(udp)->checksum;
  if (checksum == 0) return datagram.ip_version == 4;
  const size_t bytes = datagram.ip_bytes - datagram.ip_headers;
  return net::finish(net::udp_sum(datagram.ip_version, ip, udp, bytes)) == 0;
}

// A message of `question` alone, which stands in the frame already or is moved there.
uint8_t* write_message(const Flow& flow, const net::DnsHeader& header,
                       std::span<const uint8_t> question, uint8_t* frame) {
  auto* const ethernet = reinterpret_cast<net::EthernetHeader*>(frame);
  ethernet->ether_type = flow.version == 4 ? net::kEtherTypeIpv4 : net::kEtherTypeIpv6;
  uint8_t* const message =
      frame + kAtIp + net::ip_header_bytes(flow.version) + sizeof(net::UdpHeader);
  std::memmove(message + sizeof(header), question.data(), question.size());
  std::memcpy(message, &header, sizeof(header));
  return message;
}

void turn_macs(uint8_t* frame) {
  auto* const ethernet = reinterpret_cast<net::EthernetHeader*>(frame);
  for (size_t i = 0; i < sizeof(ethernet->src); ++i) std::swap(ethernet->src[i], ethernet->dst[i]);
}

void set_type(uint8_t* message, size_t question_bytes, uint16_t type) {
  const net::Be16 value = type;
  std::memcpy(message + sizeof(net::DnsHeader) + question_bytes - 4, &value, sizeof(value));
}

}  // namespace

Dns64Settings parse_dns64(const Json& json, const std::string& where) {
  ObjectReader reader(json, where);
  Dns64Settings found;
  found.clients = reader.name_or("clients", "left", kSides);
  const auto authority = net::IpAddress::parse(reader.text("authority"));
  if (!authority) {
    refuse(reader.path("authority"), "is not an IP address", "it is the tester's on that side");
  }
  found.authority = *authority;
  const std::string prefix = reader.text_or("prefix", "64:ff9b::/96");
  const auto address = net::IpAddress::parse(prefix.substr(0, prefix.find('/')));
  const auto bits = std::find_if(net::kPrefixBits.begin(), net::kPrefixBits.end(), [&](int each) {
    return prefix.ends_with("/" + std::to_string(each));
  });
  if (!address || address->version != 6 || bits == net::kPrefixBits.end()) {
    refuse(reader.path("prefix"), "is no IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits",
           "such as 64:ff9b::/96");
  }
  found.prefix_bits = *bits;
  std::copy_n(address->bytes.begin(), found.prefix.size(), found.prefix.begin());
  found.caches = reader.flag_or("caches", false);
  found.refuse_every = reader.number_or("refuse_every", UINT64_MAX, 1, kMostEvery);
  found.wrong_every = reader.number_or("wrong_every", UINT64_MAX, 1, kMostEvery);
  found.empty_every = reader.number_or("empty_every", UINT64_MAX, 1, kMostEvery);
  reader.finish();
  return found;
}

Dns64Server::Dns64Server(const Dns64Settings& settings, const Routing& own)
    : settings_(settings), askers_(kSlots) {
  for (const size_t side : {0U, 1U}) own_[side] = own.addresses[side];
  const auto& outside = own_[1 - settings.clients];
  const auto from = std::find_if(outside.begin(), outside.end(), [&](const net::IpAddress& each) {
    return each.version == settings.authority.version;
  });
  if (from == outside.end()) {
    refuse("dns64.authority", "is of another IP version than the router's addresses there",
           "routing needs an address that the server asks from");
  }
  asks_from_ = *from;
}

bool Dns64Server::is_own(size_t side, int version, const uint8_t* address) const {
  return std::any_of(own_[side].begin(), own_[side].end(), [&](const net::IpAddress& each) {
    const size_t bytes = version == 4 ? 4 : 16;
    return each.version == version && std::memcmp(each.bytes.data(), address, bytes) == 0;
  });
}

Dns64Server::Verdict Dns64Server::handle(size_t side, uint8_t* frame, size_t size, size_t room) {
  const auto datagram = net::datagram_in(frame, size);
  const bool is_client = side == settings_.clients;
  if (!datagram || (is_client ? datagram->dst_port : datagram->src_port) != net::kDnsPort) {
    return Verdict::kNotOurs;
  }
  const auto flow = read_flow(frame, size);
  if (!flow || !is_own(side, flow->version, flow->destination.address.data())) {
    return Verdict::kNotOurs;
  }
  return is_client ? take_query(*datagram, *flow, frame, room)
                   : take_answer(*datagram, *flow, frame, room);
}

Dns64Server::Verdict Dns64Server::take_query(const net::Datagram& datagram, const Flow& flow,
                                             uint8_t* frame, size_t room) {
  ++counts_.queries;
  const std::span<const uint8_t> message = datagram.payload(frame);
  const auto question = net::dns_plain_question_in(message);
  const bool asks = question && holds(datagram, frame) &&
                    (question->flags & (net::kDnsResponse | net::kDnsOpcode)) == 0 &&
                    (question->type == kAaaa || question->type == kA);
  if (!asks) {
    ++counts_.not_understood;
    return Verdict::kDrop;
  }
  Asker asker;
  asker.client = flow.source;
  asker.server = flow.destination;
  asker.id = question->id;
  asker.version = static_cast<uint8_t>(flow.version);
  asker.wants = net::DnsType{question->type};
  asker.waits = true;
  if (counts_.queries % settings_.refuse_every == 0) {
    ++counts_.refused;
    const Verdict verdict = reply(asker, kServerFailure, std::nullopt, question->text, frame, room);
    turn_macs(frame);
    return verdict == Verdict::kDrop ? verdict : Verdict::kBack;
  }
  if (settings_.caches) {
    const auto known = cache_.find(
        std::string(reinterpret_cast<const char*>(question->text.data()), question->text.size()));
    if (known != cache_.end()) {
      ++counts_.from_cache;
      const Verdict verdict = reply(asker, 0, told(known->second), question->text, frame, room);
      turn_macs(frame);
      return verdict == Verdict::kDrop ? verdict : Verdict::kBack;
    }
  }
  const uint32_t slot = next_;
  next_ = (next_ + 1) % kSlots;
  counts_.forgotten += askers_[slot].waits;
  askers_[slot] = asker;
  ++(question->type == kA ? counts_.asked_a : counts_.asked_aaaa);
  return ask(askers_[slot], slot, question->type, question->text, frame);
}

Dns64Server::Verdict Dns64Server::take_answer(const net::Datagram& datagram, const Flow& flow,
                                              uint8_t* frame, size_t room) {
  const std::span<const uint8_t> message = datagram.payload(frame);
  const auto question = net::dns_plain_question_in(message);
  const uint32_t upper = uint32_t{datagram.dst_port} - kFirstPort;
  const uint32_t slot = question ? upper << kIdBits | question->id : kSlots;
  const bool is_from_it =
      flow.version == settings_.authority.version &&
      std::memcmp(flow.source.address.data(), settings_.authority.bytes.data(), 16) == 0;
  if (!is_from_it || slot >= kSlots || !askers_[slot].waits || !holds(datagram, frame) ||
      (question->flags & net::kDnsResponse) == 0 ||
      question->type != (askers_[slot].asked_a ? kA : kAaaa)) {
    ++counts_.unasked;
    return Verdict::kDrop;
  }
  Asker& asker = askers_[slot];
  const size_t behind = sizeof(net::DnsHeader) + question->text.size();
  const bool wants_a = asker.wants == net::DnsType::kA;
  const auto data = asker.asked_a ? net::dns_data_in(message, behind, net::DnsType::kA, 4)
                                  : net::dns_data_in(message, behind, net::DnsType::kAaaa, 16);
  std::optional<Address> address;
  if (data && asker.asked_a && !wants_a) {
    ++counts_.synthesised;
    address.emplace().bytes =
        net::ipv4_behind(settings_.prefix, settings_.prefix_bits, data->first<4>());
  } else if (data) {
    ++counts_.own;
    address.emplace().size = static_cast<uint8_t>(data->size());
    std::copy(data->begin(), data->end(), address->bytes.begin());
  } else if (!asker.asked_a) {
    asker.asked_a = true;
    ++counts_.asked_a;
    ask(asker, slot, kA, question->text, frame);
    turn_macs(frame);
    return Verdict::kBack;
  }
  asker.waits = false;
  const Verdict verdict = reply(asker, 0, told(address), question->text, frame, room);
  if (settings_.caches && address && verdict != Verdict::kDrop) {
    // As it is asked for: what is in the frame by now has the question with its type.
    const uint8_t* const text = frame + kAtIp + net::ip_header_bytes(asker.version) +
                                sizeof(net::UdpHeader) + sizeof(net::DnsHeader);
    cache_.emplace(std::string(reinterpret_cast<const char*>(text), question->text.size()),
                   *address);
  }
  return verdict;
}

Dns64Server::Verdict Dns64Server::ask(Asker& asker, uint32_t slot, uint16_t type,
                                      std::span<const uint8_t> question, uint8_t* frame) {
  Flow flow;
  flow.version = settings_.authority.version;
  flow.source = {asks_from_.bytes, static_cast<uint16_t>(kFirstPort + (slot >> kIdBits))};
  flow.destination = {settings_.authority.bytes, net::kDnsPort};
  flow.ip_bytes = net::ip_header_bytes(flow.version) + sizeof(net::UdpHeader) +
                  sizeof(net::DnsHeader) + question.size();
  net::DnsHeader header{};
  header.id = static_cast<uint16_t>(slot);
  header.flags = uint16_t{0};
  header.questions = uint16_t{1};
  header.answers = header.authorities = header.additionals = uint16_t{0};
  const size_t question_bytes = question.size();
  uint8_t* const message = write_message(flow, header, question, frame);
  set_type(message, question_bytes, type);
  write_headers(flow, kHops, frame + kAtIp);
  bytes_ = std::max(kAtIp + flow.ip_bytes, net::kMinFrameBytes);
  asker.asked_a = type == kA;
  return Verdict::kOnward;
}

Dns64Server::Verdict Dns64Server::reply(const Asker& asker, uint16_t rcode,
                                        const std::optional<Address>& address,
                                        std::span<const uint8_t> question, uint8_t* frame,
                                        size_t room) {
  Flow flow;
  flow.version = asker.version;
  flow.source = asker.server;
  flow.destination = asker.client;
  const size_t question_bytes = question.size();
  const size_t message_bytes = sizeof(net::DnsHeader) + question_bytes +
                               (address ? net::dns_record_bytes(address->size) : 0);
  flow.ip_bytes = net::ip_header_bytes(flow.version) + sizeof(net::UdpHeader) + message_bytes;
  if (kAtIp + flow.ip_bytes > room) {
    ++counts_.no_room;
    return Verdict::kDrop;
  }
  net::DnsHeader header{};
  header.id = asker.id;
  header.flags =
      static_cast<uint16_t>(net::kDnsResponse | kRecursionDesired | kRecursionAvailable | rcode);
  header.questions = uint16_t{1};
  header.answers = static_cast<uint16_t>(address ? 1 : 0);
  header.authorities = header.additionals = uint16_t{0};
  uint8_t* const message = write_message(flow, header, question, frame);
  set_type(message, question_bytes, static_cast<uint16_t>(asker.wants));
  if (address) {
    uint8_t* const record = message + sizeof(net::DnsHeader) + question_bytes;
    net::write_dns_record(record, asker.wants, address->data());
  }
  write_headers(flow, kHops, frame + kAtIp);
  bytes_ = std::max(kAtIp + flow.ip_bytes, net::kMinFrameBytes);
  return Verdict::kOnward;
}

std::optional<Dns64Server::Address> Dns64Server::told(std::optional<Address> address) {
  ++answers_;
  if (address && answers_ % settings_.wrong_every == 0) {
    ++counts_.wrong;
    address->bytes[address->size - 1U] ^= 1;
  }
  if (answers_ % settings_.empty_every == 0) address.reset();
  counts_.empty += !address;
  return address;
}

Json Dns64Server::report() const {
  return {{"queries", counts_.queries},
          {"not_understood", counts_.not_understood},
          {"refused", counts_.refused},
          {"from_cache", counts_.from_cache},
          {"asked_aaaa", counts_.asked_aaaa},
          {"asked_a", counts_.asked_a},
          {"own", counts_.own},
          {"synthesised", counts_.synthesised},
          {"wrong", counts_.wrong},
          {"empty", counts_.empty},
          {"unasked", counts_.unasked},
          {"forgotten", counts_.forgotten},
          {"no_room", counts_.no_room}};
}

}  // namespace dutperf::refdut
