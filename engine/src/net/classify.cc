#include "net/classify.h"

namespace dutperf::net {

bool checksums_hold(const uint8_t* frame, const Classified& classified) {
  const uint8_t* ip = frame + sizeof(EthernetHeader);
  const int version = classified.ip_version;
  if (version == 4 && fold(sum_words(ip, sizeof(Ipv4Header))) != 0xffff) return false;
  const uint8_t* udp = ip + ip_header_bytes(version);
  const auto* header = reinterpret_cast<const UdpHeader*>(udp);
  const size_t datagram_bytes = classified.ip_bytes - ip_header_bytes(version);
  if (header->length != datagram_bytes) return false;
  if (header->checksum == 0) return version == 4;
  return fold(udp_sum(version, ip, udp, datagram_bytes)) == 0xffff;
}

}  // namespace dutperf::net
