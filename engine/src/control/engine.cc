#include "control/engine.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <fstream>

#include "control/pcap.h"
#include "dataplane/frame_order.h"
#include "dpdk/error.h"
#include "measure/sequence_tracker.h"
#include "timing/schedule.h"

namespace dutperf::control {
namespace {

using dataplane::index_of;
using dataplane::kBothSides;
using dataplane::other;
using dataplane::Side;

constexpr uint64_t kCalibrationNs = 100'000'000;
constexpr int kProgressMs = 500;

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
  return {after.rx_frames - before.rx_frames, after.tx_frames - before.tx_frames,
          after.rx_missed - before.rx_missed, after.rx_errors - before.rx_errors,
          after.rx_nombuf - before.rx_nombuf, after.tx_errors - before.tx_errors};
}

// Frames a second between the first and the last departure.
double offered_rate(const dataplane::SendReport& report, const timing::TscClock& clock) {
  const uint64_t ns = clock.to_ns(report.last_tsc - report.first_tsc);
  if (report.sent < 2 || ns == 0) return 0;
  return static_cast<double>(report.sent - 1) * 1e9 / static_cast<double>(ns);
}

DirectionResult direction_result(const dataplane::TrialSpec& spec, Side from,
                                 const dataplane::TrialRun& run,
                                 const dataplane::StreamTrackers& trackers,
                                 const timing::TscClock& clock) {
  const dataplane::DirectionSpec& direction = spec.from[index_of(from)];
  const dataplane::SendReport& report = run.sent_from(from);
  DirectionResult result{};
  result.from = from;
  result.intended_rate_fps = direction.rate_fps;
  result.offered_rate_fps = offered_rate(report, clock);
  result.sending_ns = report.sent == 0 ? 0 : clock.to_ns(report.last_tsc - run.start_tsc());
  result.tx_full = report.tx_full;
  result.lag_ns = &report.lag_ns;
  result.burst_frames = &report.burst_frames;
  for (size_t i = 0; i < direction.streams.size(); ++i) {
    const dataplane::StreamSpec& stream = direction.streams[i];
    result.streams.push_back({stream.id, (stream.tag.flags & net::kTagFlagBackground) != 0,
                              direction.frames_of(i, direction.frames),
                              direction.frames_of(i, report.sent), trackers[i].received(),
                              trackers[i].duplicate(), trackers[i].reordered()});
  }
  return result;
}

measure::DirectionFacts facts_of(const DirectionResult& result, bool gave_up,
                                 uint64_t lag_limit_ns) {
  measure::DirectionFacts facts;
  facts.name = direction_name(result.from);
  for (const StreamResult& stream : result.streams) {
    facts.intended += stream.intended;
    facts.sent += stream.sent;
    facts.received += stream.received;
    facts.duplicate += stream.duplicate;
  }
  facts.sending_ns = result.sending_ns;
  facts.max_lag_ns = result.lag_ns->count() > 0 ? result.lag_ns->max() : 0;
  facts.late_frames = result.lag_ns->count_from(lag_limit_ns / measure::kLateShare);
  facts.gave_up = gave_up;
  return facts;
}

PortReport port_report(Side side, const dataplane::ReceiveReport& received) {
  PortReport report{};
  report.side = side;
  report.neighbour_requests = received.neighbour_requests;
  report.foreign = received.foreign;
  report.stale = received.stale;
  report.misdirected = received.misdirected;
  report.corrupt = received.corrupt;
  return report;
}

// The direction's first `count` frames, each with its due time as stamp; returns how many.
uint64_t write_frames(const dataplane::DirectionSpec& direction, uint64_t count, PcapWriter& pcap) {
  const dataplane::FrameOrder order(direction);
  const std::vector<vary::FrameWriter> writers = dataplane::FrameOrder::writers(direction);
  dataplane::FrameOrder::Position position;
  timing::Schedule schedule(0, timing::kNsPerSecond, direction.rate_fps);  // ticks are ns here
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
    : options_(options), clock_(timing::calibrate_tsc(kCalibrationNs)), eal_(options) {}

Json Engine::hello() const {
  return {{"engine_version", DUTPERF_VERSION},
          {"dpdk_version", dpdk::Eal::version()},
          {"protocol_version", kProtocolVersion},
          {"tsc_hz", clock_.hz()},
          {"worker_cpus", options_.worker_cpus},
          {"main_cpu", options_.main_cpu},
          {"hugepages", options_.hugepages},
          {"memory_mb", options_.memory_mb},
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
    ports.push_back(
        to_json(PortStatus{port->options(), port->mac(), port->link(), port->flow_control(),
                           port->numa_node(), port->mtu(), port->driver_name(), port->counters()}));
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
  uint64_t accounted_ns = 0;  // learning, waits and sending: not overhead
  const auto timed = [&](auto&& action) {
    const uint64_t before = timing::read_tsc();
    action();
    accounted_ns += clock_.to_ns(timing::read_tsc() - before);
  };

  measure::TrialFacts facts;
  facts.duration_ns = spec.duration_ns;
  facts.lag_limit_ns = spec.lag_limit_ns;
  timed([&] { result.neighbours = ports.neighbours->resolve(monitor); });
  // Whom an abort kept from answering is not missing.
  bool go_on = monitor.wait(-1, 0);
  if (go_on) facts.unresolved_neighbours = unresolved(result.neighbours);
  go_on = go_on && facts.unresolved_neighbours.empty();
  if (go_on) timed([&] { go_on = ports.neighbours->serve(request.settle_ns, monitor); });

  fill_in_macs(request);
  const Snapshot before = snapshot();
  dataplane::TrialRun run(spec, {ports.sides[0].get(), ports.sides[1].get()}, clock_,
                          eal_.worker_lcores());
  if (!go_on) run.abort();
  run.launch();
  watch(run, spec.trial_id, monitor);
  run.join();
  const Snapshot after = snapshot();
  accounted_ns += run.running_ns();
  facts.aborted = run.aborted() && facts.unresolved_neighbours.empty();

  for (const Side from : request.order) {
    result.directions.push_back(
        direction_result(spec, from, run, ports.sides[index_of(other(from))]->trackers, clock_));
    facts.directions.push_back(
        facts_of(result.directions.back(), run.sent_from(from).gave_up, spec.lag_limit_ns));
  }
  for (const Side side : kBothSides) {
    const size_t i = index_of(side);
    PortReport report = port_report(side, run.received_at(side));
    report.before = before.counters[i];
    report.after = after.counters[i];
    const dpdk::PortCounters during = difference(report.before, report.after);
    facts.ports.push_back({name_of(side), before.link[i].up, after.link[i].up,
                           before.link[i].changes != after.link[i].changes,
                           ports.ports[i]->flow_control() == dpdk::FlowControl::kOn,
                           during.rx_missed, during.rx_errors, during.rx_nombuf, during.tx_errors,
                           report.corrupt});
    result.ports.push_back(report);
  }
  result.verdict = measure::judge(facts);
  result.total_ns = clock_.to_ns(timing::read_tsc() - entered);
  result.overhead_ns = result.total_ns - std::min(result.total_ns, accounted_ns);
  return to_json(result);
}

void Engine::watch(dataplane::TrialRun& run, uint16_t trial_id, Monitor& monitor) {
  const uint64_t launched = timing::read_tsc();
  eventfd_t done = 0;
  while (eventfd_read(run.done_fd(), &done) != 0) {
    if (!monitor.wait(run.done_fd(), kProgressMs)) run.abort();
    monitor.notify("trial.progress", {{"trial_id", trial_id},
                                      {"phase", "running"},
                                      {"elapsed_ns", clock_.to_ns(timing::read_tsc() - launched)},
                                      {"sent", run.published_sent()},
                                      {"received", run.published_received()}});
  }
}

Json Engine::preview(const Json& params) const {
  PreviewParams parsed = parse_preview(params);
  fill_in_macs(parsed.trial);
  PcapWriter pcap(parsed.path);
  uint64_t frames = 0;
  for (const Side from : parsed.trial.order) {
    frames += write_frames(parsed.trial.spec.from[index_of(from)], parsed.count, pcap);
  }
  pcap.close();
  return {{"frames", frames}};
}

void Engine::idle() {
  if (open_) open_->neighbours->drain();
}

Engine::OpenPorts& Engine::open() const {
  if (!open_) throw ProtocolError(kStateError, "no ports are open", "call ports.open first");
  return *open_;
}

Engine::Snapshot Engine::snapshot() const {
  Snapshot result{};
  for (size_t i = 0; i < dataplane::kSides; ++i) {
    result.counters[i] = open_->ports[i]->counters();
    result.link[i] = open_->ports[i]->link();
  }
  return result;
}

void Engine::check_fits(const TrialRequest& request) const {
  uint64_t bitmap_bytes = 0;
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
    bitmap_bytes += measure::SequenceTracker::bytes_for(direction.frames);
  }
  if (bitmap_bytes > available_memory_bytes() / 2) {
    throw ProtocolError(kEnvironmentError,
                        "accounting for every frame needs " + std::to_string(bitmap_bytes >> 20) +
                            " MiB (one bit a frame), more than half of the free memory",
                        "shorten the trial or lower the rate");
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
