#include "account.h"

#include <algorithm>

namespace dutperf::refdut {
namespace {

constexpr std::array<const char*, 8> kCauseNames = {
    "rule", "queue", "routing", "nat", "too_big", "incomplete", "no_buffer", "refused"};

Json by_damage(const DamageLeft& counts) {
  Json json = Json::object();
  for (size_t i = 0; i < counts.size(); ++i) json[kDamageNames[i]] = counts[i];
  return json;
}

Json to_json(const ClassCounts& c) {
  return {{"seen", c.seen},
          {"left", c.left},
          {"copies_left", c.copies_left},
          {"dropped_by_rule", c.dropped_by_rule},
          {"dropped_by_queue", c.dropped_by_queue},
          {"dropped_by_routing", c.dropped_by_routing},
          {"dropped_by_nat", c.dropped_by_nat},
          {"dropped_too_big", c.dropped_too_big},
          {"incomplete", c.incomplete},
          {"delayed", c.delayed},
          {"displaced", c.displaced},
          {"displaced_less", c.displaced_less},
          {"out_of_order", c.out_of_order},
          {"corrupted_left", by_damage(c.corrupted_left)},
          {"corrupted_copies_left", by_damage(c.corrupted_copies_left)},
          {"pieces", piece_counts_json(c.pieces)},
          {"failed_no_buffer", c.failed_no_buffer},
          {"failed_refused", c.failed_refused}};
}

Json to_json(const LossRun& run) {
  return {{"stream", run.stream},   {"cause", kCauseNames[static_cast<size_t>(run.cause)]},
          {"first", run.first},     {"count", run.count},
          {"from_ns", run.from_ns}, {"to_ns", run.to_ns}};
}

uint64_t& counter_of(ClassCounts& counts, LossCause cause) {
  switch (cause) {
    case LossCause::kRule: return counts.dropped_by_rule;
    case LossCause::kQueue: return counts.dropped_by_queue;
    case LossCause::kRouting: return counts.dropped_by_routing;
    case LossCause::kNat: return counts.dropped_by_nat;
    case LossCause::kTooBig: return counts.dropped_too_big;
    case LossCause::kIncomplete: return counts.incomplete;
    case LossCause::kNoBuffer: return counts.failed_no_buffer;
    case LossCause::kRefused: break;
  }
  return counts.failed_refused;
}

}  // namespace

Json Durations::to_json() const {
  Json buckets = Json::array();
  for (const auto& bucket : histogram_.buckets()) {
    buckets.push_back({bucket.lowest, bucket.highest, bucket.count});
  }
  const bool any = histogram_.count() > 0;
  return {{"count", histogram_.count()},
          {"min", any ? Json(histogram_.min()) : Json()},
          {"max", any ? Json(histogram_.max()) : Json()},
          {"sum", sum_ns_},
          {"buckets", std::move(buckets)}};
}

void DirectionAccount::reset() {
  classes_ = {};
  for (Durations& durations : residence_) durations.reset();
  witnessed_ = {};
  readings = {};
  own_error_.reset();
  poll_gap_.reset();
  next_expected_ = {};
  saw_first_.fill(0);
  saw_by_ = 0;
  losses_.clear();
  loss_runs_left_out_ = 0;
  rules.clear();
  queues.clear();
  pieces_reached = 0;
}

void DirectionAccount::lose(bool background, uint8_t stream, uint64_t sequence, uint64_t at_ns,
                            LossCause cause) {
  ++counter_of(classes_[background], cause);
  if (!losses_.empty()) {
    LossRun& last = losses_.back();
    if (last.stream == stream && last.cause == cause && last.first + last.count == sequence) {
      ++last.count;
      last.to_ns = at_ns;
      return;
    }
  }
  if (losses_.size() == kMaxLossRuns) {
    ++loss_runs_left_out_;
  } else {
    losses_.push_back({stream, cause, sequence, 1, at_ns, at_ns});
  }
}

void DirectionAccount::leave(const Departure& departure) {
  ClassCounts& counts = classes_[departure.background];
  const auto damage = static_cast<size_t>(departure.damage);
  if (departure.copy) {
    ++counts.copies_left;
    counts.corrupted_copies_left[damage] += departure.corrupted;
    return;
  }
  ++counts.left;
  residence_[departure.background].record(departure.residence_ns);
  witnessed_[departure.background].add(departure.witnessed_ns);
  own_error_.record(departure.late_ns);
  counts.delayed += departure.delayed;
  counts.pieces.frames += departure.in_pieces;
  counts.displaced += departure.displacement == Displacement::kFull;
  counts.displaced_less += departure.displacement == Displacement::kLess;
  if (departure.corrupted) {
    ++counts.corrupted_left[damage];
    return;
  }
  const size_t way = kMostPairs * departure.in + departure.out;
  uint64_t& expected = next_expected_[way][departure.stream];
  counts.out_of_order += departure.sequence < expected;
  expected = std::max(expected, departure.sequence + 1);
}

Json rule_counts_json(const std::vector<RuleCount>& counts) {
  Json list = Json::array();
  for (const RuleCount& rule : counts) {
    list.push_back({{"reached", rule.reached}, {"chosen", rule.chosen}});
  }
  return list;
}

Json piece_counts_json(const PieceCounts& counts) {
  return {{"frames", counts.frames}, {"left", counts.left}, {"dropped", counts.dropped}};
}

Json DirectionAccount::to_json(Detail detail) const {
  Json queue_counts = Json::array();
  for (const QueueCount& queue : queues) {
    queue_counts.push_back({{"served", queue.served}, {"dropped", queue.dropped}});
  }
  Json json = {{"foreground", refdut::to_json(classes_[0])},
               {"background", refdut::to_json(classes_[1])},
               {"rules", rule_counts_json(rules)},
               {"queues", std::move(queue_counts)}};
  if (detail == Detail::kCounts) return json;
  json["foreground"]["residence_ns"] = residence_[0].to_json();
  json["background"]["residence_ns"] = residence_[1].to_json();
  json["foreground"]["witnessed"] = witnessed_[0].to_json();
  json["background"]["witnessed"] = witnessed_[1].to_json();
  json["readings"] = readings.to_json();
  json["own_error_ns"] = own_error_.to_json();
  json["poll_gap_ns"] = poll_gap_.to_json();
  Json losses = Json::array();
  for (const LossRun& run : losses_) losses.push_back(refdut::to_json(run));
  json["losses"] = std::move(losses);
  json["loss_runs_left_out"] = loss_runs_left_out_;
  return json;
}

void TrialAccount::reset() {
  run = 0;
  trial_id = 0;
  began_ns = last_ns = 0;
  for (DirectionAccount& direction : directions) direction.reset();
}

Json TrialAccount::to_json(Detail detail) const {
  Json json = {{"run", run}, {"trial_id", trial_id}, {"lasted_ns", last_ns - began_ns}};
  for (size_t d = 0; d < directions.size(); ++d) {
    json[kDirectionNames[d]] = directions[d].to_json(detail);
  }
  return json;
}

}  // namespace dutperf::refdut
