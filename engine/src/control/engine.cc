#include "control/engine.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>

#include "control/announcer.h"
#include "control/clock_check.h"
#include "control/direction_result.h"
#include "control/pcap.h"
#include "control/request_checks.h"
#include "control/shadow_losses.h"
#include "control/trial_facts.h"
#include "dataplane/frame_order.h"
#include "dpdk/queue_use.h"
#include "measure/stream_recorder.h"
#include "timing/schedule.h"

namespace dutperf::control {
namespace {

using dataplane::index_of;
using dataplane::kBothSides;
using dataplane::other;
using dataplane::Side;

constexpr uint64_t kCalibrationNs = 100'000'000;
constexpr int kProgressMs = 500;
constexpr int kLookMs = 100;
constexpr int kSlowPathMs = 10;
// A frame that has been on its way for longer seems lost. See docs/adr/0011.
constexpr uint64_t kPatienceNs = 500'000'000;

// Whether more frames seem lost than the whole trial may lose; `running_ns`: since the start.
bool seems_lost(const dataplane::TrialSpec& spec, const dataplane::TrialRun& run,
                uint64_t running_ns) {
  const uint64_t patience_ns = std::max(kPatienceNs, spec.frame_timeout_ns.value_or(0));
  if (running_ns < patience_ns) return false;
  return std::any_of(std::begin(kBothSides), std::end(kBothSides), [&](Side from) {
    const uint64_t missing = run.missing_from(from, running_ns - patience_ns);
    const dataplane::DirectionSpec& direction = spec.from[index_of(from)];
    return !measure::within_tolerance(missing, direction.expected_among(direction.frames),
                                      spec.loss_tolerance_ppb);
  });
}

// The direction's first `count` frames, each with its due time as stamp; returns how many.
uint64_t write_frames(const dataplane::DirectionSpec& direction, uint64_t count, PcapWriter& pcap) {
  const dataplane::FrameOrder order(direction);
  const std::vector<vary::FrameWriter> writers = dataplane::FrameOrder::writers(direction);
  dataplane::FrameOrder::Position position;
  timing::Schedule schedule(0, timing::kNsPerSecond, direction.load());  // ticks are ns here
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
      result.push_back(neighbour.ip.text() + " on port " + name_of(neighbour.port));
    }
  }
  return result;
}

// Since the launch; none: the port has no slow path.
std::optional<SlowPathReport> slow_path_of(SlowPath* slow_path,
                                           const dataplane::PortArrivals& arrivals) {
  if (slow_path == nullptr) return std::nullopt;
  slow_path->carry();  // what the receiver has left in its ring
  const SlowPath::Counts counts = slow_path->take_counts();
  return SlowPathReport{counts.to_tap, counts.from_tap, counts.lost + arrivals.unclaimed_lost};
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

Engine::Engine(const dpdk::EalOptions& options)
    : options_(options),
      eal_(options),
      clock_(calibration_.finish(kCalibrationNs)),
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
          {"drivers", {"af_packet", "af_xdp", "pci", "memif", "vdev", "ring", "null"}}};
}

Json Engine::open_ports(const Json& params, Monitor& monitor) {
  const PortsOpenParams parsed = parse_ports_open(params);
  open_.reset();  // the devices must be free before they are opened again
  open_ = std::make_unique<OpenPorts>(parsed);
  const auto start = timing::read_tsc();
  const auto all_up = [this] {
    return std::all_of(open_->ports.begin(), open_->ports.end(),
                       [](const OpenPort& each) { return each.port->link().up; });
  };
  while (!all_up() && clock_.to_ns(timing::read_tsc() - start) < parsed.link_timeout_ns) {
    if (!monitor.wait(-1, 10)) break;
  }
  return port_status();
}

Json Engine::port_status() const {
  Json ports = Json::array();
  for (const OpenPort& each : open().ports) {
    const dpdk::Port& port = *each.port;
    ports.push_back(to_json(PortStatus{
        each.id, port.options(), port.mac(), port.link(), port.flow_control(), port.numa_node(),
        port.mtu(), port.driver_name(), port.in_flight_frames(), port.counters()}));
  }
  return {{"ports", ports}};
}

