// Big-endian integers as they stand in frames. Alignment 1, so header structs need no packing.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace dutperf::net {

static_assert(std::endian::native == std::endian::little, "the engine runs on little-endian CPUs");

template <typename T>
constexpr T byte_swap(T value) {
  if constexpr (sizeof(T) == 2) {
    return static_cast<T>(__builtin_bswap16(value));
  } else if constexpr (sizeof(T) == 4) {
    return static_cast<T>(__builtin_bswap32(value));
  } else {
    static_assert(sizeof(T) == 8);
    return static_cast<T>(__builtin_bswap64(value));
  }
}

// Converts implicitly on purpose: a header field reads and writes like a number.
template <typename T>
class BigEndian {
 public:
  BigEndian() = default;
  BigEndian(T value) { *this = value; }  // NOLINT(google-explicit-constructor)

  BigEndian& operator=(T value) {
    const T swapped = byte_swap(value);
    std::memcpy(bytes_, &swapped, sizeof(T));
    return *this;
  }

  operator T() const {  // NOLINT(google-explicit-constructor)
    T raw;
    std::memcpy(&raw, bytes_, sizeof(T));
    return byte_swap(raw);
  }

 private:
  uint8_t bytes_[sizeof(T)];
};

using Be16 = BigEndian<uint16_t>;
using Be32 = BigEndian<uint32_t>;
using Be64 = BigEndian<uint64_t>;

static_assert(sizeof(Be16) == 2 && alignof(Be16) == 1);
static_assert(sizeof(Be64) == 8 && alignof(Be64) == 1);

}  // namespace dutperf::net
