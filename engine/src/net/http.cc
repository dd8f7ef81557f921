#include "net/http.h"

#include <cstring>
#include <string>
#include <string_view>

#include "net/frame.h"

namespace dutperf::net {
namespace {

constexpr std::string_view kRequest = "GET /0000000000000000 HTTP/1.1\r\nHost: dutperf\r\n\r\n";
static_assert(kRequest.size() == kHttpRequestBytes);
constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

void write_http_request(uint8_t* out, uint64_t number) {
  std::memcpy(out, kRequest.data(), kRequest.size());
  for (size_t i = kHttpNumberDigits; i-- > 0; number >>= 4) {
    out[kHttpNumberAt + i] = static_cast<uint8_t>(kDigits[number & 0xf]);
  }
}

std::optional<uint64_t> number_in_http_request(std::span<const uint8_t> request) {
  constexpr size_t kRest = kHttpNumberAt + kHttpNumberDigits;
  if (request.size() != kRequest.size()) return std::nullopt;
  const bool is_one =
      std::memcmp(request.data(), kRequest.data(), kHttpNumberAt) == 0 &&
      std::memcmp(request.data() + kRest, kRequest.data() + kRest, kRequest.size() - kRest) == 0;
  if (!is_one) return std::nullopt;
  uint64_t number = 0;
  for (size_t i = kHttpNumberAt; i < kRest; ++i) {
    const size_t digit = kDigits.find(static_cast<char>(request[i]));
    if (digit == std::string_view::npos) return std::nullopt;
    number = number << 4 | digit;
  }
  return number;
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