Json Engine::set_neighbours(const Json& params, Monitor& monitor) {
  const NeighboursParams parsed = parse_neighbours(params);
  Neighbours& neighbours = *open().neighbours;
  neighbours.set(parsed);
  const dpdk::QueueUse use;
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
  check_tags(request, ports);
  check_paths(request, ports);
  bind_ends(request, &ports);
  check_fits(request, ports);
  const dpdk::QueueUse use;
  const dataplane::TrialSpec& spec = request.spec;

  TrialResult result;
  result.one_share_because = split(request.spec, ports);
  result.shares = spec.shares;
  result.trial_id = spec.trial_id;
  uint64_t accounted_ns = 0;  // memory, learning, waits and sending: not overhead
  const auto timed = [&](auto&& action) {
    const uint64_t before = timing::read_tsc();
    action();
    accounted_ns += clock_.to_ns(timing::read_tsc() - before);
  };

  timed([&] { table_.prepare(request.spec); });
  measure::TrialFacts facts = facts_of(spec);
  timed([&] { result.neighbours = ports.neighbours->resolve(monitor); });
  // Whom an abort kept from answering is not missing.
  bool go_on = monitor.wait(-1, 0);
  if (go_on) facts.unresolved_neighbours = unresolved(result.neighbours);
  go_on = go_on && facts.unresolved_neighbours.empty();
  fill_in_macs(request.announcements);
  Announcer announcer = ports.announcer(request.announcements);
  if (go_on) announcer.send_before();
  if (go_on) timed([&] { go_on = ports.neighbours->serve(request.settle_ns, monitor); });
  if (go_on) timed([&] { go_on = ports.neighbours->serve(until(spec.not_before_tsc), monitor); });

  // Who stops it before its first frame has not that one's time to wait for.
  if (monitor.stop_requested()) request.spec.not_before_tsc = 0;

  fill_in_macs(request);
  for (const OpenPort& each : ports.ports) ports.resources(each.id).next_hops.clear();
  for (const ResolvedNeighbour& hop : result.neighbours) {
    if (hop.mac) ports.resources(hop.port).next_hops.push_back({hop.ip, *hop.mac});
  }
  const Snapshot before = snapshot();
  std::vector<unsigned> workers = eal_.worker_lcores();
  // Who answers on a side does all that is done there.
  const size_t most = spec.is_answered() ? dataplane::kSides : dataplane::roles_of(spec.shares);
  workers.resize(std::min(workers.size(), most));
  dataplane::TrialRun run(spec, {ports.sides[0].get(), ports.sides[1].get()}, clock_, workers);
  if (!go_on) run.abort();
  if (monitor.stop_requested()) run.stop();
  if (go_on) announcer.send_due(0);
  for (OpenPort& each : ports.ports) {
    if (each.slow_path) each.slow_path->take_counts();  // those of before
  }
  run.launch();
  watch(run, spec, announcer, monitor);
  run.join();
  result.begin_unix_ns = begin_of(run, clock_);
  for (const OpenPort& each : ports.ports) {
    each.port->add_in_several(run.arrivals_at(each.id.side, each.id.number).in_several);
  }
  const Snapshot after = snapshot();
  accounted_ns += run.running_ns();
  facts.aborted = run.aborted() && facts.unresolved_neighbours.empty();

  for (const Side from : request.order) {
    result.directions.push_back(direction_result(request, from, run, clock_));
  }
  if (spec.exchange) {
    result.exchange = exchange_result(spec, run);
    facts.exchange = facts_of(*result.exchange, measure::together(result.directions[0].shadows));
  }
  share_bursts(result.directions);
  for (const DirectionResult& direction : result.directions) {
    facts.directions.push_back(
        facts_of(direction, run.sent_from(direction.from).gave_up, spec, ports.of_side()));
  }
  if (spec.resolution) {
    result.resolution = resolution_result(spec, run);
    facts.resolution = facts_of(*spec.resolution, *result.resolution, facts.directions[0].received);
  }
  add_longest_stalls(result.directions, facts);
  const auto cut_short = [](const measure::DirectionFacts& d) { return d.sent < d.intended; };
  result.ended_early =
      run.stopped() && std::any_of(facts.directions.begin(), facts.directions.end(), cut_short);
  facts.stopped = run.stopped() && monitor.stop_requested();
  facts.ended_early = result.ended_early && !facts.stopped;
  add_ports(run, announcer, before, after, result, facts);
  result.input_queues = kernel::rise(before.input_queues, after.input_queues);
  result.input_queue_drops = facts.input_queue_drops = own_input_queue_drops(result);
  result.table = table_.finish(spec, run);
  for (DirectionResult& direction : result.directions) {
    for (StreamResult& stream : direction.streams) {
      if (stream.connections) table_.name(*stream.connections);
    }
  }
  result.verdict = measure::judge(facts);
  result.total_ns = clock_.to_ns(timing::read_tsc() - entered);
  result.overhead_ns = result.total_ns - std::min(result.total_ns, accounted_ns);
  return to_json(result);
}

