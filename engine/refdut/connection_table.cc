#include "connection_table.h"

#include <algorithm>
#include <cstring>

namespace dutperf::refdut {

size_t EndpointHash::operator()(const Endpoint& endpoint) const noexcept {
  uint64_t halves[2];
  std::memcpy(halves, endpoint.address.data(), sizeof halves);
  return vary::mix64(halves[0] + vary::mix64(halves[1] + vary::mix64(endpoint.port)));
}

ConnectionTable::ConnectionTable(const TableSettings& settings, uint64_t seed)
    : settings_(settings), seed_(seed) {
  // A table that grew while frames come would stand still for as long as that takes.
  places_.reserve(settings.entries);
  entries_.reserve(settings.entries);
}

bool ConnectionTable::use(const Connection& connection, uint64_t now_ns) {
  const auto found = places_.find(connection);
  if (found == places_.end()) return false;
  const uint32_t place = found->second;
  if (is_over(entries_[place], now_ns)) {
    ++counts_.expired;
    erase(place);
    return false;
  }
  take_out(place);
  entries_[place].used_ns = now_ns;
  put_last(place);
  return true;
}

bool ConnectionTable::create(const Connection& connection, uint64_t now_ns) {
  if (size() == settings_.entries) expire(now_ns, UINT64_MAX);
  if (size() == settings_.entries && !make_room()) {
    ++counts_.refused;
    return false;
  }
  uint32_t place = static_cast<uint32_t>(entries_.size());
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    place = free_.back();
    free_.pop_back();
  }
  entries_[place].connection = connection;
  entries_[place].used_ns = now_ns;
  put_last(place);
  places_.emplace(connection, place);
  ++counts_.created;
  return true;
}

void ConnectionTable::expire(uint64_t now_ns, uint64_t limit) {
  for (; limit > 0 && oldest_ != kNone && is_over(entries_[oldest_], now_ns); --limit) {
    ++counts_.expired;
    erase(oldest_);
  }
}

void ConnectionTable::remove(uint64_t limit) {
  for (; limit > 0 && oldest_ != kNone; --limit) {
    ++counts_.removed;
    erase(oldest_);
  }
}

// REQUIRES: it is full, so every place is taken.
bool ConnectionTable::make_room() {
  uint64_t victims = 1;
  switch (settings_.eviction) {
    case Eviction::kRefuse: return false;
    case Eviction::kRandom:
      ++counts_.evicted;
      erase(static_cast<uint32_t>(vary::draw(seed_, draws_++) % entries_.size()));
      return true;
    case Eviction::kChunks: victims = settings_.chunk; break;
    case Eviction::kLeastRecentlyUsed: break;
  }
  for (; victims > 0; --victims) {
    ++counts_.evicted;
    erase(oldest_);
  }
  return true;
}

void ConnectionTable::erase(uint32_t place) {
  places_.erase(entries_[place].connection);
  take_out(place);
  free_.push_back(place);
}

void ConnectionTable::take_out(uint32_t place) {
  const Entry& entry = entries_[place];
  (entry.older == kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
  (entry.newer == kNone ? newest_ : entries_[entry.newer].older) = entry.older;
}

void ConnectionTable::put_last(uint32_t place) {
  entries_[place].older = newest_;
  entries_[place].newer = kNone;
  (newest_ == kNone ? oldest_ : entries_[newest_].newer) = place;
  newest_ = place;
}

}  // namespace dutperf::refdut
