#include "control/learned_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>

namespace dutperf::control {
namespace {

using dataplane::LearnSpec;
using dataplane::Side;
using dataplane::StreamSpec;
using dataplane::TrialSpec;

constexpr const char* kPhase1First = "run phase 1 first: a trial with learn and keep false";

// The stream of a side that sends what the table holds.
StreamSpec* learned_stream(TrialSpec& spec, Side side) {
  dataplane::DirectionSpec& direction = spec.from[index_of(side)];
  return direction.active() && direction.streams[0].is_learned() ? &direction.streams[0] : nullptr;
}

const char* name_of_direction(Side from) { return from == Side::kLeft ? "forward" : "reverse"; }

std::string mebibytes(uint64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20); }

[[noreturn]] void refuse_size(const LearnSpec& learn, uint64_t bytes, uint64_t available) {
  throw ProtocolError(kEnvironmentError,
                      "the table of " + std::to_string(learn.entries) + " four-tuples needs " +
                          mebibytes(bytes) + " MiB (" +
                          std::to_string(state::TupleTable::bytes_per_entry(learn.ip_version)) +
                          " bytes for each of IPv" + std::to_string(learn.ip_version) + "), " +
                          std::to_string(available >> 20) + " MiB are available",
                      "open fewer connections, or use a machine with more memory");
}

// Whom the responder saw send the first frame that it learned. A table may hold hundreds of
// millions of entries: where so many of the first ones are empty, the others are not looked at.
std::optional<net::IpAddress> first_source(const state::TupleTable& tuples) {
  constexpr uint64_t kLookedAt = 65'536;
  const uint64_t end = std::min(tuples.entries(), kLookedAt);
  state::Entries row;
  for (uint64_t index = 0; index < end; ++index) {
    tuples.read(&index, 1, row);
    if (row.ports[0] == 0 && row.addresses[0][0] == 0) continue;
    std::array<uint8_t, 16> bytes{};
    std::memcpy(bytes.data(), &row.addresses[0][0], 8);
    std::memcpy(bytes.data() + 8, &row.addresses[1][0], 8);
    return net::IpAddress::from_bytes(tuples.ip_version(), bytes.data());
  }
  return std::nullopt;
}

}  // namespace

LearnedTable::Table::Table(const LearnSpec& learn)
    : memory(state::TupleTable::bytes_for(learn.ip_version, learn.entries)),
      tuples(learn.ip_version, learn.entries, memory.data()),
      learned_from(learn.from) {}

void LearnedTable::prepare(TrialSpec& spec) {
  if (spec.learn && !spec.learn->keep) make(*spec.learn);
  if (spec.learn && spec.learn->keep) check_kept(*spec.learn);
  if (spec.learn) spec.learn->table = &table_->tuples;
  for (const Side side : dataplane::kBothSides) {
    if (StreamSpec* stream = learned_stream(spec, side)) use(*stream);
  }
  if (spec.not_before_ns > 0) {
    spec.not_before_tsc = existing().start_tsc + clock_.to_tsc(spec.not_before_ns) + 1;  // up
  }
}

std::optional<TableResult> LearnedTable::finish(const TrialSpec& spec,
                                                const dataplane::TrialRun& run) {
  const auto is_learned = [](const dataplane::DirectionSpec& direction) {
    return direction.active() && direction.streams[0].is_learned();
  };
  if (!spec.learn && !is_learned(spec.from[0]) && !is_learned(spec.from[1])) return std::nullopt;
  Table& table = *table_;
  const bool is_new = spec.learn && !spec.learn->keep;
  if (is_new) table.start_tsc = run.start_tsc();
  const state::Learner::Counts learned = run.learned();
  table.filled += learned.filled;
  TableResult result;
  result.ip_version = table.tuples.ip_version();
  result.entries = table.tuples.entries();
  result.filled = table.filled;
  result.bytes_per_entry = state::TupleTable::bytes_per_entry(result.ip_version);
  result.memory_bytes = table.memory.bytes();
  result.hugepages = table.memory.hugepages();
  result.allocation_ns = is_new ? table.memory.allocation_ns() : 0;
  result.learned = learned.learned;
  result.changed = learned.changed;
  result.unexpected = learned.unexpected;
  result.unexpected_example = learned.unexpected_example;
  result.source_example = first_source(table.tuples);
  result.unlearned_sent = run.unlearned();
  result.since_learning_ns =
      clock_.to_ns(run.start_tsc() - std::min(run.start_tsc(), table.start_tsc));
  if (table.start_tsc == 0) drop();  // the trial that should have filled it never began
  return result;
}

LearnedTable::Table& LearnedTable::existing() const {
  if (table_) return *table_;
  throw ProtocolError(kStateError, "there is no table: no trial has learned one", kPhase1First);
}

void LearnedTable::make(const LearnSpec& learn) {
  drop();  // its memory may be needed
  const uint64_t bytes = state::TupleTable::bytes_for(learn.ip_version, learn.entries);
  // What runs beside the tester needs some, too.
  const uint64_t available = state::TableMemory::available_bytes() / 10 * 9;
  if (bytes > available) refuse_size(learn, bytes, available);
  try {
    table_ = std::make_unique<Table>(learn);
  } catch (const std::bad_alloc&) {
    refuse_size(learn, bytes, available);
  }
}

void LearnedTable::check_kept(const LearnSpec& learn) const {
  const Table& table = existing();
  if (learn.entries == table.tuples.entries() && learn.ip_version == table.tuples.ip_version() &&
      learn.from == table.learned_from) {
    return;
  }
  throw ProtocolError(kStateError,
                      "learn: the table has " + std::to_string(table.tuples.entries()) +
                          " entries of IPv" + std::to_string(table.tuples.ip_version()) +
                          ", learned " + name_of_direction(table.learned_from),
                      kPhase1First);
}

void LearnedTable::use(StreamSpec& stream) const {
  const state::TupleTable& tuples = existing().tuples;
  if (stream.tuples->count > tuples.entries()) {
    throw ProtocolError(kStateError, "tuples.count " + std::to_string(stream.tuples->count) +
                                         " is more than the table's " +
                                         std::to_string(tuples.entries()) + " entries");
  }
  if (stream.layout.ip_version != tuples.ip_version()) {
    throw ProtocolError(
        kStateError, "the table is one of IPv" + std::to_string(tuples.ip_version()) + " tuples");
  }
  stream.tuples->table = &tuples;
}

void refuse_learned(const TrialSpec& spec) {
  for (const dataplane::DirectionSpec& direction : spec.from) {
    if (!direction.active() || !direction.streams[0].is_learned()) continue;
    throw ProtocolError(kStateError, "frames of learned four-tuples are not known before phase 1");
  }
}

}  // namespace dutperf::control
