#include "control/engine.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "control/announcer.h"
#include "control/clock_check.h"
#include "control/direction_result.h"
#include "control/pcap.h"
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
constexpr int kLossCheckMs = 100;
constexpr int kSlowPathMs = 10;
// A frame that has been on its way for longer seems lost. See docs/adr/0011.
constexpr uint64_t kPatienceNs = 500'000'000;

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
      result.push_back(neighbour.ip.text() + " on port " + name_of(neighbour.side));
    }
  }
  return result;
}

// Since the launch; none: the port has no slow path.
std::optional<SlowPathReport> slow_path_of(SlowPath* slow_path,
                                           const dataplane::ReceiveReport& received) {
  if (slow_path == nullptr) return std::nullopt;
  slow_path->carry();  // what the receiver has left in its ring
  const SlowPath::Counts counts = slow_path->take_counts();
  return SlowPathReport{counts.to_tap, counts.from_tap, counts.lost + received.unclaimed_lost};
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
  Neighbours::SlowPaths slow_path_pointers{};
  for (size_t i = 0; i < dataplane::kSides; ++i) {
    const dpdk::PortOptions& options = params.ports[i];
    ports[i] = std::make_unique<dpdk::Port>(options, rings.get());
    sides[i] = std::make_unique<dataplane::SideResources>(*ports[i], max_frame_bytes(options));
    port_pointers[i] = ports[i].get();
    side_pointers[i] = sides[i].get();
    if (options.tap) slow_paths[i] = std::make_unique<SlowPath>(*ports[i], *sides[i]);
    slow_path_pointers[i] = slow_paths[i].get();
  }
  neighbours = std::make_unique<Neighbours>(port_pointers, side_pointers, slow_path_pointers);
}

