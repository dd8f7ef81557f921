#include "dataplane/receiver.h"

#include <algorithm>
#include <cstring>

#include "net/udp.h"

namespace dutperf::dataplane {
namespace {

// Room for frames of the port that such a direction's come in by: of several, that of the shortest,
// for all may come by one.
uint32_t room_frames(const std::vector<ReceivingPort>& ports, const DirectionSpec& direction) {
  uint32_t pieces = 1;
  for (const StreamSpec& stream : direction.streams) pieces = std::max(pieces, stream.most_pieces);
  uint32_t room = UINT32_MAX;
  for (const ReceivingPort& port : ports) room = std::min(room, port.queues.room_frames);
  return room / pieces;
}

constexpr auto kNotIp = static_cast<uint32_t>(sizeof(net::EthernetHeader) + net::kFcsBytes);

// The longest IP packet of those that may come in pieces; 0: there are none.
size_t most_bytes_in_pieces(const std::vector<StreamSpec>& streams) {
  size_t most_ip_bytes = 0;
  for (const StreamSpec& stream : streams) {
    if (!stream.layout.identified) continue;
    for (const uint32_t size : stream.received_frame_sizes) {
      most_ip_bytes = std::max<size_t>(most_ip_bytes, size - kNotIp);
    }
  }
  return most_ip_bytes;
}

}  // namespace

void ReceiveReport::add(const ReceiveReport& other) {
  for (size_t i = 0; i < inspected.size(); ++i) inspected[i].add(other.inspected[i]);
  gap_ns.merge(other.gap_ns);
  shortest_poll_tsc = std::min(shortest_poll_tsc, other.shortest_poll_tsc);
  stamped += other.stamped;
  unstamped += other.unstamped;
  clock_worst_tsc = std::max(clock_worst_tsc, other.clock_worst_tsc);
}

void PortArrivals::add(const PortArrivals& other) {
  neighbour_requests += other.neighbour_requests;
  neighbour_conflicts += other.neighbour_conflicts;
  foreign += other.foreign;
  icmp.add(other.icmp);
  other_vlan += other.other_vlan;
  fragments += other.fragments;
  reassembled += other.reassembled;
  incomplete += other.incomplete;
  stale += other.stale;
  misdirected += other.misdirected;
  untranslated += other.untranslated;
  damaged += other.damaged;
  cut_short += other.cut_short;
  in_several += other.in_several;
  answers.add(other.answers);
  unclaimed_lost += other.unclaimed_lost;
  handed_over += other.handed_over;
  not_taken_over += other.not_taken_over;
  segments += other.segments;
}

Receiver::Receiver(const TrialSpec& spec, Side side, Share share,
                   const std::vector<ReceivingPort>& ports, StreamRecorders& recorders,
                   const HandOver& hand_over, const timing::TscClock& clock,
                   const SenderStalls& stalls)
    : trial_id_(spec.trial_id),
      verify_checksums_(spec.verify_checksums),
      inspect_every_(spec.inspect_every),
      vlan_(ports[0].own->vlan),
      labels_(spec.from[index_of(spec.sender_to(side))].received_labels),
      outer_(spec.from[index_of(spec.sender_to(side))].received_outer),
      before_bytes_(vlan_.bytes() + labels_.bytes() + outer_.received_bytes()),
      answers_(spec.answers[index_of(side)]),
      before_(outer_.bytes() > 0    ? Before::kOuter
              : labels_.bytes() > 0 ? Before::kLabels
              : vlan_.bytes() > 0   ? Before::kTags
                                    : Before::kNothing),
      recorders_(recorders),
      share_(share),
      owners_(share.of),
      hand_over_(hand_over),
      clock_(clock),
      load_(spec.from[index_of(spec.sender_to(side))].load()),
      uninspected_(spec.inspect_every > 0 ? 0 : UINT64_MAX),
      shadows_(stalls, share.frames_among(spec.from[index_of(spec.sender_to(side))].frames),
               share.part_of(spec.from[index_of(spec.sender_to(side))].rate_fps),
               room_frames(ports, spec.from[index_of(spec.sender_to(side))]) / share.of),
      has_beside_(spec.from[index_of(spec.sender_to(side))].has_beside()),
      silence_(spec.from[index_of(spec.sender_to(side))].load().due_ns(0)) {
  stream_of_id_.fill(kNotExpected);
  const std::vector<StreamSpec>& streams = spec.from[index_of(spec.sender_to(side))].streams;
  for (uint8_t i = 0; i < streams.size(); ++i) {
    stream_of_id_[streams[i].id] = i;
    ip_bytes_[i] = IpBytes(streams[i]);
    expected_[i] = streams[i].expected;
    for (size_t path = 0; path < streams[i].paths(); ++path) {
      received_by_[i].push_back(streams[i].received_by(path));
    }
    if (streams[i].received_end)
      ends_[i].emplace(*streams[i].received_end, outer_.received_bytes());
    sorts_ = sorts_ || ends_[i] || ports.size() > 1;
  }
  if (spec.data && !streams.empty() && !streams[0].is_learned()) {
    untranslated_ = spec.data->untranslated;
    sorts_ = sorts_ || untranslated_;
  }
  if (spec.from[index_of(spec.sender_to(side))].has_flood()) {
    flood_ = streams[1].layout.tcp->numbers;
    flood_frames_ = spec.frames_of(spec.sender_to(side), 1);
  }
  const size_t most_ip_bytes = most_bytes_in_pieces(streams);
  for (const ReceivingPort& port : ports) {
    Input& input =
        inputs_.emplace_back(Input{port, static_cast<uint16_t>(inputs_.size()), 0, {}, {}, {}});
    if (port.times != nullptr && port.times->came) input.clock.emplace(port.times->clock(clock_));
    input.arrivals.answers = AnswerLog(answers_.most);
    if (most_ip_bytes > 0) input.reassembly = std::make_unique<net::Reassembly>(most_ip_bytes);
  }
  if (spec.learn && spec.learn->from == spec.sender_to(side)) learning_.emplace(spec);
}

// All paths have a frame of a size before the next size has its turn.
Receiver::IpBytes::IpBytes(const StreamSpec& stream) {
  for (const uint32_t size : stream.received_frame_sizes) {
    in_turn.insert(in_turn.end(), stream.paths(), size - kNotIp);
  }
  first = in_turn[0];
  count = stream.received_frame_sizes.size() == 1 ? 1 : in_turn.size();
}

// Inlined into the one loop: nothing it looks at goes through memory.
[[gnu::always_inline]] inline void Receiver::account(const uint8_t* frame,
                                                     const net::Classified& classified,
                                                     Input& input, Burst& burst) noexcept {
  const net::WireTag& tag = *classified.tag;
  const uint8_t stream = stream_of_id_[tag.stream];
  const uint64_t sequence = tag.sequence();
  if (tag.trial != trial_id_) {
    ++input.arrivals.stale;
  } else if (stream == kNotExpected) {
    ++input.arrivals.misdirected;
  } else if (classified.ip_bytes != ip_bytes_[stream].of(sequence) ||
             (verify_checksums_ && !net::checksums_hold(frame, classified))) {
    account_damaged(stream, frame, classified, input);
  } else {
    const uint32_t place = burst.count[stream]++;
    burst.arrivals[stream][place] = {sequence, tag.stamp_ns()};
    burst.frames[stream][place] = frame;
  }
}

// Behind its VLAN tags. REQUIRES: they stand there.
const uint8_t* Receiver::ether_type_of(const uint8_t* frame) const noexcept {
  return frame + offsetof(net::EthernetHeader, ether_type) + vlan_.bytes();
}

[[gnu::always_inline]] inline bool Receiver::account_outer(const uint8_t* frame,
                                                           const net::Classified& classified,
                                                           Input& input) noexcept {
  const std::optional<net::Damage> damage =
      outer_.damage_at(ether_type_of(frame), classified.ip_bytes, verify_checksums_);
  if (!damage) [[likely]]
    return false;
  const uint8_t stream = stream_of_id_[classified.tag->stream];
  if (classified.tag->trial != trial_id_ || stream == kNotExpected) return false;
  recorders_[stream].record_damaged(*damage);
  ++input.arrivals.damaged[*damage];
  return true;
}

template <Receiver::Before kBefore>
uint32_t Receiver::receive_burst(Input& input, uint16_t queue) noexcept {
  dpdk::Mbuf* mbufs[kBurst];
  const uint64_t polled_tsc = timing::read_tsc();
  const uint32_t count = input.port.queues.receive(queue, mbufs, kBurst);
  uint64_t& drained_tsc = input.drained_tsc[queue];
  if (count == 0) {
    drained_tsc = polled_tsc;
    return 0;
  }
  const uint64_t received_tsc = timing::read_tsc();
  for (uint32_t i = 0; i < count; ++i) dpdk::prefetch_frame(mbufs[i]);
  const Times times{drained_tsc, polled_tsc, received_tsc, received_tsc,
                    clock_.to_ns(received_tsc - start_tsc_)};
  if (exchange_ != nullptr) [[unlikely]] {
    take_segments(input, queue, mbufs, count, times);
  } else if (resolution_ != nullptr) [[unlikely]] {
    take_datagrams(input, queue, mbufs, count, times);
  } else if (input.clock) [[unlikely]] {
    take_stamped<kBefore>(input, queue, mbufs, count, times);
  } else {
    take<kBefore>(input, queue, mbufs, count, times);
  }
  if (count < kBurst) drained_tsc = polled_tsc;
  published_received_.store(recorders_[0].tracker().received() + recorders_[1].tracker().received(),
                            std::memory_order_relaxed);
  return count;
}

// A stamp of a frame that has not come yet is none.
template <Receiver::Before kBefore>
[[gnu::noinline]] void Receiver::take_stamped(Input& input, uint16_t queue, dpdk::Mbuf** mbufs,
                                              uint32_t count, Times times) noexcept {
  timing::PortClock& clock = *input.clock;
  clock.read_if_due(times.received_tsc);
  report_.clock_worst_tsc = std::max(report_.clock_worst_tsc, clock.worst_tsc());
  const uint64_t latest_tsc = times.received_tsc + std::min(clock.worst_tsc(), times.received_tsc);
  for (uint32_t i = 0; i < count; ++i) {
    const std::optional<uint64_t> ticks = input.port.times->came->ticks_in(mbufs[i]);
    const uint64_t came_tsc = ticks ? clock.to_tsc(*ticks) : UINT64_MAX;
    const bool possible = came_tsc >= start_tsc_ && came_tsc <= latest_tsc;
    times.came_tsc = possible ? came_tsc : times.received_tsc;
    ++(possible ? report_.stamped : report_.unstamped);
    take<kBefore>(input, queue, mbufs + i, 1, times);
  }
}

template <Receiver::Before kBefore>
[[gnu::always_inline]] inline void Receiver::take(Input& input, uint16_t queue, dpdk::Mbuf** mbufs,
                                                  uint32_t count, const Times& times) noexcept {
  Burst burst;
  uint32_t kept = 0;  // mbufs to free; answered requests leave with the reply ring
  const uint32_t before = kBefore == Before::kNothing ? 0 : before_bytes_;
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* const frame = dpdk::frame_of(mbufs[i]);
    const size_t size = dpdk::size_of(mbufs[i]);
    net::Classified classified;
    if constexpr (kBefore == Before::kNothing) {
      classified = net::classify(frame, size);
    } else if constexpr (kBefore == Before::kTags) {
      classified = net::classify_behind(vlan_, frame, size);
    } else if constexpr (kBefore == Before::kLabels) {
      classified = net::classify_labelled(vlan_, labels_, frame, size);
    } else {
      classified = net::classify_tunnelled(vlan_, outer_, frame, size);
    }
    if (classified.kind == net::FrameKind::kTest) [[likely]] {
      if constexpr (kBefore == Before::kOuter) {
        if (!account_outer(frame, classified, input)) {
          account(frame + before, classified, input, burst);
        }
      } else {
        account(frame + before, classified, input, burst);
      }
    } else if (kBefore != Before::kOuter && classified.kind == net::FrameKind::kFragment) {
      take_piece(frame + before, size - before, input, burst);
    } else if (flood_ && classified.kind == net::FrameKind::kForeign &&
               take_flood(frame + before, size - before, times)) {
    } else if (take_aside(mbufs[i], classified, input)) {
      continue;
    }
    mbufs[kept++] = mbufs[i];
  }
  if (sorts_) sort_out(input, burst);
  // What need not come ends no silence.
  if (burst.count[0] > 0 || (burst.count[1] > 0 && !has_beside_)) {
    silence_.hear(times.received_ns);
  }
  if (share_.of > 1) hand_over(burst, times, queue, input.arrivals);
  Learning::Burst learned;
  if (learning_) learning_->look_up(burst.arrivals[0], burst.frames[0], burst.count[0], learned);
  record(burst, times, queue);
  if (const uint32_t frames = burst.count[0] + burst.count[1]; frames > uninspected_) [[unlikely]] {
    inspect(burst);
  } else {
    uninspected_ -= frames;
  }
  if (learning_) learning_->learn(learned);
  dpdk::free_frames(mbufs, kept);
}

