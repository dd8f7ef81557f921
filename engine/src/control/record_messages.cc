#include "control/record_messages.h"

#include <algorithm>

#include "control/limits.h"

namespace dutperf::control {
namespace {

constexpr size_t kMaxTimeouts = measure::kMaxTimeouts - 1;
constexpr uint64_t kMaxIntervals = 1 << 16;
constexpr uint64_t kMaxBlocks = 1 << 16;
constexpr unsigned kCoarseBits = 5;  // 3.2 %

std::vector<uint64_t> parse_timeouts(ObjectReader& record) {
  std::vector<uint64_t> timeouts;
  if (!record.has("frame_timeouts_ns")) return timeouts;
  const Json& list = record.array("frame_timeouts_ns", 0, kMaxTimeouts);
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& timeout = list[i];
    if (!timeout.is_number_unsigned() || timeout < 1 || timeout > kMaxNs) {
      record.refuse(element("frame_timeouts_ns", i), "must be 1 to 2^47 nanoseconds");
    }
    timeouts.push_back(timeout.get<uint64_t>());
    if (i > 0 && timeouts[i] <= timeouts[i - 1]) record.refuse("frame_timeouts_ns", "must rise");
  }
  return timeouts;
}

std::optional<dataplane::TagPlan> parse_tags(ObjectReader& record) {
  if (!record.has("tags") || record.at("tags").is_null()) return std::nullopt;
  ObjectReader reader(record.at("tags"), record.path("tags"));
  dataplane::TagPlan tags;
  tags.first_ns = reader.number_or("first_ns", 60'000'000'000, 0, kMaxNs);
  tags.count = reader.number_or("count", 50'000, 1, 1'000'000);
  reader.finish();
  return tags;
}

uint64_t intervals_of(uint64_t duration_ns, uint64_t interval_ns) {
  return (duration_ns + interval_ns - 1) / interval_ns;
}

const Json& empty_object() {
  static const Json empty = Json::object();
  return empty;
}

// The recorder's own resolution, or a coarser one.
measure::AroundOrigin resolved(const measure::AroundOrigin& values, bool fine) {
  if (fine) return values;
  return {values.origin, values.below.coarser(kCoarseBits), values.above.coarser(kCoarseBits)};
}

Json tags_json(const std::vector<uint64_t>& delays_ns, const std::vector<uint64_t>& shaded) {
  Json list = Json::array();
  uint64_t lost = 0;
  for (const uint64_t delay_ns : delays_ns) {
    const bool is_lost = delay_ns == measure::TagDelays::kLost;
    lost += is_lost ? 1 : 0;
    list.push_back(is_lost ? Json() : Json(delay_ns));
  }
  return {{"lost", lost}, {"delays_ns", std::move(list)}, {"shaded", shaded}};
}

}  // namespace

bool parse_record(ObjectReader& trial, dataplane::TrialSpec& spec) {
  if (trial.has("frame_timeout_ns") && !trial.at("frame_timeout_ns").is_null()) {
    spec.frame_timeout_ns = trial.number("frame_timeout_ns", 1, kMaxNs);
  }
  spec.loss_tolerance_ppb = trial.number_or("loss_tolerance_ppb", 0, 0, 999'999'999);
  spec.stop_when_lost = trial.flag_or("stop_when_lost", false);
  const bool given = trial.has("record");
  ObjectReader reader(given ? trial.at("record") : empty_object(), trial.path("record"));
  measure::RecordSpec& record = spec.record;
  spec.slower_ns = parse_timeouts(reader);
  record.timeouts_ns = spec.slower_ns;
  if (spec.frame_timeout_ns) {
    record.timeouts_ns.push_back(*spec.frame_timeout_ns);
    std::sort(record.timeouts_ns.begin(), record.timeouts_ns.end());
  }
  spec.tags = parse_tags(reader);
  record.ipdv = reader.flag_or("ipdv", false);
  const bool fine = reader.flag_or("fine_delays", false);
  record.series_interval_ns =
      reader.number_or("series_interval_ns", 100'000'000, 1'000'000, kMaxNs);
  record.series_intervals = intervals_of(spec.duration_ns, record.series_interval_ns);
  record.reordering_distance = reader.number_or("reordering_distance", 0, 0, kMaxFrames - 1);
  record.tracking_bytes = reader.number_or("tracking_mb", 1024, 1, 1 << 20) << 20;
  spec.survival_blocks = reader.number_or("survival_blocks", 0, 0, kMaxBlocks);
  spec.connection_blocks = reader.number_or("connection_blocks", 0, 0, kMaxBlocks);
  reader.finish();
  if (record.series_intervals > kMaxIntervals) {
    reader.refuse("series_interval_ns", "makes " + std::to_string(record.series_intervals) +
                                            " intervals of the duration, more than " +
                                            std::to_string(kMaxIntervals));
  }
  if (spec.tags && spec.tags->first_ns >= spec.duration_ns) {
    reader.refuse("tags.first_ns", "is not before the end of the trial");
  }
  return fine;
}

void check_tags(const ObjectReader& trial, const dataplane::TrialSpec& spec) {
  if (!spec.tags) return;
  for (const dataplane::Side side : dataplane::kBothSides) {
    if (!spec.from[dataplane::index_of(side)].active()) continue;
    const uint64_t taggable = spec.tags_of(side, 0).span;
    if (taggable < spec.tags->count) {
      trial.refuse("record.tags.count", "is more than the " + std::to_string(taggable) +
                                            " foreground frames after first_ns");
    }
  }
}

void check_survival(const ObjectReader& trial, const dataplane::TrialSpec& spec) {
  if (spec.survival_blocks == 0 && spec.connection_blocks == 0) return;
  const char* const key =
      spec.survival_blocks > 0 ? "record.survival_blocks" : "record.connection_blocks";
  for (const dataplane::Side side : dataplane::kBothSides) {
    for (size_t i = 0; i < dataplane::kMaxStreams; ++i) {
      if (spec.frames_of(side, i) > 8 * spec.record.tracking_bytes) {
        trial.refuse(key, "needs a bit for each frame: raise tracking_mb");
      }
    }
  }
}

void check_connections(const ObjectReader& trial, const dataplane::TrialSpec& spec) {
  if (spec.connection_blocks == 0) return;
  for (const dataplane::DirectionSpec& direction : spec.from) {
    if (!direction.active()) continue;
    const std::optional<vary::Tuples>& tuples = direction.streams[0].tuples;
    if (tuples && tuples->order == vary::IndexOrder::kIncreasing && spec.learn &&
        tuples->count == spec.learn->entries) {
      continue;
    }
    trial.refuse("record.connection_blocks",
                 "needs learn, and foregrounds of increasing tuples, as many as its entries");
  }
}

Distribution distribution_of(const measure::Histogram& histogram) {
  static const measure::Histogram nothing(1);
  return distribution_of(measure::AroundOrigin{0, nothing, histogram});
}

Distribution distribution_of(const measure::AroundOrigin& values) {
  const auto number = [](uint64_t value) {
    return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
  };
  const int64_t origin = number(values.origin);
  const auto below = [&](uint64_t distance) { return origin - number(distance); };
  const auto above = [&](uint64_t distance) { return number(values.origin + distance); };
  Distribution result;
  result.count = values.count();
  if (result.count == 0) return result;
  const measure::Histogram& lower = values.below;
  const measure::Histogram& upper = values.above;
  result.min = lower.count() > 0 ? below(lower.max()) : above(upper.min());
  result.max = upper.count() > 0 ? above(upper.max()) : below(lower.min());
  const auto falling = lower.buckets();
  for (auto bucket = falling.rbegin(); bucket != falling.rend(); ++bucket) {
    result.buckets.push_back({below(bucket->highest), below(bucket->lowest), bucket->count});
  }
  for (const auto& bucket : upper.buckets()) {
    result.buckets.push_back({above(bucket.lowest), above(bucket.highest), bucket.count});
  }
  return result;
}

void add_recorded(const dataplane::TrialSpec& spec, const measure::StreamRecorder& recorder,
                  bool fine, StreamResult& result) {
  const measure::SequenceTracker& tracker = recorder.tracker();
  const measure::Delays& delays = recorder.delays();
  result.received = tracker.received();
  result.duplicate = tracker.duplicate();
  result.reordered = tracker.reordered();
  result.window_frames = tracker.window_frames();
  result.unplaced = tracker.unplaced();
  result.loss_runs = distribution_of(tracker.loss_runs());
  result.damaged = recorder.damaged();
  result.negative_delays = delays.negative();
  if (spec.frame_timeout_ns) {
    result.late = delays.slower_than(*spec.frame_timeout_ns);
    result.late_in_shadow = delays.slower_shaded(*spec.frame_timeout_ns);
  }
  for (const uint64_t timeout_ns : spec.slower_ns) {
    result.slower.push_back({timeout_ns, delays.slower_than(timeout_ns)});
  }
  result.delay_ns = distribution_of(resolved(delays.around_origin(), fine));
  result.shaded_delay_ns = distribution_of(resolved(delays.shaded_around_origin(), fine));
  if (const measure::DelayVariation* variation = recorder.variation()) {
    result.ipdv_ns = distribution_of(resolved(variation->around_zero(), fine));
    result.shaded_ipdv_ns = distribution_of(resolved(variation->shaded_around_zero(), fine));
  }
  if (const measure::TagDelays* tags = recorder.tags()) {
    result.tags_ns = tags->delays_ns();
    result.shaded_tags = tags->shaded();
  }
  result.series_interval_ns = recorder.received_by_time().interval_ns();
  result.received_by_time = recorder.received_by_time().counts();
  if (spec.survival_blocks > 0) {
    result.survival =
        measure::survival_of(tracker, result.intended, result.sent, spec.survival_blocks);
  }
}

Json to_json(const Distribution& distribution) {
  Json buckets = Json::array();
  for (const Distribution::Bucket& bucket : distribution.buckets) {
    buckets.push_back({bucket.lowest, bucket.highest, bucket.count});
  }
  const bool empty = distribution.count == 0;
  return {{"count", distribution.count},
          {"min", empty ? Json() : Json(distribution.min)},
          {"max", empty ? Json() : Json(distribution.max)},
          {"buckets", std::move(buckets)}};
}

Json to_json(const measure::Histogram& histogram) { return to_json(distribution_of(histogram)); }

Json to_json(const net::DamageCounts& damaged) {
  Json json = Json::object();
  for (size_t i = 0; i < net::kDamageNames.size(); ++i) {
    json[net::kDamageNames[i]] = damaged[static_cast<net::Damage>(i)];
  }
  return json;
}

Json to_json(const net::Inspected& inspected) {
  const auto known = [](std::optional<uint8_t> value) { return value ? Json(*value) : Json(); };
  return {{"frames", inspected.frames},
          {"ttl", inspected.ttl},
          {"dscp", inspected.dscp},
          {"payload", inspected.payload},
          {"least_ttl", known(inspected.least_ttl)},
          {"most_ttl", known(inspected.most_ttl)},
          {"other_dscp", known(inspected.other_dscp)}};
}

Json to_json(const ConnectionsResult& connections) {
  const measure::ConnectionGaps& gaps = connections.gaps;
  Json tenths = Json::array();
  for (const measure::ConnectionGaps::Tenth& tenth : gaps.tenths) {
    tenths.push_back({tenth.connections, tenth.back, tenth.open});
  }
  Json named = Json::array();
  for (size_t i = 0; i < gaps.named.size(); ++i) {
    const bool known = i < connections.tuples.size() && connections.tuples[i];
    named.push_back({{"connection", gaps.named[i].connection},
                     {"lost", gaps.named[i].lost},
                     {"ends", known ? to_json(*connections.tuples[i]) : Json()}});
  }
  return {{"tenths", std::move(tenths)},
          {"back_lost", to_json(gaps.back_lost)},
          {"open_lost", to_json(gaps.open_lost)},
          {"last_back", gaps.last_back > 0 ? Json(gaps.last_back) : Json()},
          {"named", std::move(named)},
          {"block_frames", gaps.block_frames},
          {"out", gaps.out}};
}

Json to_json(const StreamResult& stream) {
  Json slower = Json::array();
  for (const StreamResult::Slower& entry : stream.slower) {
    slower.push_back({{"timeout_ns", entry.timeout_ns}, {"frames", entry.frames}});
  }
  return {{"id", stream.id},
          {"name", stream.background ? "background" : "foreground"},
          {"intended", stream.intended},
          {"sent", stream.sent},
          {"received", stream.received},
          {"lost", stream.sent - stream.received},
          {"duplicate", stream.duplicate},
          {"reordered", stream.reordered},
          {"late", stream.late},
          {"lost_in_shadow", stream.lost_in_shadow},
          {"late_in_shadow", stream.late_in_shadow},
          {"slower", std::move(slower)},
          {"corrupt", stream.damaged.total()},
          {"damaged", to_json(stream.damaged)},
          {"inspected", to_json(stream.inspected)},
          {"negative_delays", stream.negative_delays},
          {"window_frames", stream.window_frames > 0 ? Json(stream.window_frames) : Json()},
          {"unplaced", stream.unplaced},
          {"delay_ns", to_json(stream.delay_ns)},
          {"shaded_delay_ns", to_json(stream.shaded_delay_ns)},
          {"ipdv_ns", stream.ipdv_ns ? to_json(*stream.ipdv_ns) : Json()},
          {"shaded_ipdv_ns", stream.shaded_ipdv_ns ? to_json(*stream.shaded_ipdv_ns) : Json()},
          {"tags", stream.tags_ns ? tags_json(*stream.tags_ns, stream.shaded_tags) : Json()},
          {"series",
           {{"interval_ns", stream.series_interval_ns},
            {"sent", stream.sent_by_time},
            {"received", stream.received_by_time}}},
          {"loss_runs", to_json(stream.loss_runs)},
          {"longest_loss", to_json(stream.longest_loss)},
          {"last_loss", to_json(stream.last_loss)},
          {"survival", stream.survival ? to_json(*stream.survival) : Json()},
          {"connections", stream.connections ? to_json(*stream.connections) : Json()}};
}

}  // namespace dutperf::control
