// Hands records of fixed size from one worker to another: one puts, one takes, no lock. DPDK's ring
// in memory of its own.
#pragma once

#include <rte_ring.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <new>

namespace dutperf::dpdk {

template <typename Record>
class RecordRing {
  static_assert(sizeof(Record) % sizeof(void*) == 0 && std::has_single_bit(sizeof(Record)));

 public:
  // `records`: a power of 2; one of them stays free.
  explicit RecordRing(unsigned records)
      : memory_(static_cast<uint8_t*>(::operator new(bytes_of(records), kAlignment))),
        ring_(reinterpret_cast<rte_ring*>(memory_.get())) {
    rte_ring_init(ring_, "records", records, RING_F_SP_ENQ | RING_F_SC_DEQ);
  }
  RecordRing(const RecordRing&) = delete;
  RecordRing& operator=(const RecordRing&) = delete;

  // How many of them had room.
  uint32_t put(const Record* records, uint32_t count) {
    return rte_ring_sp_enqueue_burst_elem(ring_, records, sizeof(Record), count, nullptr);
  }
  uint32_t take(Record* records, uint32_t limit) {
    return rte_ring_sc_dequeue_burst_elem(ring_, records, sizeof(Record), limit, nullptr);
  }
  // Drops what nobody has taken; while nobody puts.
  void clear() { rte_ring_reset(ring_); }

 private:
  static constexpr std::align_val_t kAlignment{RTE_CACHE_LINE_SIZE};
  struct Free {
    void operator()(uint8_t* memory) const { ::operator delete(memory, kAlignment); }
  };

  // By pointers: DPDK 24.11's rte_ring_elem.h lacks an extern "C", so the call for records of any
  // size does not link.
  static size_t bytes_of(unsigned records) {
    constexpr auto kPointers = static_cast<unsigned>(sizeof(Record) / sizeof(void*));
    return static_cast<size_t>(rte_ring_get_memsize(records * kPointers));
  }

  const std::unique_ptr<uint8_t, Free> memory_;
  rte_ring* const ring_;
};

}  // namespace dutperf::dpdk