Announcer Engine::OpenPorts::announcer(const std::vector<Announcement>& announcements) const {
  return Announcer(announcements, {ports[0].get(), ports[1].get()},
                   {sides[0].get(), sides[1].get()});
}

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
  check_before(request);
  check_fits(request);
  const dpdk::QueueUse use;
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

  fill_in_macs(request);
  for (const Side side : kBothSides) ports.sides[index_of(side)]->next_hops.clear();
  for (const ResolvedNeighbour& hop : result.neighbours) {
    if (hop.mac) ports.sides[index_of(hop.side)]->next_hops.push_back({hop.ip, *hop.mac});
  }
  const Snapshot before = snapshot();
  dataplane::TrialRun run(spec, {ports.sides[0].get(), ports.sides[1].get()}, clock_,
                          eal_.worker_lcores());
  if (!go_on) run.abort();
  announcer.send_due(0);
  for (auto& slow_path : ports.slow_paths) {
    if (slow_path) slow_path->take_counts();  // those of before
  }
  run.launch();
  watch(run, spec, announcer, monitor);
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
  add_longest_stalls(result.directions, facts);
  const auto cut_short = [](const measure::DirectionFacts& d) { return d.sent < d.intended; };
  result.ended_early =
      run.stopped() && std::any_of(facts.directions.begin(), facts.directions.end(), cut_short);
  facts.stopped = run.stopped() && monitor.stop_requested();
  facts.ended_early = result.ended_early && !facts.stopped;
  for (const Side side : kBothSides) {
    const size_t i = index_of(side);
    const dpdk::Port& port = *ports.ports[i];
    const dataplane::ReceiveReport& received = run.received_at(side);
    result.ports.push_back(port_report(side, port, before.ports[i], after.ports[i], received,
                                       ports.sides[i]->recorders));
    result.ports.back().neighbour_conflicts += ports.neighbours->conflicts(side);
    result.ports.back().announced = announcer.sent(side);
    result.ports.back().slow_path = slow_path_of(ports.slow_paths[i].get(), received);
    facts.ports.push_back(
        facts_of(result.ports.back(), port, before.ports[i], after.ports[i], received));
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

void Engine::watch(dataplane::TrialRun& run, const dataplane::TrialSpec& spec, Announcer& announcer,
                   Monitor& monitor) {
  const uint64_t launched = timing::read_tsc();
  int look_ms = spec.stop_when_lost ? kLossCheckMs : kProgressMs;
  if (open().slow_paths[0] || open().slow_paths[1]) look_ms = kSlowPathMs;
  int since_progress_ms = 0;
  eventfd_t done = 0;
  while (eventfd_read(run.done_fd(), &done) != 0) {
    const int wait_ms = announcer.wait_ms(since_start_ns(run), look_ms);
    if (!monitor.wait(run.done_fd(), wait_ms)) run.abort();
    announcer.send_due(since_start_ns(run));
    carry_slow_paths();
    if (monitor.stop_requested()) run.stop();
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

void Engine::carry_slow_paths() {
  for (const auto& slow_path : open().slow_paths) {
    if (slow_path) slow_path->carry();
  }
}

// 0 before the start.
uint64_t Engine::since_start_ns(const dataplane::TrialRun& run) const {
  const uint64_t start_tsc = run.start_tsc();
  const uint64_t now = timing::read_tsc();
  return start_tsc == 0 || now < start_tsc ? 0 : clock_.to_ns(now - start_tsc);
}

void Engine::stop_if_lost(dataplane::TrialRun& run, const dataplane::TrialSpec& spec) const {
  constexpr uint64_t kCheckNs = kLossCheckMs * 1'000'000ULL;
  const uint64_t running_ns = since_start_ns(run);
  if (running_ns + kCheckNs >= spec.duration_ns) return;  // it is about to end anyway
  if (seems_lost(spec, run, running_ns)) run.stop();
}

Json Engine::preview(const Json& params) const {
  PreviewParams parsed = parse_preview(params);
  refuse_learned(parsed.trial.spec);
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
    const size_t side = index_of(announcement.side);
    const net::Mac mac = open_ ? open_->ports[side]->mac() : net::Mac{};
    const net::VlanTags vlan = open_ ? open_->sides[side]->own.vlan : net::VlanTags{};
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
    result.ports[i] = {open_->ports[i]->counters(), open_->ports[i]->link()};
  }
  return result;
}

// Tags and labels are the ports': what a trial sends and expects with others would be lost without
// a word.
void Engine::check_before(const TrialRequest& request) const {
  for (const Side from : request.order) {
    const dataplane::DirectionSpec& direction = request.spec.from[index_of(from)];
    const auto check = [&](const char* key, Side side, bool same) {
      if (same) return;
      throw ProtocolError(kInvalidParams,
                          direction_name(from) + ": " + key + " is not the " + name_of(side) +
                              " port's, as ports.open gave it",
                          "give both the same VLAN tags and MPLS labels");
    };
    const dpdk::PortOptions& sends = open_->ports[index_of(from)]->options();
    const dpdk::PortOptions& receives = open_->ports[index_of(other(from))]->options();
    check("vlan", from, direction.vlan == sends.vlan);
    check("received_vlan", other(from), direction.received_vlan == receives.vlan);
    check("mpls", from, direction.labels == sends.labels);
    check("received_mpls", other(from), direction.received_labels == receives.labels);
  }
}

void Engine::check_fits(const TrialRequest& request) const {
  uint64_t bytes = 0;
  for (const Side from : request.order) {
    const dataplane::DirectionSpec& direction = request.spec.from[index_of(from)];
    constexpr uint32_t kNotIp = sizeof(net::EthernetHeader) + net::kFcsBytes;
    const uint32_t largest = open_->ports[index_of(from)]->mtu() + kNotIp -
                             direction.vlan.bytes_of_mtu() - direction.labels.bytes();
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

void Engine::fill_in_macs(std::vector<Announcement>& announcements) const {
  if (!open_) return;
  for (Announcement& each : announcements) {
    if (!each.dst_mac) each.dst_mac = open_->neighbours->find(each.side, each.destination());
  }
}

}  // namespace dutperf::control