void Engine::add_ports(const dataplane::TrialRun& run, const Announcer& announcer,
                       const Snapshot& before, const Snapshot& after, TrialResult& result,
                       measure::TrialFacts& facts) {
  OpenPorts& ports = open();
  for (size_t i = 0; i < ports.ports.size(); ++i) {
    OpenPort& own = ports.ports[i];
    const auto [side, number] = own.id;
    const bool is_first = number == 0;
    const dataplane::PortArrivals& arrivals = run.arrivals_at(side, number);
    uint64_t never_sent = 0;
    for (size_t stream = 0; stream < dataplane::kMaxStreams; ++stream) {
      if (is_first) never_sent += run.never_sent_at(side, stream);
    }
    PortReport report =
        port_report(own.id, *own.port, before.ports[i], after.ports[i], arrivals, never_sent);
    report.neighbour_conflicts += ports.neighbours->conflicts(own.id);
    report.announced = is_first ? announcer.sent(side) : 0;
    report.slow_path = slow_path_of(own.slow_path.get(), arrivals);
    facts.ports.push_back(facts_of(report, *own.port, before.ports[i], after.ports[i], arrivals));
    result.ports.push_back(std::move(report));
  }
}

// Nanoseconds up to a little before a time: the workers' start waits for the rest.
uint64_t Engine::until(uint64_t tsc) const {
  constexpr uint64_t kShortNs = 20'000'000;
  const uint64_t now = timing::read_tsc();
  const uint64_t left_ns = clock_.to_ns(tsc - std::min(tsc, now));
  return left_ns - std::min(left_ns, kShortNs);
}

