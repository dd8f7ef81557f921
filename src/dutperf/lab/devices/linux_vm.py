"""``linux-vm``: a virtual machine as the device, the kernel's own forwarding in it.

    tester                                    guest of QEMU
    198.18.0.2     left  == vhost-user == left  198.18.0.1/24    2001:2::1/64
    198.19.0.2     right == vhost-user == right 198.19.0.1/24    2001:2:0:8000::1/64

Behind the tester's address on each side are all networks of RFC 2544 C.2.2 and RFC 5180
8, by one route. QEMU has the sockets and the tester connects to them, so either may go
and come again: without the tester the guest's links are down.

The guest has the memory that the rings are in; what finds no room in them is its loss.
"""

from __future__ import annotations

from dutperf.config.side import Ipv4Side, Ipv6Side, SideConfig, VdevPort
from dutperf.lab.devices.device import LabDevice
from dutperf.lab.devices.linux_router import LINUX_ROUTER, ROUTER_SYSCTLS
from dutperf.lab.state import StateFile
from dutperf.protocol import Side

RUN = "vm"
"""Where the virtual machine has its files, below the DUT's directory."""
RING_FRAMES = 1024
"""Of each port, as many as QEMU has for vhost-user."""


def socket_name(side: Side) -> str:
    """Of the file of that port's socket."""
    return f"{side}.sock"


def _side(side: Side, ipv4: Ipv4Side, ipv6: Ipv6Side) -> SideConfig:
    socket = StateFile().dut_directory / RUN / socket_name(side)
    port = VdevPort(vdev=f"net_vhost,iface={socket},queues=1,client=1")
    return SideConfig(port=port, ipv4=ipv4, ipv6=ipv6)


LINUX_VM = LabDevice(
    name="linux-vm",
    description="Linux as a router in a virtual machine of QEMU, vhost-user",
    addresses=LINUX_ROUTER.addresses,
    left=_side(
        "left",
        Ipv4Side(address="198.18.0.2", gateway="198.18.0.1"),
        Ipv6Side(address="2001:2::2", gateway="2001:2::1"),
    ),
    right=_side(
        "right",
        Ipv4Side(address="198.19.0.2", gateway="198.19.0.1"),
        Ipv6Side(address="2001:2:0:8000::2", gateway="2001:2:0:8000::1"),
    ),
    sysctls=ROUTER_SYSCTLS,
    networks={
        "left": ("198.18.0.0/16", "2001:2::/49"),
        "right": ("198.19.0.0/16", "2001:2:0:8000::/49"),
    },
    guest=True,
)
