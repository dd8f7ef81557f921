// The messages of the control socket, one JSON object a line:
//
//   {"do": "configure", "behaviour": {...}}  ->  {"configured": true}
//   {"do": "report"}, {"do": "report", "trial": 7}  ->  the report
//   {"do": "report", "brief": true}  ->  the counts of the last trial
//   {"do": "connections"}  ->  how many the gateway's table holds: {"connections": 7}
//   {"do": "clear_connections"}, {"do": "delete_connections"}  ->  the same, at once or not
//   {"do": "stop"}  ->  the report; then the device ends
//   anything else  ->  {"error": {"message": ..., "hint": ...}}, and nothing has changed
#pragma once

#include <string>

#include "behaviour.h"
#include "trial_book.h"

namespace dutperf::refdut {

// REQUIRES: Device has configure(Behaviour), report(Asked), gateway() and now_ns().
template <typename Device>
class Commands {
 public:
  explicit Commands(Device& device) : device_(device) {}

  bool stop_requested() const { return stop_requested_; }

  std::string answer(const std::string& line) {
    // Invalid UTF-8 may be echoed in an error: replace it, never throw.
    return reply(line).dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  static constexpr const char* kCommands =
      R"(send {"do": "configure", "behaviour": {...}}, {"do": "report"} or {"do": "stop"})";

  Json reply(const std::string& line) {
    try {
      return run(control::parse_text(line));
    } catch (const control::ProtocolError& error) {
      return refusal(error.what(), error.hint().empty() ? kCommands : error.hint());
    }
  }

  Json run(const Json& message) {
    control::ObjectReader reader(message, "");
    const std::string command = reader.text("do");
    if (command == "configure") {
      const Json& behaviour = reader.at("behaviour");
      reader.finish();
      device_.configure(parse_behaviour(behaviour));
      return {{"configured", true}};
    }
    if (command == "report") {
      Asked asked;
      if (reader.has("trial")) {
        asked.trial = static_cast<uint16_t>(reader.number("trial", 0, 65535));
      }
      asked.brief = reader.flag_or("brief", false);
      reader.finish();
      return device_.report(asked);
    }
    if (command.ends_with("connections")) {
      reader.finish();
      return connections(command);
    }
    if (command != "stop") reader.refuse("do", "is no command: \"" + command + "\"");
    reader.finish();
    stop_requested_ = true;
    return device_.report(Asked{});
  }

  Json connections(const std::string& command) {
    auto* gateway = device_.gateway();
    if (gateway == nullptr) {
      return refusal("the device is no gateway", "configure it with a behaviour that has \"nat\"");
    }
    const uint64_t now_ns = device_.now_ns();
    if (command == "clear_connections") {
      gateway->clear();
    } else if (command == "delete_connections") {
      gateway->start_removal(now_ns);
    } else if (command != "connections") {
      return refusal("\"" + command + "\" is no command", kCommands);
    }
    return {{"connections", gateway->connections(now_ns)}};
  }

  static Json refusal(const std::string& message, const std::string& hint) {
    return {{"error", {{"message", message}, {"hint", hint}}}};
  }

  Device& device_;
  bool stop_requested_ = false;
};

}  // namespace dutperf::refdut
