// Whose loss it is that the kernel counts at a port's interface.
#pragma once

#include <cstdint>

#include "kernel/counters.h"

namespace dutperf::kernel {

// How frames come to the port.
struct Attachment {
  // veth, tap and the like: what is at the other end is on this machine, too. The input queues of
  // its CPUs are that device's, and so is a frame that one of them refuses.
  bool is_virtual = false;
  bool packet_socket = false;  // else AF_XDP
};

struct Attribution {
  uint64_t receive = 0;  // dropped by the tester's NIC, its driver or its kernel, below the socket
  uint64_t send = 0;     // the port took it, but it never left
  uint64_t damaged = 0;  // came in damaged: of the wire, the device or the NIC
};

// `during` is what rose in a trial, `foreign` how many frames came that were not the tester's. The
// same drop may be counted at several places, so of the interface's own counters and the driver's
// the larger sum counts, and without what a socket counted.
Attribution attribute(const InterfaceCounters& during, const Attachment& attachment,
                      uint64_t foreign);

// Frames of whatever kind that the CPUs' input queues had no room for, and that the interfaces do
// not account for: these counted `accounted`. With a virtual port they are the device's, or nobody
// can tell: 0 then.
uint64_t own_input_queue_drops(const std::vector<InputQueue>& during, bool any_virtual,
                               uint64_t accounted);

}  // namespace dutperf::kernel