[[gnu::noinline]] void Receiver::take_segments(Input& input, uint16_t queue, dpdk::Mbuf** mbufs,
                                               uint32_t count, const Times& times) noexcept {
  Burst burst;
  uint32_t kept = 0;  // mbufs to free
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* const frame = dpdk::frame_of(mbufs[i]);
    const size_t size = dpdk::size_of(mbufs[i]);
    const bool is_tagged = size > vlan_.bytes() && vlan_.stand_in(frame, size);
    const std::optional<net::Segment> segment =
        is_tagged ? net::segment_in(frame + vlan_.bytes(), size - vlan_.bytes()) : std::nullopt;
    const bool is_taken = segment ? take_segment(mbufs[i], *segment, input, burst, times)
                                  : take_other(mbufs[i], input);
    if (!is_taken) mbufs[kept++] = mbufs[i];
  }
  if (burst.count[0] > 0) silence_.hear(times.received_ns);
  record(burst, times, queue);
  dpdk::free_frames(mbufs, kept);
  exchange_->send();
}

[[gnu::noinline]] void Receiver::take_datagrams(Input& input, uint16_t queue, dpdk::Mbuf** mbufs,
                                                uint32_t count, const Times& times) noexcept {
  Burst burst;
  uint32_t kept = 0;  // mbufs to free
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* const frame = dpdk::frame_of(mbufs[i]);
    const size_t size = dpdk::size_of(mbufs[i]);
    const bool is_tagged = size > vlan_.bytes() && vlan_.stand_in(frame, size);
    const std::optional<net::Datagram> datagram =
        is_tagged ? net::datagram_in(frame + vlan_.bytes(), size - vlan_.bytes()) : std::nullopt;
    const bool is_taken = datagram && resolution_->is_dns(*datagram)
                              ? take_dns(mbufs[i], *datagram, input, burst)
                              : take_other(mbufs[i], input);
    if (!is_taken) mbufs[kept++] = mbufs[i];
  }
  if (burst.count[0] > 0) silence_.hear(times.received_ns);
  record(burst, times, queue);
  dpdk::free_frames(mbufs, kept);
  resolution_->send();
}

