#include "control/tuple_messages.h"

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "control/limits.h"
#include "net/byte_order.h"
#include "state/table_memory.h"

namespace dutperf::control {
namespace {

using dataplane::LearnSpec;
using dataplane::Side;
using dataplane::StreamSpec;
using vary::IndexOrder;
using vary::IndexSource;

constexpr NamesOf<IndexSource, 3> kSources = {{
    {"generated", IndexSource::kGenerated},
    {"learned", IndexSource::kLearned},
    {"given", IndexSource::kGiven},
}};
constexpr NamesOf<IndexOrder, 6> kIndexOrders = {{
    {"once", IndexOrder::kOnce},
    {"first", IndexOrder::kFirst},
    {"increasing", IndexOrder::kIncreasing},
    {"decreasing", IndexOrder::kDecreasing},
    {"random", IndexOrder::kRandom},
    {"shuffled", IndexOrder::kShuffled},
}};
constexpr uint64_t kMostTold = 65'536;
constexpr NamesOf<Side, 2> kDirections = {{{"forward", Side::kLeft}, {"reverse", Side::kRight}}};

void check_of_table(const ObjectReader& stream, const vary::Variations& variations) {
  using vary::Field;
  const auto check = [&](Field field) {
    if (field == Field::kSrcIp || field == Field::kDstIp || field == Field::kSrcPort ||
        field == Field::kDstPort) {
      stream.refuse("tuples", "are of a table: addresses and ports must not vary");
    }
  };
  for (const vary::Variation& variation : variations.list) check(variation.field);
  for (const vary::Copy& copy : variations.copies) check(copy.to);
}

void check_generated(const ObjectReader& stream, const vary::Variations& variations,
                     const vary::Tuples& tuples) {
  if (!variations.enumerates()) {
    stream.refuse("tuples", "are generated, but vary enumerates nothing");
  }
  if (tuples.first + tuples.count > variations.combinations()) {
    stream.refuse("tuples.count", "and first are more than the " +
                                      std::to_string(variations.combinations()) +
                                      " combinations that vary enumerates");
  }
}

struct GivenTable {
  GivenTable(int ip_version, uint64_t entries)
      : memory(state::TupleTable::bytes_for(ip_version, entries), state::Pages::kSmall),
        tuples(ip_version, entries, memory.data()) {}

