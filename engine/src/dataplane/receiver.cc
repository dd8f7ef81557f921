#include "dataplane/receiver.h"

#include <cstring>

namespace dutperf::dataplane {
namespace {

constexpr uint32_t kBurst = 32;

}  // namespace

Receiver::Receiver(const TrialSpec& spec, Side side, dpdk::RxQueue queue, StreamTrackers& trackers,
                   const net::OwnAddresses& own, dpdk::ReplyRing& replies)
    : trial_id_(spec.trial_id),
      verify_checksums_(spec.verify_checksums),
      queue_(queue),
      trackers_(trackers),
      own_(own),
      replies_(replies) {
  constexpr auto kNotIp = static_cast<uint32_t>(sizeof(net::EthernetHeader) + net::kFcsBytes);
  stream_of_id_.fill(kNotExpected);
  const std::vector<StreamSpec>& streams = spec.from[index_of(other(side))].streams;
  for (uint8_t i = 0; i < streams.size(); ++i) {
    stream_of_id_[streams[i].id] = i;
    for (const uint32_t size : streams[i].received_frame_sizes) {
      ip_bytes_[i].push_back(size - kNotIp);
    }
  }
}

void Receiver::step() noexcept {
  dpdk::Mbuf* mbufs[kBurst];
  const uint32_t count = queue_.receive(mbufs, kBurst);
  if (count == 0) return;
  for (uint32_t i = 0; i < count; ++i) dpdk::prefetch_frame(mbufs[i]);
  uint32_t kept = 0;  // mbufs to free; answered requests leave with the reply ring
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* frame = dpdk::frame_of(mbufs[i]);
    const net::Classified classified = net::classify(frame, dpdk::size_of(mbufs[i]));
    switch (classified.kind) {
      case net::FrameKind::kTest: account(frame, classified); break;
      case net::FrameKind::kForeign: ++report_.foreign; break;
      case net::FrameKind::kNeighbour:
        if (answer(mbufs[i])) continue;
        break;
    }
    mbufs[kept++] = mbufs[i];
  }
  dpdk::free_frames(mbufs, kept);
  published_received_.store(trackers_[0].received() + trackers_[1].received(),
                            std::memory_order_relaxed);
}

void Receiver::account(const uint8_t* frame, const net::Classified& classified) noexcept {
  const net::WireTag& tag = *classified.tag;
  const uint8_t stream = stream_of_id_[tag.stream];
  const uint64_t sequence = tag.sequence();
  if (tag.trial != trial_id_) {
    ++report_.stale;
  } else if (stream == kNotExpected) {
    ++report_.misdirected;
  } else if (classified.ip_bytes != expected_ip_bytes(stream, sequence) ||
             (verify_checksums_ && !net::checksums_hold(frame, classified)) ||
             !trackers_[stream].record(sequence)) {
    ++report_.corrupt;
  }
}

// Turns a request into its reply in place; true when the reply ring took the buffer.
bool Receiver::answer(dpdk::Mbuf* mbuf) noexcept {
  uint8_t reply[net::kNeighbourFrameBytes];
  const size_t size = net::write_reply(dpdk::frame_of(mbuf), dpdk::size_of(mbuf), own_, reply);
  if (size == 0) return false;
  ++report_.neighbour_requests;
  std::memcpy(dpdk::frame_of(mbuf), reply, size);
  dpdk::set_size(mbuf, size);
  return replies_.put(mbuf);
}

}  // namespace dutperf::dataplane