// A query has no time in it: it left when it was due, or later.
bool Receiver::take_dns(dpdk::Mbuf* mbuf, const net::Datagram& datagram, Input& input,
                        Burst& burst) noexcept {
  const uint8_t* const frame = dpdk::frame_of(mbuf) + vlan_.bytes();
  const net::Classified whole{net::FrameKind::kTest, datagram.ip_version, datagram.ip_headers,
                              datagram.ip_bytes, nullptr};
  if (verify_checksums_ && !net::checksums_hold(frame, whole)) {
    ++resolution_->report().damaged;
    return false;
  }
  ++input.arrivals.segments;
  if (!resolution_->is_client()) return resolution_->take_query(mbuf, vlan_.bytes(), datagram);
  if (const auto number = resolution_->take_reply(datagram.payload(frame))) {
    const uint32_t place = burst.count[0]++;
    burst.arrivals[0][place] = {*number, load_.due_ns(*number)};
    burst.frames[0][place] = frame;
  }
  return false;
}

// Frames of UDP are none of this trial's.
bool Receiver::take_other(dpdk::Mbuf* mbuf, Input& input) noexcept {
  const net::Classified classified =
      net::classify_behind(vlan_, dpdk::frame_of(mbuf), dpdk::size_of(mbuf));
  if (classified.kind != net::FrameKind::kTest) return take_aside(mbuf, classified, input);
  ++(classified.tag->trial == trial_id_ ? input.arrivals.misdirected : input.arrivals.stale);
  return false;
}

