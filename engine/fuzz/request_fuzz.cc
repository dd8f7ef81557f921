// Any text as the parameters of a request. They are refused with a ProtocolError, or the trial they
// ask for can be made: its frames are written, and are test frames that the receiver takes.
#include <memory>

#include "control/messages.h"
#include "fuzz/require.h"
#include "net/classify.h"
#include "net/tcp.h"
#include "vary/frame_writer.h"

namespace dutperf::fuzz {
namespace {

using control::Json;

template <typename Parse>
void try_to(Parse parse, const Json& params) {
  try {
    parse(params);
  } catch (const control::ProtocolError& error) {
    require(*error.what() != 0 && !Json(error.what()).dump().empty(), "an error can be told");
  }
}

void check_tagged(const uint8_t* frame, size_t size, uint64_t sequence) {
  const net::Classified classified = net::classify(frame, size);
  require(classified.kind == net::FrameKind::kTest, "what is sent is a test frame");
  require(net::checksums_hold(frame, classified), "what is sent is whole");
  require(classified.tag->sequence() == sequence, "a frame carries its number");
}

void check_segment(const net::SegmentLayout& layout, const uint8_t* frame, size_t size,
                   uint64_t sequence) {
  const auto segment = net::segment_in(frame, size);
  const bool opens = layout.step == net::Step::kSyn;
  require(segment && segment->has(net::kTcpSyn) == opens, "what is sent is such a segment");
  require(net::checksums_hold(frame, *segment), "what is sent is whole");
  const uint32_t first = segment->sequence - (opens ? 0 : 1 + layout.sent_before);
  require(layout.numbers.connection_of(first) == sequence, "a segment carries its number");
}

// Frames number 0 and the stream's last two.
void write_frames(const dataplane::StreamSpec& stream, uint32_t frame_size, uint64_t frames) {
  net::FrameLayout layout = stream.layout;
  layout.frame_size = frame_size;
  if (!stream.variations.bound.empty()) return;  // their table is an open port's
  const vary::FrameWriter writer(layout, stream.tag, stream.variations);
  const size_t size = writer.template_bytes().size();
  require(size == frame_size - net::kFcsBytes, "a frame has the size that was asked for");
  vary::Lanes sequences{};
  sequences.lane[0] = 0;
  sequences.lane[1] = frames > 1 ? frames - 2 : 0;
  sequences.lane[2] = frames > 0 ? frames - 1 : 0;
  std::unique_ptr<uint8_t[]> buffers[3];
  uint8_t* pointers[3];
  for (size_t i = 0; i < 3; ++i) {
    buffers[i] = std::make_unique<uint8_t[]>(size);
    std::copy_n(writer.template_bytes().begin(), size, buffers[i].get());
    pointers[i] = buffers[i].get();
  }
  writer.write(pointers, sequences, 3, frames);
  for (size_t i = 0; i < 3; ++i) {
    if (layout.tcp && !layout.tcp->is_data) {
      check_segment(*layout.tcp, pointers[i], size, sequences.lane[i]);
    } else {
      check_tagged(pointers[i], size, sequences.lane[i]);
    }
  }
}

void check_trial(const control::TrialRequest& request) {
  const dataplane::TrialSpec& spec = request.spec;
  for (const dataplane::Side side : request.order) {
    const dataplane::DirectionSpec& direction = spec.from[dataplane::index_of(side)];
    for (size_t i = 0; i < direction.streams.size(); ++i) {
      const dataplane::StreamSpec& stream = direction.streams[i];
      require(!stream.received_frame_sizes.empty(), "a stream has sizes");
      for (const uint32_t size : stream.frame_sizes) {
        write_frames(stream, size, spec.frames_of(side, i));
      }
    }
    const dataplane::TagSpread tags = spec.tags_of(side, 0);
    require(tags.count <= tags.span, "there are as many frames as tags");
  }
}

void check(const Json& params) {
  try_to([](const Json& json) { control::parse_ports_open(json); }, params);
  try_to([](const Json& json) { control::parse_neighbours(json); }, params);
  try_to([](const Json& json) { control::parse_preview(json); }, params);
  try_to([](const Json& json) { check_trial(control::parse_trial(json)); }, params);
}

}  // namespace
}  // namespace dutperf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using dutperf::control::Json;
  Json json;
  try {
    json = Json::parse(data, data + size);
  } catch (const Json::exception&) {
    return 0;
  }
  // The golden messages are whole requests.
  dutperf::fuzz::check(json.is_object() && json.contains("params") ? json["params"] : json);
  return 0;
}
