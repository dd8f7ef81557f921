// Strict reading of JSON objects: every key is asked for, and what nobody asked for is an error.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/address.h"
#include "net/binding_table.h"
#include "net/encapsulation.h"
#include "net/mpls.h"
#include "net/vlan.h"

namespace dutperf::control {

using Json = nlohmann::json;

// `path(key)` with an index: "directions[1]".
std::string element(const std::string& path, size_t index);

inline constexpr int kParseError = -32700;
inline constexpr int kInvalidRequest = -32600;
inline constexpr int kUnknownMethod = -32601;
inline constexpr int kInvalidParams = -32602;
inline constexpr int kInternalError = -32603;
inline constexpr int kEnvironmentError = 1;
inline constexpr int kStateError = 2;

// What a text may be, and what it means.
template <typename T, size_t N>
using NamesOf = std::array<std::pair<const char*, T>, N>;

// Becomes a JSON-RPC error {code, message, data: {hint}}.
class ProtocolError : public std::runtime_error {
 public:
  ProtocolError(int code, const std::string& message, std::string hint = "")
      : std::runtime_error(message), code_(code), hint_(std::move(hint)) {}

  int code() const { return code_; }
  const std::string& hint() const { return hint_; }

 private:
  int code_;
  std::string hint_;
};

// Throws ProtocolError when it is not JSON, or nested deeper than any message: what looks at a
// value of it calls itself for each level, and a stack has an end.
Json parse_text(const std::string& text);

// Reads one object. `where` is its path for error messages ("directions[0]"). Call finish() last.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string where);

  bool has(const std::string& key);
  const Json& at(const std::string& key);

  uint64_t number(const std::string& key, uint64_t lowest, uint64_t highest);
  uint64_t number_or(const std::string& key, uint64_t fallback, uint64_t lowest, uint64_t highest);
  std::string text(const std::string& key);
  std::string text_or(const std::string& key, const std::string& fallback);
  bool flag_or(const std::string& key, bool fallback);
  // One of a few names.
  template <typename T, size_t N>
  T name(const std::string& key, const NamesOf<T, N>& names) {
    return meaning(key, text(key), names);
  }
  template <typename T, size_t N>
  T name_or(const std::string& key, const std::string& fallback, const NamesOf<T, N>& names) {
    return meaning(key, text_or(key, fallback), names);
  }
  // A list of some of a few names, at most so many; empty when the key is missing.
  template <typename T, size_t N>
  std::vector<T> names_or_none(const std::string& key, const NamesOf<T, N>& names, size_t most) {
    std::vector<T> result;
    if (!has(key)) return result;
    const Json& list = array(key, 0, most);
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string at = element(key, i);
      if (!list[i].is_string()) refuse(at, "must be a string");
      result.push_back(meaning(at, list[i].get<std::string>(), names));
    }
    return result;
  }
  int ip_version(const std::string& key);
  net::IpAddress ip(const std::string& key);
  // The one value that may be null.
  std::optional<net::Mac> mac_or_none(const std::string& key);
  // VLAN tags, outermost first; none when the key is missing.
  net::VlanTags vlan_or_none(const std::string& key);
  // MPLS labels, likewise.
  net::LabelStack labels_or_none(const std::string& key);
  // Outer headers; none when the key is missing or null.
  net::Encapsulation encapsulation_or_none(const std::string& key);
  // The rows of a binding table in base64; null when the key is missing or null.
  std::shared_ptr<const net::BindingTable> bindings_or_none(const std::string& key);
  // An array of `least` to `most` elements.
  const Json& array(const std::string& key, size_t least, size_t most);

  // Throws when the object has keys that were not asked for.
  void finish() const;

  std::string path(const std::string& key) const;
  [[noreturn]] void refuse(const std::string& key, const std::string& what) const;

 private:
  template <typename T, size_t N>
  T meaning(const std::string& key, const std::string& text, const NamesOf<T, N>& names) const {
    std::string known;
    for (const auto& [name, value] : names) {
      if (text == name) return value;
      known += std::string(known.empty() ? "" : ", ") + name;
    }
    refuse(key, "is none of " + known);
  }

  const Json& object_;
  std::string where_;
  std::set<std::string> asked_;
};

}  // namespace dutperf::control