// What the send loop sends are the trial's frames; all else is accounted for by the exchange.
bool Receiver::take_segment(dpdk::Mbuf* mbuf, const net::Segment& segment, Input& input,
                            Burst& burst, const Times& times) noexcept {
  const uint8_t* const frame = dpdk::frame_of(mbuf) + vlan_.bytes();
  if (verify_checksums_ && !net::checksums_hold(frame, segment)) {
    ++exchange_->report().damaged;
    return false;
  }
  if (exchange_->is_untranslated(frame, segment)) {
    ++exchange_->report().untranslated;
    return false;
  }
  const std::optional<uint64_t> connection = exchange_->begins(segment);
  if (connection && !exchange_->has_begun(*connection)) {
    // Without a stamp it left when it was due, or later.
    const auto left_ns = Exchange::left_at_ns(segment.stamp, segment, times.received_ns);
    exchange_->report().without_stamp += left_ns ? 0 : 1;
    const uint64_t sent_ns = left_ns ? *left_ns : load_.due_ns(*connection);
    const uint32_t place = burst.count[0]++;
    burst.arrivals[0][place] = {*connection, sent_ns};
    burst.frames[0][place] = frame;
  }
  ++input.arrivals.segments;
  return exchange_->take(mbuf, vlan_.bytes(), segment, times.received_ns);
}

