#include "control/load_messages.h"

#include <algorithm>
#include <string>
#include <vector>

#include "control/limits.h"

namespace dutperf::control {
namespace {

constexpr uint64_t kMaxFps = 1'000'000'000'000;
constexpr size_t kMaxSteps = 4096;

std::vector<timing::RateStep> parse_steps(ObjectReader& direction) {
  std::vector<timing::RateStep> steps;
  if (!direction.has("steps")) return steps;
  const Json& list = direction.array("steps", 0, kMaxSteps);
  for (size_t i = 0; i < list.size(); ++i) {
    ObjectReader step(list[i], element(direction.path("steps"), i));
    steps.push_back({step.number("rate_fps", 0, kMaxFps), step.number("duration_ns", 1, kMaxNs)});
    step.finish();
  }
  return steps;
}

Json or_null(const std::optional<uint64_t>& ns) { return ns ? Json(*ns) : Json(); }

}  // namespace

void parse_load(ObjectReader& reader, uint64_t duration_ns, dataplane::DirectionSpec& direction) {
  direction.rate_fps = reader.number("rate_fps", 1, kMaxFps);
  direction.steps = parse_steps(reader);
  uint64_t highest_fps = 0;
  for (const timing::RateStep& step : direction.steps) {
    highest_fps = std::max(highest_fps, step.rate_fps);
  }
  if (!direction.steps.empty() && highest_fps != direction.rate_fps) {
    reader.refuse("rate_fps", "must be the highest of steps, " + std::to_string(highest_fps));
  }
  direction.frames = direction.load().frames_in(duration_ns);
  if (direction.frames > kMaxFrames) reader.refuse("rate_fps", "makes more than 2^40 frames");
  if (direction.frames > 0) return;
  // A trial sends one frame at least: at once, as none of the steps has one for it.
  direction.frames = 1;
  direction.steps.clear();
}

std::optional<TimedLoss> timed(const dataplane::DirectionSpec& direction, const timing::Load& load,
                               size_t stream, const measure::LossRun& run, uint64_t sent) {
  if (run.frames == 0) return std::nullopt;
  const auto due_ns = [&](uint64_t sequence) {
    return load.due_ns(direction.place_of(stream, sequence));
  };
  const uint64_t end = run.first + run.frames;
  TimedLoss loss{run, due_ns(run.first), due_ns(end - 1), std::nullopt};
  if (end < sent) loss.end_ns = due_ns(end);
  return loss;
}

Json to_json(const std::optional<TimedLoss>& loss) {
  if (!loss) return Json();
  return {{"first", loss->run.first},
          {"frames", loss->run.frames},
          {"begin_ns", loss->begin_ns},
          {"last_ns", loss->last_ns},
          {"end_ns", or_null(loss->end_ns)}};
}

Json to_json(const measure::Silence& silence) {
  return {{"begin_ns", silence.begin_ns}, {"end_ns", or_null(silence.end_ns)}};
}

}  // namespace dutperf::control
