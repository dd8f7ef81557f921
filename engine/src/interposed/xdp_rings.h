// The two rings between an AF_XDP socket and DPDK's driver that say how many frames are in flight:
// handed to the kernel and not given back yet.
//
//   sender --transmit ring--> kernel --wire--> device's queue --device frees--> completion ring
//
// In copy mode a frame's buffer comes back when the *device* is done with it. The kernel takes no
// frame without a place in the completion ring, so that ring is how much of the tester's traffic
// can lie in the device's queue. DPDK's driver makes it 2,048 long, whatever it is asked for: a
// device with a longer queue never loses a frame and stops the sender instead. So the program
// exports the driver's `xsk_umem__create` and makes the ring longer. See docs/adr/0003.
#pragma once

#include <cstdint>

namespace dutperf::interposed {

// Frames that the driver has handed over so far, and those it got back, modulo 2^32; both are
// written by the one thread that sends, which alone may ask.
struct XdpRings {
  const uint32_t* handed_over = nullptr;
  const uint32_t* got_back = nullptr;
  uint32_t capacity = 0;

  uint32_t in_flight() const { return *handed_over - *got_back; }
};

// Before a port is opened: how long the completion ring of its socket is to be, a power of 2. What
// an earlier one left that was refused half-way is forgotten.
void expect_rings(uint32_t frames);
// Those of the socket that was opened since; none: none was.
XdpRings take_opened_rings();

}  // namespace dutperf::interposed
