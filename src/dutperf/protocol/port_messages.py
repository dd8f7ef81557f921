"""Opening ports (``ports``), what they count, whom they answer for (``neighbours``)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from dutperf.protocol.base import (
    MAX_PAIRS,
    MAX_SHARES,
    VLAN_TPID,
    Count,
    Driver,
    Encapsulation,
    Ip,
    Mac,
    MayHaveSeveralPorts,
    Message,
    MplsLabel,
    MplsLabels,
    Nanoseconds,
    PortNumber,
    Side,
    VlanTag,
    VlanTags,
    Wait,
    WhenFull,
    port_name,
)


class Tap(Message):
    """An interface of the tester's kernel that the engine makes for a port's slow path.

    A program behind it speaks for the tester: it gets what is neither test traffic nor
    a question about the tester's addresses, and what it sends leaves by the port.
    """

    network_namespace: str = Field(description="path of its file")
    interface: Annotated[str, Field(min_length=1, max_length=15)]


class NamedPort(MayHaveSeveralPorts):
    """Which port of the tester it is about."""

    name: Side
    number: PortNumber = Field(default=0, description="of several on its side")

    @property
    def label(self) -> str:
        """Its name for people."""
        return port_name(self.name, self.number)


class AtPort(MayHaveSeveralPorts):
    """At which port of the tester it is."""

    port: Side
    number: PortNumber = Field(default=0, description="of several on its side")

    @property
    def port_label(self) -> str:
        """The port's name for people."""
        return port_name(self.port, self.number)


class PortSpec(NamedPort):
    """One port of the tester.

    ``device`` is an interface, a PCI address, a socket, or of ``vdev`` what DPDK calls
    a virtual device: its driver, and arguments behind commas.
    """

    driver: Driver
    device: str = ""
    mac: Mac | None = Field(
        default=None, description="own MAC; default: the device's, or one made up"
    )
    memif_role: Literal["server", "client"] = "client"
    memif_id: Annotated[int, Field(ge=0, lt=2**32)] = 0
    memif_ring_frames: Annotated[int, Field(ge=64, le=16384)] = Field(
        default=4096,
        description="in each ring, if the port is the client; a power of 2",
    )
    mtu: Annotated[int, Field(ge=68, le=9702)] = 1500
    vlan: VlanTags = Field(
        default=[],
        description="tags of all frames, sent and received, outermost first; af_packet "
        "receives no outermost one but 802.1Q's",
    )
    mpls: MplsLabels = Field(
        default=[],
        description="labels of all test frames, sent and received, outermost first; "
        "ARP and neighbour discovery go without",
    )
    encapsulation: Encapsulation | None = Field(
        default=None,
        description="outer headers of all test frames; ARP and neighbour discovery go "
        "without; not with mpls",
    )
    rx_queues: Annotated[int, Field(ge=1, le=32)] = Field(
        default=1, description="of a device in shared memory that sends on several"
    )
    rx_descriptors: Annotated[int, Field(ge=64, le=32768)] = 8192
    tx_descriptors: Annotated[int, Field(ge=64, le=32768)] = 4096
    in_flight_frames: Annotated[int, Field(ge=64, le=32768)] = Field(
        default=16384,
        description="kernel interfaces: frames on their way to the device or in its "
        "queue; a power of 2",
    )
    when_full: WhenFull = Field(
        default="wait",
        description="frames for which the queue behind the port has no room: wait, "
        "or are lost there",
    )
    bindings: str | None = Field(
        default=None,
        description="the binding table whose B4s are behind the port (RFC 7596), of a "
        "side's first: rows in base64, each of 24 bytes: IPv6 address, IPv4 address, "
        "PSID (16 bits), its length, its offset (8 bits each); a port of an address is "
        "of one row, and all have one offset",
    )
    tap: Tap | None = Field(default=None, description="null: no slow path")

    @model_validator(mode="after")
    def _receives_its_tags(self) -> PortSpec:
        # The kernel takes the outermost tag off what a packet socket receives, and DPDK
        # puts 802.1Q's back, whatever it was.
        if self.driver == "af_packet" and self.vlan and self.vlan[0].tpid != VLAN_TPID:
            raise ValueError("vlan must begin with TPID 0x8100: af_packet has no other")
        if self.encapsulation and self.mpls:
            raise ValueError("encapsulation does not go with mpls")
        return self

    @field_validator("in_flight_frames", "memif_ring_frames")
    @classmethod
    def _power_of_2(cls, frames: int) -> int:
        if frames & (frames - 1):
            raise ValueError("must be a power of 2")
        return frames


