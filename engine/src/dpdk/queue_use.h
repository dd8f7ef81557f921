// The time in which the engine's threads may read and write a port's queues.
//
// A memif peer that goes has its memory unmapped by DPDK's own thread, whatever the others do. That
// waits here until the queues are no longer in use; the port is marked as unconnected before, so
// that a trial ends as one with a link that is down, with memory that nobody took away.
#pragma once

#include <mutex>

namespace dutperf::dpdk {

// To be made by the main thread, for the workers that run meanwhile, too; not while a port is
// opened or closed. May be nested.
class QueueUse {
 public:
  QueueUse();

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

}  // namespace dutperf::dpdk
