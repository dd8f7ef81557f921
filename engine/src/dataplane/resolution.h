// What a side does with the DNS that it receives in a trial of a DNS64 server (RFC 8219 9): the
// client looks at answers, the authority gives them, by net/dns.h. One object for each side; it
// belongs to the worker that receives and sends there.
//
// A query that is answered validly is a frame of the trial that has arrived, where it was sent.
// What else comes back is counted by what is wrong with it, and its query is lost.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/answers_out.h"
#include "dataplane/connection_bits.h"
#include "dataplane/trial_spec.h"
#include "dpdk/frame_pool.h"
#include "dpdk/mbuf.h"
#include "net/dns.h"
#include "net/udp.h"

namespace dutperf::dataplane {

struct ResolutionReport {
  struct Asked {
    uint64_t names = 0;  // each once
    uint64_t again = 0;
    uint64_t cached = 0;    // names that the server had
    uint64_t answered = 0;  // all
  };
  // At the client.
  std::array<uint64_t, net::kDnsReplies> replies{};
  uint64_t valid_cached = 0;  // of the valid ones, about names that the server had
  // At the authority.
  Asked aaaa;
  Asked a;
  // At both.
  uint64_t unknown = 0;   // of no name of the trial, or of another type
  uint64_t damaged = 0;   // whose checksum does not hold
  uint64_t not_sent = 0;  // answers that the tester had no room for
};

class Resolution {
 public:
  // As of an exchange.
  Resolution(const ResolutionSpec& spec, bool is_client, const dpdk::TxQueue& queue,
             dpdk::FramePool& pool, bool copies);

  // Whether it is to or from the port of DNS, as this side expects.
  bool is_dns(const net::Datagram& datagram) const {
    return (is_client_ ? datagram.src_port : datagram.dst_port) == net::kDnsPort;
  }
  // The client's: of which query it is a valid answer; none: it is counted.
  std::optional<uint64_t> take_reply(std::span<const uint8_t> message) noexcept;
  // The authority's. True when the buffer leaves as an answer. `before`: as of an exchange.
  bool take_query(dpdk::Mbuf* mbuf, uint32_t before, const net::Datagram& datagram) noexcept;
  void send() noexcept { out_.send(); }
  // After the trial: what waits still was never sent.
  void finish() noexcept { report_.not_sent += out_.waiting(); }

  bool is_client() const { return is_client_; }
  ResolutionReport& report() { return report_; }
  const ResolutionReport& report() const { return report_; }

 private:
  const ResolutionSpec spec_;
  const bool is_client_;
  AnswersOut out_;
  dpdk::FramePool& pool_;
  const bool copies_;
  ConnectionBits asked_aaaa_;  // by name
  ConnectionBits asked_a_;
  ResolutionReport report_;
};

}  // namespace dutperf::dataplane
