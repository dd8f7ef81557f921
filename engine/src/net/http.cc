#include "net/http.h"

#include <cstring>
#include <string>
#include <string_view>

#include "net/digits.h"
#include "net/frame.h"

namespace dutperf::net {
namespace {

constexpr std::string_view kRequest = "GET /0000000000000000 HTTP/1.1\r\nHost: dutperf\r\n\r\n";
static_assert(kRequest.size() == kHttpRequestBytes);

}  // namespace

void write_http_request(uint8_t* out, uint64_t number) {
  std::memcpy(out, kRequest.data(), kRequest.size());
  const uint64_t text[] = {digits::text_of(static_cast<uint32_t>(number >> 32)),
                           digits::text_of(static_cast<uint32_t>(number))};
  std::memcpy(out + kHttpNumberAt, text, sizeof(text));
}

std::optional<uint64_t> number_in_http_request(std::span<const uint8_t> request) {
  constexpr size_t kRest = kHttpNumberAt + kHttpNumberDigits;
  if (request.size() != kRequest.size()) return std::nullopt;
  const bool is_one =
      std::memcmp(request.data(), kRequest.data(), kHttpNumberAt) == 0 &&
      std::memcmp(request.data() + kRest, kRequest.data() + kRest, kRequest.size() - kRest) == 0;
  if (!is_one) return std::nullopt;
  uint64_t text[2];
  std::memcpy(text, request.data() + kHttpNumberAt, sizeof(text));
  const uint32_t high = digits::number_of(text[0]);
  const uint32_t low = digits::number_of(text[1]);
  if (digits::text_of(high) != text[0] || digits::text_of(low) != text[1]) return std::nullopt;
  return uint64_t{high} << 32 | low;
}

std::vector<uint8_t> http_response(uint32_t object_bytes) {
  const std::string header =
      "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(object_bytes) + "\r\n\r\n";
  std::vector<uint8_t> response(header.begin(), header.end());
  response.resize(header.size() + object_bytes);
  write_payload(response.data() + header.size(), object_bytes);
  return response;
}

}  // namespace dutperf::net
