#include "control/json.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace dutperf::control {
namespace {

constexpr int kDeepest = 32;

bool not_too_deep(int depth, Json::parse_event_t /*event*/, const Json& /*parsed*/) {
  if (depth > kDeepest) throw ProtocolError(kParseError, "not JSON: nested too deeply");
  return true;
}

// A name that comes from outside, as it can stand in a message: a NUL would end the message.
std::string shown(const std::string& name) {
  const std::string quoted = Json(name).dump();
  return quoted.substr(1, quoted.size() - 2);
}

// With its padding; nothing where it is none.
std::optional<std::string> from_base64(const std::string& text) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr int8_t kNone = -1;
  std::array<int8_t, 256> values;
  values.fill(kNone);
  for (int8_t i = 0; i < 64; ++i) values[static_cast<uint8_t>(kDigits[i])] = i;
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t end = std::min(text.size(), text.find('='));
  if (text.size() - end > 2 || text.find_first_not_of('=', end) != std::string::npos) {
    return std::nullopt;
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < end; ++i) {
    const int8_t value = values[static_cast<uint8_t>(text[i])];
    if (value == kNone) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (i % 4 > 0) bytes.push_back(static_cast<char>(bits >> (6 - 2 * (i % 4))));
  }
  return bytes;
}

constexpr NamesOf<net::Tunnel, 4> kTunnels = {{
    {"ip", net::Tunnel::kIp},
    {"gre", net::Tunnel::kGre},
    {"vxlan", net::Tunnel::kVxlan},
    {"srv6", net::Tunnel::kSrv6},
}};

net::SegmentPath parse_segments(const Json& json, const std::string& where) {
  ObjectReader reader(json, where);
  net::SegmentPath path;
  const Json& segments = reader.array("segments", 1, net::SegmentPath::kMost);
  for (size_t i = 0; i < segments.size(); ++i) {
    const auto segment = segments[i].is_string()
                             ? net::IpAddress::parse(segments[i].get<std::string>())
                             : std::nullopt;
    if (!segment || segment->version != 6) {
      reader.refuse(element("segments", i), "is not an IPv6 address");
    }
    path.segments.push_back(*segment);
  }
  path.left = static_cast<uint8_t>(reader.number("segments_left", 0, segments.size() - 1));
  path.reduced = reader.flag_or("reduced", false);
  path.tag = static_cast<uint16_t>(reader.number_or("tag", 0, 0, UINT16_MAX));
  reader.finish();
  return path;
}

}  // namespace

Json parse_text(const std::string& text) {
  try {
    return Json::parse(text, not_too_deep);
  } catch (const Json::exception& error) {  // parse_error, or out_of_range for a number like 1e999
    throw ProtocolError(kParseError, std::string("not JSON: ") + error.what());
  }
}

ObjectReader::ObjectReader(const Json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) {
    throw ProtocolError(kInvalidParams,
                        (where_.empty() ? "params" : where_) + " must be an object");
  }
}

std::string ObjectReader::path(const std::string& key) const {
  return where_.empty() ? key : where_ + "." + key;
}

void ObjectReader::refuse(const std::string& key, const std::string& what) const {
  throw ProtocolError(kInvalidParams, path(key) + " " + what);
}

bool ObjectReader::has(const std::string& key) {
  asked_.insert(key);
  return object_.contains(key);
}

const Json& ObjectReader::at(const std::string& key) {
  if (!has(key)) refuse(key, "is missing");
  return object_.at(key);
}

uint64_t ObjectReader::number(const std::string& key, uint64_t lowest, uint64_t highest) {
  const Json& value = at(key);
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<int64_t>() < 0)) {
    refuse(key, "must be a whole number of 0 or more");
  }
  const auto result = value.get<uint64_t>();
  if (result < lowest || result > highest) {
    refuse(key, "must be between " + std::to_string(lowest) + " and " + std::to_string(highest));
  }
  return result;
}

uint64_t ObjectReader::number_or(const std::string& key, uint64_t fallback, uint64_t lowest,
                                 uint64_t highest) {
  return has(key) ? number(key, lowest, highest) : fallback;
}

std::string ObjectReader::text(const std::string& key) {
  const Json& value = at(key);
  if (!value.is_string()) refuse(key, "must be a string");
  return value.get<std::string>();
}

std::string ObjectReader::text_or(const std::string& key, const std::string& fallback) {
  return has(key) ? text(key) : fallback;
}

bool ObjectReader::flag_or(const std::string& key, bool fallback) {
  if (!has(key)) return fallback;
  const Json& value = at(key);
  if (!value.is_boolean()) refuse(key, "must be true or false");
  return value.get<bool>();
}

int ObjectReader::ip_version(const std::string& key) {
  const uint64_t version = number(key, 4, 6);
  if (version == 5) refuse(key, "must be 4 or 6");
  return static_cast<int>(version);
}

net::IpAddress ObjectReader::ip(const std::string& key) {
  const auto address = net::IpAddress::parse(text(key));
  if (!address) refuse(key, "is not an IP address");
  return *address;
}

std::optional<net::Mac> ObjectReader::mac_or_none(const std::string& key) {
  if (!has(key) || object_.at(key).is_null()) return std::nullopt;
  const auto mac = net::Mac::parse(text(key));
  if (!mac) refuse(key, "is not a MAC address");
  return mac;
}

