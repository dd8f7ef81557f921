// What a stateful trial sends and learns (see dutperf/protocol/tuple_messages.py): parsing of the
// request's wishes, writing of what became of them. Throws ProtocolError.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "control/json.h"
#include "dataplane/trial_spec.h"
#include "measure/survival.h"

namespace dutperf::control {

// Reads `tuples` of a stream whose variations are known already.
void parse_tuples(ObjectReader& stream, dataplane::StreamSpec& spec);

// Reads `learn` and `not_before_ns` of a trial whose directions are known already.
void parse_learn(ObjectReader& trial, dataplane::TrialSpec& spec);

// An entry of the table: from whom, and to whom, its frame came.
struct LearnedTuple {
  net::IpAddress source;
  net::IpAddress destination;
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
};

// The engine's table after a trial that used it.
struct TableResult {
  int ip_version = 4;
  uint64_t entries = 0;
  uint64_t filled = 0;
  uint64_t bytes_per_entry = 0;
  uint64_t memory_bytes = 0;
  bool hugepages = false;
  uint64_t allocation_ns = 0;
  uint64_t learned = 0;
  uint64_t changed = 0;
  uint64_t unexpected = 0;
  std::optional<net::IpAddress> unexpected_example;
  std::optional<net::IpAddress> source_example;  // of the first entry that is not empty
  uint64_t unlearned_sent = 0;
  uint64_t since_learning_ns = 0;
  std::vector<std::optional<LearnedTuple>> told;  // of the first entries; none: an empty one
};

Json to_json(const measure::Survival& survival);
Json to_json(const LearnedTuple& tuple);
Json to_json(const TableResult& table);

}  // namespace dutperf::control
