#include "control/exchange_messages.h"

#include <algorithm>

#include "control/messages.h"
#include "control/port_messages.h"
#include "vary/draw.h"

namespace dutperf::control {
namespace {

using dataplane::index_of;
using dataplane::other;
using dataplane::Side;
using dataplane::Step;

constexpr NamesOf<Step, 4> kFirst = {
    {{"syn", Step::kSyn}, {"ack", Step::kAck}, {"request", Step::kRequest}, {"fin", Step::kFin}}};
constexpr NamesOf<Step, 4> kLast = {{{"half_open", Step::kSynAck},
                                     {"opened", Step::kAck},
                                     {"answered", Step::kResponse},
                                     {"closed", Step::kLastAck}}};
constexpr uint64_t kMostAsked = 1000;
constexpr std::array<const char*, dataplane::kSteps> kSegments = {
    "syn", "syn_ack", "ack", "request", "response", "fin", "fin_ack", "last_ack"};
// Of draws that no variation has.
constexpr uint64_t kNumbersGroup = UINT32_MAX - 1;
constexpr uint64_t kFloodGroup = UINT32_MAX - 2;
constexpr uint32_t kLeastMss = 536;  // RFC 9293 3.7.1
constexpr uint32_t kMostMss = 8960;
// With the header of its response it fits the window that is offered.
constexpr uint32_t kMostObject = 65'000;
static_assert(kMostObject + 100 < net::kTcpWindow);
static_assert(net::segments_of(kMostObject + 100, kLeastMss) <= UINT8_MAX);
constexpr uint64_t kMostRetransmissions = 5;  // the last one 31 times the first wait later
constexpr uint64_t kLeastRtoNs = 1'000'000;
constexpr uint64_t kMostRtoNs = 60'000'000'000;
constexpr uint64_t kMostConnections = uint64_t{1} << 32;

net::SequenceNumbers numbers_of(uint64_t seed, uint64_t opened_by) {
  return net::SequenceNumbers(vary::key_of(seed, opened_by, kNumbersGroup));
}

bool has_outer_headers(const dataplane::DirectionSpec& direction) {
  return direction.labels.bytes() + direction.received_labels.bytes() > 0 ||
         direction.outer.bytes() + direction.received_outer.bytes() > 0;
}

}  // namespace

std::optional<dataplane::ExchangeSpec> parse_exchange(ObjectReader& trial, uint64_t seed,
                                                      uint16_t trial_id) {
  if (!trial.has("tcp") || trial.at("tcp").is_null()) return std::nullopt;
  ObjectReader reader(trial.at("tcp"), trial.path("tcp"));
  dataplane::ExchangeSpec spec;
  net::SegmentLayout& first = spec.first;
  first.step = reader.name_or("begin", "syn", kFirst);
  spec.last = reader.name_or("until", "answered", kLast);
  if (spec.last < first.step) reader.refuse("until", "must not be before begin");
  if (first.step == Step::kAck && spec.last != Step::kAck) {
    reader.refuse("until", "must be opened: nothing answers the ack that begins");
  }
  first.mss = static_cast<uint16_t>(reader.number_or("mss", 1460, kLeastMss, kMostMss));
  spec.object_bytes = static_cast<uint32_t>(reader.number_or("object_bytes", 64, 0, kMostObject));
  spec.retransmit =
      static_cast<uint32_t>(reader.number_or("retransmit", 0, 0, kMostRetransmissions));
  spec.rto_ns = reader.number_or("rto_ns", spec.rto_ns, kLeastRtoNs, kMostRtoNs);
  const bool opens = first.step == Step::kSyn;
  const bool is_told = reader.has("opened_by") && !reader.at("opened_by").is_null();
  const uint64_t opened_by = is_told ? reader.number("opened_by", 1, UINT16_MAX) : trial_id;
  if (opens != (opened_by == trial_id)) {
    reader.refuse("opened_by", opens ? "goes with what begins later" : "must be an earlier trial");
  }
  first.numbers = numbers_of(seed, opened_by);
  const uint64_t asked = reader.number_or("asked", 0, 0, kMostAsked);
  if (asked > 0 && first.step <= Step::kAck) reader.refuse("asked", "goes with request and fin");
  first.sent_before = static_cast<uint32_t>(asked * net::kHttpRequestBytes);
  first.answered_before =
      static_cast<uint32_t>(asked * net::http_response(spec.object_bytes).size());
  if (reader.flag_or("translated", false)) spec.untranslated.emplace();
  reader.finish();
  return spec;
}

std::optional<dataplane::DataSpec> parse_data(ObjectReader& trial, uint64_t seed,
                                              uint16_t trial_id) {
  if (!trial.has("tcp_data") || trial.at("tcp_data").is_null()) return std::nullopt;
  ObjectReader reader(trial.at("tcp_data"), trial.path("tcp_data"));
  const uint64_t opened_by = reader.number("opened_by", 1, UINT16_MAX);
  if (opened_by == trial_id) reader.refuse("opened_by", "must be an earlier trial");
  dataplane::DataSpec spec;
  spec.layout.step = Step::kAck;
  spec.layout.is_data = true;
  spec.layout.numbers = numbers_of(seed, opened_by);
  if (reader.flag_or("translated", false)) spec.untranslated.emplace();
  reader.finish();
  return spec;
}

net::SegmentLayout flood_of(uint64_t seed, uint16_t trial_id) {
  net::SegmentLayout layout;
  layout.numbers = net::SequenceNumbers(vary::key_of(seed, trial_id, kFloodGroup));
  return layout;
}

void check_data(const ObjectReader& trial, const dataplane::TrialSpec& spec) {
  const auto refuse = [&](const char* why) { trial.refuse("tcp_data", why); };
  if (spec.exchange) refuse("does not go with tcp, which has no data beside its segments");
  for (const dataplane::DirectionSpec& direction : spec.from) {
    if (!direction.active()) continue;
    const dataplane::StreamSpec& stream = direction.streams[0];
    if (has_outer_headers(direction)) refuse("has neither labels nor outer headers");
    if (stream.paths() > 1) refuse("goes from one port to one");
    if (stream.most_pieces > 1) refuse("does not come in pieces");
    if (!stream.tuples && direction.frames > kMostConnections) {
      refuse("has at most 2^32 connections");
    }
    if (stream.tuples && stream.tuples->count > kMostConnections) {
      refuse("has at most 2^32 connections");
    }
  }
}

void check_flood(const ObjectReader& trial, const dataplane::TrialSpec& spec) {
  const auto refuse = [&](const char* why) { trial.refuse("directions", why); };
  for (const dataplane::DirectionSpec& direction : spec.from) {
    if (!direction.has_flood()) continue;
    if (has_outer_headers(direction)) refuse("have labels or outer headers: SYNs have neither");
    if (direction.streams[1].paths() > 1) refuse("have SYNs, which go from one port to one");
    if (direction.frames > kMostConnections) refuse("have more than 2^32 frames, and SYNs");
  }
}

void check_exchange(const ObjectReader& trial, const dataplane::TrialSpec& spec) {
  const auto refuse = [&](const char* why) { trial.refuse("tcp", why); };
  const dataplane::DirectionSpec* active = nullptr;
  for (const dataplane::DirectionSpec& direction : spec.from) {
    if (has_outer_headers(direction)) refuse("has neither labels nor outer headers");
    if (!direction.active()) continue;
    if (active != nullptr) refuse("opens connections in one direction");
    active = &direction;
  }
  if (active->streams.size() > 1) refuse("has one stream");
  if (active->frames > kMostConnections) refuse("has at most 2^32 connections");
  const dataplane::StreamSpec& stream = active->streams[0];
  if (stream.paths() > 1) refuse("goes from one port to one");
  if (stream.received_end) refuse("has no received_end");
  if (spec.learn || spec.tags) refuse("does not go with learn and tags");
}

void note_own_sources(std::optional<dataplane::OwnSources>& own,
                      const dataplane::StreamSpec& stream) {
  if (!own) return;
  own->address = stream.layout.src_ip;
  for (const vary::Variation& each : stream.variations.list) {
    if (each.field != vary::Field::kSrcIp) continue;
    for (size_t bit = each.offset; bit < size_t{each.offset} + each.width; ++bit) {
      own->varying[bit / 8] |= static_cast<uint8_t>(0x80 >> bit % 8);
    }
  }
}

ExchangeResult exchange_result(const dataplane::TrialSpec& spec, const dataplane::TrialRun& run) {
  ExchangeResult result;
  result.initiator = spec.from[index_of(Side::kLeft)].active() ? Side::kLeft : Side::kRight;
  for (const Side side : dataplane::kBothSides) {
    const dataplane::ExchangeReport& report = run.exchange_at(side);
    result.ends[index_of(side)] = report;
    for (size_t step = 0; step < dataplane::kSteps; ++step) {
      ExchangeResult::Segments& segments = result.segments[step];
      segments.sent += report.sent[step];
      segments.received += report.received[step];
      segments.duplicate += report.duplicate[step];
      segments.retransmitted += report.retransmitted[step];
    }
  }
  result.first = spec.exchange->first.step;
  result.retransmits = spec.exchange->retransmit > 0;
  result.pieces = net::segments_of(net::http_response(spec.exchange->object_bytes).size(),
                                   spec.exchange->first.mss);
  result.segments[static_cast<size_t>(result.first)].sent = run.sent_from(result.initiator).sent;
  return result;
}

// The first segments are the direction's frames, and judged with it. What a stall can have cost of
// them it can have cost of each kind of segment that follows, if none is sent
// again.
measure::ExchangeFacts facts_of(const ExchangeResult& result,
                                const std::vector<measure::Shadow>& shadows) {
  measure::ExchangeFacts facts;
  for (const measure::Shadow& shadow : shadows) {
    if (!shadow.may_lose || result.retransmits) continue;
    const uint64_t connections = result.segments[static_cast<size_t>(result.first)].sent;
    facts.may_be_ours +=
        std::min(shadow.frames, connections) * (dataplane::kSteps - 2 + result.pieces);
  }
  for (size_t step = static_cast<size_t>(result.first) + 1; step < dataplane::kSteps; ++step) {
    const ExchangeResult::Segments& segments = result.segments[step];
    facts.segments.push_back({kSegments[step], segments.sent, segments.received});
  }
  for (const ExchangeResult::Segments& segments : result.segments) {
    if (!result.retransmits) break;
    facts.strange += segments.duplicate - std::min(segments.duplicate, segments.retransmitted);
  }
  for (const dataplane::ExchangeReport& end : result.ends) {
    facts.not_sent += end.not_sent;
    facts.resets += end.resets;
    facts.strange += end.unknown + end.wrong + end.damaged;
  }
  return facts;
}

Json to_json(const ExchangeResult& result) {
  Json segments = Json::array();
  for (size_t step = 0; step < dataplane::kSteps; ++step) {
    const ExchangeResult::Segments& counts = result.segments[step];
    segments.push_back({{"name", kSegments[step]},
                        {"sent", counts.sent},
                        {"received", counts.received},
                        {"duplicate", counts.duplicate},
                        {"retransmitted", counts.retransmitted}});
  }
  const auto end = [](const dataplane::ExchangeReport& report) {
    return Json{{"resets", report.resets},
                {"unknown", report.unknown},
                {"wrong", report.wrong},
                {"damaged", report.damaged},
                {"renumbered", report.renumbered},
                {"proxied", report.proxied},
                {"untranslated", report.untranslated},
                {"without_stamp", report.without_stamp},
                {"not_sent", report.not_sent}};
  };
  const dataplane::ExchangeReport& initiator = result.ends[index_of(result.initiator)];
  return {{"segments", segments},
          {"initiator", end(initiator)},
          {"responder", end(result.ends[index_of(other(result.initiator))])},
          {"first_answer_ns", to_json(initiator.first_answer_ns)}};
}

}  // namespace dutperf::control
