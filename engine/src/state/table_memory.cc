#include "state/table_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <new>
#include <string>

namespace dutperf::state {
namespace {

constexpr uint64_t kHugePage = 2 << 20;

constexpr uint64_t whole_huge_pages(uint64_t bytes) {
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

// A line of /proc/meminfo; 0 when it has none of this name.
uint64_t meminfo(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  std::string key;
  uint64_t value = 0;
  std::string rest;
  while (file >> key >> value && std::getline(file, rest)) {
    if (key == name + ":") return value;
  }
  return 0;
}

uint64_t free_reserved_bytes() {
  const uint64_t free = meminfo("HugePages_Free");
  return (free - std::min(free, meminfo("HugePages_Rsvd"))) * meminfo("Hugepagesize") * 1024;
}

// Whether the kernel joins the pages of a range that asks for it.
bool kernel_joins_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  return std::getline(file, text) && text.find("[never]") == std::string::npos;
}

void* map(uint64_t bytes, int flags) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

}  // namespace

uint64_t TableMemory::available_bytes() {
  return std::max(free_reserved_bytes(), meminfo("MemAvailable") * 1024);
}

TableMemory::TableMemory(uint64_t bytes, Pages pages) : bytes_(whole_huge_pages(bytes)) {
  const auto begin = std::chrono::steady_clock::now();
  if (pages == Pages::kSmall || !map_reserved_pages()) map_pages(pages);
  populate();
  allocation_ns_ = static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
}

TableMemory::~TableMemory() { munmap(data_, bytes_); }

bool TableMemory::map_reserved_pages() {
  if (meminfo("Hugepagesize") * 1024 != kHugePage || free_reserved_bytes() < bytes_) return false;
  void* const mapped = map(bytes_, MAP_HUGETLB);
  if (mapped == MAP_FAILED) return false;
  data_ = mapped;
  hugepages_ = true;
  return true;
}

void TableMemory::map_pages(Pages pages) {
  if (meminfo("MemAvailable") * 1024 < bytes_) throw std::bad_alloc();
  // One huge page more, so that the table can begin at one.
  const uint64_t room = bytes_ + kHugePage;
  void* const mapped = map(room, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  const auto address = reinterpret_cast<uintptr_t>(mapped);
  const uint64_t before = whole_huge_pages(address) - address;
  char* const begin = static_cast<char*>(mapped) + before;
  if (before > 0) munmap(mapped, before);
  munmap(begin + bytes_, kHugePage - before);
  data_ = begin;
  const bool huge = pages == Pages::kHugeIfAny && kernel_joins_pages();
  hugepages_ = madvise(data_, bytes_, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) == 0 && huge;
}

// The kernel hands out zero pages when they are touched: now, not under way.
void TableMemory::populate() {
  if (madvise(data_, bytes_, MADV_POPULATE_WRITE) == 0) return;
  auto* const bytes = static_cast<volatile uint8_t*>(data_);
  for (uint64_t at = 0; at < bytes_; at += 4096) bytes[at] = 0;
}

}  // namespace dutperf::state
