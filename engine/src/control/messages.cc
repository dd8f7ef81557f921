#include "control/messages.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <set>
#include <utility>

#include "control/limits.h"
#include "control/load_messages.h"
#include "control/stream_messages.h"
#include "vary/draw.h"

namespace dutperf::control {
namespace {

using control::to_json;  // not hidden by the ones in here
using dataplane::Side;

constexpr uint64_t kMaxInspectEvery = 1'000'000'000;

// m of n frames belong to the first stream (RFC 8219 5.3).
dataplane::Mix parse_mix(ObjectReader& reader, size_t streams) {
  if (!reader.has("mix") || reader.at("mix").is_null()) {
    if (streams > 1) reader.refuse("mix", "is missing: there are two streams");
    return {1, 1};
  }
  ObjectReader mix(reader.at("mix"), reader.path("mix"));
  const uint64_t of = mix.number("of", 1, 1'000'000);
  const uint64_t foreground = mix.number("foreground", 1, of);
  mix.finish();
  if (std::gcd(foreground, of) != 1) reader.refuse("mix", "must be in lowest terms");
  if ((foreground < of) != (streams == 2)) {
    reader.refuse("mix", "must leave frames to the second stream, if and only if there is one");
  }
  return {foreground, of};
}

constexpr uint32_t kIpv4InOuter = 96;  // bits of outer_src before an IPv4 address

// Whether bits of a field before its bit `end` vary, or are copied.
bool touches(const vary::Variations& variations, vary::Field field, uint32_t end = UINT32_MAX) {
  return std::any_of(
             variations.list.begin(), variations.list.end(),
             [&](const vary::Variation& v) { return v.field == field && v.offset < end; }) ||
         std::any_of(variations.copies.begin(), variations.copies.end(), [&](const vary::Copy& c) {
           return (c.from == field && c.from_offset < end) || (c.to == field && c.to_offset < end);
         });
}

// Where no tag stands its id would be written over what does; so with outer headers.
void check_fields(const ObjectReader& reader, size_t stream,
                  const dataplane::DirectionSpec& direction, const vary::Variations& variations) {
  const net::TunnelEnds& ends = direction.outer.ends();
  const bool has_source = ends.kind != net::Tunnel::kNone;
  const auto check = [&](vary::Field field, bool there, const char* without) {
    if (!there && touches(variations, field)) {
      reader.refuse(element("streams", stream) + ".vary", without);
    }
  };
  check(vary::Field::kVlanId, direction.vlan.bytes() > 0, "has vlan_id, and vlan no tag");
  check(vary::Field::kOuterSrc, has_source, "has outer_src, and encapsulation no outer header");
  if (ends.local.version == 4 && touches(variations, vary::Field::kOuterSrc, kIpv4InOuter)) {
    reader.refuse(element("streams", stream) + ".vary",
                  "has bits of outer_src before its last 32, which are all of IPv4's");
  }
  check(vary::Field::kOuterSrcPort, ends.kind == net::Tunnel::kVxlan,
        "has outer_src_port, and encapsulation is not vxlan");
  check(vary::Field::kOuterFlowLabel, has_source && ends.local.version == 6,
        "has outer_flow_label, and encapsulation no outer header of IPv6");
}

void parse_direction(const Json& json, const std::string& where, uint64_t seed,
                     TrialRequest& request) {
  ObjectReader reader(json, where);
  const std::string name = reader.text("name");
  if (name != "forward" && name != "reverse") reader.refuse("name", "must be forward or reverse");
  const Side from = name == "forward" ? Side::kLeft : Side::kRight;
  dataplane::DirectionSpec& direction = request.spec.from[dataplane::index_of(from)];
  if (direction.active()) reader.refuse("name", "stands twice");
  parse_load(reader, request.spec.duration_ns, direction);
  direction.vlan = reader.vlan_or_none("vlan");
  direction.received_vlan = reader.vlan_or_none("received_vlan");
  direction.labels = reader.labels_or_none("mpls");
  direction.received_labels = reader.labels_or_none("received_mpls");
  direction.outer = reader.encapsulation_or_none("encapsulation");
  direction.received_outer = reader.encapsulation_or_none("received_encapsulation");
  const Json& streams = reader.array("streams", 1, dataplane::kMaxStreams);
  for (size_t i = 0; i < streams.size(); ++i) {
    ParsedStream parsed =
        parse_stream(streams[i], element(reader.path("streams"), i), request.spec, seed);
    check_fields(reader, i, direction, parsed.spec.variations);
    if (parsed.spec.layout.identified && direction.received_outer.bytes() > 0) {
      reader.refuse(element("streams", i) + ".most_pieces", "must be 1 behind outer headers");
    }
    const net::TunnelEnds& ends = direction.received_outer.ends();
    const auto& end = parsed.spec.received_end;
    const bool has_outer =
        ends.kind != net::Tunnel::kNone && end && ends.local.version == end->address.version;
    if (end && end->outer && !has_outer) {
      reader.refuse(element("streams", i) + ".received_end",
                    "is of an outer header, and received_encapsulation has none of its version");
    }
    parsed.spec.layout.vlan = direction.vlan;
    parsed.spec.layout.labels = direction.labels;
    parsed.spec.layout.outer = direction.outer;
    direction.streams.push_back(std::move(parsed.spec));
    request.addressing[dataplane::index_of(from)].push_back(parsed.addressing);
  }
  direction.mix = parse_mix(reader, streams.size());
  for (size_t i = 0; i < streams.size(); ++i) {
    if (i == 0 && direction.streams[i].is_beside()) {
      reader.refuse(element("streams", i) + ".name", "must not be beside: that is the second one");
    }
    if (i > 0 && direction.streams[i].tuples) {
      reader.refuse(element("streams", i) + ".tuples", "are for the first stream only");
    }
    check_enumeration(direction.streams[i], direction.frames_of(i, direction.frames),
                      element(reader.path("streams"), i));
  }
  request.order.push_back(from);
  reader.finish();
}

// A frame that comes back to its sender must not count as received.
bool same_stream_ids(const dataplane::TrialSpec& spec) {
  std::set<uint8_t> ids;
  size_t streams = 0;
  for (const dataplane::DirectionSpec& direction : spec.from) {
    for (const dataplane::StreamSpec& stream : direction.streams) ids.insert(stream.id);
    streams += direction.streams.size();
  }
  return ids.size() < streams;
}

Json to_json(const kernel::InputQueue& queue) {
  return {{"cpu", queue.cpu}, {"dropped", queue.dropped}, {"time_squeeze", queue.time_squeeze}};
}

const char* verdict_name(measure::VerdictKind kind) {
  switch (kind) {
    case measure::VerdictKind::kPass: return "pass";
    case measure::VerdictKind::kFail: return "fail";
    case measure::VerdictKind::kInvalid: return "invalid";
  }
  return "invalid";
}

Json to_json(const measure::Verdict& verdict) {
  Json reasons = Json::array();
  for (const measure::Reason& reason : verdict.reasons) {
    reasons.push_back({{"code", reason.code}, {"message", reason.message}, {"hint", reason.hint}});
  }
  return {{"kind", verdict_name(verdict.kind)}, {"reasons", reasons}};
}

Json to_json(const DirectionResult& direction);
Json to_json(const PortReport& port);

Json to_json(const measure::Stall& stall) {
  return {{"begin_ns", stall.begin_ns},
          {"caught_up_ns", stall.caught_up_ns},
          {"max_lag_ns", stall.max_lag_ns},
          {"away_ns", stall.away_ns},
          {"frames", stall.frames}};
}

Json to_json(const measure::Shadow& shadow) {
  const bool ends = shadow.end_ns != UINT64_MAX;
  return {{"begin_ns", shadow.begin_ns},
          {"end_ns", ends ? Json(shadow.end_ns) : Json()},
          {"of", shadow.of_sender ? "sender" : "receiver"},
          {"may_lose", shadow.may_lose},
          {"frames", shadow.frames != UINT64_MAX ? Json(shadow.frames) : Json()}};
}

Json to_json(const ShareReport& share) {
  return {{"intended", share.intended},
          {"sent", share.sent},
          {"sending_ns", share.sending_ns},
          {"max_lag_ns", share.max_lag_ns},
          {"port_full_ns", share.port_full_ns},
          {"received", share.received},
          {"longest_gap_ns", share.longest_gap_ns}};
}

template <typename T>
Json list_of(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(to_json(value));
  return list;
}

Json to_json(const BesideResult& beside) {
  return {{"intended", beside.intended}, {"sent", beside.sent}, {"received", beside.received}};
}

Json to_json(const DirectionResult& direction) {
  return {{"name", direction_name(direction.from)},
          {"intended_rate_fps", direction.intended_rate_fps},
          {"offered_rate_fps", direction.offered_rate_fps},
          {"sending_ns", direction.sending_ns},
          {"tx_full", direction.tx_full},
          {"port_full_ns", direction.port_full_ns},
          {"ring_full", direction.ring_full},
          {"lag_ns", to_json(*direction.lag_ns)},
          {"burst_frames", to_json(*direction.burst_frames)},
          {"send_call_ns", to_json(*direction.send_call_ns)},
          {"receive_gap_ns", to_json(*direction.receive_gap_ns)},
          {"delay_floor_ns", direction.delay_floor_ns},
          {"delay_bound_ns", direction.delay_bound_ns},
          {"stalls", list_of(direction.stalls)},
          {"shadows", list_of(measure::together(direction.shadows))},
          {"longest_silence", to_json(direction.longest_silence)},
          {"by_share", list_of(direction.by_share)},
          {"streams", list_of(direction.streams)},
          {"beside", direction.beside ? to_json(*direction.beside) : Json()}};
}

Json to_json(const net::IcmpCounts& icmp) {
  Json list = Json::array();
  for (const auto& [kind, frames] : icmp.each()) {
    list.push_back({{"ip_version", kind.ip_version},
                    {"type", kind.type},
                    {"code", kind.code},
                    {"frames", frames}});
  }
  return list;
}

Json to_json(const SlowPathReport& report) {
  return {{"to_tap", report.to_tap}, {"from_tap", report.from_tap}, {"lost", report.lost}};
}

Json to_json(const PortReport& port) {
  return of_port("name", port.id,
                 {{"before", to_json(port.before)},
                  {"after", to_json(port.after)},
                  {"neighbour_requests", port.neighbour_requests},
                  {"neighbour_conflicts", port.neighbour_conflicts},
                  {"foreign", port.foreign},
                  {"icmp", to_json(port.icmp)},
                  {"answers", to_json(port.answers)},
                  {"stale", port.stale},
                  {"misdirected", port.misdirected},
                  {"untranslated", port.untranslated},
                  {"corrupt", port.damaged.total()},
                  {"damaged", to_json(port.damaged)},
                  {"other_vlan", port.other_vlan},
                  {"fragments", port.fragments},
                  {"reassembled", port.reassembled},
                  {"incomplete", port.incomplete},
                  {"announced", port.announced},
                  {"slow_path", port.slow_path ? to_json(*port.slow_path) : Json()},
                  {"handed_over", port.handed_over},
                  {"not_taken_over", port.not_taken_over},
                  {"interface_drops", port.interface_drops},
                  {"send_drops", port.send_drops},
                  {"damaged_on_wire", port.damaged_on_wire}});
}

}  // namespace

std::string direction_name(Side from) { return from == Side::kLeft ? "forward" : "reverse"; }

TrialRequest parse_trial(const Json& params, const std::string& where) {
  ObjectReader reader(params, where);
  TrialRequest request;
  dataplane::TrialSpec& spec = request.spec;
  spec.trial_id = static_cast<uint16_t>(reader.number("trial_id", 1, 65535));
  spec.duration_ns = reader.number("duration_ns", 1, kMaxNs);
  request.settle_ns = reader.number_or("settle_ns", 2'000'000'000, 0, kMaxNs);
  request.announcements = parse_announcements(reader, spec.duration_ns);
  for (const Side side : dataplane::kBothSides) {
    spec.answers[dataplane::index_of(side)] = answers_to(request.announcements, side);
  }
  spec.residual_wait_ns = reader.number_or("residual_wait_ns", 2'000'000'000, 0, kMaxNs);
  spec.burst_limit = static_cast<uint32_t>(reader.number_or("burst_limit", 32, 1, 64));
  spec.lag_limit_ns = reader.number_or("lag_limit_ns", 10'000'000, 0, kMaxNs);
  spec.verify_checksums = reader.flag_or("verify_checksums", true);
  spec.inspect_every =
      reader.number_or("inspect_every", dataplane::kInspectEvery, 0, kMaxInspectEvery);
  const uint64_t seed = reader.number_or("seed", 1, 0, INT64_MAX);
  spec.exchange = parse_exchange(reader, seed, spec.trial_id);
  spec.data = parse_data(reader, seed, spec.trial_id);
  spec.resolution = parse_resolution(reader);
  request.fine_delays = parse_record(reader, spec);
  const Json& directions = reader.array("directions", 1, 2);
  for (size_t i = 0; i < directions.size(); ++i) {
    parse_direction(directions[i], element(reader.path("directions"), i), seed, request);
  }
  spec.from[dataplane::index_of(Side::kRight)].between =
      spec.from[dataplane::index_of(Side::kLeft)].active();
  if (same_stream_ids(spec)) reader.refuse("directions", "must have streams with different ids");
  parse_learn(reader, spec);
  for (const dataplane::DirectionSpec& direction : spec.from) {
    if (!spec.learn || !direction.active() || direction.streams[0].paths() == 1) continue;
    reader.refuse("learn", "is for trials between two ports: a stream has more_paths");
  }
  check_survival(reader, spec);
  check_connections(reader, spec);
  check_tags(reader, spec);
  check_flood(reader, spec);
  if (spec.exchange) {
    check_exchange(reader, spec);
    for (const auto& direction : spec.from) {
      spec.exchange->connections += direction.frames;
      if (direction.active()) note_own_sources(spec.exchange->untranslated, direction.streams[0]);
    }
  }
  if (spec.resolution) {
    check_resolution(reader, spec);
    for (const auto& direction : spec.from) spec.resolution->queries += direction.frames;
  }
  if (spec.data) {
    check_data(reader, spec);
    for (const auto& direction : spec.from) {
      if (!direction.active() || direction.streams[0].is_learned()) continue;
      note_own_sources(spec.data->untranslated, direction.streams[0]);
    }
  }
  reader.finish();
  return request;
}

PreviewParams parse_preview(const Json& params) {
  ObjectReader reader(params, "");
  PreviewParams result;
  result.trial = parse_trial(reader.at("trial"), reader.path("trial"));
  result.count = reader.number("count", 1, 1'000'000);
  result.path = reader.text("path");
  reader.finish();
  return result;
}

Json to_json(const TrialResult& result) {
  return {
      {"trial_id", result.trial_id},
      {"verdict", to_json(result.verdict)},
      {"ended_early", result.ended_early},
      {"shares", result.shares},
      {"one_share_because", result.one_share_because ? Json(*result.one_share_because) : Json()},
      {"directions", list_of(result.directions)},
      {"tcp", result.exchange ? to_json(*result.exchange) : Json()},
      {"dns", result.resolution ? to_json(*result.resolution) : Json()},
      {"ports", list_of(result.ports)},
      {"input_queues", list_of(result.input_queues)},
      {"input_queue_drops", result.input_queue_drops},
      {"neighbours", list_of(result.neighbours)},
      {"table", result.table ? to_json(*result.table) : Json()},
      {"generator", vary::kGeneratorName},
      {"begin_unix_ns", result.begin_unix_ns ? Json(*result.begin_unix_ns) : Json()},
      {"total_ns", result.total_ns},
      {"overhead_ns", result.overhead_ns}};
}

}  // namespace dutperf::control