void Receiver::step() noexcept {
  for (Input& input : inputs_) {
    const dpdk::RxQueues& queues = input.port.queues;
    for (uint16_t queue = queues.first; queue < queues.end; queue += queues.step) {
      step_of(input, queue);
    }
  }
  if (share_.of > 1) take_handed_over();
  if (exchange_ != nullptr) exchange_->send();
  if (resolution_ != nullptr) resolution_->send();
}

void Receiver::step_of(Input& input, uint16_t queue) noexcept {
  for (uint32_t burst = 0; burst < kBurstsPerStep; ++burst) {
    uint32_t count = 0;
    switch (before_) {
      case Before::kNothing: count = receive_burst<Before::kNothing>(input, queue); break;
      case Before::kTags: count = receive_burst<Before::kTags>(input, queue); break;
      case Before::kLabels: count = receive_burst<Before::kLabels>(input, queue); break;
      case Before::kOuter: count = receive_burst<Before::kOuter>(input, queue); break;
    }
    if (count < kBurst) return;
  }
}

[[gnu::noinline]] void Receiver::sort_out(Input& input, Burst& burst) noexcept {
  for (size_t stream = 0; stream < kMaxStreams; ++stream) {
    const std::vector<uint8_t>& by_path = received_by_[stream];
    const auto& end = ends_[stream];
    const uint32_t count = burst.count[stream];
    const uint64_t is_right = end ? end->which_hold(burst.frames[stream], count) : UINT64_MAX;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const measure::Arrival& arrival = burst.arrivals[stream][i];
      const uint8_t* const frame = burst.frames[stream][i];
      const bool is_here = by_path[arrival.sequence % by_path.size()] == input.number;
      if (!is_here || (is_right >> i & 1) == 0) {
        ++input.arrivals.misdirected;
        continue;
      }
      const uint8_t* const ip = frame + sizeof(net::EthernetHeader);
      if (stream == 0 && untranslated_ && untranslated_->sent(frame, *ip >> 4)) {
        ++input.arrivals.untranslated;
        continue;
      }
      burst.arrivals[stream][kept] = arrival;
      burst.frames[stream][kept++] = frame;
    }
    burst.count[stream] = kept;
  }
}

