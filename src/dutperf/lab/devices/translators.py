"""Devices that translate between IP versions: TAYGA, and DNS64 servers (RFC 6147).

Unbound and BIND 9 have one thread here:

    tester, clients      2001:2::2   left  ------- left  2001:2::1/64, is asked
    tester, authority   198.19.0.2   right ------- right 198.19.0.1/24, asks

Each is an IPv6 router, too. Its server knows one zone, ``dutperf.test``, whose
authority the tester is, and puts 64:ff9b:: before addresses of names without AAAA.
Nothing else is ever asked: there is no root, no DNSSEC and no minimisation of names,
which would be more questions than RFC 8219 9.1 has.

Unbound remembers for a quarter of an hour which servers did not answer in time, and
asks them less: one trial that was too fast would spoil those after it. So it forgets
that before each trial. Names stay in its cache: those of a share that is cached are
asked for before the first trial, those of other trials by nobody. What both servers
count goes on, and is read before a trial and after it.
"""

from __future__ import annotations

import ipaddress
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from dutperf.config.side import InterfacePort, Ipv4Side, Ipv6Side, SideConfig
from dutperf.config.testbed import Hook, Hooks
from dutperf.errors import SetupError
from dutperf.lab import netns, processes, topology
from dutperf.lab.devices.daemons import Daemon
from dutperf.lab.devices.device import (
    LEFT_IPV4,
    LEFT_IPV6,
    RIGHT_IPV4,
    RIGHT_IPV6,
    Box,
    LabDevice,
    lab_side,
)
from dutperf.lab.devices.linux import ROUTER_SYSCTLS, inside, kernel_hooks
from dutperf.lab.devices.nftables import (
    PUBLIC_IPV4,
    Tracking,
    gateway_hooks,
    source_nat,
)
from dutperf.lab.netns import DUT
from dutperf.lab.processes import Process, Programs
from dutperf.lab.state import StateFile
from dutperf.programs import in_namespace

TUNNEL_FRAMES = 500
"""Linux's own queue in a tunnel: TUN_READQ_SIZE, drivers/net/tun.c."""


@dataclass(frozen=True)
class Translator:
    """TAYGA: a process that translates what the DUT's kernel routes into its tunnel.

    Attributes:
        tunnel: name of its tun device.
        ipv4: TAYGA's own address, for the ICMP errors that it sends.
        ipv6: likewise.
        pairs: IPv4 and IPv6 address of each host, as the two sides know it.
        networks: what is routed into the tunnel.
        prefix: IPv6 addresses that stand for IPv4 ones (RFC 6052), if it has one.
        mtu: of the tunnel, if not 1,500: IPv4 packets are 20 bytes longer in IPv6.
    """

    program: ClassVar[str] = "tayga"
    package: ClassVar[str] = "tayga"

    tunnel: str
    ipv4: str
    ipv6: str
    pairs: tuple[tuple[str, str], ...]
    networks: tuple[str, ...]
    prefix: str | None = None
    mtu: int | None = None

    def start(self, namespace: str, programs: Programs) -> None:
        """Makes the tunnel and its routes, starts TAYGA and waits until it translates.

        Raises:
            SetupError: the tunnel cannot be made, or TAYGA ended or did not take it.
        """
        settings = self._settings(programs.directory)
        settings.write_text(self.configuration(programs.directory), "ascii")
        _make_tunnel(in_namespace(namespace, *_tayga(settings), "--mktun"))
        self._route(namespace)
        self.run(namespace, programs)

    def run(self, namespace: str, programs: Programs) -> None:
        """The part of ``start`` that is TAYGA itself; its tunnel is there, and free.

        Raises:
            SetupError: TAYGA ended, or did not take the tunnel.
        """
        programs.start(
            [*_tayga(self._settings(programs.directory)), "--nodetach"],
            lambda: netns.has_carrier(namespace, self.tunnel),
            namespace=namespace,
            name="TAYGA",
            log=programs.directory / f"tayga-{self.tunnel}.log",
            hint="it needs the right to open /dev/net/tun",
        )

    def configuration(self, directory: Path) -> str:
        """The text of tayga.conf."""
        lines = [
            f"tun-device {self.tunnel}",
            f"ipv4-addr {self.ipv4}",
            f"ipv6-addr {self.ipv6}",
            f"data-dir {directory}",
            *([f"prefix {self.prefix}"] if self.prefix else []),
            *(f"map {ipv4} {ipv6}" for ipv4, ipv6 in self.pairs),
        ]
        return "\n".join(lines) + "\n"

    def queue_frames(self, namespace: str) -> int:
        """How many frames the kernel keeps for TAYGA in the tunnel."""
        path = f"/sys/class/net/{self.tunnel}/tx_queue_len"
        shown = netns.read_settings(namespace, [path])
        return int(shown.get(path, TUNNEL_FRAMES))

    def _settings(self, directory: Path) -> Path:
        return directory / f"tayga-{self.tunnel}.conf"

    def _route(self, namespace: str) -> None:
        # The lab's other settings are inherited; this one, per device only, is not.
        key = f"net.ipv6.conf.{self.tunnel}.addr_gen_mode"
        netns.write_settings(
            namespace, {netns.sysctl_path(key): topology.NO_GENERATED_ADDRESSES}
        )
        mtu = f"mtu {self.mtu} " if self.mtu else ""
        netns.run_ip(
            namespace,
            [
                f"link set {self.tunnel} {mtu}up",
                *(f"route add {n} dev {self.tunnel}" for n in self.networks),
            ],
        )


