#include "net/extra_headers.h"

#include "net/checksum.h"

namespace dutperf::net {
namespace {

using Bytes = std::vector<uint8_t>;

uint8_t protocol_of(Ipv6Extension extension) {
  switch (extension) {
    case Ipv6Extension::kHopByHop: return kIpv6HopByHop;
    case Ipv6Extension::kDestinationOptions: return kIpv6DestinationOptions;
    case Ipv6Extension::kRouting: return kIpv6Routing;
    case Ipv6Extension::kFragment: return kIpv6FragmentHeader;
    case Ipv6Extension::kAuthentication: return kIpv6Authentication;
    case Ipv6Extension::kMobility: return kIpv6Mobility;
  }
  return kProtocolUdp;
}

// Its first byte is the next header, which is filled in later.
Bytes written(Ipv6Extension extension) {
  switch (extension) {
    case Ipv6Extension::kHopByHop:
    case Ipv6Extension::kDestinationOptions: return {0, 0, 1, 4, 0, 0, 0, 0};  // PadN with 4 bytes
    case Ipv6Extension::kRouting: {
      // Type 0 is deprecated, and many drop it (RFC 5095). Type 253 is for experiments (RFC 4727):
      // with no segments left whoever does not know it passes it over (RFC 8200 4.4).
      Bytes routing(24);
      routing[1] = 2;
      routing[2] = 253;
      return routing;
    }
    case Ipv6Extension::kFragment: return {0, 0, 0, 0, 0, 0, 0, 1};  // offset 0, no more, id 1
    case Ipv6Extension::kAuthentication: {
      Bytes authentication(24);  // RFC 4302 2: with 12 bytes of integrity check value
      authentication[1] = 24 / 4 - 2;
      authentication[6] = 1;   // security parameters index 256: those below are reserved
      authentication[11] = 1;  // sequence number
      return authentication;
    }
    case Ipv6Extension::kMobility: return Bytes(sizeof(MobilityHeader));  // RFC 6275 6.1.2: type 0
  }
  return {};
}

}  // namespace

ExtraHeaders ipv6_extensions(std::span<const Ipv6Extension> extensions) {
  ExtraHeaders result;
  if (extensions.empty()) return result;
  result.first_protocol = protocol_of(extensions[0]);
  for (size_t i = 0; i < extensions.size(); ++i) {
    Bytes header = written(extensions[i]);
    header[0] = i + 1 < extensions.size() ? protocol_of(extensions[i + 1]) : kProtocolUdp;
    if (extensions[i] == Ipv6Extension::kMobility) {
      result.mobility.push_back(static_cast<uint32_t>(result.bytes.size()));
    }
    result.bytes.insert(result.bytes.end(), header.begin(), header.end());
  }
  return result;
}

uint16_t mobility_checksum(const uint8_t* ip_header, const uint8_t* mobility) {
  const auto* header = reinterpret_cast<const MobilityHeader*>(mobility);
  const uint64_t addresses = sum_words(reinterpret_cast<const Ipv6Header*>(ip_header)->src, 32);
  const uint64_t pseudo_header = addresses + sizeof(MobilityHeader) + kIpv6Mobility;
  return finish(pseudo_header + sum_words(mobility, sizeof(MobilityHeader)) +
                static_cast<uint16_t>(~header->checksum));
}

ExtraHeaders ipv4_options(std::span<const Ipv4Option> options) {
  ExtraHeaders result;
  for (const Ipv4Option option : options) {
    const bool alert = option == Ipv4Option::kRouterAlert;
    const Bytes bytes = alert ? Bytes{0x94, 4, 0, 0} : Bytes{1, 1, 1, 1};
    result.bytes.insert(result.bytes.end(), bytes.begin(), bytes.end());
  }
  return result;
}

}  // namespace dutperf::net
