"""``testbed.yaml``: the device, its agent and routing, hooks, the tester's ports."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from dutperf.config.encapsulation import BindingFile
from dutperf.config.side import (
    InterfacePort,
    MemifPort,
    PciPort,
    Port,
    RingPort,
    SideConfig,
    TesterPort,
    VdevPort,
    check_ports,
)
from dutperf.errors import SetupError
from dutperf.model.fields import KeyedError, MaybeSecret, Name, Secret, Strict
from dutperf.protocol.base import MAX_SHARES, IpVersion, Side

COMMUNITY_VARIABLE = "DUTPERF_SNMP_COMMUNITY"
"""Where a stored campaign looks for a community that its testbed's file had itself."""
_COMMUNITY = r"^[!-~]{1,32}$"


class SnmpAgent(Strict):
    """The DUT's SNMP agent, which traffic.management asks."""

    community: MaybeSecret[Annotated[str, Field(pattern=_COMMUNITY)]] = Field(
        default="public",
        description="of version 2c, that may read; {env: NAME} or {file: PATH}: looked "
        "up there",
    )
    interface: Annotated[int, Field(ge=1, le=2**31 - 1)] = Field(
        default=1, description="ifIndex of the one whose counters are asked for"
    )

    @property
    def stored(self) -> SnmpAgent:
        """As results have it: the name of a place instead of a community."""
        if self.community == "public" or isinstance(self.community, Secret):
            return self
        return self.model_copy(update={"community": Secret(env=COMMUNITY_VARIABLE)})

    def secret(self) -> str:
        """The community, wherever it is.

        Raises:
            SetupError: it is not there, or could be none.
        """
        if isinstance(self.community, str):
            return self.community
        found = self.community.value()
        if not re.match(_COMMUNITY, found):
            raise SetupError(
                f"snmp.community: {self.community} is no community",
                "it has 1 to 32 ASCII characters and no blanks",
            )
        return found


class Ospf(Strict):
    """How the DUT speaks OSPF (RFC 2328, RFC 5340), as its neighbours must."""

    area: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        default=0, description="of both links; 0: the backbone"
    )
    hello_s: Annotated[int, Field(ge=1, le=65535)] = Field(
        default=10, description="interval between hellos"
    )
    dead_s: Annotated[int, Field(ge=2, le=65535)] = Field(
        default=40, description="without a hello for so long a neighbour is gone"
    )

    @model_validator(mode="after")
    def _lives_longer_than_a_hello(self) -> Self:
        if self.dead_s <= self.hello_s:
            raise KeyedError(("dead_s",), "must be more than hello_s")
        return self


_As = Annotated[int, Field(ge=1, le=2**32 - 2)]


class Bgp(Strict):
    """How the DUT speaks BGP with the tester (RFC 4271), over either IP version."""

    tester_as: _As = Field(default=65001, description="AS of the tester on both sides")
    device_as: _As = Field(default=65000, description="the DUT's")
    hold_s: Annotated[int, Field(ge=3, le=65535)] = Field(
        default=90, description="without a message for so long a session is closed"
    )


class Routing(Strict):
    """How the DUT speaks the protocol of traffic.routes with its neighbours."""

    prefix_length: Annotated[int, Field(ge=8, le=30)] = Field(
        default=24, description="of the IPv4 networks on the links; of IPv6 it is 64"
    )
    ospf: Ospf = Field(default=Ospf(), description="for traffic.routes: ospf")
    bgp: Bgp = Field(default=Bgp(), description="for traffic.routes: bgp")


class DeviceFacts(Strict):
    """What RFC 9693 6 asks to be told of a DUT that is a general-purpose computer."""

    computer: str | None = Field(default=None, description="its type")
    cpu: str | None = Field(default=None, description="type of the CPU")
    cores: str | None = Field(default=None, description="how many cores are active")
    memory: str | None = Field(default=None, description="type, size and speed")
    nic: str | None = Field(default=None, description="type of the NIC, with its speed")
    link: str | None = Field(
        default=None, description="direct cables, or the type of the switch"
    )
    os: str | None = Field(default=None, description="type and version")
    kernel: str | None = Field(default=None, description="its version")
    nat: str | None = Field(
        default=None, description="version; of one without, last commit and its date"
    )

    @property
    def told(self) -> dict[str, str]:
        """Those that are known."""
        return {key: value for key, value in self if value is not None}

    @property
    def missing(self) -> tuple[str, ...]:
        """The others."""
        return tuple(key for key, value in self if value is None)


