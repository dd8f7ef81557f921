#include "dataplane/receiver.h"

#include <algorithm>
#include <cstring>

#include "net/udp.h"

namespace dutperf::dataplane {
namespace {

// Room for frames of the queue that such a direction's come in by.
uint32_t room_frames(const dpdk::RxQueue& queue, const DirectionSpec& direction) {
  uint32_t pieces = 1;
  for (const StreamSpec& stream : direction.streams) pieces = std::max(pieces, stream.most_pieces);
  return queue.room_frames / pieces;
}

}  // namespace

Receiver::Receiver(const TrialSpec& spec, Side side, dpdk::RxQueue queue,
                   StreamRecorders& recorders, const net::OwnAddresses& own,
                   const std::vector<net::NeighbourAnswer>& next_hops, const RepliesAndRest& rings,
                   const timing::TscClock& clock, const SenderStalls& stalls)
    : trial_id_(spec.trial_id),
      verify_checksums_(spec.verify_checksums),
      inspect_every_(spec.inspect_every),
      vlan_(own.vlan),
      labels_(spec.from[index_of(other(side))].received_labels),
      answers_(spec.answers[index_of(side)]),
      before_(labels_.bytes() > 0 ? Before::kLabels
              : vlan_.bytes() > 0 ? Before::kTags
                                  : Before::kNothing),
      queue_(queue),
      recorders_(recorders),
      own_(own),
      next_hops_(next_hops),
      rings_(rings),
      clock_(clock),
      uninspected_(spec.inspect_every > 0 ? 0 : UINT64_MAX),
      shadows_(stalls, spec.from[index_of(other(side))].frames,
               spec.from[index_of(other(side))].rate_fps,
               room_frames(queue, spec.from[index_of(other(side))])),
      has_beside_(spec.from[index_of(other(side))].has_beside()),
      silence_(spec.from[index_of(other(side))].load().due_ns(0)) {
  constexpr auto kNotIp = static_cast<uint32_t>(sizeof(net::EthernetHeader) + net::kFcsBytes);
  stream_of_id_.fill(kNotExpected);
  const std::vector<StreamSpec>& streams = spec.from[index_of(other(side))].streams;
  for (uint8_t i = 0; i < streams.size(); ++i) {
    stream_of_id_[streams[i].id] = i;
    std::vector<uint32_t>& in_turn = ip_bytes_[i].in_turn;
    for (const uint32_t size : streams[i].received_frame_sizes) in_turn.push_back(size - kNotIp);
    ip_bytes_[i].count = in_turn.size();
    ip_bytes_[i].first = in_turn[0];
    expected_[i] = streams[i].expected;
  }
  report_.answers = AnswerLog(answers_.most);
  size_t most_ip_bytes = 0;
  for (const StreamSpec& stream : streams) {
    if (!stream.layout.identified) continue;
    for (const uint32_t size : stream.received_frame_sizes) {
      most_ip_bytes = std::max<size_t>(most_ip_bytes, size - kNotIp);
    }
  }
  if (most_ip_bytes > 0) reassembly_.emplace(most_ip_bytes);
  if (spec.learn && spec.learn->from == other(side)) learning_.emplace(spec);
}

// Inlined into the one loop: nothing it looks at goes through memory.
[[gnu::always_inline]] inline void Receiver::account(const uint8_t* frame,
                                                     const net::Classified& classified,
                                                     Burst& burst) noexcept {
  const net::WireTag& tag = *classified.tag;
  const uint8_t stream = stream_of_id_[tag.stream];
  const uint64_t sequence = tag.sequence();
  if (tag.trial != trial_id_) {
    ++report_.stale;
  } else if (stream == kNotExpected) {
    ++report_.misdirected;
  } else if (classified.ip_bytes != ip_bytes_[stream].of(sequence) ||
             (verify_checksums_ && !net::checksums_hold(frame, classified))) {
    account_damaged(stream, frame, classified);
  } else {
    const uint32_t place = burst.count[stream]++;
    burst.arrivals[stream][place] = {sequence, tag.stamp_ns()};
    burst.frames[stream][place] = frame;
  }
}

template <Receiver::Before kBefore>
uint32_t Receiver::receive_burst() noexcept {
  dpdk::Mbuf* mbufs[kBurst];
  const uint64_t polled_tsc = timing::read_tsc();
  const uint32_t count = queue_.receive(mbufs, kBurst);
  if (count == 0) {
    drained_tsc_ = polled_tsc;
    return 0;
  }
  const uint64_t received_tsc = timing::read_tsc();
  for (uint32_t i = 0; i < count; ++i) dpdk::prefetch_frame(mbufs[i]);
  Burst burst;
  uint32_t kept = 0;  // mbufs to free; answered requests leave with the reply ring
  const uint32_t before = kBefore == Before::kNothing ? 0 : vlan_.bytes() + labels_.bytes();
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* const frame = dpdk::frame_of(mbufs[i]);
    const size_t size = dpdk::size_of(mbufs[i]);
    net::Classified classified;
    if constexpr (kBefore == Before::kNothing) {
      classified = net::classify(frame, size);
    } else if constexpr (kBefore == Before::kTags) {
      classified = net::classify_behind(vlan_, frame, size);
    } else {
      classified = net::classify_labelled(vlan_, labels_, frame, size);
    }
    if (classified.kind == net::FrameKind::kTest) [[likely]] {
      account(frame + before, classified, burst);
    } else if (classified.kind == net::FrameKind::kFragment) {
      take_piece(frame + before, size - before, burst);
    } else if (take_aside(mbufs[i], classified)) {
      continue;
    }
    mbufs[kept++] = mbufs[i];
  }
  Learning::Burst learned;
  if (learning_) learning_->look_up(burst.arrivals[0], burst.frames[0], burst.count[0], learned);
  record(burst, polled_tsc, received_tsc);
  if (learning_) learning_->learn(learned);
  if (count < kBurst) drained_tsc_ = polled_tsc;
  dpdk::free_frames(mbufs, kept);
  published_received_.store(recorders_[0].tracker().received() + recorders_[1].tracker().received(),
                            std::memory_order_relaxed);
  return count;
}

