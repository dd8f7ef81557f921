"""Programs beside the DUT's kernel: how they are started, and when they run.

BIRD takes routes from the tester by RIP, for the kernel. Those that nobody told again
for three minutes are given up (RFC 2453 3.8).

snmpd, Net-SNMP's agent, answers management queries (RFC 2544 11.2).
"""

from __future__ import annotations

import random
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dutperf.config.testbed import Bgp, Ospf, Routing
from dutperf.errors import SetupError
from dutperf.lab import netns
from dutperf.lab.processes import Programs, is_running

TABLE_TIMEOUT_S = 60.0
TABLE_POLL_S = 0.2


@dataclass(frozen=True)
class Daemon:
    """One of them.

    Attributes:
        name: as people call it.
        program: that runs it.
        package: of Debian, which has it.
        arguments: with ``{settings}`` and ``{running}`` for the paths of two files, and
            ``{directory}`` for where they are.
        settings: what is in the first, with the same for its paths; the second file is
            there once it runs.
        hint: what else may be wrong.
        table: how many routes of each IP version it has beside its settings, and puts
            into the kernel's table (``static_routes``).
        answers: frames are for it, and wait for it in the buffer of its socket.
    """

    name: str
    program: str
    package: str
    arguments: tuple[str, ...]
    settings: str
    hint: str
    table: int = 0
    answers: bool = False

    def start(self, namespace: str, programs: Programs) -> None:
        """Starts it in ``namespace`` and waits until it runs, and has its routes.

        Raises:
            SetupError: it ended, or said nothing.
        """
        name = Path(self.program).name
        settings, running, log = (
            programs.directory / f"{name}.{kind}" for kind in ("conf", "run", "log")
        )
        directory = programs.directory
        paths = {"settings": settings, "running": running, "directory": directory}
        text = self.settings + (static_routes(self.table) if self.table else "")
        for word, path in paths.items():  # what else stands in braces is its own
            text = text.replace(f"{{{word}}}", str(path))
        settings.write_text(text, "ascii")
        process = programs.start(
            [self.program, *(each.format_map(paths) for each in self.arguments)],
            running.exists,
            namespace=namespace,
            name=self.name,
            log=log,
            hint=self.hint,
        )
        deadline = time.monotonic() + TABLE_TIMEOUT_S
        while self.table and not _all_routed(self.table, namespace):
            if not is_running(process) or time.monotonic() > deadline:
                raise SetupError(
                    f"{self.name} has not put its {self.table:,} routes into "
                    f"the kernel within {TABLE_TIMEOUT_S:g} s",
                    self.hint,
                )
            time.sleep(TABLE_POLL_S)


BIRD_TABLES = """\
router id 198.18.0.1;
protocol device {}
protocol kernel {
  ipv4 { import none; export all; };
}
protocol kernel {
  ipv6 { import none; export all; };
}
"""
"""What it learns is for the kernel."""

BIRD = Daemon(
    name="BIRD",
    program="bird",
    package="bird2",
    arguments=("-f", "-c", "{settings}", "-s", "{running}"),
    settings=BIRD_TABLES
    + """\
protocol rip {
  ipv4 { import all; export none; };
  interface "left", "right" { version 2; mode multicast; passive yes; };
}
protocol rip ng {
  ipv6 { import all; export none; };
  interface "left", "right" { mode multicast; passive yes; };
}
""",
    hint="it needs version 2 (on Debian the package bird2)",
)


def bird_with(routes: int) -> Daemon:
    """BIRD that learns nothing, and has so many routes."""
    return replace(BIRD, settings=BIRD_TABLES, table=routes)


SNMPD = Daemon(
    name="snmpd",
    program="snmpd",
    package="snmpd",
    arguments=("-f", "-C", "-c", "{settings}", "-Lo", "-p", "{running}", "-I", "-smux"),
    settings="""\
agentaddress udp:161,udp6:161
rocommunity public
rocommunity6 public
""",
    hint="it is Net-SNMP's (on Debian the package snmpd)",
)


# FRR beside the DUT's kernel: a router that takes routes from the tester.
#
# zebra makes routes of what the other three learn. Each protocol waits for the tester's
# daemon (``routes: ospf``, ``routes: bgp``); the one that nobody speaks is idle. Hellos
# and keepalives come every second, so that a lab is ready, and notices, soon.
#
# The programs stay root, in the group that their control sockets belong to: the DUT's
# directory is nobody else's.


FRR_ROUTING = Routing(
    ospf=Ospf(hello_s=1, dead_s=4), bgp=Bgp(tester_as=65001, device_as=65000, hold_s=6)
)

_SIDES = ("left", "right")
_ROUTER_ID = "198.18.0.1"
_TESTER = ("198.18.0.2", "198.19.0.2", "2001:2::2", "2001:2:0:8000::2")


