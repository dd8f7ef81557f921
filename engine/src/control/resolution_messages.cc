#include "control/resolution_messages.h"

#include <algorithm>

namespace dutperf::control {
namespace {

using dataplane::Side;

constexpr uint64_t kMostNames = uint64_t{1} << 30;  // so many have an A of their own
constexpr std::array<const char*, net::kDnsReplies> kReplies = {
    "valid", "refused", "truncated", "empty", "wrong_address", "malformed"};

Json to_json(const dataplane::ResolutionReport::Asked& asked) {
  return {{"names", asked.names},
          {"again", asked.again},
          {"cached", asked.cached},
          {"answered", asked.answered}};
}

constexpr control::NamesOf<net::DnsType, 2> kRecords = {
    {{"aaaa", net::DnsType::kAaaa}, {"a", net::DnsType::kA}}};

net::DnsCached parse_cached(ObjectReader& dns, uint16_t trial) {
  if (!dns.has("cached") || dns.at("cached").is_null()) return {};
  ObjectReader reader(dns.at("cached"), dns.path("cached"));
  net::DnsCached cached;
  cached.trial = static_cast<uint16_t>(reader.number("names", 0, UINT16_MAX));
  if (cached.trial == trial) reader.refuse("names", "must be another trial's");
  cached.names = static_cast<uint32_t>(reader.number("count", 1, kMostNames));
  cached.percent = static_cast<uint32_t>(reader.number("percent", 1, 100));
  reader.finish();
  return cached;
}

}  // namespace

std::optional<dataplane::ResolutionSpec> parse_resolution(ObjectReader& trial) {
  if (!trial.has("dns") || trial.at("dns").is_null()) return std::nullopt;
  ObjectReader reader(trial.at("dns"), trial.path("dns"));
  dataplane::ResolutionSpec spec;
  spec.zone.trial = static_cast<uint16_t>(reader.number("names", 0, UINT16_MAX));
  spec.zone.aaaa_percent = static_cast<uint32_t>(reader.number_or("aaaa_percent", 0, 0, 100));
  const auto prefix = net::IpAddress::parse(reader.text("prefix"));
  const auto bits = static_cast<uint8_t>(reader.number_or("prefix_length", 96, 0, 128));
  if (std::find(net::kPrefixBits.begin(), net::kPrefixBits.end(), bits) == net::kPrefixBits.end()) {
    reader.refuse("prefix_length", "must be 32, 40, 48, 56, 64 or 96");
  }
  const auto is_zero = [](uint8_t byte) { return byte == 0; };
  if (!prefix || prefix->version != 6 ||
      !std::all_of(prefix->bytes.begin() + bits / 8, prefix->bytes.end(), is_zero)) {
    reader.refuse("prefix", "must be an IPv6 address whose bits behind prefix_length are 0");
  }
  spec.zone.prefix_bits = bits;
  std::copy_n(prefix->bytes.begin(), spec.zone.prefix.size(), spec.zone.prefix.begin());
  spec.zone.record = reader.name_or("record", "aaaa", kRecords);
  spec.fills = reader.flag_or("fills", false);
  spec.zone.cached = parse_cached(reader, spec.zone.trial);
  if (spec.fills && spec.zone.cached.percent > 0) reader.refuse("cached", "does not go with fills");
  reader.finish();
  return spec;
}

void check_resolution(const ObjectReader& trial, const dataplane::TrialSpec& spec) {
  const auto refuse = [&](const char* why) { trial.refuse("dns", why); };
  if (spec.exchange || spec.data) refuse("does not go with tcp and tcp_data");
  const dataplane::DirectionSpec* active = nullptr;
  for (const dataplane::DirectionSpec& direction : spec.from) {
    if (direction.labels.bytes() + direction.outer.bytes() > 0) {
      refuse("has neither labels nor outer headers");
    }
    if (!direction.active()) continue;
    if (active != nullptr) refuse("asks in one direction");
    active = &direction;
  }
  if (active->streams.size() > 1) refuse("has one stream");
  if (active->frames > kMostNames) refuse("has at most 2^30 queries");
  const net::DnsCached& cached = spec.resolution->zone.cached;
  if (cached.percent > 0 && active->frames > uint64_t{cached.names} << 16) {
    refuse("asks for each cached name at most 65,536 times");  // what an id tells
  }
  const dataplane::StreamSpec& stream = active->streams[0];
  if (stream.paths() > 1) refuse("goes from one port to one");
  if (stream.tuples || stream.received_end) refuse("has neither tuples nor a received_end");
  if (spec.learn || spec.tags) refuse("does not go with learn and tags");
  if (stream.layout.dst_port != net::kDnsPort) refuse("is asked for at port 53");
  for (const vary::Variation& each : stream.variations.list) {
    if (each.field == vary::Field::kDstPort) refuse("is asked for at port 53, which does not vary");
  }
}

ResolutionResult resolution_result(const dataplane::TrialSpec& spec,
                                   const dataplane::TrialRun& run) {
  const Side client =
      spec.from[dataplane::index_of(Side::kLeft)].active() ? Side::kLeft : Side::kRight;
  return {run.resolution_at(client), run.resolution_at(dataplane::other(client))};
}

measure::ResolutionFacts facts_of(const dataplane::ResolutionSpec& spec,
                                  const ResolutionResult& result, uint64_t answered) {
  const auto replies = [&](net::DnsReply kind) {
    return result.client.replies[static_cast<size_t>(kind)];
  };
  const dataplane::ResolutionReport& authority = result.authority;
  const bool is_a = spec.zone.record == net::DnsType::kA;
  const uint64_t explained =
      (is_a ? authority.a : authority.aaaa).names + result.client.valid_cached;
  return {.not_sent = result.authority.not_sent,
          .refused = replies(net::DnsReply::kRefused),
          .wrong = replies(net::DnsReply::kTruncated) + replies(net::DnsReply::kEmpty) +
                   replies(net::DnsReply::kWrongAddress) + replies(net::DnsReply::kMalformed) +
                   result.client.damaged,
          .unasked = spec.fills ? 0 : answered - std::min(answered, explained),
          .not_cached = authority.aaaa.cached + authority.a.cached};
}

Json to_json(const ResolutionResult& result) {
  Json replies = Json::object();
  for (size_t i = 0; i < kReplies.size(); ++i) replies[kReplies[i]] = result.client.replies[i];
  return {{"replies", replies},
          {"valid_cached", result.client.valid_cached},
          {"unknown_replies", result.client.unknown},
          {"damaged_replies", result.client.damaged},
          {"asked_aaaa", to_json(result.authority.aaaa)},
          {"asked_a", to_json(result.authority.a)},
          {"unknown_queries", result.authority.unknown},
          {"damaged_queries", result.authority.damaged},
          {"not_sent", result.authority.not_sent}};
}

}  // namespace dutperf::control
