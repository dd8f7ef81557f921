#include "map_translator.h"

#include <algorithm>

#include "net/byte_order.h"

namespace dutperf::refdut {
namespace {

constexpr size_t kIpv4InIdentifier = 10;  // RFC 7597 6

uint32_t ipv4_at(const Endpoint& endpoint, size_t byte) {
  return *reinterpret_cast<const net::Be32*>(endpoint.address.data() + byte);
}

}  // namespace

MapTranslator::MapTranslator(const MapTranslation& translation)
    : relay_(translation.rule),
      prefix_(translation.prefix),
      ipv4_at_(translation.prefix_bits == 64 ? 9 : 12) {}

std::optional<Flow> MapTranslator::from_edges(const Flow& flow) const {
  if (flow.version != 6) return std::nullopt;
  const uint32_t own = ipv4_at(flow.source, kIpv4InIdentifier);
  const auto edge = relay_.edge_of(own, flow.source.port);
  if (!edge || edge->bytes != flow.source.address) return std::nullopt;
  // All of the destination but the IPv4 address in it is the prefix's.
  const uint32_t far = ipv4_at(flow.destination, ipv4_at_);
  std::array<uint8_t, 16> rest = flow.destination.address;
  std::fill_n(rest.begin() + static_cast<ptrdiff_t>(ipv4_at_), sizeof far, uint8_t{0});
  if (rest != prefix_.bytes) return std::nullopt;
  Flow other{4, {{}, flow.source.port}, {{}, flow.destination.port}, 0};
  *reinterpret_cast<net::Be32*>(other.source.address.data()) = own;
  *reinterpret_cast<net::Be32*>(other.destination.address.data()) = far;
  return other;
}

std::optional<Flow> MapTranslator::to_edges(const Flow& flow) const {
  if (flow.version != 4) return std::nullopt;
  const auto edge = relay_.edge_of(ipv4_at(flow.destination, 0), flow.destination.port);
  if (!edge) return std::nullopt;
  Flow other{6, {prefix_.bytes, flow.source.port}, {edge->bytes, flow.destination.port}, 0};
  std::copy_n(flow.source.address.begin(), sizeof(uint32_t),
              other.source.address.begin() + static_cast<ptrdiff_t>(ipv4_at_));
  return other;
}

}  // namespace dutperf::refdut
