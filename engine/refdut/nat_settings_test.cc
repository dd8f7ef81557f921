#include "nat_settings.h"

#include <gtest/gtest.h>

#include <vector>

namespace dutperf::refdut {
namespace {

NatSettings with(const Json& port_set) {
  return parse_nat({{"kind", "nat44"},
                    {"public", {{"first_address", "192.0.2.18"}, {"port_set", port_set}}},
                    {"table", {{"entries", 1000}}}},
                   "nat");
}

// Slow and obvious: which ports of all have the PSID where it stands.
std::vector<uint16_t> ports_of(int offset, int bits, uint32_t psid) {
  std::vector<uint16_t> found;
  for (uint32_t port = 0; port < 65536; ++port) {
    if (offset > 0 && port >> (16 - offset) == 0) continue;
    if ((port >> (16 - offset - bits) & ((1U << bits) - 1)) == psid) {
      found.push_back(static_cast<uint16_t>(port));
    }
  }
  return found;
}

// RFC 7597 appendix A, example 1: PSID 0x34 of 8 bits behind 6 has 1232 to 1235, ..., 64720 to
// 64723.
TEST(PortSet, HasTheRfcsPorts) {
  const NatSettings nat = with({{"psid_bits", 8}, {"psid", 0x34}});
  EXPECT_EQ(nat.ports(), 252);
  EXPECT_EQ(nat.port(0), 1232);
  EXPECT_EQ(nat.port(4), 2256);
  EXPECT_EQ(nat.port(251), 64723);
}

TEST(PortSet, NumbersItsPortsAndNoOthers) {
  for (const auto& [offset, bits, psid] :
       {std::tuple{6, 8, 0x34}, std::tuple{0, 8, 7}, std::tuple{6, 0, 0}, std::tuple{4, 12, 9},
        std::tuple{0, 0, 0}, std::tuple{0, 16, 443}}) {
    const NatSettings nat = with({{"psid_offset", offset}, {"psid_bits", bits}, {"psid", psid}});
    const std::vector<uint16_t> own = ports_of(offset, bits, static_cast<uint32_t>(psid));
    ASSERT_EQ(nat.ports(), own.size());
    uint64_t next = 0;
    for (uint32_t port = 0; port < 65536; ++port) {
      const bool is_own = next < own.size() && own[next] == port;
      ASSERT_EQ(nat.number_of(static_cast<uint16_t>(port)),
                is_own ? std::optional(next) : std::nullopt);
      if (!is_own) continue;
      ASSERT_EQ(nat.port(next), port);
      ++next;
    }
  }
}

TEST(PortSet, RefusesWhatIsNone) {
  EXPECT_THROW(with({{"psid_bits", 11}, {"psid", 0}}), control::ProtocolError);
  EXPECT_THROW(with({{"psid_bits", 8}, {"psid", 256}}), control::ProtocolError);
  EXPECT_THROW(parse_nat({{"kind", "nat44"},
                          {"public",
                           {{"first_address", "192.0.2.18"},
                            {"first_port", 1024},
                            {"port_set", {{"psid_bits", 8}, {"psid", 1}}}}},
                          {"table", {{"entries", 1000}}}},
                         "nat"),
               control::ProtocolError);
}

}  // namespace
}  // namespace dutperf::refdut