# Commands around trials: clear the device's state, read its counters.
#
# Each is a list of words, without a shell, on this machine or over ssh on another.


def _check_word(text: str) -> str:
    # What begins with a dash would be an option of ssh.
    if not re.fullmatch(r"[A-Za-z0-9_:][A-Za-z0-9._:%-]*", text):
        raise ValueError(
            "must be letters, digits, '.', '_', ':', '%' or '-', and not begin with "
            f"'-', not {text!r}"
        )
    return text


def _check_path(text: str) -> str:
    if not text or '"' in text:
        raise ValueError(f"must be the path of a file, without quotes, not {text!r}")
    return text


CORES = "{cores}"
"""The number of cores, in a command of the hook ``set_cores``."""
_Word = Annotated[str, AfterValidator(_check_word)]
_Path = Annotated[str, AfterValidator(_check_path)]


class SshHost(Strict):
    """Where a command runs: by the OpenSSH client, never asking, host key checked."""

    host: _Word = Field(description="name or address; its key must be known")
    user: _Word | None = Field(default=None, description="default: as ssh is set up")
    port: Annotated[int, Field(ge=1, le=65535)] = Field(
        default=22, description="TCP port of the SSH server"
    )
    identity_file: _Path | None = Field(
        default=None, description="private key; default: as ssh is set up"
    )
    known_hosts: _Path | None = Field(
        default=None, description="file of host keys; default: as ssh is set up"
    )


class Hook(Strict):
    """One command; it succeeds with exit code 0 within its time."""

    command: Annotated[
        list[MaybeSecret[Annotated[str, Field(min_length=1)]]], Field(min_length=1)
    ] = Field(
        description="program and arguments as a list; {env: NAME} or {file: PATH} is a "
        "word that is looked up there"
    )
    ssh: SshHost | None = Field(default=None, description="default: this machine")
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = Field(
        default=30, description="it is ended, and has failed, after this time"
    )
    retries: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0, description="how often a command that failed is run again"
    )
    retry_wait_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=1, description="pause before it is run again"
    )

    @property
    def shown(self) -> list[str]:
        """The words as they may be seen: of secrets where they are."""
        return [str(word) for word in self.command]

    @property
    def secrets(self) -> list[Secret]:
        """The words that are looked up."""
        return [word for word in self.command if isinstance(word, Secret)]


class Hooks(Strict):
    """Commands of a testbed, each list in its order; a lab's device has its own.

    A trial is invalid if one of them fails that belongs to it.
    """

    before_campaign: list[Hook] = Field(
        default=[], description="once, before the first trial; if it fails, none is run"
    )
    set_cores: Hook | None = Field(
        default=None,
        description="makes so many cores of the device active as the words {cores} of "
        "its command become; run before the first trial for each number of a "
        "campaign's key cores (RFC 9693 5.2)",
    )
    bulk_delete: Hook | None = Field(
        default=None,
        description="deletes all connections of a stateful device at once (RFC 9693); "
        "run before each trial, ahead of before_trial",
    )
    table_count: Hook | None = Field(
        default=None,
        description="prints how many connections a stateful device holds: the first "
        "number counts; teardown-rate watches its table by it",
    )
    restart: Hook | None = Field(
        default=None,
        description="brings a device back that collapsed in a table-capacity search, "
        "with an empty table; default: bulk_delete",
    )
    before_trial: list[Hook] = Field(
        default=[], description="prepares the device for a trial"
    )
    during_trial: list[Hook] = Field(
        default=[],
        description="outage: what interrupts the device, while frames are sent "
        "(trigger_after_s); none: you are asked to do it",
    )
    after_trial: list[Hook] = Field(default=[], description="reads counters, mostly")
    is_alive: Hook | None = Field(
        default=None,
        description="succeeds if the device works; asked after a trial that did not "
        "pass; if it fails, the run ends there and can be resumed",
    )

    def each(self) -> Iterator[tuple[str, Hook]]:
        """All of them, with their keys."""
        for key, given in self:
            if isinstance(given, Hook):
                yield key, given
            for number, hook in enumerate(given if isinstance(given, list) else ()):
                yield f"{key}[{number}]", hook


