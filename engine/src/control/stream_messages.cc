#include "control/stream_messages.h"

#include <algorithm>
#include <set>

#include "control/exchange_messages.h"
#include "control/limits.h"
#include "control/tuple_messages.h"
#include "vary/permutation.h"

namespace dutperf::control {
namespace {

using vary::Field;
using vary::Mode;
using vary::Order;
using vary::Variation;

constexpr uint64_t kMaxFrameSize = 9720;
constexpr size_t kMaxLanes = 64;  // each has buffers of its own
constexpr size_t kMaxMorePaths = dataplane::kMaxPorts * dataplane::kMaxPorts - 1;
constexpr size_t kMaxVariations = 8;
const Json kNone = Json::array();

constexpr NamesOf<Field, 11> kFields = {{
    {"src_mac", Field::kSrcMac},
    {"dst_mac", Field::kDstMac},
    {"vlan_id", Field::kVlanId},
    {"flow_label", Field::kFlowLabel},
    {"src_ip", Field::kSrcIp},
    {"dst_ip", Field::kDstIp},
    {"src_port", Field::kSrcPort},
    {"dst_port", Field::kDstPort},
    {"outer_src", Field::kOuterSrc},
    {"outer_src_port", Field::kOuterSrcPort},
    {"outer_flow_label", Field::kOuterFlowLabel},
}};
constexpr NamesOf<Mode, 4> kModes = {{
    {"increasing", Mode::kIncreasing},
    {"decreasing", Mode::kDecreasing},
    {"random", Mode::kRandom},
    {"enumerate", Mode::kEnumerate},
}};
constexpr NamesOf<Order, 3> kOrders = {{
    {"increasing", Order::kIncreasing},
    {"decreasing", Order::kDecreasing},
    {"random", Order::kRandom},
}};
constexpr size_t kMaxIpv6Headers = 6;
constexpr NamesOf<net::Ipv6Extension, 6> kIpv6Headers = {{
    {"hop-by-hop", net::Ipv6Extension::kHopByHop},
    {"destination-options", net::Ipv6Extension::kDestinationOptions},
    {"routing", net::Ipv6Extension::kRouting},
    {"fragment", net::Ipv6Extension::kFragment},
    {"authentication", net::Ipv6Extension::kAuthentication},
    {"mobility", net::Ipv6Extension::kMobility},
}};
constexpr NamesOf<net::Ipv4Option, 2> kIpv4Options = {{
    {"router-alert", net::Ipv4Option::kRouterAlert},
    {"nop", net::Ipv4Option::kNop},
}};
constexpr NamesOf<uint8_t, 3> kStreamNames = {{
    {"foreground", uint8_t{0}},
    {"background", net::kTagFlagBackground},
    {"beside", static_cast<uint8_t>(net::kTagFlagBackground | net::kTagFlagBeside)},
}};

net::IpAddress parse_ip_of(ObjectReader& reader, const std::string& key, int version) {
  const net::IpAddress address = reader.ip(key);
  if (address.version != version) {
    reader.refuse(key, "is not an IPv" + std::to_string(version) + " address");
  }
  return address;
}

std::vector<uint32_t> parse_sizes(ObjectReader& reader, const std::string& key, uint64_t least) {
  std::vector<uint32_t> sizes;
  const Json& list = reader.array(key, 1, kMaxSequence);
  for (size_t i = 0; i < list.size(); ++i) {
    const bool fits = list[i].is_number_unsigned() && list[i].get<uint64_t>() >= least &&
                      list[i].get<uint64_t>() <= kMaxFrameSize;
    if (!fits) {
      reader.refuse(element(key, i), "must be a whole number from " + std::to_string(least) +
                                         " to " + std::to_string(kMaxFrameSize));
    }
    sizes.push_back(list[i].get<uint32_t>());
  }
  return sizes;
}

// Where a field's bits begin, and that so many are there.
uint8_t parse_offset(ObjectReader& reader, const std::string& key, Field field, int ip_version,
                     uint64_t width) {
  const uint32_t bits = vary::bits_of(field, ip_version);
  const uint64_t offset = reader.number_or(key, 0, 0, bits - 1);
  if (offset + width > bits) {
    reader.refuse("width", "reaches beyond the field's " + std::to_string(bits) + " bits");
  }
  return static_cast<uint8_t>(offset);
}

Field parse_field(ObjectReader& reader, const std::string& key, int ip_version) {
  const Field field = reader.name(key, kFields);
  if (field == Field::kFlowLabel && ip_version == 4) {
    reader.refuse(key, "flow_label is a field of IPv6");
  }
  return field;
}

Variation parse_variation(const Json& json, const std::string& where, int ip_version) {
  ObjectReader reader(json, where);
  Variation variation;
  variation.field = parse_field(reader, "field", ip_version);
  variation.width = static_cast<uint8_t>(reader.number("width", 1, 32));
  variation.offset = parse_offset(reader, "offset", variation.field, ip_version, variation.width);
  const uint64_t most = (1ULL << variation.width) - 1;
  variation.min = static_cast<uint32_t>(reader.number("min", 0, most));
  variation.max = static_cast<uint32_t>(reader.number("max", variation.min, most));
  variation.mode = reader.name_or("mode", "random", kModes);
  reader.finish();
  return variation;
}

struct Bits {
  Field field;
  uint32_t offset;
  uint32_t width;
};

bool overlap(const Bits& a, const Bits& b) {
  return a.field == b.field && a.offset < b.offset + b.width && b.offset < a.offset + a.width;
}

Bits bits_in(const Variation& one) { return {one.field, one.offset, one.width}; }
Bits read_by(const vary::Copy& one) { return {one.from, one.from_offset, one.width}; }
Bits written_by(const vary::Copy& one) { return {one.to, one.to_offset, one.width}; }

// None may write what varies, nor what another one writes or reads: the order would matter.
void parse_copies(ObjectReader& stream, int ip_version, vary::Variations& variations) {
  if (!stream.has("copies")) return;
  const Json& list = stream.array("copies", 0, kMaxVariations);
  for (size_t i = 0; i < list.size(); ++i) {
    ObjectReader reader(list[i], element(stream.path("copies"), i));
    vary::Copy copy;
    copy.to = parse_field(reader, "field", ip_version);
    copy.from = parse_field(reader, "of", ip_version);
    copy.width = static_cast<uint8_t>(reader.number("width", 1, 32));
    copy.to_offset = parse_offset(reader, "offset", copy.to, ip_version, copy.width);
    copy.from_offset = parse_offset(reader, "of_offset", copy.from, ip_version, copy.width);
    reader.finish();
    const bool varies =
        std::any_of(variations.list.begin(), variations.list.end(),
                    [&](const Variation& v) { return overlap(bits_in(v), written_by(copy)); });
    if (varies) reader.refuse("field", "has bits there that vary");
    variations.copies.push_back(copy);
    for (const vary::Copy& one : variations.copies) {
      const bool again =
          &one != &variations.copies.back() && overlap(written_by(one), written_by(copy));
      const bool moved =
          overlap(written_by(one), read_by(copy)) || overlap(written_by(copy), read_by(one));
      if (again || moved) reader.refuse("field", "has bits there that another copy has, too");
    }
  }
}

// Nothing else may say what a bound end has.
void parse_bound(ObjectReader& reader, int ip_version, vary::Variations& variations) {
  constexpr NamesOf<bool, 2> kSpoofed = {{{"own", false}, {"another", true}}};
  if (reader.has("src_binding") && !reader.at("src_binding").is_null()) {
    variations.bound.push_back({nullptr, true, reader.name("src_binding", kSpoofed)});
  }
  if (reader.flag_or("dst_binding", false)) variations.bound.push_back({nullptr, false, false});
  for (const vary::BoundEnd& end : variations.bound) {
    const std::string key = end.is_source ? "src_binding" : "dst_binding";
    if (ip_version != 4) reader.refuse(key, "is for streams of IPv4");
    const auto is_its = [&](Field field) {
      return end.is_source
                 ? field == Field::kSrcIp || field == Field::kSrcPort || field == Field::kOuterSrc
                 : field == Field::kDstIp || field == Field::kDstPort;
    };
    const bool varies = std::any_of(variations.list.begin(), variations.list.end(),
                                    [&](const Variation& v) { return is_its(v.field); });
    const bool copied =
        std::any_of(variations.copies.begin(), variations.copies.end(),
                    [&](const vary::Copy& c) { return is_its(c.to) || is_its(c.from); });
    if (varies || copied)
      reader.refuse(key, "says what of that end varies: vary and copies may not");
  }
}

vary::Variations parse_variations(ObjectReader& reader, int ip_version, uint64_t seed) {
  vary::Variations variations;
  variations.seed = seed;
  variations.order = reader.name_or("enumeration_order", "random", kOrders);
  const Json& list = reader.has("vary") ? reader.array("vary", 0, kMaxVariations) : kNone;
  for (size_t i = 0; i < list.size(); ++i) {
    const Variation variation =
        parse_variation(list[i], element(reader.path("vary"), i), ip_version);
    for (const Variation& earlier : variations.list) {
      if (overlap(bits_in(earlier), bits_in(variation)))
        reader.refuse(element("vary", i), "overlaps an earlier one");
    }
    variations.list.push_back(variation);
  }
  if (variations.combinations() > vary::Permutation::kMaxSize) {
    reader.refuse("vary", "enumerates more than 2^48 combinations");
  }
  parse_copies(reader, ip_version, variations);
  parse_bound(reader, ip_version, variations);
  return variations;
}

// Those of the other version must not be there.
net::ExtraHeaders parse_extra_headers(ObjectReader& reader, int ip_version) {
  const auto extensions = reader.names_or_none("ipv6_headers", kIpv6Headers, kMaxIpv6Headers);
  const auto options = reader.names_or_none("ipv4_options", kIpv4Options, net::kMaxIpv4Options);
  if (ip_version == 4 && !extensions.empty()) {
    reader.refuse("ipv6_headers", "are for streams of IPv6");
  }
  if (ip_version == 6 && !options.empty()) {
    reader.refuse("ipv4_options", "are for streams of IPv4");
  }
  return ip_version == 4 ? net::ipv4_options(options) : net::ipv6_extensions(extensions);
}

PathAddressing parse_addressing(ObjectReader& reader) {
  return {reader.ip("next_hop"), reader.mac_or_none("src_mac"), reader.mac_or_none("dst_mac")};
}

dataplane::Path parse_path(ObjectReader& reader, int ip_version) {
  dataplane::Path path;
  path.sent_by = static_cast<uint8_t>(reader.number("sent_by", 0, dataplane::kMaxPorts - 1));
  path.received_by =
      static_cast<uint8_t>(reader.number("received_by", 0, dataplane::kMaxPorts - 1));
  path.src_ip = parse_ip_of(reader, "src_ip", ip_version);
  path.dst_ip = parse_ip_of(reader, "dst_ip", ip_version);
  return path;
}

// Whether a variation of `field` writes over bits in which the addresses differ: paths would have
// the same ones then.
bool writes_over_difference(const vary::Variations& variations, Field field,
                            const net::IpAddress& one, const net::IpAddress& other) {
  return std::any_of(variations.list.begin(), variations.list.end(), [&](const Variation& each) {
    if (each.field != field) return false;
    for (uint32_t bit = each.offset; bit < uint32_t{each.offset} + each.width; ++bit) {
      const uint8_t mask = static_cast<uint8_t>(0x80U >> (bit % 8));
      if (((one.bytes[bit / 8] ^ other.bytes[bit / 8]) & mask) != 0) return true;
    }
    return false;
  });
}

// The paths beside the first one, which is the stream's own.
void parse_paths(ObjectReader& reader, ParsedStream& parsed) {
  dataplane::StreamSpec& stream = parsed.spec;
  const net::FrameLayout& own = stream.layout;
  const Json& list =
      reader.has("more_paths") ? reader.array("more_paths", 0, kMaxMorePaths) : kNone;
  if (!list.empty() && stream.tuples) {
    reader.refuse("more_paths", "are not for streams with tuples: those go from one port to one");
  }
  for (size_t i = 0; i < list.size(); ++i) {
    ObjectReader path_reader(list[i], element(reader.path("more_paths"), i));
    const dataplane::Path path = parse_path(path_reader, own.ip_version);
    parsed.addressing.push_back(parse_addressing(path_reader));
    path_reader.finish();
    if (writes_over_difference(stream.variations, Field::kSrcIp, own.src_ip, path.src_ip) ||
        writes_over_difference(stream.variations, Field::kDstIp, own.dst_ip, path.dst_ip)) {
      reader.refuse("vary", "has bits of an address in which the paths differ");
    }
    stream.more_paths.push_back(path);
  }
  const std::set<uint32_t> sizes(stream.frame_sizes.begin(), stream.frame_sizes.end());
  const std::string most = std::to_string(kMaxLanes);
  if (sizes.size() > kMaxLanes) {
    reader.refuse("frame_sizes", "are more than " + most + " different ones");
  }
  if (stream.paths() * sizes.size() > kMaxLanes) {
    reader.refuse("more_paths", "times different frame_sizes are more than " + most);
  }
}

// Segments have a size of their own, on either side.
void parse_segments(ObjectReader& reader, const net::SegmentLayout& first,
                    dataplane::StreamSpec& stream) {
  net::FrameLayout& layout = stream.layout;
  layout.tcp = first;
  if (!layout.extra.bytes.empty()) {
    reader.refuse(layout.ip_version == 4 ? "ipv4_options" : "ipv6_headers", "does not go with tcp");
  }
  const uint32_t size = net::segment_frame_size(layout.ip_version, first);
  if (stream.frame_sizes != std::vector{size}) {
    reader.refuse("frame_sizes", "must be that of the first segment, " + std::to_string(size));
  }
}

// Queries have a size of their own.
void parse_query(ObjectReader& reader, const net::DnsZone& zone, dataplane::StreamSpec& stream) {
  net::FrameLayout& layout = stream.layout;
  layout.query = zone;
  if (!layout.extra.bytes.empty()) {
    reader.refuse(layout.ip_version == 4 ? "ipv4_options" : "ipv6_headers", "does not go with dns");
  }
  const uint32_t size = net::query_frame_size(layout.ip_version);
  if (stream.frame_sizes != std::vector{size}) {
    reader.refuse("frame_sizes", "must be that of a query, " + std::to_string(size));
  }
}

// Told apart by their numbers, as they have no tag.
void parse_flood(ObjectReader& reader, const dataplane::TrialSpec& trial, uint64_t seed,
                 dataplane::StreamSpec& stream) {
  if (!reader.flag_or("syn", false)) return;
  if (!stream.is_beside()) reader.refuse("syn", "goes with streams beside another");
  if (trial.exchange) reader.refuse("syn", "does not go with tcp, whose frames are SYNs");
  parse_segments(reader, flood_of(seed, trial.trial_id), stream);
}

// Any size that has room for the tag behind TCP's headers.
void parse_data_segments(ObjectReader& reader, const dataplane::DataSpec& data,
                         dataplane::StreamSpec& stream) {
  net::FrameLayout& layout = stream.layout;
  layout.tcp = data.layout;
  layout.tcp->by_responder = stream.is_learned();
  if (!layout.extra.bytes.empty()) {
    reader.refuse(layout.ip_version == 4 ? "ipv4_options" : "ipv6_headers",
                  "does not go with tcp_data");
  }
  const uint32_t least = net::segment_frame_size(layout.ip_version, *layout.tcp);
  for (const uint32_t size : stream.frame_sizes) {
    if (size >= least) continue;
    reader.refuse("frame_sizes", "must be at least " + std::to_string(least) +
                                     ": data of TCP with the tag has no room in " +
                                     std::to_string(size));
  }
}

net::FollowingBits parse_following(const Json& json, const std::string& where) {
  constexpr NamesOf<bool, 2> kOf = {{{"dst_ip", false}, {"dst_port", true}}};
  ObjectReader reader(json, where);
  net::FollowingBits bits;
  bits.width = static_cast<uint8_t>(reader.number("width", 1, 32));
  bits.offset = parse_offset(reader, "offset", Field::kDstIp, 6, bits.width);
  bits.of_port = reader.name("of", kOf);
  const Field of = bits.of_port ? Field::kDstPort : Field::kDstIp;
  bits.of_offset = parse_offset(reader, "of_offset", of, 6, bits.width);
  reader.finish();
  return bits;
}

std::optional<net::ReceivedEnd> parse_received_end(ObjectReader& stream) {
  if (!stream.has("received_end") || stream.at("received_end").is_null()) return std::nullopt;
  ObjectReader reader(stream.at("received_end"), stream.path("received_end"));
  net::ReceivedEnd end;
  end.outer = reader.flag_or("outer", false);
  end.address = end.outer ? reader.ip("address") : parse_ip_of(reader, "address", 6);
  const Json& list = reader.array("follows", 0, kMaxVariations);
  for (size_t i = 0; i < list.size(); ++i) {
    end.follows.push_back(parse_following(list[i], element(reader.path("follows"), i)));
  }
  reader.finish();
  return end;
}

}  // namespace

ParsedStream parse_stream(const Json& json, const std::string& where,
                          const dataplane::TrialSpec& trial, uint64_t seed) {
  ObjectReader reader(json, where);
  ParsedStream parsed;
  dataplane::StreamSpec& stream = parsed.spec;
  net::FrameLayout& layout = stream.layout;
  stream.id = static_cast<uint8_t>(reader.number("id", 0, 255));
  const uint8_t flags = reader.name_or("name", "foreground", kStreamNames);
  stream.tag = {trial.trial_id, stream.id, flags};
  layout.ip_version = reader.ip_version("ip_version");
  layout.extra = parse_extra_headers(reader, layout.ip_version);
  const auto least = net::minimum_frame_size(layout.ip_version) + layout.extra.bytes.size();
  stream.frame_sizes = parse_sizes(reader, "frame_sizes", least);
  stream.received_frame_sizes =
      parse_sizes(reader, "received_frame_sizes", net::minimum_frame_size(4));
  if (stream.frame_sizes.size() != stream.received_frame_sizes.size()) {
    reader.refuse("received_frame_sizes", "must have one size for each of frame_sizes");
  }
  layout.frame_size = stream.frame_sizes[0];
  if (trial.exchange) parse_segments(reader, trial.exchange->first, stream);
  if (trial.resolution) parse_query(reader, trial.resolution->zone, stream);
  parse_flood(reader, trial, seed, stream);
  layout.src_ip = parse_ip_of(reader, "src_ip", layout.ip_version);
  layout.dst_ip = parse_ip_of(reader, "dst_ip", layout.ip_version);
  parsed.addressing.push_back(parse_addressing(reader));
  layout.src_port = static_cast<uint16_t>(reader.number_or("src_port", 0xC020, 0, 65535));
  layout.dst_port = static_cast<uint16_t>(reader.number_or("dst_port", 7, 0, 65535));
  layout.ttl = static_cast<uint8_t>(reader.number_or("ttl", 10, 1, 255));
  layout.dscp = static_cast<uint8_t>(reader.number_or("dscp", 0, 0, 63));
  if (reader.has("received_ttl") && !reader.at("received_ttl").is_null()) {
    stream.expected.ttl = static_cast<uint8_t>(reader.number("received_ttl", 1, 255));
  }
  stream.expected.dscp = layout.dscp;
  stream.received_end = parse_received_end(reader);
  layout.flow_label = static_cast<uint32_t>(reader.number_or("flow_label", 0, 0, (1 << 20) - 1));
  layout.df = reader.flag_or("df", false);
  stream.most_pieces =
      static_cast<uint32_t>(reader.number_or("most_pieces", 1, 1, kMaxFrameSize / 8));
  layout.identified = stream.most_pieces > 1;
  if (layout.identified && (layout.ip_version == 6 || layout.df)) {
    reader.refuse("most_pieces", "must be 1 for IPv6 and with df, which nobody fragments");
  }
  stream.variations = parse_variations(reader, layout.ip_version, seed);
  parse_tuples(reader, stream);
  if (stream.given && (trial.exchange || trial.data)) {
    reader.refuse("tuples", "are given for frames of UDP alone");
  }
  if (!stream.variations.bound.empty() && (layout.tcp || layout.query || trial.data ||
                                           stream.tuples || stream.given || stream.received_end)) {
    reader.refuse("src_binding", "and dst_binding go with plain UDP, whose tuples are not counted");
  }
  if (trial.data && flags == 0) parse_data_segments(reader, *trial.data, stream);
  parse_paths(reader, parsed);
  reader.finish();
  return parsed;
}

void check_enumeration(const dataplane::StreamSpec& stream, uint64_t frames,
                       const std::string& where) {
  using vary::IndexOrder;
  const std::optional<vary::Tuples>& tuples = stream.tuples;
  const auto check = [&](const char* what, uint64_t combinations) {
    if (combinations >= frames) return;
    throw ProtocolError(kInvalidParams,
                        where + "." + what + " " + std::to_string(combinations) +
                            " combinations, fewer than the trial's " + std::to_string(frames) +
                            " frames",
                        "widen a range, or send fewer frames");
  };
  const bool ends = stream.variations.order == vary::Order::kRandom;
  if (ends && stream.variations.enumerates() && (!tuples || stream.is_learned())) {
    check("vary enumerates", stream.variations.combinations());
  }
  if (tuples && (tuples->order == IndexOrder::kOnce || tuples->order == IndexOrder::kShuffled)) {
    check("tuples takes each once of", tuples->count);
  }
}

}  // namespace dutperf::control