def restart_translators(
    device: LabDevice, old: Sequence[Process], programs: Programs
) -> str:
    """Ends each process by force, and starts another one."""
    for process in old:
        processes.end(process)
    for home, each in device.translators.items():
        each.run(home, programs)
    return "TAYGA was ended and started again"


def _tayga(settings: Path) -> list[str]:
    return ["tayga", "--config", str(settings)]


def _make_tunnel(command: list[str]) -> None:
    result = subprocess.run(
        command,
        stdout=subprocess.PIPE,  # where TAYGA complains
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise SetupError(
            f"cannot make TAYGA's tunnel: {result.stdout.strip()}",
            "needs a kernel with CONFIG_TUN, and /dev/net/tun in a container",
        )


# ``tayga-siit``: stateless translation between IPv6 and IPv4 (SIIT) by TAYGA.
#
# The single DUT set-up of RFC 8219 4.1, one explicit mapping for each host (RFC 7757):
#
#     tester                               dut
#     2001:2::2          left ------- left  2001:2::1/64
#     198.19.0.2        right ------- right 198.19.0.1/24
#     2001:2:0:8000::2  right ------- right 2001:2:0:8000::1/64   native IPv6 only
#
#     left, number k     2001:2::k:2  <->  198.18.0.(2 + k)       as the right knows it
#     right, number k  198.19.0.(2 + k)  <->  2001:2:0:1000::k:2   as the left knows it
#
# There are 253 hosts on each side, k is 0 to 252: 2001:2::2 is 198.18.0.2, 2001:2::a:2
# is 198.18.0.12. They vary where those of paper 003 do, the last 8 bits of the IPv4
# address and bits 96-111 of the IPv6 one, so that trials with many addresses meet a
# mapping for each. Native IPv6, the background traffic of RFC 8219 5.3, is forwarded by
# the kernel and never meets TAYGA. IPv4 frames without DF that are larger than 1,260
# bytes of IP arrive in IPv6 as two fragments (RFC 7915 4): send them with DF, or have
# them put together (traffic.fragmented).
#
# TAYGA 0.9.2 corrects UDP checksums and may end at zero, which IPv6 forbids (RFC 8200
# 8.1; it should be FFFF). That is one in 65,535 frames from IPv4 to IPv6: damaged, and
# so lost (docs/damaged-frames.md).


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
            LEFT_IPV6,
        ),
        right=lab_side(
            "right",
            RIGHT_IPV4,
            Ipv6Side(
                address="2001:2:0:8000::2",
                gateway="2001:2:0:8000::1",
                virtual="2001:2:0:1000::2",
            ),
        ),
        sysctls=ROUTER_SYSCTLS,
        boxes=(Box(translator=_translator(hosts)),),
        hooks=kernel_hooks(),
        restarts=restart_translators,
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