# The log of a NAT's mappings, which nat-log holds against what it has seen.


_GROUPS = {"inside", "inside_port", "public", "public_port"}
_OF_BLOCKS = {"inside", "public", "first_port", "last_port"}
_MORE_GROUPS = {"remote", "remote_port", "time", "deleted"}


class NatLog(Strict):
    """Where the DUT's log of its mappings is, and how it is written."""

    file: _Path | None = Field(
        default=None, description="of this machine; what is appended to it is the log"
    )
    command: Annotated[list[str], Field(min_length=1)] | None = Field(
        default=None,
        description="a program that prints the log, started before each trial",
    )
    ssh: SshHost | None = Field(
        default=None, description="where the command runs; default: this machine"
    )
    listen: str | None = Field(
        default=None,
        description="the log is sent to this UDP address and port of this machine: "
        "192.0.2.1:514 or [2001:db8::1]:4739",
    )
    format: Literal["conntrack", "syslog", "ipfix"] = Field(
        description="lines of conntrack -E; syslog: lines or messages (RFC 5424) that "
        "pattern reads; ipfix: messages with NAT events (RFC 7011, RFC 8158)"
    )
    pattern: str | None = Field(
        default=None,
        description="of syslog: a regular expression (Python) with groups inside, "
        "inside_port, public, public_port, and if logged remote, remote_port, time "
        "(RFC 3339, or seconds since 1970; default: the message's own), deleted (there "
        "if a mapping ends); of blocks of ports: inside, public, first_port, last_port",
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum(map(bool, (self.file, self.command, self.listen))) != 1:
            raise ValueError("must have one of file, command and listen")
        if self.ssh and not self.command:
            raise KeyedError(("ssh",), "is for command, which is missing")
        if (self.pattern is not None) != (self.format == "syslog"):
            raise KeyedError(("pattern",), "belongs to format: syslog, which needs it")
        if self.listen is not None:
            _ = self.address
        return self

    @field_validator("pattern")
    @classmethod
    def _reads_mappings(cls, pattern: str | None) -> str | None:
        if pattern is None:
            return None
        try:
            groups = set(re.compile(pattern).groupindex)
        except re.error as error:
            raise ValueError(f"is no regular expression: {error}") from None
        if not (groups >= _GROUPS or groups >= _OF_BLOCKS):
            raise ValueError(
                f"must have groups {', '.join(sorted(_GROUPS))}, or of blocks "
                f"{', '.join(sorted(_OF_BLOCKS))}, as (?P<inside>[0-9.]+)"
            )
        if others := groups - _GROUPS - _OF_BLOCKS - _MORE_GROUPS:
            raise ValueError(f"has groups that nothing reads: {', '.join(others)}")
        return pattern

    @property
    def address(self) -> tuple[str, int]:
        """Of ``listen``."""
        form = r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+)):([1-9][0-9]{0,4})"
        found = re.fullmatch(form, self.listen or "")
        try:
            host = str(ipaddress.ip_address((found[1] or found[2]) if found else ""))
        except ValueError:
            found = None
        if not found or int(found[3]) > 65535:
            raise KeyedError(
                ("listen",), "must be like 192.0.2.1:514 or [2001:db8::1]:4739"
            )
        return host, int(found[3])


# The meter of the device's power.


class SnmpOutlet(Strict):
    """An outlet, or a supply, whose watts an SNMP agent tells (snmpget, version 2c)."""

    host: _Word = Field(description="name or address of the agent")
    oid: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.:-]*$")] = Field(
        description="of the object that holds the power"
    )
    scale: Annotated[float, Field(gt=0, le=1e6)] = Field(
        default=1, description="watts of 1 of it; of tenths of a watt 0.1"
    )
    community: Secret | None = Field(
        default=None, description="{env: NAME} or {file: PATH}; default: public"
    )


