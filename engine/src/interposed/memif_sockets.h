// Clients that come and go do a memif port that is a server no harm.
//
// DPDK's driver forgets in two places that the interrupt thread watches a socket. It frees a port's
// listening socket: the next client that connects, or one that has asked for nothing yet, is served
// out of freed memory. And it closes the socket of a client that has hung up before it was greeted:
// the interrupt thread panics when it next watches its list. So the program has the driver's
// rte_intr_callback_register() told. When a port is closed, it takes back what is still registered
// for its socket, on the interrupt thread itself, where nothing is served meanwhile; and a greeting
// that nobody takes is no error: the driver then reads that the client has gone.
#pragma once

#include <cstdint>
#include <string>

namespace dutperf::interposed {

// Stops and closes the port, whose socket is at `path`.
void close_memif_server(uint16_t port, const std::string& path) noexcept;

}  // namespace dutperf::interposed
