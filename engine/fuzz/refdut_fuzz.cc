// Any text as lines on the known-answer device's socket, or as the behaviour in its file. Each line
// has an answer, which is one line of JSON; a behaviour is refused with a ProtocolError, or taken.
#include <optional>
#include <string>

#include "fuzz/require.h"
#include "refdut/behaviour.h"
#include "refdut/commands.h"

namespace dutperf::fuzz {
namespace {

using refdut::Json;

struct Table {
  void clear() {}
  void start_removal(uint64_t /*now_ns*/) {}
  size_t connections(uint64_t /*now_ns*/) { return 7; }
};

struct Device {
  void configure(const refdut::Behaviour& behaviour) { told = behaviour; }
  Json report(const refdut::Asked& asked) { return {{"trial", asked.trial.value_or(0)}}; }
  Table* gateway() { return told.nat ? &table : nullptr; }
  static uint64_t now_ns() { return 1; }

  refdut::Behaviour told;
  Table table;
};

void check_answer(const std::string& answer) {
  require(answer.find('\n') == std::string::npos, "an answer is one line");
  const Json json = Json::parse(answer);
  require(json.is_object() && !json.empty(), "an answer is an object");
  if (json.contains("error")) {
    require(!json["error"]["message"].get<std::string>().empty(), "an error says what");
    require(!json["error"]["hint"].get<std::string>().empty(), "an error says what to do");
  }
}

void check_file(const std::string& text) {
  try {
    refdut::parse_behaviour(control::parse_text(text));
  } catch (const control::ProtocolError& error) {
    require(*error.what() != 0, "an error can be told");
  }
}

}  // namespace
}  // namespace dutperf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dutperf;
  const std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::check_file(text);
  fuzz::Device device;
  refdut::Commands commands(device);
  for (size_t begin = 0; begin < size;) {
    const size_t end = std::min(text.find('\n', begin), size);
    fuzz::check_answer(commands.answer(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return 0;
}
