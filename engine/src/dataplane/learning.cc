#include "dataplane/learning.h"

#include <algorithm>

#include "net/classify.h"
#include "net/headers.h"

namespace dutperf::dataplane {
namespace {

const StreamSpec& learned_stream(const TrialSpec& spec) {
  return spec.from[index_of(spec.learn->from)].streams[0];
}

std::optional<vary::IndexDraw> draw_of(const StreamSpec& stream) {
  const std::optional<vary::Tuples>& tuples = stream.tuples;
  if (!tuples || tuples->order == vary::IndexOrder::kOnce) return std::nullopt;
  return vary::IndexDraw(tuples->order, tuples->count, tuples->source, stream.variations.seed,
                         stream.tag.stream);
}

uint64_t tuples_of(const TrialSpec& spec) {
  const StreamSpec& stream = learned_stream(spec);
  return stream.tuples ? stream.tuples->count : spec.frames_of(spec.learn->from, 0);
}

// By the packet's own version: behind MPLS labels there is no EtherType.
uint16_t ether_type_of(const uint8_t* frame) {
  return net::ether_type_of(frame + sizeof(net::EthernetHeader));
}

// Behind options or extension headers the ports do not follow the addresses.
bool has_plain_header(const uint8_t* frame, int ip_version) {
  const uint8_t* ip = frame + sizeof(net::EthernetHeader);
  if (ip_version == 4) return reinterpret_cast<const net::Ipv4Header*>(ip)->version_ihl == 0x45;
  const uint8_t next = reinterpret_cast<const net::Ipv6Header*>(ip)->next_header;
  return next == net::kProtocolUdp || next == net::kProtocolTcp;
}

}  // namespace

Learning::Learning(const TrialSpec& spec)
    : ip_version_(spec.learn->ip_version),
      ether_type_(ip_version_ == 4 ? net::kEtherTypeIpv4 : net::kEtherTypeIpv6),
      frames_(spec.frames_of(spec.learn->from, 0)),
      draw_(draw_of(learned_stream(spec))),
      entries_(spec.learn->entries),
      goes_round_(tuples_of(spec) > entries_),
      learner_(*spec.learn->table, spec.learn->expected) {}

void Learning::look_up(const measure::Arrival* arrivals, const uint8_t* const* frames,
                       uint32_t count, Burst& burst) noexcept {
  vary::Lanes numbers;
  uint32_t fitting = 0;
  const auto offset =
      count == 0 ? 0 : state::TupleTable::tuple_of(frames[0], ip_version_) - frames[0];
  for (uint32_t i = 0; i < count; ++i) {
    const bool known = arrivals[i].sequence < frames_;
    const bool right_version =
        ether_type_of(frames[i]) == ether_type_ && has_plain_header(frames[i], ip_version_);
    other_versions_ += static_cast<uint64_t>(known && !right_version);
    numbers.lane[fitting] = arrivals[i].sequence;
    burst.tuples[fitting] = frames[i] + offset;
    fitting += static_cast<uint32_t>(known && right_version);
  }
  burst.count = fitting;
  if (fitting == 0) return;
  vary::Lanes drawn;
  if (draw_) draw_->at_all(numbers, drawn, fitting);
  const vary::Lanes& indices = draw_ ? drawn : numbers;
  if (goes_round_) {
    vary::Lanes rounds;
    vary::lanes::digits_up(indices, entries_, 0, rounds, burst.entries, fitting);
  } else {
    std::copy_n(indices.lane, fitting, burst.entries.lane);
  }
  learner_.table().prefetch(burst.entries.lane, fitting);
  learner_.table().prefetch_ends(burst.entries.lane, fitting);
}

void Learning::learn(const Burst& burst) noexcept {
  learner_.learn(burst.tuples.data(), burst.entries.lane, burst.count);
}

state::Learner::Counts Learning::counts() const {
  state::Learner::Counts counts = learner_.counts();
  counts.unexpected += other_versions_;
  return counts;
}

}  // namespace dutperf::dataplane
