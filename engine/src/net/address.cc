#include "net/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace dutperf::net {
namespace {

unsigned __int128 as_number(const IpAddress& address) {
  unsigned __int128 number = 0;
  for (size_t i = 0; i < address.size(); ++i) number = (number << 8) | address.bytes[i];
  return number;
}

// -1 for anything but 0-9 and a-f; sscanf would take blanks, signs and capitals too.
int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::optional<Mac> Mac::parse(const std::string& text) {
  Mac mac;
  if (text.size() != 17) return std::nullopt;
  for (size_t i = 0; i < 6; ++i) {
    const int high = hex_digit(text[3 * i]);
    const int low = hex_digit(text[3 * i + 1]);
    if (high < 0 || low < 0 || (i < 5 && text[3 * i + 2] != ':')) return std::nullopt;
    mac.bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return mac;
}

std::string Mac::text() const {
  char buffer[18];
  std::snprintf(buffer, sizeof(buffer), "%02x:%02x:%02x:%02x:%02x:%02x", bytes[0], bytes[1],
                bytes[2], bytes[3], bytes[4], bytes[5]);
  return buffer;
}

std::optional<IpAddress> IpAddress::parse(const std::string& text) {
  IpAddress address;
  if (text.find('\0') != std::string::npos) return std::nullopt;  // inet_pton would stop there
  address.version = text.find(':') == std::string::npos ? 4 : 6;
  const int family = address.version == 4 ? AF_INET : AF_INET6;
  if (inet_pton(family, text.c_str(), address.bytes.data()) != 1) return std::nullopt;
  return address;
}

IpAddress IpAddress::from_bytes(int version, const uint8_t* bytes) {
  IpAddress address;
  address.version = version;
  std::memcpy(address.bytes.data(), bytes, address.size());
  return address;
}

std::string IpAddress::text() const {
  char buffer[INET6_ADDRSTRLEN] = {};
  inet_ntop(version == 4 ? AF_INET : AF_INET6, bytes.data(), buffer, sizeof(buffer));
  return buffer;
}

bool AddressRange::contains(const IpAddress& address) const {
  if (address.version != first.version) return false;
  // Unsigned wrap makes the distance of lower addresses huge.
  const unsigned __int128 distance = as_number(address) - as_number(first);
  return (distance >> shift) < count && ((distance >> shift) << shift) == distance;
}

}  // namespace dutperf::net
