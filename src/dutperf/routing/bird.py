"""BIRD as a process in a network namespace of its own, which goes with it.

The namespace has no name: it is there as long as the process, and nothing is left of
either, however dutperf ends. The engine makes the taps in it.
"""

from __future__ import annotations

import ipaddress
import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dutperf.config.cell_checks import speaks, told_from
from dutperf.config.flows import directions, flows, side_versions
from dutperf.config.testbed import Testbed
from dutperf.errors import SetupError
from dutperf.model.cell import Cell
from dutperf.model.hosts import AddressSet, BitField
from dutperf.packets import Network
from dutperf.programs import ends_within, feed
from dutperf.protocol.base import IpVersion, RoutingDaemonProtocol, Side

# Which networks the device has to know for a cell's frames, and where they lie.


_HOST_BITS: dict[IpVersion, int] = {4: 8, 6: 64}


def networks_behind(testbed: Testbed, cell: Cell) -> dict[Side, list[Network]]:
    """Of each side those (/24 or /64) to which frames go that arrive there; in order.

    Raises:
        InputError: as ``flows``.
    """
    found: dict[Side, list[Network]] = {"left": [], "right": []}
    for direction in directions(cell):
        for flow in flows(testbed, cell, direction):
            found[flow.receiver] += networks(flow.destination, flow.version)
    return {side: list(dict.fromkeys(listed)) for side, listed in found.items()}


def networks(addresses: AddressSet, version: IpVersion) -> Iterator[Network]:
    """Of /24 or /64, all in which an address lies; some twice."""
    bits = addresses.bits - _HOST_BITS[version]
    values = [[*_values(field, bits)] for field in addresses.fields]
    for chosen in itertools.product(*values):
        address = addresses.with_values(list(chosen))
        yield ipaddress.ip_network(f"{address}/{bits}", strict=False)


def _values(field: BitField, network_bits: int) -> Iterator[int]:
    """One for each network that ``field`` makes."""
    host_bits = max(0, field.offset + field.width - network_bits)
    for network in range(field.min >> host_bits, (field.max >> host_bits) + 1):
        yield network << host_bits


@dataclass(frozen=True, order=True)
class Session:
    """The daemon as the device's neighbour behind one port, for one IP version.

    Attributes:
        side: the port's.
        version: of the routes.
        protocol: by which they are told.
    """

    side: Side
    version: IpVersion
    protocol: RoutingDaemonProtocol

    @property
    def name(self) -> str:
        """In the daemon's configuration and answers."""
        return f"{self.side}_{self.protocol}{self.version}"

    @property
    def words(self) -> str:
        """What people call it."""
        if self.protocol == "ospf":
            return "OSPFv2" if self.version == 4 else "OSPFv3"
        return f"BGP for IPv{self.version}"


@dataclass(frozen=True)
class BirdHost:
    """The tester on one side, as the daemon is it.

    Attributes:
        addresses: its own with prefix lengths, of IPv6 a link-local one, too.
        mtu: of the link.
    """

    addresses: tuple[str, ...]
    mtu: int


Told = Mapping[Session, Sequence[Network]]
"""What each session tells."""


def sessions_of(cells: Sequence[Cell]) -> list[Session]:
    """Those that the cells need together: they stay from cell to cell."""
    sides: tuple[Side, ...] = ("left", "right")
    return sorted(
        {
            Session(side, version, protocol)
            for cell in cells
            if (protocol := speaks(cell)) is not None
            for side in sides
            for version in side_versions(cell, side)
        }
    )


def told_in(testbed: Testbed, cell: Cell) -> dict[Session, list[Network]]:
    """What a trial of ``cell`` needs; nothing where no daemon speaks.

    Raises:
        InputError: as ``flows``.
    """
    protocol = speaks(cell)
    if protocol is None:
        return {}
    told: dict[Session, list[Network]] = {}
    for side, networks in networks_behind(testbed, cell).items():
        for network in networks:
            session = Session(side, network.version, protocol)
            told.setdefault(session, []).append(network)
    return told


def hosts_of(testbed: Testbed, sessions: Sequence[Session]) -> dict[Side, BirdHost]:
    """The tester on each side that has a session."""
    return {
        side: BirdHost(tuple(_addresses(testbed, side)), testbed.sides[side].mtu)
        for side in sorted({session.side for session in sessions})
    }


def _addresses(testbed: Testbed, side: Side) -> Iterator[str]:
    own = testbed.sides[side]
    if ipv4 := own.ip(4):
        yield f"{ipv4.address}/{testbed.routing.prefix_length}"
    if ipv6 := own.ip(6):
        yield f"{ipv6.address}/64"
        yield f"{told_from(testbed, side, 6)}/64"