net::VlanTags ObjectReader::vlan_or_none(const std::string& key) {
  if (!has(key)) return {};
  std::vector<net::VlanTag> tags;
  const Json& list = array(key, 0, net::VlanTags::kMax);
  for (size_t i = 0; i < list.size(); ++i) {
    ObjectReader reader(list[i], element(path(key), i));
    net::VlanTag tag;
    tag.tpid = static_cast<uint16_t>(reader.number_or("tpid", tag.tpid, 0, UINT16_MAX));
    if (!net::is_vlan_type(tag.tpid)) {
      reader.refuse("tpid", "is none of 33024 (0x8100), 34984 (0x88a8), 37120, 37376");
    }
    tag.id = static_cast<uint16_t>(reader.number("id", 0, net::VlanTag::kMaxId));
    tag.pcp = static_cast<uint8_t>(reader.number_or("pcp", 0, 0, 7));
    if (reader.has("last_id") && !reader.at("last_id").is_null()) {
      tag.last_id = static_cast<uint16_t>(reader.number("last_id", tag.id, net::VlanTag::kMaxId));
      if (i > 0) reader.refuse("last_id", "is for the outermost tag");
    }
    reader.finish();
    tags.push_back(tag);
  }
  return net::VlanTags(tags);
}

net::LabelStack ObjectReader::labels_or_none(const std::string& key) {
  if (!has(key)) return {};
  std::vector<net::MplsLabel> labels;
  const Json& list = array(key, 0, net::LabelStack::kMax);
  for (size_t i = 0; i < list.size(); ++i) {
    ObjectReader reader(list[i], element(path(key), i));
    net::MplsLabel label;
    label.label = static_cast<uint32_t>(
        reader.number("label", net::MplsLabel::kMinLabel, net::MplsLabel::kMaxLabel));
    label.tc = static_cast<uint8_t>(reader.number_or("tc", 0, 0, 7));
    label.ttl = static_cast<uint8_t>(reader.number_or("ttl", label.ttl, 1, 255));
    reader.finish();
    labels.push_back(label);
  }
  return net::LabelStack(labels);
}

std::shared_ptr<const net::BindingTable> ObjectReader::bindings_or_none(const std::string& key) {
  if (!has(key) || at(key).is_null()) return nullptr;
  const std::optional<std::string> rows = from_base64(text(key));
  if (!rows) refuse(key, "is no base64 (RFC 4648 4)");
  try {
    return std::make_shared<const net::BindingTable>(*rows);
  } catch (const std::invalid_argument& error) {
    refuse(key, std::string("is no binding table: ") + error.what());
  }
}

net::Encapsulation ObjectReader::encapsulation_or_none(const std::string& key) {
  if (!has(key) || at(key).is_null()) return {};
  ObjectReader reader(at(key), path(key));
  net::TunnelEnds ends;
  ends.kind = reader.name("kind", kTunnels);
  ends.local = reader.ip("local");
  ends.remote = reader.ip("remote");
  if (ends.local.version != ends.remote.version) {
    reader.refuse("remote", "is not of the version of local");
  }
  // None of these need be there, and each may be null.
  const auto given = [&](const char* name) {
    return reader.has(name) && !reader.at(name).is_null();
  };
  const uint64_t bits = 8 * ends.local.size();
  if (given("local_bits"))
    ends.local_bits = static_cast<uint8_t>(reader.number("local_bits", 0, 128));
  if (given("remote_bits"))
    ends.remote_bits = static_cast<uint8_t>(reader.number("remote_bits", 0, 128));
  ends.local_bits = static_cast<uint8_t>(std::min<uint64_t>(ends.local_bits, bits));
  ends.remote_bits = static_cast<uint8_t>(std::min<uint64_t>(ends.remote_bits, bits));
  ends.ttl = static_cast<uint8_t>(reader.number_or("ttl", ends.ttl, 1, 255));
  ends.flow_label = static_cast<uint32_t>(reader.number_or("flow_label", 0, 0, (1 << 20) - 1));
  if (ends.flow_label != 0 && ends.local.version == 4) {
    reader.refuse("flow_label", "is a field of IPv6");
  }
  const bool is_vxlan = ends.kind == net::Tunnel::kVxlan;
  for (const char* name : {"vni", "inner_mac"}) {
    if (given(name) != is_vxlan) reader.refuse(name, is_vxlan ? "is missing" : "is for vxlan");
  }
  if (given("src_port")) {
    if (!is_vxlan) reader.refuse("src_port", "is for vxlan");
    ends.src_port = static_cast<uint16_t>(reader.number("src_port", 1, 65535));
  }
  if (is_vxlan) {
    ends.vni = static_cast<uint32_t>(reader.number("vni", 0, (1U << 24) - 1));
    ends.inner_mac = reader.mac_or_none("inner_mac").value_or(net::Mac{});
  }
  const bool is_srv6 = ends.kind == net::Tunnel::kSrv6;
  if (is_srv6 && ends.local.version != 6) reader.refuse("local", "is not an IPv6 address");
  const auto segments = [&](const char* name) {
    if (given(name) != is_srv6) reader.refuse(name, is_srv6 ? "is missing" : "is for srv6");
    return is_srv6 ? parse_segments(reader.at(name), reader.path(name)) : net::SegmentPath{};
  };
  ends.sent = segments("srh");
  ends.received = segments("received_srh");
  reader.finish();
  return net::Encapsulation(ends);
}

const Json& ObjectReader::array(const std::string& key, size_t least, size_t most) {
  const Json& value = at(key);
  if (!value.is_array() || value.size() < least || value.size() > most) {
    refuse(key, "must be a list of " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

void ObjectReader::finish() const {
  for (const auto& item : object_.items()) {
    if (!asked_.contains(item.key())) refuse(shown(item.key()), "is not a known key");
  }
}

std::string element(const std::string& path, size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

}  // namespace dutperf::control
