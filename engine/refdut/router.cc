#include "router.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "net/checksum.h"
#include "net/headers.h"
#include "refusal.h"

namespace dutperf::refdut {
namespace {

bool equals(const net::Mac& mac, const uint8_t* bytes) {
  return std::memcmp(mac.bytes.data(), bytes, mac.bytes.size()) == 0;
}

void copy_mac(const net::Mac& mac, uint8_t* out) {
  std::memcpy(out, mac.bytes.data(), mac.bytes.size());
}

// IPv4 or IPv6 in a frame that is long enough to be it; null: neither.
uint8_t* packet_in(uint8_t* frame, size_t size) {
  const uint16_t type = reinterpret_cast<const net::EthernetHeader*>(frame)->ether_type;
  const bool whole = (type == net::kEtherTypeIpv4 &&
                      size >= sizeof(net::EthernetHeader) + sizeof(net::Ipv4Header)) ||
                     (type == net::kEtherTypeIpv6 &&
                      size >= sizeof(net::EthernetHeader) + sizeof(net::Ipv6Header));
  return whole ? frame + sizeof(net::EthernetHeader) : nullptr;
}

// Whether a frame is for a group whose members may be beyond the link (RFC 5771 4, RFC 4291 2.7).
bool is_for_group(uint8_t* frame, size_t size) {
  if ((frame[0] & 1) == 0) return false;
  const uint8_t* ip = packet_in(frame, size);
  if (!ip) return false;
  if (reinterpret_cast<const net::EthernetHeader*>(frame)->ether_type == net::kEtherTypeIpv4) {
    const uint8_t* to = ip + offsetof(net::Ipv4Header, dst);
    const bool stays = to[0] == 224 && to[1] == 0 && to[2] == 0;
    return to[0] >> 4 == 0xe && !stays;
  }
  const uint8_t* to = ip + offsetof(net::Ipv6Header, dst);
  return to[0] == 0xff && (to[1] & 0xf) > 2;
}

}  // namespace

bool take_hop(uint16_t ether_type, uint8_t* ip) {
  if (ether_type == net::kEtherTypeIpv6) {
    auto* header = reinterpret_cast<net::Ipv6Header*>(ip);
    if (header->hop_limit <= 1) return false;
    --header->hop_limit;
    return true;
  }
  auto* header = reinterpret_cast<net::Ipv4Header*>(ip);
  if (header->ttl <= 1) return false;
  --header->ttl;
  // HC' = ~(~HC + ~m + m'), where the word of TTL and protocol went from m to m' = m - 0x100.
  header->checksum = net::finish(uint64_t{static_cast<uint16_t>(~header->checksum)} + 0xfeff);
  return true;
}

Router::Router(const Routing& routing, std::span<const net::Mac> macs)
    : several_(routing.pairs() > 1) {
  for (size_t port = 0; port < macs.size(); ++port) {
    own_[port].mac = macs[port];
    for (const net::IpAddress& address : routing.addresses[port]) {
      own_[port].ranges.push_back({address});
    }
  }
  for (const size_t side : {0U, 1U}) choices_[side] = PortChoice(routing.of_side(side));
}

Router::Verdict Router::handle(size_t port, uint8_t* frame, size_t size) {
  if (size < sizeof(net::EthernetHeader)) return Verdict::kDrop;
  const auto* ethernet = reinterpret_cast<const net::EthernetHeader*>(frame);
  net::Mac& from = neighbours_[port] ? *neighbours_[port] : neighbours_[port].emplace();
  std::memcpy(from.bytes.data(), ethernet->src, from.bytes.size());
  reply_bytes_ = net::write_reply(frame, size, own_[port], reply_.data());
  if (reply_bytes_ > 0) return Verdict::kReply;
  const bool to_group = is_for_group(frame, size);
  if (!to_group && !equals(own_[port].mac, ethernet->dst)) return Verdict::kDrop;
  if (Agent::may_be_query(frame, size)) [[unlikely]] {
    if (const auto verdict = ask_agent(port, frame, size)) return *verdict;
  }
  return forward(1 - side_of(port), frame, size) ? Verdict::kForward : Verdict::kDrop;
}

bool Router::refuse(size_t port, Refusal refusal, const Flow& flow, const uint8_t* frame) {
  static_assert(sizeof(net::EthernetHeader) + kMostProhibitionBytes <= kMostReplyBytes);
  const auto& ranges = own_[port].ranges;
  const auto own = std::find_if(ranges.begin(), ranges.end(), [&](const net::AddressRange& each) {
    return each.first.version == flow.version;
  });
  if (own == ranges.end()) return false;
  auto* const ethernet = reinterpret_cast<net::EthernetHeader*>(reply_.data());
  copy_mac(*neighbours_[port], ethernet->dst);
  copy_mac(own_[port].mac, ethernet->src);
  ethernet->ether_type = flow.version == 4 ? net::kEtherTypeIpv4 : net::kEtherTypeIpv6;
  const uint8_t* const packet = frame + sizeof *ethernet;
  uint8_t* const out = reply_.data() + sizeof *ethernet;
  const size_t bytes = refusal == Refusal::kReset
                           ? write_reset(flow, packet, out)
                           : write_prohibition(flow, own->first, packet, out);
  reply_bytes_ = sizeof *ethernet + bytes;
  if (reply_bytes_ < net::kMinFrameBytes) {
    std::memset(reply_.data() + reply_bytes_, 0, net::kMinFrameBytes - reply_bytes_);
    reply_bytes_ = net::kMinFrameBytes;
  }
  return true;
}

std::optional<Router::Verdict> Router::ask_agent(size_t port, const uint8_t* frame, size_t size) {
  const auto answer = agent_.answer(frame, size, own_[port]);
  if (!answer || answer->size() > reply_.size()) return std::nullopt;
  std::copy(answer->begin(), answer->end(), reply_.begin());
  reply_bytes_ = answer->size();
  return reply_bytes_ > 0 ? Verdict::kReply : Verdict::kDrop;
}

bool Router::forward(size_t side, uint8_t* frame, size_t size) {
  auto* ethernet = reinterpret_cast<net::EthernetHeader*>(frame);
  const uint16_t type = ethernet->ether_type;
  uint8_t* ip = packet_in(frame, size);
  if (!ip) return false;
  if (several_) leaves_by_ = choices_[side].number_for(type, ip);
  const size_t to = port_index(side, leaves_by_);
  const bool to_group = is_for_group(frame, size);
  if (!to_group && !neighbours_[to]) return false;
  if (!take_hop(type, ip)) return false;
  if (!to_group) copy_mac(*neighbours_[to], ethernet->dst);
  copy_mac(own_[to].mac, ethernet->src);
  return true;
}

}  // namespace dutperf::refdut