class IpmiHost(Strict):
    """A management controller (ipmitool ... dcmi power reading)."""

    host: _Word = Field(description="name or address of the controller")
    user: _Word = Field(description="who may read")
    password: Secret = Field(description="{env: NAME} or {file: PATH}")


class PowerMeter(Strict):
    """What tells the device's power: one of command, rapl, snmp and ipmi."""

    command: list[MaybeSecret[Annotated[str, Field(min_length=1)]]] = Field(
        default=[],
        min_length=1,
        description="program and arguments that print watts, and if they know it when "
        "the meter took them",
    )
    ssh: SshHost | None = Field(
        default=None, description="where command runs; default: this machine"
    )
    rapl: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="a domain of this machine's energy counters, package-0, or the "
        "name of its folder in /sys/class/powercap",
    )
    snmp: SnmpOutlet | None = Field(default=None, description="by SNMP")
    ipmi: IpmiHost | None = Field(default=None, description="by IPMI")
    accuracy_percent: Annotated[float, Field(gt=0, lt=100)] = Field(
        description="of a reading, by the meter's data sheet"
    )
    accuracy_w: Annotated[float, Field(ge=0, le=1e6)] = Field(
        default=0, description="and beside that; of whole watts at least 0.5"
    )
    every_s: Annotated[float, Field(ge=0.1, le=60)] = Field(
        default=1, description="from one reading to the next"
    )
    averaging_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=0,
        description="over which the meter averages, or how rarely it has a new value: "
        "what it says so soon after a trial's begin does not count",
    )
    timeout_s: Annotated[float, Field(gt=0, le=60)] = Field(
        default=5, description="an answer that takes longer is none"
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = ("command", "rapl", "snmp", "ipmi")
        if sum(bool(getattr(self, kind)) for kind in kinds) != 1:
            raise ValueError(
                "give exactly one of the keys command, rapl, snmp and ipmi"
            )
        if self.ssh and not self.command:
            raise KeyedError(("ssh",), "is for command alone")
        return self

    @property
    def hook(self) -> Hook | None:
        """What is run for a reading; None: a file is read."""
        words: list[str | Secret] = list(self.command)
        if snmp := self.snmp:
            words = ["snmpget", "-v2c", "-c", snmp.community or "public", "-OqvU"]
            words += [snmp.host, snmp.oid]
        elif ipmi := self.ipmi:
            words = ["ipmitool", "-I", "lanplus", "-H", ipmi.host, "-U", ipmi.user]
            words += ["-P", ipmi.password, "dcmi", "power", "reading"]
        if not words:
            return None
        return Hook(command=words, ssh=self.ssh, timeout_s=self.timeout_s)

    @property
    def words(self) -> str:
        """Which it is, without secrets."""
        if self.rapl:
            return f"RAPL, {self.rapl}"
        if self.snmp:
            return f"{self.snmp.oid} of {self.snmp.host} by SNMP"
        if self.ipmi:
            return f"{self.ipmi.host} by IPMI"
        return " ".join(map(str, self.command))

    @property
    def least_trial_s(self) -> float:
        """A trial with as many readings as an interval of their mean takes."""
        reading_s = (FEWEST_READINGS + 2) * self.every_s
        return self.averaging_s + max(reading_s, FEWEST_READINGS * self.averaging_s)


FEWEST_READINGS = 6
"""Of a load: fewer have no interval with 95 % (``stats.mean_interval``)."""


# The whole: the tester's ports, its addresses, and the device between.


_VERSIONS: tuple[IpVersion, ...] = (4, 6)
ROLES = 4
"""Of a share: to send and to receive, on either side."""
Hops = Annotated[int, Field(ge=0, le=254)] | None


class Testbed(Strict):
    """One tester and one device under test."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    schema_version: Literal[1] = Field(default=1, description="version of this format")
    name: Name = Field(description="name of the testbed, for results and reports")
    description: str = Field(default="", description="the DUT, for the report")
    equal_to: Name | None = Field(
        default=None,
        description="name of a testbed whose test cases may be measured here if its "
        "host has gone (docs/many-testbeds.md); frames, ports and device are the same "
        "there",
    )
    namespace: Name | None = Field(
        default=None, description="network namespace the engine runs in"
    )
    cores: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = Field(
        default=[0],
        description="CPUs that send and receive: 1 does everything, 2 take a "
        "direction each, 4 split sending and receiving; more: several shares each",
    )
    shares: Annotated[int, Field(ge=1, le=MAX_SHARES)] | None = Field(
        default=None,
        description="in how many shares each direction's work is split, each with a "
        "queue of every port both ways; default: a quarter of the cores, rounded up",
    )
    main_core: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="CPU of the sleeping main thread; default: a free one"
    )
    hugepages: Literal["auto", "off"] = Field(
        default="auto", description="auto: use huge pages where there are any"
    )
    memory_mb: Annotated[int, Field(ge=64, le=2**20)] = Field(
        default=512, description="memory for frames"
    )
    max_rate_fps: Annotated[int, Field(ge=1, le=10**12)] | None = Field(
        default=None, description="never offer more than this per direction"
    )
    left: SideConfig = Field(description="the side that the forward direction enters")
    right: SideConfig = Field(description="the side that the forward direction leaves")
    hops: Hops = Field(
        default=None,
        description="by how much TTL and hop limit fall between the sides; default: 1, "
        "and 0 where each side is the other's gateway; not looked at where neither is "
        "known, or a side has MPLS labels or outer headers",
    )
    translated_hops: Hops = Field(
        default=None,
        description="the same of frames that the DUT translates to the other IP "
        "version; default: as hops",
    )
    ipv6_hops: Hops = Field(
        default=None,
        description="the same of frames that are IPv6 on both sides, as native IPv6 "
        "beside 464XLAT; default: as hops",
    )
    device: DeviceFacts = Field(
        default=DeviceFacts(), description="the DUT's parameters (RFC 9693 6)"
    )
    snmp: SnmpAgent = Field(
        default=SnmpAgent(), description="the DUT's agent, for traffic.management"
    )
    routing: Routing = Field(
        default=Routing(), description="the DUT's routing, for traffic.routes"
    )
    translates: bool = Field(
        default=True,
        description="of stateful tests: the DUT is a NAT gateway. Of a stateful "
        "firewall say false; its results are not those of RFC 9693",
    )
    hooks: Hooks = Field(
        default=Hooks(), description="commands that clear or read the DUT's state"
    )
    nat_log: NatLog | None = Field(
        default=None, description="the DUT's log of its mappings, for nat-log"
    )
    power: PowerMeter | None = Field(
        default=None,
        description="what tells the DUT's power, for procedures that need it",
    )

    @field_validator("cores")
    @classmethod
    def _cores_make_sense(cls, cores: list[int]) -> list[int]:
        if len(set(cores)) != len(cores):
            raise ValueError("must list different CPUs")
        return cores

    @model_validator(mode="after")
    def _shares_make_sense(self) -> Self:
        shares = self.own_shares
        if len(self.cores) > ROLES * shares:
            raise ValueError(
                f"cores: {len(self.cores)} of them, and {shares} shares keep "
                f"{ROLES * shares} busy: raise shares"
            )
        interfaces = [
            each.config.port.interface
            for each in self.tester_ports
            if isinstance(each.config.port, InterfacePort)
        ]
        if shares > 1 and interfaces:
            raise ValueError(
                f"shares: {shares} of them need as many queues of each port, and "
                f"{interfaces[0]} is an interface of the kernel, which has one: take "
                f"shares out, and list at most {ROLES} cores"
            )
        return self

    @property
    def own_shares(self) -> int:
        """As told, or by the number of cores."""
        return self.shares or -(-len(self.cores) // ROLES)

    @model_validator(mode="after")
    def _ports_differ(self) -> Self:
        check_ports(self.tester_ports)
        return self

    @property
    def sides(self) -> dict[Side, SideConfig]:
        """Both sides by name."""
        return {"left": self.left, "right": self.right}

    @property
    def tester_ports(self) -> list[TesterPort]:
        """The left ones by their numbers, then the right ones."""
        return [
            TesterPort(name, number, port)
            for name, side in self.sides.items()
            for number, port in enumerate(side.ports)
        ]

    @property
    def pairs(self) -> int:
        """Ports on a side."""
        return len(self.left.ports)

    def between(self, left: int, right: int) -> Testbed:
        """The testbed as if these were its only ports, one on each side."""
        if self.pairs == 1:
            return self
        return self.model_copy(
            update={"left": self.left.at(left), "right": self.right.at(right)}
        )

    def with_tables(self, folder: Path) -> Testbed:
        """With the binding tables that are files found, relative to ``folder``.

        Raises:
            InputError: one cannot be read; names file and line.
        """
        found: dict[str, SideConfig] = {}
        for name, side in self.sides.items():
            own = side.encapsulation
            if own and isinstance(own.binding_table, BindingFile):
                table = own.binding_table.located(folder)
                own = own.model_copy(update={"binding_table": table})
                found[name] = side.model_copy(update={"encapsulation": own})
        return self.model_copy(update=found)

    @property
    def stored(self) -> Testbed:
        """As results have it, without secrets."""
        return self.model_copy(update={"snmp": self.snmp.stored})

    def check_secrets(self, *, queries: bool) -> None:
        """Look up each of them; the community where ``queries`` are made.

        Raises:
            SetupError: one is not there.
        """
        if queries:
            self.snmp.secret()
        hooks = [hook for _, hook in self.hooks.each()]
        if self.power and self.power.hook:
            hooks.append(self.power.hook)
        for secret in (secret for hook in hooks for secret in hook.secrets):
            secret.value()

    @property
    def has_no_medium(self) -> bool:
        """Whether a port is known to be virtual; an interface may be of either kind."""
        ports = (each.config.port for each in self.tester_ports)
        return any(isinstance(port, MemifPort | VdevPort | RingPort) for port in ports)

    @property
    def has_nics(self) -> bool:
        """Whether the engine drives a NIC itself."""
        return bool(self.nics)

    @property
    def nics(self) -> list[str]:
        """The PCI addresses of the NICs that the engine drives itself."""
        ports = (each.config.port for each in self.tester_ports)
        return [port.pci for port in ports if isinstance(port, PciPort)]

    def hops_between(self, left: IpVersion, right: IpVersion) -> int | None:
        """By how much TTL or hop limit is to fall on the way; None: nobody knows.

        Where each side's gateway is the other side itself nothing routes between them,
        as with ports that a cable joins. A gateway that is not told may be anything,
        and of IP packets behind labels a router takes a hop, one more, or none.

        Args:
            left: the IP version of the frames on the left side.
            right: the same on the right side.
        """
        if left != right and self.translated_hops is not None:
            return self.translated_hops
        if left == right == 6 and self.ipv6_hops is not None:
            return self.ipv6_hops
        if self.hops is not None:
            return self.hops
        near, far = self.left.ip(left), self.right.ip(right)
        if near is None or far is None:
            return None
        if (near.gateway, far.gateway) == (far.address, near.address):
            return 0
        sides = (self.left, self.right)
        unknown = near.gateway is None or far.gateway is None
        hidden = any(side.mpls or side.encapsulation for side in sides)
        return None if unknown or hidden else 1

    def ip_versions(self) -> list[IpVersion]:
        """The IP versions that both sides have addresses of."""
        return [v for v in _VERSIONS if self.left.ip(v) and self.right.ip(v)]


# A testbed without a device: the tester's ports, connected to each other.


_ADDRESSES: dict[Side, dict[str, str]] = {
    "left": {"ipv4": "198.18.0.2", "ipv6": "2001:2::2"},
    "right": {"ipv4": "198.19.0.2", "ipv6": "2001:2:0:8000::2"},
}


def crossed(ports: Mapping[Side, Port], **keys: Any) -> Testbed:  # noqa: ANN401
    """Each side is the other's next hop.

    ``keys``: of the testbed, beside its sides.
    """
    return Testbed(
        description="no device: the tester's ports, connected to each other",
        translates=False,
        left=_side("left", "right", ports["left"]),
        right=_side("right", "left", ports["right"]),
        **keys,
    )


def _side(own: Side, other: Side, port: Port) -> SideConfig:
    versions = {
        version: {"address": address, "gateway": _ADDRESSES[other][version]}
        for version, address in _ADDRESSES[own].items()
    }
    return SideConfig.model_validate({"port": port, **versions})
