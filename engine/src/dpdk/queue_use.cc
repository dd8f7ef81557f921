#include "dpdk/queue_use.h"

#include <rte_lcore.h>

#include "interposed/unmapping.h"

namespace dutperf::dpdk {
namespace {

std::recursive_mutex in_use;

// The engine's own threads, lcores all, take nothing away from each other; and a worker that waited
// for the end of the trial would wait for itself.
void await_end_of_use() noexcept {
  if (rte_lcore_id() != LCORE_ID_ANY) return;
  const std::lock_guard lock(in_use);
}

std::recursive_mutex& guarded() {
  interposed::before_unmapping = await_end_of_use;
  return in_use;
}

}  // namespace

QueueUse::QueueUse() : lock_(guarded()) {}

}  // namespace dutperf::dpdk