_START_S = 5.0
_POLL_S = 0.02
_LONGEST_LOG_BYTES = 4 << 20
_BECOME = 'read -r line && exec "$@" </dev/null'
_SETTINGS = ("accept_ra 0", "accept_dad 0", "dad_transmits 0", "addr_gen_mode 1")
_WRITE_SETTINGS = """
while read -r path value; do echo "$value" >"$path" || exit 1; done
"""


@dataclass
class Bird:
    """The process: in a shell that waits until ``start``, so that the taps come first.

    Attributes:
        process: see above.
        directory: its files.
        read_to: how much of its log is known.
    """

    process: subprocess.Popen[bytes]
    directory: Path
    read_to: int = 0

    @property
    def namespace(self) -> str:
        """The file of its network namespace."""
        return f"/proc/{self.process.pid}/ns/net"

    def set_up(self, hosts: Mapping[Side, BirdHost]) -> None:
        """Give the taps, which are there now, the tester's addresses.

        Raises:
            SetupError: the kernel refused.
        """
        settings = [
            f"/proc/sys/net/ipv6/conf/{side}/{setting}"
            for side in hosts
            for setting in _SETTINGS
        ]
        self._inside(["sh", "-c", _WRITE_SETTINGS], settings)
        orders = ["link set lo up"]
        for side, host in hosts.items():
            orders.append(f"link set {side} mtu {host.mtu}")
            for address in host.addresses:
                without_dad = " nodad" if ":" in address else ""
                orders.append(f"address add {address} dev {side}{without_dad}")
            orders.append(f"link set {side} up")
        self._inside(["ip", "-batch", "-"], orders)

    def start(self, configuration: str) -> None:
        """Let it run with ``configuration``.

        Raises:
            SetupError: it does not.
        """
        self._settings.write_text(configuration, "ascii")
        assert self.process.stdin  # noqa: S101 - a pipe, see ``prepared``
        self.process.stdin.write(b"\n")
        self.process.stdin.close()
        deadline = time.monotonic() + _START_S
        while not self._control.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = self._log.read_text("utf-8", errors="replace").strip()
                raise SetupError(
                    f"the routing daemon BIRD did not start: {said or 'no word'}",
                    "it needs version 2 (on Debian the package bird2)",
                )
            time.sleep(_POLL_S)

    def configure(self, configuration: str) -> None:
        """Let it go on with another one; sessions that are the same stay.

        Raises:
            SetupError: it refused, or has gone.
        """
        self._settings.write_text(configuration, "ascii")
        said = self.ask("configure")
        if "Reconfigured" not in said and "Reconfiguration in progress" not in said:
            raise SetupError(f"the routing daemon BIRD takes no new routes: {said}")

    def ask(self, *words: str) -> str:
        """What it answers to a command of its own.

        Raises:
            SetupError: nothing: it has gone.
        """
        command = ["birdc", "-s", str(self._control), *words]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_START_S
            )
        except subprocess.TimeoutExpired:
            raise self._gone("it does not answer") from None
        if done.returncode != 0:
            raise self._gone((done.stdout + done.stderr).strip())
        return done.stdout

    def _gone(self, why: str) -> SetupError:
        said = self._log.read_text("utf-8", errors="replace").splitlines()
        told = [line for line in said if "<TRACE>" not in line]
        log = f"; it said: {told[-1]}" if told else ""
        return SetupError(
            f"the routing daemon BIRD beside the tester has gone: {why}{log}",
            "it is part of the run; do not end it while measuring",
        )

    def _inside(self, command: list[str], lines: list[str]) -> None:
        entered = ["nsenter", f"--net={self.namespace}", *command]
        refused = feed(entered, "".join(f"{line}\n" for line in lines))
        if refused:
            raise SetupError(
                f"cannot set up the routing daemon's interfaces: {refused}",
                "it needs CAP_NET_ADMIN",
            )

    def news(self) -> list[str]:
        """What it has logged since the last call, by lines."""
        with self._log.open(errors="replace") as log:
            log.seek(self.read_to)
            lines = log.readlines()
            self.read_to = log.tell()
        if self.read_to > _LONGEST_LOG_BYTES:
            os.truncate(self._log, 0)
            self.read_to = 0
        return lines

    @property
    def _settings(self) -> Path:
        return self.directory / "bird.conf"

    @property
    def _control(self) -> Path:
        return self.directory / "bird.ctl"

    @property
    def _log(self) -> Path:
        return self.directory / "bird.log"


