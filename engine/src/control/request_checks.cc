#include "control/request_checks.h"

#include <algorithm>
#include <fstream>

#include "dataplane/exchange.h"
#include "measure/stream_recorder.h"

namespace dutperf::control {
namespace {

using dataplane::index_of;
using dataplane::other;
using dataplane::Side;

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

// What earlier trials took is not free, and is used again.
uint64_t held_bytes(const OpenPorts& open) {
  uint64_t bytes = 0;
  for (const auto& side : open.sides) {
    bytes += side->held_bytes();
  }
  return bytes;
}

std::optional<std::string> indivisible(const dataplane::TrialSpec& spec, const OpenPorts& open) {
  if (spec.record.ipdv) return "IPDV is of frames sent in a row";
  if (spec.learn) return "four-tuples are learned by one worker";
  if (spec.is_answered()) return "what comes is answered by one worker a side";
  if (open.has_slow_path()) return "a port has a slow path";
  for (const Side from : dataplane::kBothSides) {
    const dataplane::DirectionSpec& direction = spec.from[index_of(from)];
    if (direction.streams.size() > 1) return "a direction has two streams";
    for (const dataplane::StreamSpec& stream : direction.streams) {
      if (stream.most_pieces > 1) return "frames come in pieces";
    }
    if (measure::SequenceTracker::bytes_for(spec.frames_of(from, 0)) > spec.record.tracking_bytes) {
      return "tracking_mb is too small for a bit for each frame";
    }
  }
  return std::nullopt;
}

}  // namespace

// Tags, labels and outer headers are the ports': what a trial sends and expects with others would
// be lost without a word.
void check_tags(const TrialRequest& request, const OpenPorts& open) {
  for (const Side from : request.order) {
    const dataplane::DirectionSpec& direction = request.spec.from[index_of(from)];
    const auto check = [&](const char* key, Side side, bool same) {
      if (same) return;
      throw ProtocolError(kInvalidParams,
                          direction_name(from) + ": " + key + " is not the " + name_of(side) +
                              " port's, as ports.open gave it",
                          "give both the same VLAN tags, MPLS labels and outer headers");
    };
    const dpdk::PortOptions& sends = open.port({from, 0}).options();
    const dpdk::PortOptions& receives = open.port({request.spec.receiver_of(from), 0}).options();
    check("vlan", from, direction.vlan == sends.vlan);
    check("received_vlan", request.spec.receiver_of(from),
          direction.received_vlan == receives.vlan);
    check("mpls", from, direction.labels == sends.labels);
    check("received_mpls", request.spec.receiver_of(from),
          direction.received_labels == receives.labels);
    check("encapsulation", from, direction.outer == sends.outer);
    check("received_encapsulation", request.spec.receiver_of(from),
          direction.received_outer == receives.outer);
  }
}

// A frame of a path from or to a port that is not there would be lost without a word.
void check_paths(const TrialRequest& request, const OpenPorts& open) {
  for (const Side from : request.order) {
    for (const dataplane::StreamSpec& stream : request.spec.from[index_of(from)].streams) {
      for (const dataplane::Path& path : stream.more_paths) {
        if (path.sent_by < open.of_side() && path.received_by < open.of_side()) continue;
        throw ProtocolError(kInvalidParams,
                            direction_name(from) + ": a path goes from port " +
                                name_of(PortId{from, path.sent_by}) + " to port " +
                                name_of(PortId{other(from), path.received_by}) + ", but only " +
                                std::to_string(open.of_side()) + " a side are open",
                            "open as many ports as the streams' paths name");
      }
    }
  }
}

void bind_ends(TrialRequest& request, const OpenPorts* open) {
  const auto is_tunnel = [](const net::Encapsulation& outer) {
    return outer.bytes() > 0 && outer.ends().kind == net::Tunnel::kIp &&
           outer.ends().local.version == 6;
  };
  for (const Side from : request.order) {
    dataplane::DirectionSpec& direction = request.spec.from[index_of(from)];
    for (dataplane::StreamSpec& stream : direction.streams) {
      for (vary::BoundEnd& end : stream.variations.bound) {
        const Side side = end.is_source ? from : request.spec.receiver_of(from);
        const std::string key = direction_name(from) + (end.is_source ? ": src" : ": dst");
        end.table = open != nullptr ? open->bindings[index_of(side)].get() : nullptr;
        if (end.table == nullptr ||
            !is_tunnel(end.is_source ? direction.outer : direction.received_outer)) {
          throw ProtocolError(kInvalidParams,
                              key + "_binding needs the bindings of the " + name_of(side) +
                                  " port, and outer headers of IPv6 there",
                              "give ports.open the port's bindings and encapsulation");
        }
        if (end.spoofed && !end.table->can_be_spoofed()) {
          throw ProtocolError(kInvalidParams, key + "_binding needs another B4 than the only one");
        }
        if (!end.is_source) {
          stream.received_end = {direction.received_outer.ends().local, true, {}, end.table};
        }
      }
    }
  }
}

void check_fits(const TrialRequest& request, const OpenPorts& open) {
  uint64_t bytes = 0;
  for (const Side from : request.order) {
    const dataplane::DirectionSpec& direction = request.spec.from[index_of(from)];
    constexpr uint32_t kNotIp = sizeof(net::EthernetHeader) + net::kFcsBytes;
    uint32_t mtu = UINT32_MAX;
    for (uint8_t i = 0; i < open.of_side(); ++i) {
      mtu = std::min<uint32_t>(mtu, open.port({from, i}).mtu());
    }
    const uint32_t largest = mtu + kNotIp - direction.vlan.bytes_of_mtu() -
                             direction.labels.bytes() - direction.outer.bytes();
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
    // Those of several shares, and of the whole that is put together of them.
    const uint64_t copies = open.shares > 1 ? 2 : 1;
    for (size_t i = 0; i < direction.streams.size(); ++i) {
      bytes += copies * measure::StreamRecorder::bytes_for(request.spec.record,
                                                           request.spec.frames_of(from, i));
    }
  }
  if (request.spec.exchange)
    bytes += (dataplane::kSteps + 1) * (request.spec.exchange->connections / 8);
  if (request.spec.resolution) bytes += 2 * (request.spec.resolution->queries / 8);
  const uint64_t available = available_memory_bytes();
  const uint64_t held = std::min(held_bytes(open), UINT64_MAX - available);
  if (bytes > (available + held) / 2) {
    throw ProtocolError(kEnvironmentError,
                        "accounting for every frame needs " + std::to_string(bytes >> 20) +
                            " MiB (one bit a frame), more than half of the free memory",
                        "shorten the trial, lower the rate, or lower record.tracking_mb: a window "
                        "slides then");
  }
}

std::optional<std::string> split(dataplane::TrialSpec& spec, const OpenPorts& open) {
  if (open.shares == 1) return std::nullopt;
  std::optional<std::string> because = indivisible(spec, open);
  if (!because) spec.shares = open.shares;
  return because;
}

}  // namespace dutperf::control
