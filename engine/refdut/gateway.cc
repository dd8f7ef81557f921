#include "gateway.h"

#include <algorithm>
#include <cstring>

namespace dutperf::refdut {
namespace {

constexpr size_t kPrefixBytes = 12;
// An endpoint outlives its connections, so there may be many more of them than entries. With room
// for so many the tables do not grow while frames arrive: that takes up to 0.2 s, and the port's
// ring overflows meanwhile.
constexpr uint64_t kEndpointsAtHand = 1 << 22;

// The last `bytes` bytes of an address, as a number, and the other way round.
uint64_t last_bytes(const std::array<uint8_t, 16>& address, size_t end, size_t bytes) {
  uint64_t number = 0;
  for (size_t i = end - bytes; i < end; ++i) number = number << 8 | address[i];
  return number;
}

void set_last_bytes(std::array<uint8_t, 16>& address, size_t end, size_t bytes, uint64_t number) {
  for (size_t i = end; i > end - bytes; number >>= 8) address[--i] = static_cast<uint8_t>(number);
}

// A connection without what does not count of its remote end; of UDP and TCP alike.
Connection as_far_as(Depends depends, Connection connection) {
  connection.protocol = Protocol::kUdp;
  if (depends == Depends::kEndpoint) connection.remote.address = {};
  if (depends != Depends::kConnection) connection.remote.port = 0;
  return connection;
}

}  // namespace

Gateway::Gateway(const NatSettings& settings, uint64_t seed)
    : settings_(settings), table_(settings.table, seed), setup_(settings.setup, {}) {
  const uint64_t at_hand = std::max(kEndpointsAtHand, settings.table.entries);
  const uint64_t most = std::min(settings.public_endpoints(), at_hand);
  numbers_.reserve(most);
  inside_of_.reserve(most);
}

Gateway::Decision Gateway::decide(size_t side, const uint8_t* frame, size_t size, uint64_t now_ns) {
  const auto flow = read_flow(frame, size);
  if (!flow) return {};
  return side == settings_.inside ? from_inside(*flow, now_ns) : from_outside(*flow, now_ns);
}

bool Gateway::is_for_us(const Flow& flow) const {
  if (flow.version != settings_.inside_version()) return false;
  return settings_.kind != NatKind::k64 || has_prefix(flow.destination);
}

Gateway::Decision Gateway::from_inside(const Flow& flow, uint64_t now_ns) {
  if (!is_for_us(flow)) return {};
  const Connection connection{flow.source, outside_form(flow.destination), flow.protocol};
  const Connection mapped = as_far_as(settings_.mapping, connection);
  auto number = numbers_.find(mapped);
  if (number == numbers_.end() && inside_of_.size() == settings_.public_endpoints()) {
    ++no_public_endpoint_;
    return no_connection(flow);
  }
  if (!know(connection, flow.may_open, now_ns)) return no_connection(flow);
  if (number == numbers_.end()) {
    const auto room = [this] { return std::pair(numbers_.bucket_count(), inside_of_.capacity()); };
    const auto before = room();
    number = numbers_.emplace(mapped, inside_of_.size()).first;
    inside_of_.push_back(flow.source);
    endpoints_grown_ += room() != before;
  }
  if (settings_.filtering == Depends::kAddress) {
    met_.insert(as_far_as(settings_.filtering, connection));
  }
  const Flow other{settings_.outside_version(), public_endpoint(number->second), connection.remote,
                   0};
  return {Decision::Kind::kTranslate, flow, other};
}

Gateway::Decision Gateway::from_outside(const Flow& flow, uint64_t now_ns) {
  if (flow.version != settings_.outside_version()) return {};
  if (!is_public(flow.destination)) return {};
  const uint64_t number = number_of(flow.destination);
  const bool reachable = settings_.kind != NatKind::k46 || has_prefix(flow.source);
  if (!reachable || number >= inside_of_.size() ||
      !may_enter({inside_of_[number], flow.source, flow.protocol}, now_ns)) {
    ++unknown_;
    return {Decision::Kind::kDrop, {}, {}};
  }
  const Flow other{settings_.inside_version(), inside_form(flow.source), inside_of_[number], 0};
  return {Decision::Kind::kTranslate, flow, other};
}

Gateway::Decision Gateway::no_connection(const Flow& flow) const {
  const bool is_told = settings_.refusal == Refusal::kIcmp ||
                       (settings_.refusal == Refusal::kReset && flow.protocol == Protocol::kTcp);
  const bool is_refused = is_told && flow.may_open;
  return {is_refused ? Decision::Kind::kRefuse : Decision::Kind::kDrop, flow, {}};
}

// Whether who sends to a public endpoint in use gets through to whom it belongs.
bool Gateway::may_enter(const Connection& connection, uint64_t now_ns) {
  if (table_.use(connection, now_ns)) return true;
  if (settings_.filtering == Depends::kEndpoint) return true;
  return settings_.filtering == Depends::kAddress &&
         met_.contains(as_far_as(settings_.filtering, connection));
}

// Whether the connection's frame goes on: known before, or known or forgotten now.
bool Gateway::know(const Connection& connection, bool may_open, uint64_t now_ns) {
  if (table_.use(connection, now_ns)) return true;
  if (!may_open) {
    ++unknown_;
    return false;
  }
  if (!setup_.serve(now_ns)) {
    const bool forget = settings_.overload == Overload::kForget;
    ++(forget ? forgotten_ : too_fast_);
    return forget;
  }
  return table_.create(connection, now_ns);
}

void Gateway::tick(uint64_t now_ns) {
  constexpr uint64_t kAtATime = 32;
  if (settings_.table.timeout_ns != 0) table_.expire(now_ns, kAtATime);
  if (!removing_) return;
  const auto due = static_cast<uint64_t>((unsigned __int128){now_ns - removal_began_ns_} *
                                         settings_.removal_per_s / 1'000'000'000);
  table_.remove(due - removed_so_far_);
  removed_so_far_ = due;
  if (table_.size() > 0) return;
  removing_ = false;
  clear();
}

uint64_t Gateway::connections(uint64_t now_ns) {
  table_.expire(now_ns, UINT64_MAX);
  return table_.size();
}

void Gateway::clear() {
  table_.remove(UINT64_MAX);
  numbers_.clear();
  met_.clear();
  inside_of_.clear();
  setup_ = Server(settings_.setup, {});
}

void Gateway::start_removal(uint64_t now_ns) {
  if (settings_.removal_per_s == 0) {
    clear();
    return;
  }
  removing_ = true;
  removal_began_ns_ = now_ns;
  removed_so_far_ = 0;
}

Json Gateway::report(uint64_t now_ns) {
  const uint64_t connections = this->connections(now_ns);
  const ConnectionTable::Counts& counts = table_.counts();
  return {{"connections", connections},
          {"created", counts.created},
          {"refused", counts.refused},
          {"evicted", counts.evicted},
          {"expired", counts.expired},
          {"removed", counts.removed},
          {"unknown", unknown_},
          {"too_fast", too_fast_},
          {"forgotten", forgotten_},
          {"no_public_endpoint", no_public_endpoint_},
          {"endpoints_grown", endpoints_grown_},
          {"public_endpoints_in_use", inside_of_.size()}};
}

Endpoint Gateway::outside_form(const Endpoint& remote) const {
  Endpoint other = remote;
  if (settings_.kind == NatKind::k64) {
    other.address = {};
    std::copy(remote.address.begin() + kPrefixBytes, remote.address.end(), other.address.begin());
  } else if (settings_.kind == NatKind::k46) {
    other.address = settings_.prefix.bytes;
    std::copy_n(remote.address.begin(), 4, other.address.begin() + kPrefixBytes);
  }
  return other;
}

Endpoint Gateway::inside_form(const Endpoint& remote) const {
  Endpoint other = remote;
  if (settings_.kind == NatKind::k64) {
    other.address = settings_.prefix.bytes;
    std::copy_n(remote.address.begin(), 4, other.address.begin() + kPrefixBytes);
  } else if (settings_.kind == NatKind::k46) {
    other.address = {};
    std::copy(remote.address.begin() + kPrefixBytes, remote.address.end(), other.address.begin());
  }
  return other;
}

bool Gateway::has_prefix(const Endpoint& endpoint) const {
  return std::equal(endpoint.address.begin(), endpoint.address.begin() + kPrefixBytes,
                    settings_.prefix.bytes.begin());
}

// Public addresses differ in their last 32 bits only.
uint32_t Gateway::distance_from_first(const Endpoint& endpoint) const {
  const size_t end = settings_.first_address.size();
  return static_cast<uint32_t>(last_bytes(endpoint.address, end, 4) -
                               last_bytes(settings_.first_address.bytes, end, 4));
}

bool Gateway::is_public(const Endpoint& endpoint) const {
  const size_t end = settings_.first_address.size();
  const auto& first = settings_.first_address.bytes;
  return std::equal(first.begin(), first.begin() + static_cast<ptrdiff_t>(end) - 4,
                    endpoint.address.begin()) &&
         distance_from_first(endpoint) < settings_.addresses;
}

uint64_t Gateway::number_of(const Endpoint& endpoint) const {
  const std::optional<uint64_t> number = settings_.number_of(endpoint.port);
  if (!number) return settings_.public_endpoints();
  return distance_from_first(endpoint) * settings_.ports() + *number;
}

Endpoint Gateway::public_endpoint(uint64_t number) const {
  const size_t end = settings_.first_address.size();
  Endpoint endpoint{settings_.first_address.bytes, settings_.port(number % settings_.ports())};
  const uint64_t first = last_bytes(endpoint.address, end, 4);
  set_last_bytes(endpoint.address, end, 4, first + number / settings_.ports());
  return endpoint;
}

}  // namespace dutperf::refdut