// What the tester itself may have done to a frame is judged by the loop's times, whatever a NIC
// says: of how long it waited for the loop nobody else knows.
// One share has one order, by whichever queues its frames come.
void Receiver::record(Burst& burst, const Times& times, uint64_t queue) noexcept {
  const uint64_t order = share_.of == 1 ? 0 : queue;
  const uint64_t received_tsc = times.received_tsc;
  const uint64_t received_ns = times.received_ns;
  const uint64_t came_ns = clock_.to_ns(times.came_tsc - start_tsc_);
  const uint32_t frames = burst.count[0] + burst.count[1];
  if (frames == 0) return;
  const uint64_t gap_ns = clock_.to_ns(received_tsc - times.drained_tsc);
  report_.gap_ns.record(gap_ns, frames);
  report_.shortest_poll_tsc = std::min(report_.shortest_poll_tsc, received_tsc - times.polled_tsc);
  // Both streams go the same way: one of them tells.
  const size_t any = burst.count[0] > 0 ? 0 : 1;
  const measure::Arrival* const arrivals = burst.arrivals[any];
  const bool shaded = shadows_.covers(received_ns - std::min(received_ns, gap_ns), received_ns,
                                      arrivals[0].sent_ns, arrivals[burst.count[any] - 1].sent_ns);
  for (size_t i = 0; i < kMaxStreams; ++i) {
    if (burst.count[i] == 0) continue;
    recorders_[i].record(burst.arrivals[i], burst.count[i], came_ns, shaded, order);
  }
}

// There is one stream where there are several shares (control/request_checks.h).
[[gnu::noinline]] void Receiver::hand_over(Burst& burst, const Times& times, uint64_t queue,
                                           PortArrivals& counts) noexcept {
  measure::Arrival* const arrivals = burst.arrivals[0];
  uint32_t kept = 0;
  for (uint32_t i = 0; i < burst.count[0]; ++i) {
    const uint64_t number = owners_.number_of(arrivals[i].sequence);
    const uint64_t owner = arrivals[i].sequence - number * share_.of;
    if (owner == share_.index) {
      arrivals[kept] = {number, arrivals[i].sent_ns};
      burst.frames[0][kept++] = burst.frames[0][i];
      continue;
    }
    const HandedOver record{number << 16 | queue, arrivals[i].sent_ns, times.drained_tsc,
                            times.received_tsc};
    ++counts.handed_over;
    counts.not_taken_over += 1 - hand_over_.ring(share_.index, owner).put(&record, 1);
  }
  burst.count[0] = kept;
}

// As they came: what one call returned, by one queue, is recorded at once.
[[gnu::noinline]] void Receiver::take_handed_over() noexcept {
  for (uint64_t from = 0; from < share_.of; ++from) {
    if (from == share_.index) continue;
    HandOver::Ring& ring = hand_over_.ring(from, share_.index);
    HandedOver records[kBurst];
    while (const uint32_t count = ring.take(records, kBurst)) {
      for (uint32_t i = 0; i < count;) {
        const HandedOver first = records[i];
        Burst burst;
        uint32_t& frames = burst.count[0];
        while (i < count && records[i].received_tsc == first.received_tsc &&
               records[i].queue() == first.queue()) {
          burst.arrivals[0][frames] = {records[i].number(), records[i].sent_ns};
          burst.frames[0][frames++] = nullptr;
          ++i;
        }
        record(burst,
               {first.drained_tsc, 0, first.received_tsc, first.received_tsc,
                clock_.to_ns(first.received_tsc - start_tsc_)},
               first.queue());
      }
      if (count < kBurst) break;
    }
  }
}