void Receiver::step() noexcept {
  for (uint32_t burst = 0; burst < kBurstsPerStep; ++burst) {
    uint32_t count = 0;
    switch (before_) {
      case Before::kNothing: count = receive_burst<Before::kNothing>(); break;
      case Before::kTags: count = receive_burst<Before::kTags>(); break;
      case Before::kLabels: count = receive_burst<Before::kLabels>(); break;
    }
    if (count < kBurst) return;
  }
}

void Receiver::record(Burst& burst, uint64_t polled_tsc, uint64_t received_tsc) noexcept {
  const uint64_t received_ns = clock_.to_ns(received_tsc - start_tsc_);
  const uint32_t frames = burst.count[0] + burst.count[1];
  if (frames == 0) return;
  // What need not come ends no silence.
  if (burst.count[0] > 0 || !has_beside_) silence_.hear(received_ns);
  const uint64_t gap_ns = clock_.to_ns(received_tsc - drained_tsc_);
  report_.gap_ns.record(gap_ns, frames);
  report_.shortest_poll_tsc = std::min(report_.shortest_poll_tsc, received_tsc - polled_tsc);
  // Both streams go the same way: one of them tells.
  const size_t any = burst.count[0] > 0 ? 0 : 1;
  const measure::Arrival* const arrivals = burst.arrivals[any];
  const bool shaded = shadows_.covers(received_ns - std::min(received_ns, gap_ns), received_ns,
                                      arrivals[0].sent_ns, arrivals[burst.count[any] - 1].sent_ns);
  for (size_t i = 0; i < kMaxStreams; ++i) {
    if (burst.count[i] == 0) continue;
    recorders_[i].record(burst.arrivals[i], burst.count[i], received_ns, shaded);
  }
  if (frames > uninspected_) [[unlikely]] {
    inspect(burst, frames);
  } else {
    uninspected_ -= frames;
  }
}

// Foreground first: in which order they came makes no difference here.
[[gnu::cold, gnu::noinline]] void Receiver::inspect(const Burst& burst, uint64_t frames) noexcept {
  uint64_t place = uninspected_;
  for (; place < frames; place += inspect_every_) {
    const size_t stream = place < burst.count[0] ? 0 : 1;
    const uint8_t* frame = burst.frames[stream][place - (stream == 0 ? 0 : burst.count[0])];
    net::inspect(frame, expected_[stream], report_.inspected[stream]);
  }
  uninspected_ = place - frames;
}

[[gnu::cold, gnu::noinline]] void Receiver::take_piece(const uint8_t* frame, size_t size,
                                                       Burst& burst) noexcept {
  ++report_.fragments;
  if (!reassembly_) return;
  const std::span<const uint8_t> whole = reassembly_->add(frame, size);
  report_.reassembled = reassembly_->whole();
  report_.incomplete = reassembly_->incomplete();
  if (whole.empty()) return;
  const net::Classified classified = net::classify(whole.data(), whole.size());
  if (classified.kind == net::FrameKind::kTest) {
    account(whole.data(), classified, burst);
  } else {
    ++report_.foreign;
  }
}