  state::TableMemory memory;
  state::TupleTable tuples;
};

// An entry of a table, whose ends are swapped when it is sent.
std::array<uint8_t, state::TupleTable::bytes_per_entry(6)> parse_flow(const Json& json,
                                                                      const std::string& where,
                                                                      int ip_version) {
  ObjectReader reader(json, where);
  std::array<uint8_t, state::TupleTable::bytes_per_entry(6)> entry{};
  uint8_t* place = entry.data();
  for (const char* const key : {"dst_ip", "src_ip"}) {
    const net::IpAddress address = reader.ip(key);
    if (address.version != ip_version) {
      reader.refuse(key, "is not an IPv" + std::to_string(ip_version) + " address");
    }
    std::memcpy(place, address.bytes.data(), address.size());
    place += address.size();
  }
  for (const char* const key : {"dst_port", "src_port"}) {
    const net::Be16 port = static_cast<uint16_t>(reader.number(key, 0, 65535));
    std::memcpy(place, &port, sizeof(port));
    place += sizeof(port);
  }
  reader.finish();
  return entry;
}

// The table that comes with the request: entry k is the flow of frame k.
std::shared_ptr<const state::TupleTable> parse_given(ObjectReader& tuples, int ip_version,
                                                     uint64_t count) {
  std::vector<std::array<uint8_t, state::TupleTable::bytes_per_entry(6)>> flows;
  const Json& listed = tuples.array("flows", 1, kMaxSequence);
  for (size_t i = 0; i < listed.size(); ++i) {
    flows.push_back(parse_flow(listed[i], element(tuples.path("flows"), i), ip_version));
  }
  const Json& sequence = tuples.array("sequence", 1, kMaxSequence);
  if (sequence.size() != count) tuples.refuse("count", "must be that of the numbers in sequence");
  const auto table = std::make_shared<GivenTable>(ip_version, count);
  state::Learner filling(table->tuples);
  for (uint64_t k = 0; k < count; ++k) {
    const Json& number = sequence[k];
    if (!number.is_number_unsigned() || number.get<uint64_t>() >= flows.size()) {
      tuples.refuse(element("sequence", k), "must be the number of a flow, counted from 0");
    }
    const uint8_t* const entry = flows[number.get<uint64_t>()].data();
    filling.learn(&entry, &k, 1);
  }
  return {table, &table->tuples};
}

std::optional<state::ExpectedSources> parse_expected(ObjectReader& learn, int ip_version) {
  if (!learn.has("expected") || learn.at("expected").is_null()) return std::nullopt;
  ObjectReader reader(learn.at("expected"), learn.path("expected"));
  const state::ExpectedSources expected{reader.ip("first"), reader.ip("last")};
  reader.finish();
  if (expected.first.version != ip_version || expected.last.version != ip_version) {
    learn.refuse("expected", "must hold IPv" + std::to_string(ip_version) + " addresses");
  }
  if (expected.last < expected.first) {
    learn.refuse("expected", "must not have last before first");
  }
  return expected;
}

bool sends_learned(const dataplane::DirectionSpec& direction) {
  return direction.active() && direction.streams[0].is_learned();
}

// A learned frame's number must tell which tuple it carries, and a new table must become full.
void check_learn(const ObjectReader& learn, const dataplane::TrialSpec& spec) {
  const LearnSpec& wanted = *spec.learn;
  const dataplane::DirectionSpec& direction = spec.from[dataplane::index_of(wanted.from)];
  if (!direction.active()) learn.refuse("direction", "is one in which nothing is sent");
  const StreamSpec& stream = direction.streams[0];
  if (stream.is_learned() || stream.given) {
    learn.refuse("direction", "has frames that were learned before, or given");
  }
  if (wanted.keep) return;
  if (spec.not_before_ns > 0 || sends_learned(spec.from[0]) || sends_learned(spec.from[1])) {
    learn.refuse("keep", "must be true: a new table has nothing to send, nor a start");
  }
  const uint64_t frames = spec.frames_of(wanted.from, 0);
  if (wanted.entries > frames) {
    learn.refuse("entries", "are more than the " + std::to_string(frames) + " frames can fill");
  }
}

}  // namespace

void parse_tuples(ObjectReader& stream, StreamSpec& spec) {
  if (!stream.has("tuples") || stream.at("tuples").is_null()) return;
  ObjectReader reader(stream.at("tuples"), stream.path("tuples"));
  vary::Tuples tuples;
  tuples.source = reader.name("source", kSources);
  tuples.count = reader.number("count", 1, vary::IndexDraw::kMaxCount);
  tuples.order = reader.name_or("order", "random", kIndexOrders);
  tuples.first = reader.number_or("first", 0, 0, vary::Permutation::kMaxSize - 1);
  tuples.port_added = static_cast<uint16_t>(reader.number_or("port_added", 0, 0, UINT16_MAX));
  if (reader.has("address_added") && !reader.at("address_added").is_null()) {
    tuples.address_added = reader.ip("address_added");
    if (tuples.address_added->version != spec.layout.ip_version) {
      reader.refuse("address_added", "must be of the stream's IP version");
    }
  }
  if (tuples.source == IndexSource::kGiven) {
    if (tuples.order != IndexOrder::kIncreasing) {
      reader.refuse("order", "must be increasing: the flows are given in their order");
    }
    spec.given = parse_given(reader, spec.layout.ip_version, tuples.count);
    tuples.table = spec.given.get();
  }
  reader.finish();
  if (tuples.is_elsewhere() && tuples.source != IndexSource::kLearned) {
    stream.refuse("tuples", "are not learned: port_added and address_added are of such");
  }
  if (tuples.are_of_table()) {
    if (tuples.first > 0) stream.refuse("tuples.first", "must be 0: tuples are of a table");
    check_of_table(stream, spec.variations);
  } else {
    check_generated(stream, spec.variations, tuples);
  }
  spec.tuples = tuples;
}

void parse_learn(ObjectReader& trial, dataplane::TrialSpec& spec) {
  spec.not_before_ns = trial.number_or("not_before_ns", 0, 0, kMaxNs);
  if (!trial.has("learn") || trial.at("learn").is_null()) return;
  ObjectReader reader(trial.at("learn"), trial.path("learn"));
  LearnSpec learn;
  learn.from = reader.name("direction", kDirections);
  learn.ip_version = reader.ip_version("ip_version");
  learn.entries = reader.number("entries", 1, vary::IndexDraw::kMaxCount);
  learn.keep = reader.flag_or("keep", false);
  learn.told = reader.number_or("told", 0, 0, kMostTold);
  learn.expected = parse_expected(reader, learn.ip_version);
  reader.finish();
  spec.learn = learn;
  check_learn(reader, spec);
}

Json to_json(const measure::Survival& survival) {
  Json ranges = Json::array();
  for (const auto& [first, count] : survival.lost_ranges) ranges.push_back({first, count});
  return {{"block_frames", survival.block_frames},
          {"received", survival.received},
          {"lost_ranges", std::move(ranges)},
          {"more_ranges", survival.more_ranges}};
}

Json to_json(const LearnedTuple& tuple) {
  return {tuple.source.text(), tuple.source_port, tuple.destination.text(), tuple.destination_port};
}

Json to_json(const TableResult& table) {
  Json told = Json::array();
  for (const std::optional<LearnedTuple>& tuple : table.told) {
    told.push_back(tuple ? to_json(*tuple) : Json());
  }
  const auto text = [](const std::optional<net::IpAddress>& address) {
    return address ? Json(address->text()) : Json();
  };
  return {{"ip_version", table.ip_version},
          {"entries", table.entries},
          {"filled", table.filled},
          {"bytes_per_entry", table.bytes_per_entry},
          {"memory_bytes", table.memory_bytes},
          {"hugepages", table.hugepages},
          {"allocation_ns", table.allocation_ns},
          {"learned", table.learned},
          {"changed", table.changed},
          {"unexpected", table.unexpected},
          {"unexpected_example", text(table.unexpected_example)},
          {"source_example", text(table.source_example)},
          {"unlearned_sent", table.unlearned_sent},
          {"since_learning_ns", table.since_learning_ns},
          {"told", std::move(told)}};
}

}  // namespace dutperf::control
