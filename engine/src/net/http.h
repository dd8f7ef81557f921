// A GET of HTTP/1.1 (RFC 9112) that names a number in its text, one segment, and what it is
// answered by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dutperf::net {

inline constexpr size_t kHttpRequestBytes = 49;
// Where the number stands, in hexadecimal digits: only the last eight are ever in use.
inline constexpr size_t kHttpNumberAt = 5;
inline constexpr size_t kHttpNumberDigits = 16;

void write_http_request(uint8_t* out, uint64_t number);
// None: it is no such request.
std::optional<uint64_t> number_in_http_request(std::span<const uint8_t> request);

std::vector<uint8_t> http_response(uint32_t object_bytes);

}  // namespace dutperf::net
