// The thinnest layer over DPDK's buffers and queues: what the data plane may do with them.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <cstdint>
#include <utility>

#include "interposed/waits.h"
#include "interposed/xdp_rings.h"

namespace dutperf::dpdk {

using Mbuf = rte_mbuf;

inline uint8_t* frame_of(Mbuf* mbuf) { return rte_pktmbuf_mtod(mbuf, uint8_t*); }

// Buffers of a pool of ours whose frames nobody has moved start this far behind their headers.
inline constexpr uint32_t kFrameOffset = sizeof(Mbuf) + RTE_PKTMBUF_HEADROOM;
inline uint8_t* const* buffers_of(Mbuf* const* mbufs) {
  return reinterpret_cast<uint8_t* const*>(mbufs);
}

inline size_t size_of(const Mbuf* mbuf) { return mbuf->data_len; }
// The driver put a frame into more than one buffer: what is in the first is not all of it.
inline bool is_in_several(const Mbuf* mbuf) { return mbuf->nb_segs > 1; }
// With what may still be put behind its bytes.
inline size_t room_of(const Mbuf* mbuf) { return mbuf->buf_len - mbuf->data_off; }
inline void set_size(Mbuf* mbuf, size_t size) {
  mbuf->data_len = static_cast<uint16_t>(size);
  mbuf->pkt_len = static_cast<uint32_t>(size);
}
// By which of its side's ports a frame leaves: in the field that is the user's. Not in `port`,
// where since DPDK 24.11 ring ports write by which one a frame came, and that is our buffer still.
inline uint16_t leaves_by(const Mbuf* mbuf) { return static_cast<uint16_t>(mbuf->hash.usr); }
inline void set_leaves_by(Mbuf* mbuf, uint16_t number) { mbuf->hash.usr = number; }
inline void prefetch_frame(Mbuf* mbuf) { rte_prefetch0(rte_pktmbuf_mtod(mbuf, void*)); }
// Frames of one pool, each the only one in its buffer, go back together; DPDK looks at each alone.
inline void free_frames(Mbuf** mbufs, uint32_t count) {
  if (count == 0) return;
  rte_mempool* const pool = mbufs[0]->pool;
  bool together = true;
  for (uint32_t i = 0; i < count; ++i) {
    const Mbuf& mbuf = *mbufs[i];
    together &=
        mbuf.pool == pool && mbuf.refcnt == 1 && mbuf.nb_segs == 1 && RTE_MBUF_DIRECT(&mbuf);
  }
  if (together) [[likely]] {
    rte_mempool_put_bulk(pool, reinterpret_cast<void**>(mbufs), count);
  } else {
    rte_pktmbuf_free_bulk(mbufs, count);
  }
}
// Another reference to the same frame: sent and freed apart, stored once.
inline Mbuf* share(Mbuf* mbuf) {
  rte_mbuf_refcnt_update(mbuf, 1);
  return mbuf;
}
inline void free_frame(Mbuf* mbuf) { rte_pktmbuf_free(mbuf); }

// What a port does with frames for which the queue behind it has no room.
enum class WhenFull : uint8_t {
  kWait,  // they stay with the sender: flow control
  kLose,  // they are lost at the device's door, as on an Ethernet link
};

// One transmit queue; used by one thread at a time.
struct TxQueue {
  uint16_t port = 0;
  uint16_t queue = 0;
  WhenFull when_full = WhenFull::kWait;
  interposed::XdpRings rings;  // of an AF_XDP socket
  bool waits_inside = false;   // AF_PACKET's driver

  // Hands up to `count` frames to the port, which then owns them; returns how many it took.
  uint32_t send(Mbuf** mbufs, uint32_t count) const {
    return rte_eth_tx_burst(port, queue, mbufs, static_cast<uint16_t>(count));
  }

  // Whether the last `send` found the port without room, though it took frames: the drivers of
  // kernel interfaces refuse none, they wait inside. AF_XDP's completions come in batches.
  bool had_no_room() const {
    if (rings.capacity != 0) return rings.in_flight() > rings.capacity - rings.capacity / 16;
    return waits_inside && std::exchange(interposed::waits_for_room, 0) > 0;
  }
};

inline constexpr uint16_t kMostRxQueues = 32;

// Receive queues of a port: `first`, and each `step`-th after it below `end`; used by one thread at
// a time. Each is to have its turn, whatever the others hold.
struct RxQueues {
  uint16_t port = 0;
  uint16_t end = 1;
  uint16_t first = 0;
  uint16_t step = 1;
  uint32_t room_frames = 2048;  // that wait here before some may be lost unseen, at least

  // Fewer than `limit`: the queue had no more. REQUIRES: a limit of 32 or more, for a vector driver
  // that is asked for less than it takes at once (8 and less) returns nothing, whatever is there.
  uint32_t receive(uint16_t queue, Mbuf** mbufs, uint32_t limit) const {
    return rte_eth_rx_burst(port, queue, mbufs, static_cast<uint16_t>(limit));
  }
};

}  // namespace dutperf::dpdk
