#include "interposed/xdp_rings.h"

#include <dlfcn.h>
#include <xdp/xsk.h>

#include <cerrno>
#include <utility>

namespace dutperf::interposed {
namespace {

// Written and read by the control thread alone, while a port is opened.
uint32_t completion_frames = XSK_RING_CONS__DEFAULT_NUM_DESCS;
XdpRings opened;

// What the driver would have called. The library is there: the driver loaded it.
template <typename Function>
Function* original(const char* name) {
  void* library = dlopen("libxdp.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

void expect_rings(uint32_t frames) {
  completion_frames = frames;
  opened = {};
}

XdpRings take_opened_rings() { return std::exchange(opened, {}); }

}  // namespace dutperf::interposed

// In place of libxdp's, for DPDK's AF_XDP driver.
extern "C" int xsk_umem__create(xsk_umem** umem, void* area, __u64 size, xsk_ring_prod* fill,
                                xsk_ring_cons* completion, const xsk_umem_config* config) {
  auto* const create =
      dutperf::interposed::original<decltype(xsk_umem__create)>("xsk_umem__create");
  if (create == nullptr || config == nullptr) return -ENOSYS;
  xsk_umem_config longer = *config;
  longer.comp_size = dutperf::interposed::completion_frames;
  const int error = create(umem, area, size, fill, completion, &longer);
  if (error == 0) {
    dutperf::interposed::opened.got_back = &completion->cached_cons;
    dutperf::interposed::opened.capacity = longer.comp_size;
  }
  return error;
}

extern "C" int xsk_socket__create(xsk_socket** socket, const char* interface, __u32 queue,
                                  xsk_umem* umem, xsk_ring_cons* receive, xsk_ring_prod* transmit,
                                  const xsk_socket_config* config) {
  auto* const create =
      dutperf::interposed::original<decltype(xsk_socket__create)>("xsk_socket__create");
  if (create == nullptr) return -ENOSYS;
  const int error = create(socket, interface, queue, umem, receive, transmit, config);
  if (error == 0) dutperf::interposed::opened.handed_over = &transmit->cached_prod;
  return error;
}
