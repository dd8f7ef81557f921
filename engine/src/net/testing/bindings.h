// Binding tables for tests, and what their rows say, port by port.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "net/testing/addresses.h"

namespace dutperf::net::testing {

struct BindingRow {
  IpAddress b4;
  uint32_t ipv4;
  uint32_t psid;
  uint32_t length;
  uint32_t offset;

  // The slow twin: the PSID of a port as RFC 7597 5.1 has it.
  bool has(uint32_t port) const {
    const uint32_t before = port >> (16 - offset);
    const uint32_t own = port >> (16 - offset - length) & ((1U << length) - 1);
    return (offset == 0 || before > 0) && own == psid;
  }
};

inline std::string rows_of(const std::vector<BindingRow>& rows) {
  std::string bytes;
  const auto put = [&](uint64_t value, int count) {
    while (count-- > 0) bytes.push_back(static_cast<char>(value >> (8 * count)));
  };
  for (const BindingRow& row : rows) {
    bytes.append(row.b4.bytes.begin(), row.b4.bytes.end());
    put(row.ipv4, 4);
    put(row.psid, 2);
    put(row.length, 1);
    put(row.offset, 1);
  }
  return bytes;
}

// Any mapping: addresses and B4s in no order, some B4s twice, sets of several sizes that have no
// port in common, some ports nobody's.
inline std::vector<BindingRow> random_bindings(uint32_t offset, uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t end) { return static_cast<uint32_t>(random() % end); };
  std::vector<BindingRow> rows;
  for (uint32_t address = 0; address < 20; ++address) {
    const uint32_t ipv4 = 0xc0000200U + address * 7919U;
    const uint32_t shortest = std::min(1 + below(3), 16 - offset);
    for (uint32_t psid = 0; psid < 1U << shortest; ++psid) {
      const uint32_t more = std::min(below(4), 16 - offset - shortest);
      for (uint32_t part = 0; part < 1U << more; ++part) {
        if (below(4) == 0) continue;
        IpAddress b4 = ip("2001:db8::");
        b4.bytes[5] = static_cast<uint8_t>(below(64));
        b4.bytes[15] = static_cast<uint8_t>(below(4));
        rows.push_back({b4, ipv4, psid << more | part, shortest + more, offset});
      }
    }
  }
  std::shuffle(rows.begin(), rows.end(), random);
  return rows;
}

}  // namespace dutperf::net::testing