# ``tayga-nat64``: stateful NAT64 in two steps, TAYGA and nftables behind it.
#
# As in Lencse, Shima and Cho (2023): TAYGA gives each IPv6 client a private IPv4
# address, one for one, and nftables maps those to the public address and its ports:
#
#     tester                               dut
#     2001:2::2          left ------- left  2001:2::1/64
#     198.19.0.2        right ------- right 198.19.0.1/24
#     2001:2:0:8000::2  right ------- right 2001:2:0:8000::1/64   native IPv6 only
#
#     2001:2::k:2  =TAYGA=  10.0.0.(2 + k)  =nftables=  198.19.0.1, port from 1024 on
#     198.19.0.2  stands behind 2001:2:0:6464::c613:2
#
# There are 253 clients, k is 0 to 252. The prefix is one of the network's own, because
# 64:ff9b::/96 is for global addresses only (RFC 6052 3.1): TAYGA refuses it for others.


PREFIX = "2001:2:0:6464::/96"

TAYGA_NAT64 = LabDevice(
    name="tayga-nat64",
    description=f"TAYGA and nftables, NAT64 with {PREFIX} to {PUBLIC_IPV4}",
    addresses={
        "left": ("2001:2::1/64", "fe80::1/64"),
        "right": ("198.19.0.1/24", "2001:2:0:8000::1/64", "fe80::1/64"),
    },
    left=lab_side(
        "left",
        Ipv4Side(virtual=PUBLIC_IPV4),
        LEFT_IPV6,
    ),
    right=lab_side(
        "right",
        RIGHT_IPV4,
        Ipv6Side(
            address="2001:2:0:8000::2",
            gateway="2001:2:0:8000::1",
            virtual="2001:2:0:6464::c613:2",
        ),
    ),
    sysctls=ROUTER_SYSCTLS,
    boxes=(
        Box(
            translator=Translator(
                tunnel="nat64",
                ipv4="10.0.0.1",
                ipv6="2001:2:0:1000::1",
                pairs=tuple(pairs(MAX_HOSTS, "10.0.0.2", "2001:2::2")),
                networks=("10.0.0.0/24", PREFIX),
                prefix=PREFIX,
            ),
            ruleset=tuple(source_nat("ip", PUBLIC_IPV4)),
        ),
    ),
    tracking=Tracking(),
    hooks=gateway_hooks(),
    restarts=restart_translators,
)

_UNBOUND_SETTINGS = """\
server:
  directory: "{directory}"
  pidfile: "{running}"
  username: ""
  chroot: ""
  use-syslog: no
  interface: 2001:2::1
  access-control: ::/0 allow
  num-threads: 1
  outgoing-range: 8192
  num-queries-per-thread: 4096
  msg-cache-size: 256m
  rrset-cache-size: 512m
  qname-minimisation: no
  module-config: "dns64 iterator"
  dns64-prefix: 64:ff9b::/96
  local-zone: "test." nodefault
remote-control:
  control-enable: yes
  control-use-cert: no
  control-interface: "{directory}/unbound.control"
stub-zone:
  name: "dutperf.test"
  stub-addr: 198.19.0.2
"""
_UNBOUND = Daemon(
    name="Unbound",
    program="unbound",
    package="unbound",
    arguments=("-d", "-c", "{settings}"),
    settings=_UNBOUND_SETTINGS,
    hint="it needs its module dns64, which Debian's package has",
    answers=True,
)
_BIND = Daemon(
    name="BIND 9",
    program="named",
    package="bind9",
    arguments=("-f", "-n", "1", "-c", "{settings}"),
    settings="""\
options {
  directory "{directory}";
  pid-file "{running}";
  listen-on { none; };
  listen-on-v6 { 2001:2::1; };
  allow-query { any; };
  recursion yes;
  allow-recursion { any; };
  recursive-clients 100000;
  dnssec-validation no;
  qname-minimization off;
  empty-zones-enable no;
  minimal-responses yes;
  max-cache-size 512m;
  dns64 64:ff9b::/96 { clients { any; }; };
};
controls { };
statistics-channels { inet 127.0.0.1 port 8053 allow { 127.0.0.1; }; };
logging { category default { null; }; };
zone "dutperf.test" {
  type static-stub;
  server-addresses { 198.19.0.2; };
};
""",
    hint="on Debian the package bind9",
    answers=True,
)


