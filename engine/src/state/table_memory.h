// Memory for a state table: zero, there before the first frame, and in huge pages where there are
// any, because entries are read in random order and each 4 KiB page would need an address
// translation of its own.
#pragma once

#include <cstdint>

namespace dutperf::state {

enum class Pages : uint8_t { kHugeIfAny, kSmall };

class TableMemory {
 public:
  // Bytes that a table could have now: of the free huge pages, or else of what is available.
  static uint64_t available_bytes();

  // Takes the machine's reserved huge pages when they suffice, else lets the kernel join pages.
  // Throws std::bad_alloc when there is not enough; better ask available_bytes() first.
  explicit TableMemory(uint64_t bytes, Pages pages = Pages::kHugeIfAny);
  ~TableMemory();
  TableMemory(const TableMemory&) = delete;
  TableMemory& operator=(const TableMemory&) = delete;

  void* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }  // whole pages
  bool hugepages() const { return hugepages_; }
  uint64_t allocation_ns() const { return allocation_ns_; }

 private:
  bool map_reserved_pages();
  void map_pages(Pages pages);
  void populate();

  void* data_ = nullptr;
  uint64_t bytes_;
  bool hugepages_ = false;
  uint64_t allocation_ns_ = 0;
};

}  // namespace dutperf::state
