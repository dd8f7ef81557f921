"""``tayga-siit``: stateless translation between IPv6 and IPv4 (SIIT) by TAYGA.

The single DUT set-up of RFC 8219 4.1, one explicit mapping for each host (RFC 7757):

    tester                               dut
    2001:2::2          left ------- left  2001:2::1/64
    198.19.0.2        right ------- right 198.19.0.1/24
    2001:2:0:8000::2  right ------- right 2001:2:0:8000::1/64   native IPv6 only

    host of the left     2001:2::N  <->  198.18.0.N          as the right knows it
    host of the right  198.19.0.N   <->  2001:2:0:1000::N    as the left knows it

N is 2 to 254, in the IPv6 address in hexadecimal: 198.18.0.16 is 2001:2::10. Native
IPv6 between the two sides, the background traffic of RFC 8219 5.3, is forwarded by the
kernel and never meets TAYGA. IPv4 frames without DF that are larger than 1,260 bytes
of IP get a fragment header on their way to IPv6 (RFC 7915 4): send them with DF.
"""

from __future__ import annotations

from dutperf.config.testbed import Ipv4Side, Ipv6Side
from dutperf.lab.devices.device import LabDevice, Translator, lab_side
from dutperf.lab.devices.linux_router import ROUTER_SYSCTLS

FIRST_HOST = 2
MAX_HOSTS = 253


def tayga_siit(hosts: int = MAX_HOSTS) -> LabDevice:
    """The lab with mappings for ``hosts`` hosts on each side, 1 to 253."""
    if not 1 <= hosts <= MAX_HOSTS:
        raise ValueError(f"hosts must be 1 to {MAX_HOSTS}, not {hosts}")
    numbers = range(FIRST_HOST, FIRST_HOST + hosts)
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
        translator=Translator(
            tunnel="siit",
            ipv4="198.18.0.1",
            ipv6="2001:2:0:1000::1",
            pairs=(
                *((f"198.18.0.{n}", f"2001:2::{n:x}") for n in numbers),
                *((f"198.19.0.{n}", f"2001:2:0:1000::{n:x}") for n in numbers),
            ),
            networks=("198.18.0.0/24", "2001:2:0:1000::/64"),
        ),
    )


TAYGA_SIIT = tayga_siit()