// What is no test frame; true when a ring took the buffer.
[[gnu::noinline]] bool Receiver::take_aside(dpdk::Mbuf* mbuf, net::Classified classified) noexcept {
  switch (classified.kind) {
    case net::FrameKind::kTest: break;
    case net::FrameKind::kTruncated: account_truncated(classified); break;
    case net::FrameKind::kForeign: return account_foreign(mbuf);
    case net::FrameKind::kIcmp:
      account_icmp(dpdk::frame_of(mbuf) + vlan_.bytes() + labels_.bytes(), classified);
      break;
    case net::FrameKind::kFragment: break;
    case net::FrameKind::kOtherVlan: ++report_.other_vlan; break;
    case net::FrameKind::kNeighbour: return answer(mbuf);
  }
  return false;
}

[[gnu::noinline]] void Receiver::account_damaged(uint8_t stream, const uint8_t* frame,
                                                 net::Classified classified) noexcept {
  const uint32_t expected = ip_bytes_[stream].of(classified.tag->sequence());
  recorders_[stream].record_damaged(net::damage_of(frame, classified, expected));
}

void Receiver::account_truncated(const net::Classified& classified) noexcept {
  if (classified.tag == nullptr) {
    ++report_.cut_short;
  } else if (classified.tag->trial != trial_id_) {
    ++report_.stale;
  } else if (const uint8_t stream = stream_of_id_[classified.tag->stream]; stream != kNotExpected) {
    recorders_[stream].record_damaged(net::Damage::kTruncated);
  } else {
    ++report_.misdirected;
  }
}

void Receiver::account_icmp(const uint8_t* frame, const net::Classified& classified) noexcept {
  const uint8_t* const message = frame + sizeof(net::EthernetHeader) + classified.ip_headers;
  ++report_.foreign;
  report_.icmp.count({classified.ip_version, message[0], message[1]});
}

bool Receiver::account_foreign(dpdk::Mbuf* mbuf) noexcept {
  ++report_.foreign;
  uint8_t* const frame = dpdk::frame_of(mbuf);
  const size_t size = dpdk::size_of(mbuf);
  if (keep_answer(frame, size) || rings_.unclaimed == nullptr) return false;
  if (!vlan_.stand_in(frame, size)) return false;
  dpdk::set_size(mbuf, vlan_.take_out(frame, size));
  return hand_on(mbuf);
}

// Answers come as they were asked for: with the port's VLAN tags, and without labels.
bool Receiver::keep_answer(const uint8_t* frame, size_t size) noexcept {
  if (answers_.most == 0) return false;
  const size_t tags_bytes = std::min<size_t>(size, vlan_.bytes());
  const auto packet =
      net::udp_packet_from(answers_.from_port, frame + tags_bytes, size - tags_bytes);
  if (packet.empty()) return false;
  const uint64_t now_tsc = timing::read_tsc();
  report_.answers.keep(clock_.to_ns(now_tsc - std::min(now_tsc, start_tsc_)), packet);
  return true;
}

// A frame without VLAN tags, to whoever wants it.
bool Receiver::hand_on(dpdk::Mbuf* mbuf) noexcept {
  if (rings_.unclaimed == nullptr) return false;
  if (rings_.unclaimed->put(mbuf)) return true;
  ++report_.unclaimed_lost;
  return false;
}

// Turns a request into its reply in place.
bool Receiver::answer(dpdk::Mbuf* mbuf) noexcept {
  uint8_t* const message = dpdk::frame_of(mbuf);
  const uint16_t vlan_id = net::VlanTags::id_in(message);
  const size_t message_size = vlan_.take_out(message, dpdk::size_of(mbuf));
  const auto claim = net::parse_claim(message, message_size);
  if (claim && net::contradicts(*claim, own_, next_hops_)) ++report_.neighbour_conflicts;
  uint8_t reply[net::kTaggedNeighbourFrameBytes];
  const size_t reply_size = net::write_reply(message, message_size, own_, reply);
  if (reply_size == 0) {
    dpdk::set_size(mbuf, message_size);
    return hand_on(mbuf);
  }
  ++report_.neighbour_requests;
  const size_t size = vlan_.put_in(reply, reply_size, vlan_id);
  std::memcpy(message, reply, size);
  dpdk::set_size(mbuf, size);
  return rings_.replies.put(mbuf);
}

}  // namespace dutperf::dataplane
