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

// What an entry has in a row, as it stood in the packet.
struct Row {
  std::array<uint8_t, 36> bytes{};
  uint32_t address_bytes;

  uint8_t* destination() { return bytes.data() + address_bytes; }
  uint8_t* ports() { return bytes.data() + 2 * address_bytes; }
};

// Of numbers whose first byte is the highest; what does not fit is lost.
void add(uint8_t* number, const uint8_t* added, uint32_t size) {
  uint32_t carry = 0;
  for (uint32_t at = size; at-- > 0; carry >>= 8) {
    carry += uint32_t{number[at]} + added[at];
    number[at] = static_cast<uint8_t>(carry);
  }
}

std::optional<Row> row_of(const state::TupleTable& tuples, uint64_t index) {
  state::Entries entries;
  tuples.read(&index, 1, entries);
  Row row{.address_bytes = tuples.ip_version() == 4 ? 4U : 16U};
  for (uint32_t at = 0; at < 2 * row.address_bytes; at += 8) {
    std::memcpy(row.bytes.data() + at, &entries.addresses[at / 8][0], 8);
  }
  std::memcpy(row.ports(), &entries.ports[0], 4);
  const bool empty = std::ranges::all_of(row.bytes, [](uint8_t byte) { return byte == 0; });
  return empty ? std::nullopt : std::optional(row);
}

std::optional<LearnedTuple> tuple_of(const state::TupleTable& tuples, uint64_t index) {
  std::optional<Row> row = row_of(tuples, index);
  if (!row) return std::nullopt;
  const auto port = [&](uint32_t at) {
    return static_cast<uint16_t>(row->ports()[at] << 8 | row->ports()[at + 1]);
  };
  return LearnedTuple{net::IpAddress::from_bytes(tuples.ip_version(), row->bytes.data()),
                      net::IpAddress::from_bytes(tuples.ip_version(), row->destination()), port(0),
                      port(2)};
}

// Whom the responder saw send the first frame that it learned. A table may hold hundreds of
// millions of entries: where so many of the first ones are empty, the others are not looked at.
std::optional<net::IpAddress> first_source(const state::TupleTable& tuples) {
  constexpr uint64_t kLookedAt = 65'536;
  const uint64_t end = std::min(tuples.entries(), kLookedAt);
  for (uint64_t index = 0; index < end; ++index) {
    if (const std::optional<LearnedTuple> tuple = tuple_of(tuples, index)) return tuple->source;
  }
  return std::nullopt;
}

std::vector<std::optional<LearnedTuple>> first_tuples(const state::TupleTable& tuples,
                                                      uint64_t count) {
  std::vector<std::optional<LearnedTuple>> told;
  for (uint64_t index = 0; index < std::min(count, tuples.entries()); ++index) {
    told.push_back(tuple_of(tuples, index));
  }
  return told;
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
  if (spec.learn) result.told = first_tuples(table.tuples, spec.learn->told);
  elsewhere_.reset();
  if (table.start_tsc == 0) drop();  // the trial that should have filled it never began
  return result;
}

void LearnedTable::name(ConnectionsResult& connections) const {
  for (const measure::ConnectionGaps::Named& named : connections.gaps.named) {
    connections.tuples.push_back(table_ ? tuple_of(table_->tuples, named.connection)
                                        : std::nullopt);
  }
}

LearnedTable::Table& LearnedTable::existing() const {
  if (table_) return *table_;
  throw ProtocolError(kStateError, "there is no table: no trial has learned one", kPhase1First);
}

void LearnedTable::make(const LearnSpec& learn) {
  drop();  // its memory may be needed
  table_ = allocated(learn);
}

std::unique_ptr<LearnedTable::Table> LearnedTable::allocated(const LearnSpec& learn) {
  const uint64_t bytes = state::TupleTable::bytes_for(learn.ip_version, learn.entries);
  // What runs beside the tester needs some, too.
  const uint64_t available = state::TableMemory::available_bytes() / 10 * 9;
  if (bytes > available) refuse_size(learn, bytes, available);
  try {
    return std::make_unique<Table>(learn);
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

// Made before the first frame, so that the send loop knows nothing of it.
const state::TupleTable& LearnedTable::seen_from(const vary::Tuples& elsewhere) {
  const state::TupleTable& tuples = table_->tuples;
  if (!elsewhere.is_elsewhere()) return tuples;
  LearnSpec same{.from = table_->learned_from, .ip_version = tuples.ip_version()};
  same.entries = tuples.entries();
  elsewhere_ = allocated(same);
  state::Learner learner(elsewhere_->tuples);
  for (uint64_t index = 0; index < tuples.entries(); ++index) {
    std::optional<Row> row = row_of(tuples, index);
    if (!row) continue;
    // The responder is the destination.
    const std::array port{static_cast<uint8_t>(elsewhere.port_added >> 8),
                          static_cast<uint8_t>(elsewhere.port_added)};
    add(row->ports() + 2, port.data(), 2);
    if (elsewhere.address_added) {
      add(row->destination(), elsewhere.address_added->bytes.data(), row->address_bytes);
    }
    const uint8_t* const bytes = row->bytes.data();
    learner.learn(&bytes, &index, 1);
  }
  return elsewhere_->tuples;
}

void LearnedTable::use(StreamSpec& stream) {
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
  stream.tuples->table = &seen_from(*stream.tuples);
}

void refuse_learned(const TrialSpec& spec) {
  for (const dataplane::DirectionSpec& direction : spec.from) {
    if (!direction.active() || !direction.streams[0].is_learned()) continue;
    throw ProtocolError(kStateError, "frames of learned four-tuples are not known before phase 1");
  }
}

}  // namespace dutperf::control
