"""``tayga-siit``: stateless translation between IPv6 and IPv4 (SIIT) by TAYGA.

The single DUT set-up of RFC 8219 4.1, one explicit mapping for each host (RFC 7757):

    tester                               dut
    2001:2::2          left ------- left  2001:2::1/64
    198.19.0.2        right ------- right 198.19.0.1/24
    2001:2:0:8000::2  right ------- right 2001:2:0:8000::1/64   native IPv6 only

    left, number k     2001:2::k:2  <->  198.18.0.(2 + k)       as the right knows it
    right, number k  198.19.0.(2 + k)  <->  2001:2:0:1000::k:2   as the left knows it

There are 253 hosts on each side, k is 0 to 252: 2001:2::2 is 198.18.0.2, 2001:2::a:2 is
198.18.0.12. They vary where those of paper 003 do, the last 8 bits of the IPv4 address
and bits 96-111 of the IPv6 one, so that trials with many addresses meet a mapping for
each. Native IPv6, the background traffic of RFC 8219 5.3, is forwarded by the kernel
and never meets TAYGA. IPv4 frames without DF that are larger than 1,260 bytes of IP
arrive in IPv6 as two fragments (RFC 7915 4): send them with DF.

TAYGA 0.9.2 corrects UDP checksums and may end at zero, which IPv6 forbids (RFC 8200
8.1; it should be FFFF). That is one in 65,535 frames from IPv4 to IPv6: damaged, and so
lost (docs/damaged-frames.md).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from dutperf.config.side import Ipv4Side, Ipv6Side
from dutperf.lab.devices.device import (
    Box,
    LabDevice,
    Translator,
    kernel_hooks,
    lab_side,
)
from dutperf.lab.devices.linux_router import ROUTER_SYSCTLS

MAX_HOSTS = 253
_BITS_BELOW_HOST = 16  # bits 112-127 of an IPv6 address


def tayga_siit(hosts: int = MAX_HOSTS) -> LabDevice:
    """The lab with mappings for ``hosts`` hosts on each side, 1 to 253."""
    if not 1 <= hosts <= MAX_HOSTS:
        raise ValueError(f"hosts must be 1 to {MAX_HOSTS}, not {hosts}")
    return LabDevice(
        name="tayga-siit",
        description=f"TAYGA, SIIT with {hosts} mappings on each side",
        addresses={
            "left": ("2001:2::1/64", "fe80::1/64"),
            "right": ("198.19.0.1/24", "2001:2:0:8000::1/64", "fe80::1/64"),
        },
        left=lab_side(
            "left",
            Ipv4Side(virtual="198.18.0.2"),
            Ipv6Side(address="2001:2::2", gateway="2001:2::1"),
        ),
        right=lab_side(
            "right",
            Ipv4Side(address="198.19.0.2", gateway="198.19.0.1"),
            Ipv6Side(
                address="2001:2:0:8000::2",
                gateway="2001:2:0:8000::1",
                virtual="2001:2:0:1000::2",
            ),
        ),
        sysctls=ROUTER_SYSCTLS,
        boxes=(Box(translator=_translator(hosts)),),
        hooks=kernel_hooks(),
    )


def _translator(hosts: int) -> Translator:
    return Translator(
        tunnel="siit",
        ipv4="198.18.0.1",
        ipv6="2001:2:0:1000::1",
        pairs=(
            *pairs(hosts, "198.18.0.2", "2001:2::2"),
            *pairs(hosts, "198.19.0.2", "2001:2:0:1000::2"),
        ),
        networks=("198.18.0.0/24", "2001:2:0:1000::/64"),
    )


def pairs(hosts: int, ipv4: str, ipv6: str) -> Iterator[tuple[str, str]]:
    """Both addresses of each host, from the first one's on."""
    first_4, first_6 = ipaddress.IPv4Address(ipv4), ipaddress.IPv6Address(ipv6)
    for number in range(hosts):
        yield str(first_4 + number), str(first_6 + (number << _BITS_BELOW_HOST))


TAYGA_SIIT = tayga_siit()
