#include "dataplane/resolution.h"

#include <cstring>

#include "net/frame.h"
#include "net/turn.h"

namespace dutperf::dataplane {

Resolution::Resolution(const ResolutionSpec& spec, bool is_client, const dpdk::TxQueue& queue,
                       dpdk::FramePool& pool, bool copies)
    : spec_(spec),
      is_client_(is_client),
      out_(queue),
      pool_(pool),
      copies_(copies),
      asked_aaaa_(is_client ? 0 : spec.queries),
      asked_a_(is_client ? 0 : spec.queries) {}

std::optional<uint64_t> Resolution::take_reply(std::span<const uint8_t> message) noexcept {
  const std::optional<net::DnsQuestion> question = net::dns_question_in(message);
  const std::optional<uint32_t> query = question ? spec_.zone.query_of(*question) : std::nullopt;
  if (!query || *query >= spec_.queries) {
    ++report_.unknown;
    return std::nullopt;
  }
  const net::DnsReply reply = net::dns_reply(message, *question, *query, spec_.zone);
  ++report_.replies[static_cast<size_t>(reply)];
  if (reply != net::DnsReply::kValid) return std::nullopt;
  report_.valid_cached += question->trial != spec_.zone.trial ? 1 : 0;
  return *query;
}

bool Resolution::take_query(dpdk::Mbuf* mbuf, uint32_t before,
                            const net::Datagram& datagram) noexcept {
  const std::span<const uint8_t> message = datagram.payload(dpdk::frame_of(mbuf) + before);
  const std::optional<net::DnsQuestion> question = net::dns_question_in(message);
  const bool is_a = question && question->type == static_cast<uint16_t>(net::DnsType::kA);
  const bool is_aaaa = question && question->type == static_cast<uint16_t>(net::DnsType::kAaaa);
  const bool is_own =
      question && question->trial == spec_.zone.trial && question->number < spec_.queries;
  const bool is_known = (is_own || (question && spec_.zone.has_cached(*question))) &&
                        (question->flags & (net::kDnsResponse | net::kDnsOpcode)) == 0;
  if (!is_known || (!is_a && !is_aaaa)) {
    ++report_.unknown;
    return false;
  }
  ResolutionReport::Asked& asked = is_a ? report_.a : report_.aaaa;
  if (is_own) {
    ++((is_a ? asked_a_ : asked_aaaa_).add(question->number) ? asked.names : asked.again);
  } else {
    ++asked.cached;
  }

  const size_t headers = sizeof(net::EthernetHeader) + datagram.ip_headers + sizeof(net::UdpHeader);
  const size_t kept = before + headers + net::kDnsQueryBytes;
  dpdk::Mbuf* answer = mbuf;
  if (copies_ || dpdk::room_of(mbuf) < kept + net::kMostDnsAnswerBytes) {
    if (!pool_.get(&answer, 1)) {
      ++report_.not_sent;
      return false;
    }
    std::memcpy(dpdk::frame_of(answer), dpdk::frame_of(mbuf), kept);
  }
  uint8_t* const mac = dpdk::frame_of(answer);
  uint8_t* const ip = mac + before + sizeof(net::EthernetHeader);
  uint8_t* const at = ip + datagram.ip_headers;
  const size_t bytes = sizeof(net::UdpHeader) +
                       net::write_dns_answer(at + sizeof(net::UdpHeader), *question, spec_.zone);
  net::turn_ethernet(mac);
  net::turn_ip(ip, datagram.ip_version, bytes);
  auto* const udp = reinterpret_cast<net::UdpHeader*>(at);
  udp->src_port = datagram.dst_port;
  udp->dst_port = datagram.src_port;
  udp->length = static_cast<uint16_t>(bytes);
  udp->checksum = uint16_t{0};
  udp->checksum = net::finish_udp(net::udp_sum(datagram.ip_version, ip, at, bytes));
  dpdk::set_size(answer, before + sizeof(net::EthernetHeader) + datagram.ip_headers + bytes);
  if (!out_.put(answer, asked.answered)) ++report_.not_sent;
  return answer == mbuf;
}

}  // namespace dutperf::dataplane