void Engine::watch(dataplane::TrialRun& run, const dataplane::TrialSpec& spec, Announcer& announcer,
                   Monitor& monitor) {
  const uint64_t launched = timing::read_tsc();
  const int look_ms = open().has_slow_path() ? kSlowPathMs : kLookMs;
  int since_progress_ms = 0;
  int since_links_ms = 0;
  eventfd_t done = 0;
  while (eventfd_read(run.done_fd(), &done) != 0) {
    const int wait_ms = announcer.wait_ms(since_start_ns(run), look_ms);
    if (!monitor.wait(run.done_fd(), wait_ms)) run.abort();
    if (!run.aborted()) announcer.send_due(since_start_ns(run));
    carry_slow_paths();
    if (monitor.stop_requested()) run.stop();
    if (spec.stop_when_lost) stop_if_lost(run, spec);
    since_links_ms += wait_ms;
    if (since_links_ms >= kLookMs) {
      since_links_ms = 0;
      look_at_links();
    }
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

// What goes down and up again between two looks, nobody may have seen.
void Engine::look_at_links() const {
  for (const OpenPort& each : open().ports) {
    if (each.port->counts_changes_when_asked()) each.port->link();
  }
}

void Engine::carry_slow_paths() {
  for (const OpenPort& each : open().ports) {
    if (each.slow_path) each.slow_path->carry();
  }
}

// 0 before the start.
uint64_t Engine::since_start_ns(const dataplane::TrialRun& run) const {
  const uint64_t start_tsc = run.start_tsc();
  const uint64_t now = timing::read_tsc();
  return start_tsc == 0 || now < start_tsc ? 0 : clock_.to_ns(now - start_tsc);
}

void Engine::stop_if_lost(dataplane::TrialRun& run, const dataplane::TrialSpec& spec) const {
  constexpr uint64_t kCheckNs = kLookMs * 1'000'000ULL;
  const uint64_t running_ns = since_start_ns(run);
  if (running_ns + kCheckNs >= spec.duration_ns) return;  // it is about to end anyway
  if (seems_lost(spec, run, running_ns)) run.stop();
}

Json Engine::preview(const Json& params) const {
  PreviewParams parsed = parse_preview(params);
  refuse_learned(parsed.trial.spec);
  if (open_) check_paths(parsed.trial, *open_);
  bind_ends(parsed.trial, open_.get());
  fill_in_macs(parsed.trial);
  fill_in_macs(parsed.trial.announcements);
  PcapWriter pcap(parsed.path);
  write_announcements(parsed.trial.announcements, pcap);
  uint64_t frames = 0;
  for (const Side from : parsed.trial.order) {
    frames += write_frames(parsed.trial.spec.from[index_of(from)], parsed.count, pcap);
  }
  pcap.close();
  return {{"frames", frames}};
}

// As they would leave, before all frames of the streams.
void Engine::write_announcements(const std::vector<Announcement>& announcements,
                                 PcapWriter& pcap) const {
  for (const Announcement& announcement : announcements) {
    const PortId port{announcement.side, 0};
    const net::Mac mac = open_ ? open_->port(port).mac() : net::Mac{};
    const net::VlanTags vlan = open_ ? open_->port(port).options().vlan : net::VlanTags{};
    const net::Mac dst_mac = announcement.dst_mac.value_or(net::Mac{});
    pcap.write(announcement.at_ns.value_or(0), frame_of(announcement, dst_mac, mac, vlan));
  }
}

Json Engine::drop_table() {
  table_.drop();
  return Json::object();
}

void Engine::idle() {
  if (!open_) return;
  const dpdk::QueueUse use;
  open_->neighbours->drain();
}

OpenPorts& Engine::open() const {
  if (!open_) throw ProtocolError(kStateError, "no ports are open", "call ports.open first");
  return *open_;
}

// Of the input queues that the trial's frames passed, if it was the tester's kernel that passed
// them.
uint64_t Engine::own_input_queue_drops(const TrialResult& result) const {
  bool any_interface = false;
  bool any_virtual = false;
  uint64_t accounted = 0;
  for (const OpenPort& each : open_->ports) {
    const auto attachment = each.port->attachment();
    any_interface = any_interface || attachment.has_value();
    any_virtual = any_virtual || (attachment && attachment->is_virtual);
  }
  for (const PortReport& port : result.ports) accounted += port.interface_drops;
  if (!any_interface) return 0;
  return kernel::own_input_queue_drops(result.input_queues, any_virtual, accounted);
}

Engine::Snapshot Engine::snapshot() const {
  Snapshot result{};
  result.input_queues = kernel::input_queues();
  for (const OpenPort& each : open_->ports) {
    result.ports.push_back({each.port->counters(), each.port->link()});
  }
  return result;
}

// A next hop that nobody knows keeps the zero MAC: in a preview; no trial is run with it.
void Engine::fill_in_macs(TrialRequest& request) const {
  if (!open_) return;
  for (const Side from : request.order) {
    std::vector<dataplane::StreamSpec>& streams = request.spec.from[index_of(from)].streams;
    for (size_t i = 0; i < streams.size(); ++i) {
      dataplane::StreamSpec& stream = streams[i];
      for (size_t path = 0; path < stream.paths(); ++path) {
        const PathAddressing& wanted = request.addressing[index_of(from)][i][path];
        const PortId port{from, stream.sent_by(path)};
        const net::Mac src_mac = wanted.src_mac.value_or(open_->port(port).mac());
        const net::Mac dst_mac = wanted.dst_mac.value_or(
            open_->neighbours->find(port, wanted.next_hop).value_or(net::Mac{}));
        (path == 0 ? stream.layout.src_mac : stream.more_paths[path - 1].src_mac) = src_mac;
        (path == 0 ? stream.layout.dst_mac : stream.more_paths[path - 1].dst_mac) = dst_mac;
      }
    }
  }
}

void Engine::fill_in_macs(std::vector<Announcement>& announcements) const {
  if (!open_) return;
  for (Announcement& each : announcements) {
    if (!each.dst_mac) each.dst_mac = open_->neighbours->find({each.side, 0}, each.destination());
  }
}

}  // namespace dutperf::control
