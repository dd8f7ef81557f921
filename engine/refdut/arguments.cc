#include "arguments.h"

#include <getopt.h>

#include <algorithm>
#include <cstdlib>

#include "behaviour.h"
#include "ports.h"

namespace dutperf::refdut {
namespace {

PortArgument parse_port(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon != std::string::npos && colon + 1 < text.size()) {
    const std::string kind = text.substr(0, colon);
    const std::string device = text.substr(colon + 1);
    if (kind == "memif") return {PortKind::kMemif, device};
    if (kind == "af_packet") return {PortKind::kAfPacket, device};
    if (kind == "af_xdp") return {PortKind::kAfXdp, device};
  }
  throw UsageError("\"" + text + "\" is no port");
}

// A whole decimal number from `lowest` to `highest`.
uint32_t parse_number(const std::string& name, uint32_t lowest, uint32_t highest) {
  const char* text = optarg;
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || value < lowest || value > highest) {
    throw UsageError("--" + name + " must be a number from " + std::to_string(lowest) + " to " +
                     std::to_string(highest));
  }
  return static_cast<uint32_t>(value);
}

void check_ports(const Arguments& arguments) {
  const auto& [left, right] = arguments.ports;
  if (left.size() != right.size()) {
    throw UsageError("--left and --right must be given equally often");
  }
  if (left.size() > kMostPairs) {
    throw UsageError("--left and --right may be given " + std::to_string(kMostPairs) + " times");
  }
  if (left.empty() && !arguments.check) throw UsageError("--left and --right are missing");
  std::vector<PortArgument> all = left;
  all.insert(all.end(), right.begin(), right.end());
  for (auto port = all.begin(); port != all.end(); ++port) {
    if (std::find(all.begin(), port, *port) != port) {
      throw UsageError(port->device + " can be one port only");
    }
  }
}

}  // namespace

Arguments parse_arguments(int argc, char** argv) {
  static const option kOptions[] = {
      {"left", required_argument, nullptr, 'l'},   {"right", required_argument, nullptr, 'r'},
      {"config", required_argument, nullptr, 'f'}, {"control", required_argument, nullptr, 's'},
      {"cpu", required_argument, nullptr, 'c'},    {"frames-held", required_argument, nullptr, 'h'},
      {"mtu", required_argument, nullptr, 'm'},    {"queues", required_argument, nullptr, 'q'},
      {"check", no_argument, nullptr, 'k'},        {nullptr, 0, nullptr, 0},
  };
  Arguments arguments;
  optind = 0;  // from the start, also when it was called before
  for (int option = 0; (option = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (option) {
      case 'l': arguments.ports[0].push_back(parse_port(optarg)); break;
      case 'r': arguments.ports[1].push_back(parse_port(optarg)); break;
      case 'f': arguments.config = optarg; break;
      case 's': arguments.control = optarg; break;
      case 'c': arguments.cpu = static_cast<int>(parse_number("cpu", 0, 4095)); break;
      case 'k': arguments.check = true; break;
      case 'h': arguments.frames_held = parse_number("frames-held", 1, 4'000'000); break;
      case 'm': arguments.mtu = static_cast<uint16_t>(parse_number("mtu", kMinMtu, kMaxMtu)); break;
      case 'q': arguments.queues = static_cast<uint16_t>(parse_number("queues", 1, 32)); break;
      default: throw UsageError("an option is unknown, or has no value");
    }
  }
  for (const std::vector<PortArgument>& side : arguments.ports) {
    for (const PortArgument& port : side) {
      if (arguments.queues > 1 && port.kind != PortKind::kMemif) {
        throw UsageError("--queues is for memif: an interface has one");
      }
    }
  }
  if (optind != argc) throw UsageError(std::string(argv[optind]) + " is no option");
  check_ports(arguments);
  return arguments;
}

}  // namespace dutperf::refdut
