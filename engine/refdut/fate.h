// What happens to a frame: a pure function of (seed, trial, direction, rule, how many frames
// the rule has seen), so the same frames have the same fates on every run.
//
// Rules are asked in their order. Each counts the frames that reach it: those that match, come in
// its window and were not dropped by an earlier rule. All counts start at 0 with each trial; those
// of IP packets that are no test frames when the device is configured, as if all were of trial 0.
#pragma once

#include <algorithm>
#include <vector>

#include "behaviour.h"
#include "vary/draw.h"

namespace dutperf::refdut {

// What rules look at.
struct Facts {
  uint8_t stream = 0;
  bool background = false;
  uint64_t since_trial_ns = 0;
  uint64_t since_configured_ns = 0;
  bool other = false;  // no test frame: in no stream, in no trial

  // Of an IP packet that is no test frame.
  static Facts of_other(uint64_t since_configured_ns) {
    return {0, false, since_configured_ns, since_configured_ns, true};
  }
};

struct Fate {
  static constexpr size_t kNone = SIZE_MAX;

  size_t dropped_by = kNone;    // index of the rule; nothing else holds for a dropped frame
  size_t displaced_by = kNone;  // index of the rule; the first one that chose the frame
  uint32_t copies = 0;
  bool corrupted = false;
  Damage damage = Damage::kPayload;  // that of the last rule that chose the frame
  uint64_t damage_draw = 0;
  Alteration alteration;  // of all rules that chose the frame; of two that set the same the later
  uint64_t delay_ns = 0;
};

struct RuleCount {
  uint64_t reached = 0;
  uint64_t chosen = 0;
};

class Rules {
 public:
  Rules() = default;
  Rules(std::vector<Rule> rules, uint64_t seed, Direction direction)
      : rules_(std::move(rules)), seed_(seed), direction_(direction), counts_(rules_.size()) {
    restart(0);
  }

  void restart(uint16_t trial) {
    std::fill(counts_.begin(), counts_.end(), RuleCount{});
    const uint64_t seed = vary::mix64(seed_) + trial;
    key_ = vary::key_of(seed, direction_, 0);
  }

  const std::vector<Rule>& all() const { return rules_; }
  const std::vector<RuleCount>& counts() const { return counts_; }

  Fate decide(const Facts& facts) {
    Fate fate;
    for (size_t i = 0; i < rules_.size(); ++i) {
      const Rule& rule = rules_[i];
      if (!matches(rule.match, facts) || !is_open(rule.when, facts)) continue;
      const uint64_t number = ++counts_[i].reached;
      if (!chooses(rule.choice, number, random(i, number, kChoosing))) continue;
      ++counts_[i].chosen;
      apply(rule.action, i, random(i, number, kActing), fate);
      if (fate.dropped_by != Fate::kNone) break;
    }
    return fate;
  }

 private:
  enum Purpose : uint64_t { kChoosing, kActing };

  static bool matches(const Match& match, const Facts& facts) {
    if (facts.other != (match.kind == Match::Kind::kOther)) return false;
    switch (match.kind) {
      case Match::Kind::kAll: return true;
      case Match::Kind::kForeground: return !facts.background;
      case Match::Kind::kBackground: return facts.background;
      case Match::Kind::kStream: return facts.stream == match.stream;
      case Match::Kind::kOther: return true;
    }
    return false;
  }

  static bool is_open(const Window& window, const Facts& facts) {
    const uint64_t now = window.since_configured ? facts.since_configured_ns : facts.since_trial_ns;
    return now >= window.from_ns && now < window.to_ns;
  }

  static bool chooses(const Choice& choice, uint64_t number, uint64_t random) {
    switch (choice.kind) {
      case Choice::Kind::kAll: return true;
      case Choice::Kind::kEvery: return number % choice.every == 0;
      case Choice::Kind::kRandom: return random < choice.threshold;
    }
    return false;
  }

  static void apply(const Action& action, size_t rule, uint64_t random, Fate& fate) {
    switch (action.kind) {
      case Action::Kind::kDrop: fate.dropped_by = rule; break;
      case Action::Kind::kDuplicate: ++fate.copies; break;
      case Action::Kind::kReorder: fate.displaced_by = std::min(fate.displaced_by, rule); break;
      case Action::Kind::kCorrupt:
        fate.corrupted = true;
        fate.damage = action.damage;
        fate.damage_draw = random;
        break;
      case Action::Kind::kAlter: join(action.alteration, fate.alteration); break;
      case Action::Kind::kDelay: fate.delay_ns += delay(action, random); break;
    }
  }

  static void join(const Alteration& more, Alteration& all) {
    if (more.hops) all.hops = more.hops;
    if (more.dscp) all.dscp = more.dscp;
    all.exchanges |= more.exchanges;
  }

  static uint64_t delay(const Action& action, uint64_t random) {
    const uint64_t size = action.delay_to_ns - action.delay_from_ns + 1;
    return action.delay_from_ns +
           static_cast<uint64_t>((static_cast<unsigned __int128>(random) * size) >> 64);
  }

  uint64_t random(size_t rule, uint64_t number, Purpose purpose) const {
    return vary::draw(vary::mix64(key_ + 2 * rule + purpose), number);
  }

  std::vector<Rule> rules_;
  uint64_t seed_ = 1;
  Direction direction_ = kForward;
  uint64_t key_ = 0;
  std::vector<RuleCount> counts_;
};

}  // namespace dutperf::refdut
