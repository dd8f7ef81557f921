#include "net/http.h"

#include <cstring>
#include <string>
#include <string_view>

#include "net/byte_order.h"
#include "net/frame.h"

namespace dutperf::net {
namespace {

constexpr std::string_view kRequest = "GET /0000000000000000 HTTP/1.1\r\nHost: dutperf\r\n\r\n";
static_assert(kRequest.size() == kHttpRequestBytes);

// Eight digits at once, the highest in the lowest byte: as they stand in the text.
constexpr uint64_t kEach = 0x0101010101010101;

uint64_t digits_of(uint32_t number) {
  uint64_t nibbles = byte_swap(uint64_t{number});  // in the upper half, the highest byte first
  nibbles >>= 32;
  nibbles = (nibbles | nibbles << 16) & 0x0000ffff0000ffff;
  nibbles = (nibbles | nibbles << 8) & 0x00ff00ff00ff00ff;
  nibbles = (nibbles >> 4 | nibbles << 8) & 0x0f0f0f0f0f0f0f0f;
  const uint64_t letters = (nibbles + 6 * kEach) >> 4 & kEach;
  return nibbles + '0' * kEach + letters * ('a' - '0' - 10);
}

// Of what are digits; else of anything.
uint32_t number_of(uint64_t digits) {
  const uint64_t letters = digits >> 6 & kEach;
  uint64_t nibbles = (digits & 0x0f * kEach) + 9 * letters;
  nibbles = (nibbles << 4 | nibbles >> 8) & 0x00ff00ff00ff00ff;
  nibbles = (nibbles | nibbles >> 8) & 0x0000ffff0000ffff;
  nibbles = (nibbles | nibbles >> 16) & 0x00000000ffffffff;
  return static_cast<uint32_t>(byte_swap(nibbles << 32));
}

}  // namespace

void write_http_request(uint8_t* out, uint64_t number) {
  std::memcpy(out, kRequest.data(), kRequest.size());
  const uint64_t digits[] = {digits_of(static_cast<uint32_t>(number >> 32)),
                             digits_of(static_cast<uint32_t>(number))};
  std::memcpy(out + kHttpNumberAt, digits, sizeof(digits));
}

std::optional<uint64_t> number_in_http_request(std::span<const uint8_t> request) {
  constexpr size_t kRest = kHttpNumberAt + kHttpNumberDigits;
  if (request.size() != kRequest.size()) return std::nullopt;
  const bool is_one =
      std::memcmp(request.data(), kRequest.data(), kHttpNumberAt) == 0 &&
      std::memcmp(request.data() + kRest, kRequest.data() + kRest, kRequest.size() - kRest) == 0;
  if (!is_one) return std::nullopt;
  uint64_t digits[2];
  std::memcpy(digits, request.data() + kHttpNumberAt, sizeof(digits));
  const uint32_t high = number_of(digits[0]);
  const uint32_t low = number_of(digits[1]);
  if (digits_of(high) != digits[0] || digits_of(low) != digits[1]) return std::nullopt;
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