class PortsOpenParams(Message):
    """Opens all ports; queues and offloads are set once, for all trials."""

    ports: Annotated[list[PortSpec], Field(min_length=2, max_length=2 * MAX_PAIRS)]
    shares: Annotated[int, Field(ge=1, le=MAX_SHARES)] = Field(
        default=1,
        description="in how many shares each direction's work may be split, each with "
        "a queue of every port both ways; 1 with AF_PACKET and AF_XDP",
    )
    link_timeout_ns: Wait = 5_000_000_000

    @model_validator(mode="after")
    def _pairs(self) -> PortsOpenParams:
        given = sorted((port.name, port.number) for port in self.ports)
        pairs = range(len(self.ports) // 2)
        if given != [(side, number) for side in ("left", "right") for number in pairs]:
            raise ValueError(
                "ports must be as many left as right, numbered from 0 on each side"
            )
        return self


class DriverCounter(Message):
    """A counter that the driver gave its name."""

    name: str
    count: Count


class KernelCounters(Message):
    """What the kernel counts at the interface behind a port, and at its sockets."""

    rx_missed: Count = Field(description="the NIC had no room")
    rx_fifo: Count = Field(description="the same, as some drivers call it")
    rx_over: Count = Field(description="the same, as others do")
    rx_nohandler: Count = Field(description="nobody took it")
    rx_dropped: Count = Field(
        description="by the driver, at an input queue, or of a protocol nobody speaks"
    )
    rx_crc: Count = Field(description="came in damaged: wrong checksum")
    rx_frame: Count = Field(description="came in damaged: no whole number of bytes")
    rx_length: Count = Field(description="came in damaged: wrong length")
    tx_errors: Count
    tx_dropped: Count
    queue_dropped: Count = Field(
        description="by the queue discipline on the way out, modulo 2^32"
    )
    driver: list[DriverCounter] = Field(
        description="the driver's own counters of drops on receive (ethtool -S)"
    )
    socket_full: Count = Field(description="the packet socket's ring was full")
    xdp_dropped: Count = Field(description="the AF_XDP socket had no buffer")
    xdp_ring_full: Count = Field(description="the AF_XDP socket's ring was full")
    xdp_fill_ring_empty: Count = Field(
        description="in copy mode in xdp_dropped already; in zero copy no frames"
    )


class InputQueueDrops(Message):
    """Of one CPU's input queue, during the trial (/proc/net/softnet_stat)."""

    cpu: Count
    dropped: Count = Field(description="frames that it had no room for")
    time_squeeze: Count = Field(description="times that work was left for later")


class PortCounters(Message):
    """The port's own counters since it was opened."""

    rx_frames: Count
    tx_frames: Count
    rx_missed: Count = Field(description="dropped: receive queue full (imissed)")
    rx_errors: Count = Field(description="came in damaged, as the port counts it")
    rx_nombuf: Count = Field(
        description="dropped: no receive buffer, or none that a whole frame fits in"
    )
    tx_errors: Count
    pauses: list[DriverCounter] = Field(
        default=[],
        description="Ethernet pause frames in and out, by the driver's own names; "
        "empty: it counts none",
    )
    kernel: KernelCounters | None = Field(
        default=None, description="null: no kernel interface"
    )


class PortStatus(NamedPort):
    """One open port."""

    driver: Driver
    device: str
    mac: Mac
    link_up: bool
    link_speed_mbps: Count | None = Field(description="null: the port does not say")
    full_duplex: bool
    flow_control: Literal["on", "off", "unknown"]
    numa_node: int | None
    mtu: Count
    vlan: list[VlanTag] = Field(default=[], description="as it was opened")
    mpls: list[MplsLabel] = Field(default=[], description="likewise")
    encapsulation: Encapsulation | None = Field(default=None, description="likewise")
    dpdk_name: str = Field(description="name of the DPDK driver")
    in_flight_frames: Count | None = Field(
        default=None,
        description="on their way to the device or in its queue at most; null: unknown",
    )
    counters: PortCounters


class PortsResult(Message):
    """Answer of ``ports.open`` and ``ports.status``."""

    ports: list[PortStatus]


class AddressRange(Message):
    """``count`` addresses: first, first + 2^shift, first + 2 * 2^shift, ..."""

    first: Ip
    count: Annotated[int, Field(ge=1, le=65536)] = 1
    shift: Annotated[int, Field(ge=0, le=127)] = 0


class PortNeighbours(AtPort):
    """What a port answers ARP and ND for, and whom it has to find."""

    own: Annotated[list[AddressRange], Field(max_length=65536)]
    resolve: Annotated[list[Ip], Field(max_length=65536)] = Field(
        description="next hops; asked from the first own address"
    )


class NeighboursParams(Message):
    """Replaces all earlier neighbour settings, then resolves all next hops."""

    ports: Annotated[list[PortNeighbours], Field(max_length=2 * MAX_PAIRS)]
    timeout_ns: Wait = 3_000_000_000

    @model_validator(mode="after")
    def _distinct(self) -> NeighboursParams:
        if len({(p.port, p.number) for p in self.ports}) != len(self.ports):
            raise ValueError("each port may stand once")
        return self


class ResolvedNeighbour(AtPort):
    """One next hop; ``mac`` is null when nobody answered within the timeout."""

    ip: Ip
    mac: Mac | None
    duration_ns: Nanoseconds


class NeighboursResult(Message):
    """All next hops, in the order asked for."""

    neighbours: list[ResolvedNeighbour]