def _told(*order: str) -> Hook:
    settings = StateFile().dut_directory / "unbound.conf"
    return inside(DUT, "unbound-control", "-c", str(settings), *order)


_FORGET = _told("flush_infra", "all")


def _counting(counts: Hook, *before: Hook) -> Hooks:
    """The server's own counters are read before a trial and after it."""
    kernel = kernel_hooks()
    return kernel.model_copy(
        update={
            "before_trial": [*before, counts, *kernel.before_trial],
            "after_trial": [counts, *kernel.after_trial],
        }
    )


_ASK_BIND = """\
import http.client, json, time
end = time.monotonic() + 12
while True:
    at = http.client.HTTPConnection("127.0.0.1", 8053)
    at.request("GET", "/json/v1/server")
    told = at.getresponse().read().decode()
    waiting = json.loads(told).get("nsstats", {}).get("RecursClients", 0)
    if waiting == 0 or time.monotonic() > end:
        break
    time.sleep(0.2)
print(told)
"""
"""Once nobody waits any more: for ten seconds BIND works for clients that gave up."""

UNBOUND_DNS64 = LabDevice(
    name="unbound-dns64",
    description="Unbound, a DNS64 server of one thread",
    addresses={
        "left": ("2001:2::1/64", "fe80::1/64"),
        "right": ("198.19.0.1/24", "2001:2:0:8000::1/64", "fe80::1/64"),
    },
    left=SideConfig(port=InterfacePort(interface="left", mtu=1500), ipv6=LEFT_IPV6),
    right=lab_side("right", RIGHT_IPV4, RIGHT_IPV6),
    sysctls=ROUTER_SYSCTLS,
    daemons=(_UNBOUND,),
    hooks=_counting(_told("stats_noreset"), _FORGET),
)
UNBOUND = replace(
    UNBOUND_DNS64,
    name="unbound",
    description="Unbound, a DNS resolver of one thread",
    addresses={
        **UNBOUND_DNS64.addresses,
        "left": ("198.18.0.1/24", *UNBOUND_DNS64.addresses["left"]),
    },
    left=lab_side("left", LEFT_IPV4, LEFT_IPV6),
    daemons=(
        replace(
            _UNBOUND,
            settings=_UNBOUND_SETTINGS.replace(
                """\
  interface: 2001:2::1
  access-control: ::/0 allow
""",
                """\
  interface: 198.18.0.1
  interface: 2001:2::1
  access-control: 0.0.0.0/0 allow
  access-control: ::/0 allow
""",
            ).replace(
                """\
  module-config: "dns64 iterator"
  dns64-prefix: 64:ff9b::/96
""",
                """\
  module-config: "iterator"
""",
            ),
        ),
    ),
)
BIND_DNS64 = replace(
    UNBOUND_DNS64,
    name="bind-dns64",
    description="BIND 9, a DNS64 server of one thread",
    daemons=(_BIND,),
    hooks=_counting(inside(DUT, sys.executable, "-I", "-c", _ASK_BIND)),
)
