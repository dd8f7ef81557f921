// MAC and IP addresses as values. Parsing and printing are for the control path.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace dutperf::net {

struct Mac {
  std::array<uint8_t, 6> bytes{};

  auto operator<=>(const Mac&) const = default;

  // Lower case, colon separated; nullopt when the text is anything else.
  static std::optional<Mac> parse(const std::string& text);
  std::string text() const;
};

inline constexpr Mac kBroadcastMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

// An IPv4 address occupies the first four bytes, the rest are zero.
struct IpAddress {
  int version = 4;
  std::array<uint8_t, 16> bytes{};

  auto operator<=>(const IpAddress&) const = default;

  size_t size() const { return version == 4 ? 4 : 16; }

  static std::optional<IpAddress> parse(const std::string& text);
  static IpAddress from_bytes(int version, const uint8_t* bytes);
  std::string text() const;
};

// `count` addresses: first, first + 2^shift, first + 2 * 2^shift, ... With shift 0 they follow each
// other; a field that varies higher up in the address makes steps.
struct AddressRange {
  IpAddress first;
  uint32_t count = 1;
  uint32_t shift = 0;

  bool contains(const IpAddress& address) const;
};

}  // namespace dutperf::net