@contextmanager
def prepared(cpu: int) -> Iterator[Bird]:
    """A namespace where BIRD will be, on ``cpu``; gone with the context.

    Raises:
        SetupError: a program is missing, or the namespace cannot be made.
    """
    check_programs()
    with tempfile.TemporaryDirectory(prefix="dutperf-routing-") as name:
        directory = Path(name)
        settings, control = directory / "bird.conf", directory / "bird.ctl"
        program = ["bird", "-f", "-c", str(settings), "-s", str(control)]
        with (directory / "bird.log").open("ab") as log:
            process = subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig", "KILL", "--"),
                    *("unshare", "--net", "--", "sh", "-c", _BECOME, "sh"),
                    *program,
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            _await_namespace(process, directory / "bird.log")
            os.sched_setaffinity(process.pid, {cpu})
            yield Bird(process, directory)
        finally:
            process.kill()
            process.wait()


def check_programs() -> None:
    """Raise SetupError, which names the Debian package, if one is missing."""
    needed = {
        "bird": "bird2",
        "birdc": "bird2",
        "ip": "iproute2",
        "nsenter": "util-linux",
        "setpriv": "util-linux",
        "unshare": "util-linux",
    }
    for program, package in needed.items():
        if shutil.which(program) is None:
            raise SetupError(
                f"routes by OSPF or BGP need the program {program}, which is missing",
                f"install {package}: apt-get install {package}; or give routes "
                "(--routes) static or rip",
            )


def _await_namespace(process: subprocess.Popen[bytes], log: Path) -> None:
    own = Path("/proc/self/ns/net").readlink()
    deadline = time.monotonic() + _START_S
    while True:
        ended = ends_within(process, _POLL_S)
        if ended or time.monotonic() > deadline:
            said = log.read_text("utf-8", errors="replace").strip()
            raise SetupError(
                f"cannot make a network namespace for the routing daemon: {said}",
                "it needs root, and a kernel with CONFIG_NET_NS",
            )
        if Path(f"/proc/{process.pid}/ns/net").readlink() != own:
            return


# What BIRD is told: its configuration as a text.
#
# Each session has a table of its own, so that nothing goes from one side to the other.
# Nothing is learnt from the device, and no route reaches the kernel.


_WITHOUT_IPV4: dict[Side, str] = {"left": "192.0.2.1", "right": "192.0.2.2"}
"""Router ids of a tester that has no IPv4 address (RFC 5737: nobody has these)."""


def configuration(
    testbed: Testbed, sessions: Sequence[Session], told: Told, number: int
) -> str:
    """BIRD's file for ``sessions``, of which each tells what ``told`` has for it.

    ``number`` marks the routes of OSPF: with another one all of them are told again.
    """
    lines = [
        f"router id {_router_id(testbed, 'left')};",
        "log stderr all;",
        "debug protocols { states, events };",
        "protocol device {}",
    ]
    for session in sessions:
        lines += _tables(session, told.get(session, ()))
        if session.protocol == "ospf":
            lines += _ospf(testbed, session, number)
        else:
            lines += _bgp(testbed, session)
    return "\n".join([*lines, ""])


def _tables(session: Session, networks: Sequence[Network]) -> Iterator[str]:
    table = _table(session)
    yield f"ipv{session.version} table {table};"
    yield f"protocol static {session.name}_routes {{"
    yield f"  ipv{session.version} {{ table {table}; }};"
    for network in networks:
        yield f"  route {network} blackhole;"
    yield "}"


def _ospf(testbed: Testbed, session: Session, number: int) -> Iterator[str]:
    ospf = testbed.routing.ospf
    yield f"protocol ospf {'v2' if session.version == 4 else 'v3'} {session.name} {{"
    yield f"  router id {_router_id(testbed, session.side)};"
    yield f"  ipv{session.version} {{"
    yield f"    table {_table(session)}; import none;"
    yield f"    export filter {{ ospf_tag = {number}; accept; }};"
    yield "  };"
    yield f"  area {ospf.area} {{"
    yield f'    interface "{session.side}" {{'
    yield f"      hello {ospf.hello_s}; dead {ospf.dead_s};"
    yield "    };"
    yield "  };"
    yield "}"


def _bgp(testbed: Testbed, session: Session) -> Iterator[str]:
    bgp = testbed.routing.bgp
    own = testbed.sides[session.side].ip(session.version)
    assert own  # noqa: S101 - who has frames of a version has an address of it
    yield f"protocol bgp {session.name} {{"
    yield f"  router id {_router_id(testbed, session.side)};"
    yield f"  local {own.address} as {bgp.tester_as};"
    yield f"  neighbor {own.gateway} as {bgp.device_as};"
    yield f"  hold time {bgp.hold_s};"
    yield "  connect delay time 1; connect retry time 2; error wait time 1, 2;"
    yield f"  ipv{session.version} {{"
    yield f"    table {_table(session)}; import none; export all; next hop self;"
    yield "  };"
    yield "}"


def _table(session: Session) -> str:
    return f"{session.name}_table"


def _router_id(testbed: Testbed, side: Side) -> str:
    own = testbed.sides[side].ip(4)
    return own.address if own else _WITHOUT_IPV4[side]
