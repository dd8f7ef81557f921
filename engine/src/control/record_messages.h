// What a trial records: the request's wishes (`record`, frame timeout, loss tolerance and whether
// to stop at it), and each stream's counts, delays and time series in the result.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/json.h"
#include "control/load_messages.h"
#include "control/tuple_messages.h"
#include "dataplane/trial_spec.h"
#include "measure/connection_gaps.h"
#include "measure/histogram.h"
#include "measure/stream_recorder.h"

namespace dutperf::control {

// Reads `frame_timeout_ns`, `loss_tolerance_ppb`, `stop_when_lost` and `record` of a trial into
// `spec`, whose duration is known already. Returns whether fine delays are asked for.
bool parse_record(ObjectReader& trial, dataplane::TrialSpec& spec);

// Refuses tags that the directions do not have frames for. REQUIRES: `spec` is complete.
void check_tags(const ObjectReader& trial, const dataplane::TrialSpec& spec);

// Refuses survival and connection blocks of a stream that has no bit for each frame. REQUIRES: as
// above.
void check_survival(const ObjectReader& trial, const dataplane::TrialSpec& spec);

// Refuses connection blocks of foregrounds whose connections do not take turns. REQUIRES: as above.
void check_connections(const ObjectReader& trial, const dataplane::TrialSpec& spec);

// A histogram as the protocol writes it, values signed.
struct Distribution {
  uint64_t count = 0;
  int64_t min = 0;
  int64_t max = 0;
  struct Bucket {
    int64_t lowest;
    int64_t highest;
    uint64_t count;
  };
  std::vector<Bucket> buckets;
};

Distribution distribution_of(const measure::Histogram& histogram);
Distribution distribution_of(const measure::AroundOrigin& values);

// What became of each connection, and the four-tuples of those named, as they were learned.
struct ConnectionsResult {
  measure::ConnectionGaps gaps;
  std::vector<std::optional<LearnedTuple>> tuples;
};

struct StreamResult {
  uint8_t id = 0;
  bool background = false;
  uint64_t intended = 0;
  uint64_t sent = 0;
  uint64_t received = 0;
  uint64_t duplicate = 0;
  uint64_t reordered = 0;
  uint64_t late = 0;
  uint64_t lost_in_shadow = 0;  // of the tester's stalls
  uint64_t late_in_shadow = 0;
  struct Slower {
    uint64_t timeout_ns;
    uint64_t frames;
  };
  std::vector<Slower> slower;
  net::DamageCounts damaged;
  net::Inspected inspected;
  uint64_t negative_delays = 0;
  uint64_t window_frames = 0;  // 0: all
  uint64_t unplaced = 0;
  Distribution delay_ns;
  Distribution shaded_delay_ns;  // of these: in a shadow
  std::optional<Distribution> ipdv_ns;
  std::optional<Distribution> shaded_ipdv_ns;
  std::optional<std::vector<uint64_t>> tags_ns;  // measure::TagDelays::kLost: lost
  std::vector<uint64_t> shaded_tags;
  uint64_t series_interval_ns = 1;
  std::vector<uint64_t> sent_by_time;
  std::vector<uint64_t> received_by_time;
  Distribution loss_runs;
  std::optional<TimedLoss> longest_loss;  // none, too, with a window
  std::optional<TimedLoss> last_loss;
  std::optional<measure::Survival> survival;
  std::optional<ConnectionsResult> connections;
};

// Adds what `recorder` knows. `fine` delays keep the recorder's resolution.
void add_recorded(const dataplane::TrialSpec& spec, const measure::StreamRecorder& recorder,
                  bool fine, StreamResult& result);

Json to_json(const Distribution& distribution);
Json to_json(const measure::Histogram& histogram);
Json to_json(const net::DamageCounts& damaged);
Json to_json(const net::Inspected& inspected);
Json to_json(const ConnectionsResult& connections);
Json to_json(const StreamResult& stream);

}  // namespace dutperf::control
