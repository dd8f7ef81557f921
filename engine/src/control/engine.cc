#include "control/engine.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "control/pcap.h"
#include "dataplane/frame_order.h"
#include "dpdk/error.h"
#include "measure/stream_recorder.h"
#include "timing/schedule.h"
#include "timing/synchrony.h"

namespace dutperf::control {
namespace {

using dataplane::index_of;
using dataplane::kBothSides;
using dataplane::other;
using dataplane::Side;

constexpr uint64_t kCalibrationNs = 100'000'000;
constexpr int kProgressMs = 500;
constexpr int kLossCheckMs = 100;
// A frame that has been on its way for longer seems lost. See docs/adr/0011.
constexpr uint64_t kPatienceNs = 500'000'000;
constexpr uint64_t kOffsetPatienceNs = 500'000'000;
constexpr uint64_t kForeverNs = 1ULL << 48;  // longer than any trial

uint32_t max_frame_bytes(const dpdk::PortOptions& options) {
  return std::max<uint32_t>(2048, options.mtu + 64U);
}

uint64_t available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  uint64_t kilobytes = 0;
  std::string unit;
  while (file >> key >> kilobytes >> unit) {
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return UINT64_MAX;
}

dpdk::PortCounters difference(const dpdk::PortCounters& before, const dpdk::PortCounters& after) {
  const bool told = before.kernel && after.kernel;
  return {after.rx_frames - before.rx_frames,
          after.tx_frames - before.tx_frames,
          after.rx_missed - before.rx_missed,
          after.rx_errors - before.rx_errors,
          after.rx_nombuf - before.rx_nombuf,
          after.tx_errors - before.tx_errors,
          told ? std::optional(kernel::rise(*before.kernel, *after.kernel)) : std::nullopt};
}

// Says in the report what the kernel counted at the port's interface, and on whose account.
void attribute(const dpdk::Port& port, const dpdk::PortCounters& during, PortReport& report) {
  if (!during.kernel) return;
  const kernel::Attribution found =
      kernel::attribute(*during.kernel, port.attachment().value(), report.foreign);
  report.interface_drops = found.receive;
  report.send_drops = found.send;
  report.damaged_on_wire = found.damaged;
}

void check_invariant_clock() {
  if (timing::tsc_is_invariant()) return;
  throw dpdk::SetupError(
      "this CPU does not promise a time stamp counter of constant rate (invariant TSC)",
      "rates and delays would be wrong: use another machine, or give the virtual machine the flag "
      "(qemu: -cpu host,+invtsc)");
}

// The largest offset between the first worker's clock and another's that cannot be ruled out.
// Throws SetupError when one is certain.
uint64_t measure_clock_offset_ns(const std::vector<unsigned>& lcores,
                                 const timing::TscClock& clock) {
  constexpr uint64_t kToleratedNs = 1000;
  struct Question {
    timing::SynchronyProbe probe;
    timing::OffsetBounds bounds;
    uint64_t patience_tsc;
  };
  uint64_t possible_ns = 0;
  for (size_t i = 1; i < lcores.size(); ++i) {
    Question question;
    question.patience_tsc = clock.to_tsc(kOffsetPatienceNs);
    const auto ask = [](void* argument) {
      auto& self = *static_cast<Question*>(argument);
      self.bounds = self.probe.ask(self.patience_tsc);
      return 0;
    };
    const auto answer = [](void* argument) {
      auto& self = *static_cast<Question*>(argument);
      self.probe.answer(self.patience_tsc);
      return 0;
    };
    dpdk::Eal::launch(lcores[i], answer, &question);
    dpdk::Eal::launch(lcores[0], ask, &question);
    dpdk::Eal::wait(lcores[0]);
    dpdk::Eal::wait(lcores[i]);
    if (clock.to_ns(question.bounds.certain()) > kToleratedNs) {
      throw dpdk::SetupError(
          "the time stamp counters of the workers' CPUs are at least " +
              std::to_string(clock.to_ns(question.bounds.certain())) + " ns apart",
          "delays between them would be wrong: use one worker, or CPUs of one socket");
    }
    possible_ns = std::max(possible_ns, clock.to_ns(question.bounds.possible()));
  }
  return possible_ns;
}

// Frames a second between the first and the last departure.
double offered_rate(const dataplane::SendReport& report, const timing::TscClock& clock) {
  const uint64_t ns = clock.to_ns(report.last_tsc - report.first_tsc);
  if (report.sent < 2 || ns == 0) return 0;
  return static_cast<double>(report.sent - 1) * 1e9 / static_cast<double>(ns);
}

// How many of a stream's frames carry a stamp of each interval, of those that left.
std::vector<uint64_t> sent_by_time(const dataplane::DirectionSpec& direction, size_t stream,
                                   const dataplane::SendReport& report) {
  std::vector<uint64_t> result;
  uint64_t built = 0;
  uint64_t before = 0;
  for (const uint64_t count : report.built_by_time.counts()) {
    built += count;
    const uint64_t sent = direction.frames_of(stream, std::min(built, report.sent));
    result.push_back(sent - before);
    before = sent;
  }
  return result;
}

// Longest and shortest time that the tester itself may have put into a delay.
void add_accuracy(const dataplane::SendReport& sent, const dataplane::ReceiveReport& received,
                  const timing::TscClock& clock, DirectionResult& result) {
  result.send_call_ns = &sent.call_ns;
  result.receive_gap_ns = &received.gap_ns;
  if (sent.call_ns.count() == 0 || received.gap_ns.count() == 0) return;
  result.delay_floor_ns = sent.call_ns.min() + clock.to_ns(received.shortest_poll_tsc);
  result.delay_bound_ns = sent.call_ns.max() + received.gap_ns.max();
}

// Those that ended, and the one that the sender ended in.
void add_stalls(const dataplane::TrialRun& run, Side from, DirectionResult& result) {
  const measure::StallLog& log = run.stalls_of(from);
  for (size_t i = 0; i < log.ended(); ++i) result.stalls.push_back(log.stall(i));
  result.stalled = run.sent_from(from).stalled;
  result.shadows = run.shadows_at(other(from));
}

// How many of a direction's first frames were due before `ns`.
uint64_t due_before(uint64_t ns, uint64_t rate_fps) {
  const auto scaled = (unsigned __int128){ns} * rate_fps;
  return static_cast<uint64_t>((scaled + timing::kNsPerSecond - 1) / timing::kNsPerSecond);
}

// Of a stream's lost frames those that were due while a shadow lay on the direction that may lose
// frames, and no more than it can have cost: what is left of that is for the next stream. With a
// window nobody knows any more which ones were lost: as many as there can be.
uint64_t lost_in_shadow(const dataplane::DirectionSpec& direction, size_t stream,
                        std::vector<measure::Shadow>& shadows,
                        const measure::SequenceTracker& tracker, const StreamResult& result) {
  const bool exact = tracker.window_frames() == 0;
  uint64_t lost = 0;
  for (measure::Shadow& shadow : shadows) {
    if (!shadow.may_lose) continue;
    // A frame more at each end, as due times are rounded.
    const uint64_t first = due_before(shadow.begin_ns, direction.rate_fps);
    const uint64_t last =
        due_before(std::min<uint64_t>(shadow.end_ns, kForeverNs), direction.rate_fps);
    const uint64_t begin = direction.frames_of(stream, first - std::min<uint64_t>(first, 1));
    const uint64_t end = std::min(direction.frames_of(stream, last + 1), result.sent);
    if (begin >= end) continue;
    const uint64_t missing = exact ? tracker.missing_among(begin, end) : end - begin;
    const uint64_t excused = std::min(shadow.frames, missing);
    if (shadow.frames != UINT64_MAX) shadow.frames -= excused;
    lost += excused;
  }
  return std::min(lost, result.sent - result.received);
}

DirectionResult direction_result(const TrialRequest& request, Side from,
                                 const dataplane::TrialRun& run,
                                 dataplane::StreamRecorders& recorders,
                                 const timing::TscClock& clock) {
  const dataplane::TrialSpec& spec = request.spec;
  const dataplane::DirectionSpec& direction = spec.from[index_of(from)];
  const dataplane::SendReport& report = run.sent_from(from);
  DirectionResult result{};
  result.from = from;
  result.intended_rate_fps = direction.rate_fps;
  result.offered_rate_fps = offered_rate(report, clock);
  result.sending_ns = report.sent == 0 ? 0 : clock.to_ns(report.last_tsc - run.start_tsc());
  result.tx_full = report.tx_full;
  result.port_full_ns = clock.to_ns(report.port_full_tsc);
  result.ring_full = report.ring_full;
  result.lag_ns = &report.lag_ns;
  result.burst_frames = &report.burst_frames;
  add_accuracy(report, run.received_at(other(from)), clock, result);
  add_stalls(run, from, result);
  std::vector<measure::Shadow> shadows = result.shadows;
  for (size_t i = 0; i < direction.streams.size(); ++i) {
    const dataplane::StreamSpec& stream = direction.streams[i];
    StreamResult entry;
    entry.id = stream.id;
    entry.background = (stream.tag.flags & net::kTagFlagBackground) != 0;
    entry.intended = direction.frames_of(i, direction.frames);
    entry.sent = direction.frames_of(i, report.sent);
    recorders[i].finish(entry.sent);
    add_recorded(spec, recorders[i], request.fine_delays, entry);
    entry.lost_in_shadow = lost_in_shadow(direction, i, shadows, recorders[i].tracker(), entry);
    entry.sent_by_time = sent_by_time(direction, i, report);
    result.streams.push_back(std::move(entry));
  }
  return result;
}

// A burst that both directions suffered from costs no frame of each: when the directions' losses in
// shadows are more than all bursts together can have cost, each is excused its share of that.
void share_bursts(std::vector<DirectionResult>& directions) {
  std::vector<std::vector<measure::Shadow>> shadows;
  uint64_t burst_frames = 0;
  uint64_t lost = 0;
  for (const DirectionResult& direction : directions) {
    shadows.push_back(direction.shadows);
    for (const measure::Stall& stall : direction.stalls) burst_frames += stall.frames;
    for (const StreamResult& stream : direction.streams) lost += stream.lost_in_shadow;
  }
  const uint64_t most = measure::frames_in_all(shadows, burst_frames);
  if (lost <= most) return;
  for (DirectionResult& direction : directions) {
    for (StreamResult& stream : direction.streams) {
      stream.lost_in_shadow =
          static_cast<uint64_t>((unsigned __int128){stream.lost_in_shadow} * most / lost);
    }
  }
}

measure::DirectionFacts facts_of(const DirectionResult& result, bool gave_up,
                                 const dataplane::TrialSpec& spec) {
  measure::DirectionFacts facts;
  facts.name = direction_name(result.from);
  facts.receiving_port = index_of(other(result.from));
  for (const StreamResult& stream : result.streams) {
    facts.intended += stream.intended;
    facts.sent += stream.sent;
    facts.received += stream.received;
    facts.duplicate += stream.duplicate;
    facts.overdue += stream.late;
    facts.lost_in_shadow += stream.lost_in_shadow;
    facts.overdue_in_shadow += stream.late_in_shadow;
    facts.negative_delay += stream.negative_delays;
    facts.damaged += stream.damaged;
  }
  facts.sending_ns = result.sending_ns;
  facts.max_lag_ns = result.lag_ns->count() > 0 ? result.lag_ns->max() : 0;
  if (spec.frame_timeout_ns) {
    const uint64_t long_ns = *spec.frame_timeout_ns / measure::kHeldShare;
    facts.held_frames =
        result.send_call_ns->count_from(long_ns) + result.receive_gap_ns->count_from(long_ns);
  }
  facts.port_full_ns = result.port_full_ns;
  facts.ring_full = result.ring_full;
  for (const measure::Shadow& shadow : result.shadows) facts.burst_shadow |= shadow.of_sender;
  if (result.stalled) facts.away_at_end_ns = result.stalled->away_ns;
  facts.gave_up = gave_up;
  return facts;
}

// Any sender's stall may cost frames of either direction, a receiver's those of its own.
void add_longest_stall(const TrialResult& result, measure::TrialFacts& facts) {
  uint64_t longest_ns = 0;
  for (const DirectionResult& direction : result.directions) {
    for (const measure::Stall& stall : direction.stalls) {
      longest_ns = std::max(longest_ns, stall.max_lag_ns);
    }
  }
  for (size_t i = 0; i < facts.directions.size(); ++i) {
    const measure::Histogram& gap_ns = *result.directions[i].receive_gap_ns;
    facts.directions[i].longest_stall_ns =
        facts.directions[i].burst_shadow ? longest_ns : gap_ns.max();
  }
}

// Whether more frames seem lost than the whole trial may lose; `running_ns`: since the start.
bool seems_lost(const dataplane::TrialSpec& spec, const dataplane::TrialRun& run,
                uint64_t running_ns) {
  const uint64_t patience_ns = std::max(kPatienceNs, spec.frame_timeout_ns.value_or(0));
  if (running_ns < patience_ns) return false;
  return std::any_of(std::begin(kBothSides), std::end(kBothSides), [&](Side from) {
    const uint64_t missing = run.missing_from(from, running_ns - patience_ns);
    return !measure::within_tolerance(missing, spec.from[index_of(from)].frames,
                                      spec.loss_tolerance_ppb);
  });
}

PortReport port_report(Side side, const dataplane::ReceiveReport& received,
                       const dataplane::StreamRecorders& recorders) {
  PortReport report{};
  report.side = side;
  report.neighbour_requests = received.neighbour_requests;
  report.neighbour_conflicts = received.neighbour_conflicts;
  report.foreign = received.foreign;
  report.stale = received.stale;
  report.misdirected = received.misdirected;
  report.fragments = received.fragments;
  for (const measure::StreamRecorder& recorder : recorders) report.damaged += recorder.damaged();
  report.damaged[net::Damage::kTruncated] += received.cut_short;
  return report;
}

// The direction's first `count` frames, each with its due time as stamp; returns how many.
uint64_t write_frames(const dataplane::DirectionSpec& direction, uint64_t count, PcapWriter& pcap) {
  const dataplane::FrameOrder order(direction);
  const std::vector<vary::FrameWriter> writers = dataplane::FrameOrder::writers(direction);
  dataplane::FrameOrder::Position position;
  timing::Schedule schedule = direction.schedule(0, timing::kNsPerSecond);  // ticks are ns here
  const uint64_t frames = std::min(count, direction.frames);
  for (uint64_t i = 0; i < frames; ++i) {
    const dataplane::FrameOrder::Next next = order.next(position);
    std::vector<uint8_t> frame = writers[next.lane].template_bytes();
    uint8_t* const bytes = frame.data();
    vary::Lanes sequence;
    vary::lanes::count_up(next.sequence, sequence, 1);
    writers[next.lane].write(&bytes, sequence, 1, schedule.next_due_tsc());
    pcap.write(schedule.next_due_tsc(), frame);
    schedule.advance(1);
  }
  return frames;
}

std::vector<std::string> unresolved(const std::vector<ResolvedNeighbour>& neighbours) {
  std::vector<std::string> result;
  for (const ResolvedNeighbour& neighbour : neighbours) {
    if (!neighbour.mac) {
      result.push_back(neighbour.ip.text() + " on port " + name_of(neighbour.side));
    }
  }
  return result;
}

// By the clock on the wall: when the first frame was due.
std::optional<uint64_t> begin_of(const dataplane::TrialRun& run, const timing::TscClock& clock) {
  if (run.start_tsc() == 0) return std::nullopt;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  const uint64_t since_ns = clock.to_ns(timing::read_tsc() - run.start_tsc());
  return static_cast<uint64_t>(now_ns) - since_ns;
}

}  // namespace

Engine::OpenPorts::OpenPorts(const PortsOpenParams& params) {
  const bool ring = params.ports[0].driver == dpdk::Driver::kRing;
  if (ring != (params.ports[1].driver == dpdk::Driver::kRing)) {
    throw ProtocolError(kInvalidParams, "ports: ring ports come in pairs");
  }
  if (ring) rings = std::make_unique<dpdk::RingPair>();
  Neighbours::Ports port_pointers{};
  Neighbours::Sides side_pointers{};
  for (size_t i = 0; i < dataplane::kSides; ++i) {
    const dpdk::PortOptions& options = params.ports[i];
    ports[i] = std::make_unique<dpdk::Port>(options, rings.get());
    sides[i] = std::make_unique<dataplane::SideResources>(*ports[i], max_frame_bytes(options));
    port_pointers[i] = ports[i].get();
    side_pointers[i] = sides[i].get();
  }
  neighbours = std::make_unique<Neighbours>(port_pointers, side_pointers);
}

Engine::Engine(const dpdk::EalOptions& options)
    : options_(options),
      clock_(timing::calibrate_tsc(kCalibrationNs)),
      eal_(options),
      table_(clock_) {
  check_invariant_clock();
  clock_offset_ns_ = measure_clock_offset_ns(eal_.worker_lcores(), clock_);
}

Json Engine::hello() const {
  return {{"engine_version", DUTPERF_VERSION},
          {"dpdk_version", dpdk::Eal::version()},
          {"protocol_version", kProtocolVersion},
          {"tsc_hz", clock_.hz()},
          {"worker_cpus", options_.worker_cpus},
          {"main_cpu", options_.main_cpu},
          {"hugepages", options_.hugepages},
          {"memory_mb", options_.memory_mb},
          {"clock_offset_ns", clock_offset_ns_},
          {"drivers", {"af_packet", "af_xdp", "pci", "memif", "ring", "null"}}};
}

Json Engine::open_ports(const Json& params, Monitor& monitor) {
  const PortsOpenParams parsed = parse_ports_open(params);
  open_.reset();  // the devices must be free before they are opened again
  open_ = std::make_unique<OpenPorts>(parsed);
  const auto start = timing::read_tsc();
  const auto all_up = [this] { return open_->ports[0]->link().up && open_->ports[1]->link().up; };
  while (!all_up() && clock_.to_ns(timing::read_tsc() - start) < parsed.link_timeout_ns) {
    if (!monitor.wait(-1, 10)) break;
  }
  return port_status();
}

Json Engine::port_status() const {
  Json ports = Json::array();
  for (const auto& port : open().ports) {
    ports.push_back(to_json(PortStatus{
        port->options(), port->mac(), port->link(), port->flow_control(), port->numa_node(),
        port->mtu(), port->driver_name(), port->in_flight_frames(), port->counters()}));
  }
  return {{"ports", ports}};
}

Json Engine::set_neighbours(const Json& params, Monitor& monitor) {
  const NeighboursParams parsed = parse_neighbours(params);
  Neighbours& neighbours = *open().neighbours;
  neighbours.set(parsed);
  Json list = Json::array();
  for (const ResolvedNeighbour& neighbour : neighbours.resolve(monitor)) {
    list.push_back(to_json(neighbour));
  }
  return {{"neighbours", list}};
}

// One trial by RFC 2544 23: learning frames, wait, traffic, wait. The waits before and after belong
// to the request; "restabilise" is the caller's.
Json Engine::run_trial(const Json& params, Monitor& monitor) {
  const uint64_t entered = timing::read_tsc();
  TrialRequest request = parse_trial(params);
  OpenPorts& ports = open();
  check_fits(request);
  const dataplane::TrialSpec& spec = request.spec;

  TrialResult result;
  result.trial_id = spec.trial_id;
  uint64_t accounted_ns = 0;  // memory, learning, waits and sending: not overhead
  const auto timed = [&](auto&& action) {
    const uint64_t before = timing::read_tsc();
    action();
    accounted_ns += clock_.to_ns(timing::read_tsc() - before);
  };

  timed([&] { table_.prepare(request.spec); });
  measure::TrialFacts facts;
  facts.duration_ns = spec.duration_ns;
  facts.frame_timeout_ns = spec.frame_timeout_ns.value_or(0);
  facts.loss_tolerance_ppb = spec.loss_tolerance_ppb;
  timed([&] { result.neighbours = ports.neighbours->resolve(monitor); });
  // Whom an abort kept from answering is not missing.
  bool go_on = monitor.wait(-1, 0);
  if (go_on) facts.unresolved_neighbours = unresolved(result.neighbours);
  go_on = go_on && facts.unresolved_neighbours.empty();
  if (go_on) timed([&] { go_on = ports.neighbours->serve(request.settle_ns, monitor); });
  if (go_on) timed([&] { go_on = ports.neighbours->serve(until(spec.not_before_tsc), monitor); });

  fill_in_macs(request);
  for (const Side side : kBothSides) ports.sides[index_of(side)]->next_hops.clear();
  for (const ResolvedNeighbour& hop : result.neighbours) {
    if (hop.mac) ports.sides[index_of(hop.side)]->next_hops.push_back({hop.ip, *hop.mac});
  }
  const Snapshot before = snapshot();
  dataplane::TrialRun run(spec, {ports.sides[0].get(), ports.sides[1].get()}, clock_,
                          eal_.worker_lcores());
  if (!go_on) run.abort();
  run.launch();
  watch(run, spec, monitor);
  run.join();
  result.begin_unix_ns = begin_of(run, clock_);
  const Snapshot after = snapshot();
  accounted_ns += run.running_ns();
  facts.aborted = run.aborted() && facts.unresolved_neighbours.empty();

  for (const Side from : request.order) {
    result.directions.push_back(direction_result(
        request, from, run, ports.sides[index_of(other(from))]->recorders, clock_));
  }
  share_bursts(result.directions);
  for (const DirectionResult& direction : result.directions) {
    facts.directions.push_back(facts_of(direction, run.sent_from(direction.from).gave_up, spec));
  }
  add_longest_stall(result, facts);
  const auto cut_short = [](const measure::DirectionFacts& d) { return d.sent < d.intended; };
  result.ended_early = facts.ended_early =
      run.stopped() && std::any_of(facts.directions.begin(), facts.directions.end(), cut_short);
  for (const Side side : kBothSides) {
    const size_t i = index_of(side);
    PortReport report = port_report(side, run.received_at(side), ports.sides[i]->recorders);
    report.before = before.counters[i];
    report.after = after.counters[i];
    const dpdk::PortCounters during = difference(report.before, report.after);
    attribute(*ports.ports[i], during, report);
    facts.ports.push_back({name_of(side), before.link[i].up, after.link[i].up,
                           before.link[i].changes != after.link[i].changes,
                           ports.ports[i]->flow_control() == dpdk::FlowControl::kOn,
                           during.rx_missed, during.rx_errors, during.rx_nombuf, during.tx_errors,
                           run.received_at(side).cut_short, report.interface_drops,
                           report.send_drops, report.damaged_on_wire, report.neighbour_conflicts});
    result.ports.push_back(report);
  }
  result.input_queues = kernel::rise(before.input_queues, after.input_queues);
  result.input_queue_drops = facts.input_queue_drops = own_input_queue_drops(result);
  result.table = table_.finish(spec, run);
  result.verdict = measure::judge(facts);
  result.total_ns = clock_.to_ns(timing::read_tsc() - entered);
  result.overhead_ns = result.total_ns - std::min(result.total_ns, accounted_ns);
  return to_json(result);
}

// Nanoseconds up to a little before a time: the workers' start waits for the rest.
uint64_t Engine::until(uint64_t tsc) const {
  constexpr uint64_t kShortNs = 20'000'000;
  const uint64_t now = timing::read_tsc();
  const uint64_t left_ns = clock_.to_ns(tsc - std::min(tsc, now));
  return left_ns - std::min(left_ns, kShortNs);
}

void Engine::watch(dataplane::TrialRun& run, const dataplane::TrialSpec& spec, Monitor& monitor) {
  const uint64_t launched = timing::read_tsc();
  const int wait_ms = spec.stop_when_lost ? kLossCheckMs : kProgressMs;
  int since_progress_ms = 0;
  eventfd_t done = 0;
  while (eventfd_read(run.done_fd(), &done) != 0) {
    if (!monitor.wait(run.done_fd(), wait_ms)) run.abort();
    if (spec.stop_when_lost) stop_if_lost(run, spec);
    since_progress_ms += wait_ms;
    if (since_progress_ms < kProgressMs) continue;
    since_progress_ms = 0;
    monitor.notify("trial.progress", {{"trial_id", spec.trial_id},
                                      {"phase", "running"},
                                      {"elapsed_ns", clock_.to_ns(timing::read_tsc() - launched)},
                                      {"sent", run.published_sent()},
                                      {"received", run.published_received()}});
  }
}

void Engine::stop_if_lost(dataplane::TrialRun& run, const dataplane::TrialSpec& spec) const {
  constexpr uint64_t kCheckNs = kLossCheckMs * 1'000'000ULL;
  const uint64_t start_tsc = run.start_tsc();
  const uint64_t now = timing::read_tsc();
  if (start_tsc == 0 || now < start_tsc) return;
  const uint64_t running_ns = clock_.to_ns(now - start_tsc);
  if (running_ns + kCheckNs >= spec.duration_ns) return;  // it is about to end anyway
  if (seems_lost(spec, run, running_ns)) run.stop();
}

Json Engine::preview(const Json& params) const {
  PreviewParams parsed = parse_preview(params);
  refuse_learned(parsed.trial.spec);
  fill_in_macs(parsed.trial);
  PcapWriter pcap(parsed.path);
  uint64_t frames = 0;
  for (const Side from : parsed.trial.order) {
    frames += write_frames(parsed.trial.spec.from[index_of(from)], parsed.count, pcap);
  }
  pcap.close();
  return {{"frames", frames}};
}

Json Engine::drop_table() {
  table_.drop();
  return Json::object();
}

void Engine::idle() {
  if (open_) open_->neighbours->drain();
}

Engine::OpenPorts& Engine::open() const {
  if (!open_) throw ProtocolError(kStateError, "no ports are open", "call ports.open first");
  return *open_;
}

// Of the input queues that the trial's frames passed, if it was the tester's kernel that passed
// them.
uint64_t Engine::own_input_queue_drops(const TrialResult& result) const {
  bool any_interface = false;
  bool any_virtual = false;
  uint64_t accounted = 0;
  for (const Side side : kBothSides) {
    const auto attachment = open_->ports[index_of(side)]->attachment();
    any_interface = any_interface || attachment.has_value();
    any_virtual = any_virtual || (attachment && attachment->is_virtual);
    accounted += result.ports[index_of(side)].interface_drops;
  }
  if (!any_interface) return 0;
  return kernel::own_input_queue_drops(result.input_queues, any_virtual, accounted);
}

Engine::Snapshot Engine::snapshot() const {
  Snapshot result{};
  result.input_queues = kernel::input_queues();
  for (size_t i = 0; i < dataplane::kSides; ++i) {
    result.counters[i] = open_->ports[i]->counters();
    result.link[i] = open_->ports[i]->link();
  }
  return result;
}

void Engine::check_fits(const TrialRequest& request) const {
  uint64_t bytes = 0;
  for (const Side from : request.order) {
    const dataplane::DirectionSpec& direction = request.spec.from[index_of(from)];
    const uint32_t largest =
        open_->ports[index_of(from)]->mtu() + sizeof(net::EthernetHeader) + net::kFcsBytes;
    for (const dataplane::StreamSpec& stream : direction.streams) {
      const uint32_t size = *std::max_element(stream.frame_sizes.begin(), stream.frame_sizes.end());
      if (size > largest) {
        throw ProtocolError(kInvalidParams,
                            direction_name(from) + ": frame size " + std::to_string(size) +
                                " exceeds what port " + name_of(from) + " can carry, " +
                                std::to_string(largest),
                            "raise the MTU on tester and device, or choose a smaller frame size");
      }
    }
    for (size_t i = 0; i < direction.streams.size(); ++i) {
      bytes +=
          measure::StreamRecorder::bytes_for(request.spec.record, request.spec.frames_of(from, i));
    }
  }
  if (bytes > available_memory_bytes() / 2) {
    throw ProtocolError(kEnvironmentError,
                        "accounting for every frame needs " + std::to_string(bytes >> 20) +
                            " MiB (one bit a frame), more than half of the free memory",
                        "shorten the trial, lower the rate, or lower record.tracking_mb: a window "
                        "slides then");
  }
}

// A next hop that nobody knows keeps the zero MAC: in a preview; no trial is run with it.
void Engine::fill_in_macs(TrialRequest& request) const {
  if (!open_) return;
  for (const Side from : request.order) {
    std::vector<dataplane::StreamSpec>& streams = request.spec.from[index_of(from)].streams;
    for (size_t i = 0; i < streams.size(); ++i) {
      const StreamAddressing& wanted = request.addressing[index_of(from)][i];
      net::FrameLayout& layout = streams[i].layout;
      layout.src_mac = wanted.src_mac.value_or(open_->ports[index_of(from)]->mac());
      layout.dst_mac = wanted.dst_mac.value_or(
          open_->neighbours->find(from, wanted.next_hop).value_or(net::Mac{}));
    }
  }
}

}  // namespace dutperf::control