// Foreground first: in which order they came makes no difference here.
[[gnu::cold, gnu::noinline]] void Receiver::inspect(const Burst& burst) noexcept {
  const uint64_t frames = burst.count[0] + burst.count[1];
  uint64_t place = uninspected_;
  for (; place < frames; place += inspect_every_) {
    const size_t stream = place < burst.count[0] ? 0 : 1;
    const uint8_t* frame = burst.frames[stream][place - (stream == 0 ? 0 : burst.count[0])];
    net::inspect(frame, expected_[stream], report_.inspected[stream]);
  }
  uninspected_ = place - frames;
}

[[gnu::noinline]] bool Receiver::take_flood(const uint8_t* frame, size_t size,
                                            const Times& times) noexcept {
  const std::optional<net::Segment> segment = net::segment_in(frame, size);
  if (!segment || !segment->has(net::kTcpSyn) || segment->has(net::kTcpAck)) return false;
  if (verify_checksums_ && !net::checksums_hold(frame, *segment)) return false;
  const uint64_t number = flood_->connection_of(segment->sequence);
  if (number >= flood_frames_) return false;
  const auto left_ns = Exchange::left_at_ns(segment->stamp, *segment, times.received_ns);
  measure::Arrival arrival{number, left_ns.value_or(times.received_ns)};
  recorders_[1].record(&arrival, 1, times.received_ns, false, 0);
  return true;
}

[[gnu::cold, gnu::noinline]] void Receiver::take_piece(const uint8_t* frame, size_t size,
                                                       Input& input, Burst& burst) noexcept {
  PortArrivals& arrivals = input.arrivals;
  ++arrivals.fragments;
  if (!input.reassembly) return;
  const std::span<const uint8_t> whole = input.reassembly->add(frame, size);
  arrivals.reassembled = input.reassembly->whole();
  arrivals.incomplete = input.reassembly->incomplete();
  if (whole.empty()) return;
  const net::Classified classified = net::classify(whole.data(), whole.size());
  if (classified.kind == net::FrameKind::kTest) {
    account(whole.data(), classified, input, burst);
  } else {
    ++arrivals.foreign;
  }
}

// What is no test frame; true when a ring took the buffer.
[[gnu::noinline]] bool Receiver::take_aside(dpdk::Mbuf* mbuf, net::Classified classified,
                                            Input& input) noexcept {
  switch (classified.kind) {
    case net::FrameKind::kTest: break;
    case net::FrameKind::kTruncated:
      if (dpdk::is_in_several(mbuf)) {
        ++input.arrivals.in_several;
      } else {
        account_truncated(classified, input);
      }
      break;
    case net::FrameKind::kForeign: return account_foreign(mbuf, input);
    case net::FrameKind::kIcmp: {
      // In a tunnel, or of those who have heard of none.
      const uint8_t* const frame = dpdk::frame_of(mbuf);
      const bool outside = outer_.bytes() > 0 && !outer_.stands_at(ether_type_of(frame));
      account_icmp(frame + (outside ? vlan_.bytes() : before_bytes_), classified, input);
      break;
    }
    case net::FrameKind::kFragment: ++input.arrivals.fragments; break;  // of a tunnel
    case net::FrameKind::kOtherVlan: ++input.arrivals.other_vlan; break;
    case net::FrameKind::kNeighbour: return answer(mbuf, input);
  }
  return false;
}

