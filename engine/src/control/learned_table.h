// The table of learned four-tuples, which stays from trial to trial: made by phase 1, refreshed and
// sent from by what follows (RFC 9693 4.2, 4.7).
//
//   prepare()   refuses what cannot be; makes or finds the table, and tells the trial of it
//   finish()    what became of it
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "control/record_messages.h"
#include "control/tuple_messages.h"
#include "dataplane/trial_run.h"
#include "state/table_memory.h"
#include "state/tuple_table.h"
#include "timing/clock.h"

namespace dutperf::control {

class LearnedTable {
 public:
  explicit LearnedTable(const timing::TscClock& clock) : clock_(clock) {}

  // Completes `spec` with the table and the earliest start. A new table's memory is taken here; the
  // old one is gone then. Throws ProtocolError: what the table cannot do, or no memory.
  void prepare(dataplane::TrialSpec& spec);

  // After the trial, or one that never began; nothing when it had no use for the table.
  std::optional<TableResult> finish(const dataplane::TrialSpec& spec,
                                    const dataplane::TrialRun& run);

  // Adds the four-tuples of those that have a name. REQUIRES: the trial's connections are the
  // table's entries.
  void name(ConnectionsResult& connections) const;

  void drop() { table_.reset(); }

 private:
  struct Table {
    explicit Table(const dataplane::LearnSpec& learn);

    state::TableMemory memory;
    state::TupleTable tuples;
    dataplane::Side learned_from;
    uint64_t filled = 0;
    uint64_t start_tsc = 0;  // of the trial that made it
  };

  Table& existing() const;
  static std::unique_ptr<Table> allocated(const dataplane::LearnSpec& learn);
  void make(const dataplane::LearnSpec& learn);
  void check_kept(const dataplane::LearnSpec& learn) const;
  void use(dataplane::StreamSpec& stream);
  const state::TupleTable& seen_from(const vary::Tuples& tuples);

  const timing::TscClock clock_;
  std::unique_ptr<Table> table_;
  std::unique_ptr<Table> elsewhere_;  // the same as others of the responder's side would send it
};

// Refuses streams of learned tuples, whose frames cannot be foretold. Throws ProtocolError.
void refuse_learned(const dataplane::TrialSpec& spec);

}  // namespace dutperf::control