def _daemon(program: str, *settings: str) -> Daemon:
    return Daemon(
        name=f"FRR's {program}",
        program=f"/usr/lib/frr/{program}",
        package="frr",
        arguments=(
            *("-f", "{settings}", "-i", "{running}", "-z", "{directory}/zserv.api"),
            *("--vty_socket", "{directory}", "-P", "0", "-u", "root", "-g", "frrvty"),
        ),
        settings="\n".join(("hostname dut", "log stdout", *settings, "")),
        hint="it is FRR's (on Debian the package frr)",
    )


def _ospf(program: str, command: str) -> Daemon:
    ospf = FRR_ROUTING.ospf
    router = "ospf" if program == "ospfd" else "ospf6"
    interfaces = [
        line
        for side in _SIDES
        for line in (
            f"interface {side}",
            f" {command} area {ospf.area}",
            f" {command} hello-interval {ospf.hello_s}",
            f" {command} dead-interval {ospf.dead_s}",
        )
    ]
    of_router = (f"router {router}", f" {router} router-id {_ROUTER_ID}")
    return _daemon(program, *interfaces, *of_router)


def _bgp() -> Daemon:
    bgp = FRR_ROUTING.bgp
    neighbours = [f" neighbor {ip} remote-as {bgp.tester_as}" for ip in _TESTER]
    active = {
        version: [f"  neighbor {ip} activate" for ip in _TESTER if (":" in ip) == six]
        for version, six in (("ipv4", False), ("ipv6", True))
    }
    return _daemon(
        "bgpd",
        f"router bgp {bgp.device_as}",
        f" bgp router-id {_ROUTER_ID}",
        " no bgp ebgp-requires-policy",
        " no bgp default ipv4-unicast",
        f" timers bgp {bgp.hold_s // 3} {bgp.hold_s}",
        *neighbours,
        *(
            line
            for version, lines in active.items()
            for line in (f" address-family {version} unicast", *lines, " exit")
        ),
    )


FRR = (
    _daemon("zebra"),
    _ospf("ospfd", "ip ospf"),
    _ospf("ospf6d", "ipv6 ospf6"),
    _bgp(),
)


# A routing table of so many networks more, which BIRD puts into the DUT's kernel.
#
# They are of nobody: networks of RFC 1918 and RFC 6598 (/24 to /28), and of RFC 4193
# (/48), as if drawn by lot, the same each time; half of them behind each side of the
# tester. No test frame goes there: what is seen is how the size of the table tells on
# all others.


_NEXT_HOPS = {
    4: ("198.18.0.2", "198.19.0.2"),
    6: ("2001:2::2", "2001:2:0:8000::2"),
}
_IPV4_SPACE = ((0x0A000000, 8), (0xAC100000, 12), (0x64400000, 10))
_LONGEST = range(24, 29)


def static_routes(routes: int) -> str:
    """What BIRD is told of ``routes`` networks of each IP version."""
    draw = random.Random(routes)  # noqa: S311 - the same each time
    lines = []
    for version, networks in ((4, _ipv4(draw)), (6, _ipv6(draw))):
        lines += ["protocol static {", f"  ipv{version};"]
        hops = _NEXT_HOPS[version]
        for number, network in zip(range(routes), networks, strict=False):
            lines.append(f"  route {network} via {hops[number % 2]};")
        lines.append("}")
    return "\n".join([*lines, ""])


def _ipv4(draw: random.Random) -> Iterator[str]:
    seen: set[str] = set()
    while True:
        base, base_bits = draw.choice(_IPV4_SPACE)
        bits = draw.choice(_LONGEST)
        own = draw.getrandbits(bits - base_bits) << (32 - bits)
        network = f"{socket.inet_ntoa((base | own).to_bytes(4, 'big'))}/{bits}"
        if network not in seen:
            seen.add(network)
            yield network


def _ipv6(draw: random.Random) -> Iterator[str]:
    seen: set[int] = set()
    while True:
        own = draw.getrandbits(40)
        if own not in seen:
            seen.add(own)
            text = f"fd{own:010x}"
            yield f"{text[:4]}:{text[4:8]}:{text[8:]}::/48"


def _all_routed(routes: int, namespace: str) -> bool:
    """Whether the DUT has so many of a daemon, of each IP version."""
    return all(
        count_routes(version, "bird", namespace) >= routes for version in ("-4", "-6")
    )


def count_routes(version: str, origin: str, namespace: str = netns.DUT) -> int:
    """How many of ``origin`` the DUT has; ``version``: -4 or -6."""
    listed = subprocess.run(
        ["ip", "-netns", namespace, version, "route", "show", "proto", origin],
        capture_output=True,
        check=True,
    )
    return listed.stdout.count(b"\n")