[[gnu::noinline]] void Receiver::account_damaged(uint8_t stream, const uint8_t* frame,
                                                 net::Classified classified,
                                                 Input& input) noexcept {
  const uint32_t expected = ip_bytes_[stream].of(classified.tag->sequence());
  const net::Damage damage = net::damage_of(frame, classified, expected);
  recorders_[stream].record_damaged(damage);
  ++input.arrivals.damaged[damage];
}

void Receiver::account_truncated(const net::Classified& classified, Input& input) noexcept {
  PortArrivals& arrivals = input.arrivals;
  if (classified.tag == nullptr) {
    ++arrivals.cut_short;
  } else if (classified.tag->trial != trial_id_) {
    ++arrivals.stale;
  } else if (const uint8_t stream = stream_of_id_[classified.tag->stream]; stream != kNotExpected) {
    recorders_[stream].record_damaged(net::Damage::kTruncated);
    ++arrivals.damaged[net::Damage::kTruncated];
  } else {
    ++arrivals.misdirected;
  }
}

void Receiver::account_icmp(const uint8_t* frame, const net::Classified& classified,
                            Input& input) noexcept {
  const uint8_t* const message = frame + sizeof(net::EthernetHeader) + classified.ip_headers;
  ++input.arrivals.foreign;
  input.arrivals.icmp.count({classified.ip_version, message[0], message[1]});
}

bool Receiver::account_foreign(dpdk::Mbuf* mbuf, Input& input) noexcept {
  ++input.arrivals.foreign;
  uint8_t* const frame = dpdk::frame_of(mbuf);
  const size_t size = dpdk::size_of(mbuf);
  if (keep_answer(frame, size, input) || input.port.rings.unclaimed == nullptr) return false;
  if (!vlan_.stand_in(frame, size)) return false;
  dpdk::set_size(mbuf, vlan_.take_out(frame, size));
  return hand_on(mbuf, input);
}

// Answers come as they were asked for: with the port's VLAN tags, and without labels.
bool Receiver::keep_answer(const uint8_t* frame, size_t size, Input& input) noexcept {
  if (answers_.most == 0) return false;
  const size_t tags_bytes = std::min<size_t>(size, vlan_.bytes());
  const auto packet =
      net::udp_packet_from(answers_.from_port, frame + tags_bytes, size - tags_bytes);
  if (packet.empty()) return false;
  const uint64_t now_tsc = timing::read_tsc();
  input.arrivals.answers.keep(clock_.to_ns(now_tsc - std::min(now_tsc, start_tsc_)), packet);
  return true;
}

// A frame without VLAN tags, to whoever wants it.
bool Receiver::hand_on(dpdk::Mbuf* mbuf, Input& input) noexcept {
  dpdk::ReplyRing* const unclaimed = input.port.rings.unclaimed;
  if (unclaimed == nullptr) return false;
  if (unclaimed->put(mbuf)) return true;
  ++input.arrivals.unclaimed_lost;
  return false;
}

// Turns a request into its reply in place.
bool Receiver::answer(dpdk::Mbuf* mbuf, Input& input) noexcept {
  const net::OwnAddresses& own = *input.port.own;
  uint8_t* const message = dpdk::frame_of(mbuf);
  const uint16_t vlan_id = net::VlanTags::id_in(message);
  const size_t message_size = vlan_.take_out(message, dpdk::size_of(mbuf));
  const auto claim = net::parse_claim(message, message_size);
  if (claim && net::contradicts(*claim, own, *input.port.next_hops)) {
    ++input.arrivals.neighbour_conflicts;
  }
  uint8_t reply[net::kTaggedNeighbourFrameBytes];
  const size_t reply_size = net::write_reply(message, message_size, own, reply);
  if (reply_size == 0) {
    dpdk::set_size(mbuf, message_size);
    return hand_on(mbuf, input);
  }
  ++input.arrivals.neighbour_requests;
  const size_t size = vlan_.put_in(reply, reply_size, vlan_id);
  std::memcpy(message, reply, size);
  dpdk::set_size(mbuf, size);
  return input.port.rings.replies.put(mbuf);
}

}  // namespace dutperf::dataplane
