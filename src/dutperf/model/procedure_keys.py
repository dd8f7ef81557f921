"""What all procedures have: testbeds, frames, waits, limits.

Each procedure has a model of its own, made of what it shares with others and of what is
its own; a key of another procedure is unknown there. What a procedure has not, others
ask for in vain: its neutral value is a property here.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, get_args

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from dutperf.catalogue import PROCEDURES, ProcedureName
from dutperf.model.fields import (
    KeyedError,
    Listed,
    Name,
    OneOrMore,
    Question,
    Strict,
    Width,
    distinct,
    repeated,
)
from dutperf.model.frames import IpVersions, SizeOrAll, standard_range
from dutperf.model.loads import LossCriterion, RateReference
from dutperf.model.ports import MOST_FLOWS, DestinationPort, FlowCount
from dutperf.model.stateful_keys import ConnectionKeys, Phase2Keys
from dutperf.model.traffic import Traffic
from dutperf.protocol.trial_messages import (
    MAX_MSS,
    MAX_OBJECT_BYTES,
    MAX_RETRANSMISSIONS,
    MIN_MSS,
    ConnectionBegin,
    ConnectionEnd,
    Dns,
    Tcp,
)
from dutperf.visible import without_cores

Direction = Literal["both", "forward", "reverse"]
Seconds = Annotated[float, Field(ge=0, le=86400)]
ReferenceUse = Literal["load", "full load", "correction", "overload"]
"""The load itself; what 100 % of the loads is; what a result is corrected by; what an
overload is more than."""
TrialDuration = Annotated[float, Field(ge=0.01, le=86400)]
RepeatNumber = Annotated[int, Field(ge=1, le=1000)]


class Tagging(NamedTuple):
    """How many frames of a direction are tagged, and from when on."""

    tags: int
    first_s: float


# A sweep: one thing that is another number in each cell, and further cells where the
# result bends (``procedures.scalability``).


SweptKey = Literal[
    "addresses", "ports", "networks", "flows", "frame_size", "connections"
]
_MOST: dict[SweptKey, int] = {
    "addresses": 65_536,
    "ports": DestinationPort.MOST,
    "networks": 256,
    "flows": MOST_FLOWS,
}
"""Of what others limit: frame sizes by the MTU, connections by the ports."""
_OF_TRAFFIC: tuple[SweptKey, ...] = ("addresses", "ports", "networks")
_FIRST_SOURCE = 1024


class Sweep(Strict):
    """One number over a range; a cell has its own as the only one of ``values``."""

    key: SweptKey = Field(
        description="what varies: addresses, ports, networks, flows, frame_size, "
        "connections; addresses and networks: so many on each side; ports: so many "
        "source ports, from 1024 on, and so many destination ports, from 1 on, at "
        "random; the key itself is left out"
    )
    min: Annotated[int, Field(ge=1)] = Field(default=1, description="the least")
    max: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="the most"
    )
    points: Annotated[int, Field(ge=2, le=100)] = Field(
        default=9, description="how many from min to max, at even ratios"
    )
    values: list[Annotated[int, Field(ge=1)]] = Field(
        default=[], description="these numbers, instead of min, max and points"
    )
    refine: Annotated[int, Field(ge=0, le=50)] = Field(
        default=4,
        description="how many more at most, one after the other, where the result "
        "bends",
    )
    within_percent: Annotated[float, Field(gt=0, le=50)] = Field(
        default=5,
        description="so near the plateau, the median at the three largest numbers, a "
        "result is on it",
    )
    knee_percent: Annotated[float, Field(gt=0, le=1000)] = Field(
        default=10,
        description="the knee is known closely enough, and nothing is added, if the "
        "ends of its interval are no further apart, in percent of the lower one",
    )

    @field_validator("values")
    @classmethod
    def _listed_once(cls, values: list[int]) -> list[int]:
        return sorted(distinct(values))

    @model_validator(mode="after")
    def _one_range(self) -> Self:
        if self.values and {"min", "max", "points"} & self.model_fields_set:
            raise ValueError("give values, or min, max and points, not both")
        if not self.values and self.max is None:
            raise ValueError("needs max, or values")
        if self.max is not None and self.max <= self.min:
            raise KeyedError(("max",), f"must be more than min, {self.min}")
        most = _MOST.get(self.key)
        if most and max(self.numbers) > most:
            keys = ("values",) if self.values else ("max",)
            raise KeyedError(keys, f"must be at most {most:,}: {self.key}")
        return self

    @model_serializer(mode="plain")
    def _as_written(self) -> dict[str, Any]:
        left_out = {"values"} if not self.values else {"min", "max", "points"}
        return {key: value for key, value in self if key not in left_out}

    @property
    def numbers(self) -> list[int]:
        """All that it begins with, rising."""
        if self.values or self.max is None:
            return self.values
        ratio = math.log(self.max / self.min) / (self.points - 1)
        found = {round(self.min * math.exp(n * ratio)) for n in range(self.points)}
        return sorted(found)

    @property
    def number(self) -> int:
        """Of a cell: its own."""
        return self.values[0]

    def words(self, number: int) -> str:
        """``1 address``, ``4,096 addresses``."""
        plural = "bytes" if self.key == "frame_size" else self.key
        one = plural.removesuffix("es" if plural == "addresses" else "s")
        return f"{number:,} {one if number == 1 else plural}"

    @property
    def is_of_traffic(self) -> bool:
        """Whether it varies a key of the profile that the cell's name lacks."""
        return self.key in _OF_TRAFFIC

    def of(self, number: int) -> Sweep:
        """The sweep of one cell."""
        update = {"min": 1, "max": None, "points": 9, "values": [number]}
        return self.model_copy(update=update)

    def without(self, profile: Traffic) -> Traffic:
        """``profile`` without the key that varies."""
        default = Traffic.model_fields[self.key].default
        return profile.model_copy(update={self.key: default})

    def with_number(self, profile: Traffic, number: int) -> Traffic:
        """``profile`` with so many of what varies, if that is a key of it."""
        if not self.is_of_traffic:
            return profile
        keys = self.without(profile).model_dump(exclude_none=True)
        del keys[self.key]
        return Traffic.model_validate(keys | _swept(self.key, number))


def _swept(key: SweptKey, number: int) -> dict[str, Any]:
    """A key of the traffic profile."""
    if key == "networks":
        return {key: number}
    if key == "addresses":
        return {key: number} if number > 1 else {}
    last = _FIRST_SOURCE + number - 1
    if number == 1:
        return {key: {"source": f"fixed:{last}", "destination": "fixed:1"}}
    source, destination = f"random:{_FIRST_SOURCE}-{last}", f"random:1-{number}"
    return {key: {"source": source, "destination": destination}}


class ProcedureKeys(Strict):
    """One procedure over a matrix of cells.

    An empty list is a key's default alone, never written: a file that says "none" of
    what is measured is mistaken.
    """

    takes_bursts: ClassVar[bool] = False
    """Whether its loads may be sent in bursts (RFC 2544 21)."""
    takes_beside: ClassVar[bool] = False
    """Whether frames may be beside its stream (RFC 2544 11.1, RFC 5180 5.3)."""
    without: ClassVar[tuple[str, ...]] = ()
    """Keys that it has like others, and no use for; ``traffic.imix``."""
    is_one_way: ClassVar[bool] = False
    """Whether its RFC asks for frames in one direction alone."""

    procedure: str = Field(description="what is measured")
    testbeds: list[Name] = Field(
        default=[],
        min_length=1,
        description="at which of the campaign's labs or testbeds, by their names; "
        "default: at all of them",
    )
    question: Question | None = Field(
        default=None,
        description="what it answers, in the reader's words: procedures of one "
        "question have a page of the report together, devices beside each other",
    )
    ip: OneOrMore[IpVersions] = Field(
        default=[],
        description="IP versions: 4, 6, or left-right 6-4, 4-6; default: the "
        "translation that the testbed's virtual addresses are for, else all that both "
        "sides have",
    )
    frame_size: OneOrMore[SizeOrAll] = Field(
        default=[],
        description="frame sizes in bytes with FCS; where IPv4 and IPv6 frames occur "
        "in one trial, of the IPv6 ones: IPv4 frames are 20 bytes shorter; all: those "
        "of RFC 2544 9.1, RFC 5180 5.1.1 and RFC 8219 5.1.1 that the MTU carries; "
        "64-512: those of them in between; default: the smallest, 64 for IPv4 and 84 "
        "for IPv6",
    )
    settle_wait_s: Seconds = Field(
        default=2, description="wait after the learning frames (RFC 2544 23 b)"
    )
    restabilise_wait_s: Seconds = Field(
        default=5, description="rest of the DUT before the next trial (RFC 2544 23 e)"
    )
    max_rate_fps: Annotated[int, Field(ge=1, le=10**12)] | None = Field(
        default=None,
        description="highest load per direction; default: the testbed's, else the "
        "media's",
    )
    lag_limit_ms: Annotated[float, Field(gt=0, le=10000)] = Field(
        default=10,
        description="how late frames may leave; the trial is aborted when the lag "
        "exceeds 10 times this limit",
    )
    burst_limit: Annotated[int, Field(ge=1, le=64)] = Field(
        default=32, description="most frames sent at once when behind the schedule"
    )
    traffic: OneOrMore[Traffic] = Field(
        default=[Traffic()],
        description="what the frames look like beside their size; several profiles, "
        "each with a name of its own: test cases of each",
    )
    sweep: Sweep | None = Field(
        default=None,
        description="vary one number over a range: a test case for each, and more "
        "where the result bends (docs/campaigns.md)",
    )

    @field_validator("testbeds", "ip", "frame_size")
    @classmethod
    def _distinct(cls, values: list[Any]) -> list[Any]:
        return distinct(values)

    @field_validator("traffic")
    @classmethod
    def _told_apart(cls, profiles: list[Traffic]) -> list[Traffic]:
        labels = [profile.label for profile in profiles]
        twice = repeated(labels)
        if twice is not None:
            known = f"{labels[twice]!r}" if labels[twice] else "the default profile's"
            raise ValueError(
                f"profiles {labels.index(labels[twice])} and {twice} would have the "
                f"same name, {known}: give each a name"
            )
        return profiles

    @property
    def size_range(self) -> tuple[int, int] | None:
        """Between which sizes all of the RFCs' are asked for; None: they are listed."""
        return standard_range(self.frame_size)

    @model_validator(mode="after")
    def _one_kind_of_size(self) -> Self:
        if self.size_range and len(self.frame_size) > 1:
            raise KeyedError(
                ("frame_size",), "all, or a range, stands alone: others are in it"
            )
        for key in ("imix", "pcap"):
            if self.frame_size and any(getattr(each, key) for each in self.traffic):
                raise ValueError(f"give frame_size or traffic.{key}, not both")
        return self

    @model_validator(mode="after")
    def _sweep_fits(self) -> Self:
        if self.sweep:
            self._check_sweep(self.sweep)
        return self

    def _check_sweep(self, sweep: Sweep) -> None:
        keys = ("sweep", "key")
        if sweep.key != "addresses" and any(each.pcap for each in self.traffic):
            raise KeyedError(keys, "must be addresses: all else is traffic.pcap's")
        of_delays = {p.name for p in PROCEDURES.values() if p.family == "fixed load"}
        if self.procedure in of_delays:
            raise KeyedError(
                ("sweep",), "is for what has one figure, which is followed over it"
            )
        if self.rate_reference and sweep.refine:
            raise KeyedError(
                ("sweep", "refine"),
                "must be 0: a load that is found before is found of no test case that "
                "is added",
            )
        if sweep.is_of_traffic:
            for profile in self.traffic:
                alone = [sweep.with_number(profile, n) for n in sweep.values[:1]]
                if profile.flows or profile not in (sweep.without(profile), *alone):
                    told = f"traffic.{'flows' if profile.flows else sweep.key}"
                    raise KeyedError(keys, f"varies it, so leave {told} out")
            return
        if sweep.key == "connections":
            stateful = getattr(self, "stateful", None)
            given = stateful.connections if stateful else []
            if given != [max(sweep.numbers)]:
                raise KeyedError(
                    keys,
                    "needs the most of them in stateful.connections",
                    f"set it to {max(sweep.numbers)}",
                )
            return
        if sweep.key not in type(self).model_fields or sweep.key in self.without:
            raise KeyedError(keys, f"{self.procedure} has no {sweep.key} to vary")
        if getattr(self, sweep.key) not in ([], sweep.values[:1]):
            raise KeyedError(keys, f"varies it, so leave {sweep.key} out")
        if sweep.key == "frame_size" and any(each.imix for each in self.traffic):
            raise KeyedError(keys, "varies it, so leave traffic.imix out")

    @property
    def spread(self) -> Self:
        """The same with the numbers of its sweep in the key that they are of."""
        sweep = self.sweep
        if sweep is None:
            return self
        numbers = sweep.numbers
        if sweep.is_of_traffic:
            traffic = [sweep.with_number(t, n) for t in self.traffic for n in numbers]
            return self.model_copy(update={"traffic": traffic})
        if sweep.key != "connections":
            return self.model_copy(update={sweep.key: numbers})
        stateful: ConnectionKeys = getattr(self, "stateful")  # noqa: B009
        many = {"connections": numbers}
        return self.model_copy(update={"stateful": stateful.model_copy(update=many)})

    @model_serializer(mode="wrap")
    def _as_written(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in plain(self).items() if value != []}

    @classmethod
    def named(cls) -> str:
        """The procedure's name."""
        (name,) = get_args(cls.model_fields["procedure"].annotation)
        return str(name)

    def is_for(self, testbed: str) -> bool:
        """Whether it is to be measured there, with however many active cores."""
        names = {testbed, without_cores(testbed)}
        return not self.testbeds or not names.isdisjoint(self.testbeds)

    @property
    def profiles(self) -> list[Traffic]:
        """The traffic of its cells."""
        return self.traffic

    @property
    def loss_criterion(self) -> LossCriterion:
        """By what its trials are judged."""
        return LossCriterion()

    @property
    def tcp(self) -> Tcp | None:
        """What its frames open; None: nothing, they are of UDP."""
        return None

    def _check_without(self, words: str) -> None:
        """Refuses what it has like others and has no use for, but for its sizes."""
        for key in self.without:
            if key == "frame_size":
                continue
            block, _, name = key.rpartition(".")
            for owner in self.traffic if block else (self,):
                field = type(owner).model_fields[name]
                if getattr(owner, name) != field.get_default(call_default_factory=True):
                    raise KeyedError((*filter(None, (block,)), name), words)

    @property
    def is_metered(self) -> bool:
        """Whether the device's power is read in its trials."""
        return False

    @property
    def is_of_frames(self) -> bool:
        """Whether its rate is that of all frames, and nothing answers them."""
        return self.tcp is None and self.dns is None

    @property
    def dns(self) -> Dns | None:
        """What its frames ask for, but for their names; None: nothing."""
        return None

    @property
    def rate_reference(self) -> RateReference | None:
        """What the campaign finds before, of a throughput, if it is needed."""
        return None

    @property
    def reference_use(self) -> ReferenceUse:
        """What ``rate_reference`` is for."""
        return "load"

    @property
    def up_to_maximum(self) -> bool:
        """Whether the highest load is as much as the ports can offer."""
        return False

    @property
    def given_rate_fps(self) -> int | None:
        """The load, if it is given as a number."""
        return None

    @property
    def rate_per_flow_fps(self) -> int | None:
        """What each flow adds to the load, if it grows with them."""
        return None

    @property
    def tagging(self) -> Tagging | None:
        """Which frames are tagged, if any are."""
        return None

    @property
    def frame_timeout_ns(self) -> int | None:
        """The frame timeout, exactly."""
        return None

    @property
    def timeout_sweep_ns(self) -> list[int]:
        """Further timeouts to tell the loss by, rising."""
        return []

    @property
    def loss_tolerance_ppb(self) -> int:
        """The tolerated loss in parts per billion, exactly."""
        return 0


class SearchedKeys(ProcedureKeys):
    """What procedures have that search for a rate."""

    resolution: Width = Field(
        default="0.1%",
        description="where the search stops; '5%' of the result, or a number per "
        "second, 1000",
    )


class StreamKeys(ProcedureKeys):
    """What procedures have that send streams."""

    takes_beside = True

    residual_wait_s: Seconds = Field(
        default=2, description="wait for late frames (RFC 2544 23 d)"
    )
    direction: OneOrMore[Direction] = Field(
        default=["both"],
        description="forward: left to right; RFC 8219 5.3 asks for both at once; "
        "several: a test case of each",
    )
    flows: Annotated[list[FlowCount], Listed()] = Field(
        default=[],
        description="a test case for each number of network flows (RFC 8219 10); "
        "the frames are spread over them; begin with 1, which the "
        "others are compared with",
    )
    stateful: Phase2Keys | None = Field(
        default=None,
        description="measure on connections through a stateful gateway; they are "
        "opened anew before each trial (RFC 9693 4.7)",
    )

    @field_validator("direction", "flows")
    @classmethod
    def _listed_once(cls, values: list[Any]) -> list[Any]:
        return distinct(values)

    @property
    def profiles(self) -> list[Traffic]:
        """The traffic of its cells, with each number of flows."""
        if not self.flows:
            return self.traffic
        return [each.with_flows(n) for each in self.traffic for n in self.flows]

    @model_validator(mode="after")
    def _flows_fit(self) -> Self:
        if self.flows:
            if self.stateful:
                raise KeyedError(
                    ("flows",),
                    "must be left out of a stateful test (stateful.connections)",
                )
            for profile in self.traffic:
                _check_spread(profile)
        return self

    @model_validator(mode="after")
    def _connections_fit(self) -> Self:
        if self.stateful:
            check_connections(self.stateful, self.traffic)
        return self


class TimedStreamKeys(StreamKeys):
    """What procedures have that send streams for a time."""

    trial_duration_s: TrialDuration = Field(
        default=60,
        description="how long to send (RFC 2544 24: at least 60 s); latency: 120 "
        "s, RFC 8219 7.2",
    )


def told(name: ProcedureName) -> str:
    """What the key ``procedure`` says by its name."""
    finds = PROCEDURES[name].finds
    return f"{finds[:1].lower()}{finds[1:-1]}"


def check_connections(stateful: ConnectionKeys, profiles: list[Traffic]) -> None:
    """Refuse traffic that is not for connections, which differ by ports and addresses.

    Raises:
        KeyedError: says which key is wrong.
    """
    for number, profile in enumerate(profiles):
        for trouble in stateful.troubles(profile.addresses):
            raise trouble
        if profile.networks != type(profile.networks)():
            raise KeyedError(
                ("traffic", number, "networks"),
                "must be left out of a stateful test: connections differ by ports and "
                "addresses (RFC 9693 4.1)",
            )
        if profile.imix or profile.flows or profile.pcap:
            raise KeyedError(
                ("traffic", number),
                "imix, pcap and flows must be left out of a stateful test",
            )


def _check_spread(profile: Traffic) -> None:
    """Refuse what ``flows`` would overrule."""
    for key in ("flows", "ports", "addresses", "networks", "pcap"):
        if getattr(profile, key) != Traffic.model_fields[key].default:
            raise KeyedError(
                ("flows",),
                f"says what varies, so leave traffic.{key} out; or give no flows",
            )


# Keys of procedures whose frames are segments of TCP connections (RFC 8219 8).
#
# A connection is opened by a SYN, whose four-tuple a UDP frame of the same number would
# have. What a procedure does with connections that are open is its ``use``: the next
# segment of their initiator, in a trial of its own.


_SYN_SIZES = {74, 94}
"""Of IPv4 and of IPv6: ``config.sizes.syn_size``."""
_ENDS: dict[ConnectionBegin, ConnectionEnd] = {
    "ack": "opened",
    "request": "answered",
    "fin": "closed",
}


class TcpKeys(ProcedureKeys):
    """What procedures have that open TCP connections."""

    takes_beside = False
    without = (
        "frame_size",
        *(
            f"traffic.{name}"
            for name in (
                "mix",
                "background_ip",
                "broadcast_percent",
                "hop_by_hop_percent",
                "spoofed_percent",
                "flood_percent",
                "imix",
                "pcap",
                "fragmented",
                "lowest_ipv6_mtu",
                "ipv6_headers",
                "ipv4_options",
                "routes",
                "group",
            )
        ),
    )
    opens_until: ClassVar[ConnectionEnd] = "opened"
    """How far the trial goes that opens them."""
    use: ClassVar[ConnectionBegin | None] = None
    """What a later trial begins with on each of them; None: there is none."""

    object_bytes: Annotated[int, Field(ge=0, le=MAX_OBJECT_BYTES)] = Field(
        default=64,
        description="of what the GET is for; with its header as many segments as it "
        "takes",
    )
    mss: Annotated[int, Field(ge=MIN_MSS, le=MAX_MSS)] = Field(
        default=1440,
        description="maximum segment size that both sides announce; default: what "
        "1,500 bytes hold of IPv6, too",
    )

    @property
    def tcp(self) -> Tcp | None:
        """What the engine is told of the trial that opens connections."""
        return self._segments(until=self.opens_until)

    def used(self, opened_by: int) -> Tcp:
        """The same of the trial that uses them; of one whose procedure does."""
        return self._used_by(self.use or "request", opened_by)

    def _used_by(self, begin: ConnectionBegin, opened_by: int) -> Tcp:
        return self._segments(begin=begin, until=_ENDS[begin], opened_by=opened_by)

    def _segments(self, **told: Any) -> Tcp:  # noqa: ANN401 - fields of Tcp
        return Tcp(object_bytes=self.object_bytes, mss=self.mss, **told)

    @model_validator(mode="after")
    def _of_segments(self) -> Self:
        words = "must be left out: each frame is the SYN of a connection"
        if self.tcp and set(self.frame_size) - _SYN_SIZES:
            raise KeyedError(("frame_size",), words)
        self._check_without(words)
        return self


class RetransmitKeys(TcpKeys):
    """What procedures have that may send lost segments again."""

    retransmit: Annotated[int, Field(ge=0, le=MAX_RETRANSMISSIONS)] = Field(
        default=0,
        description="how often to send again what nobody answers, after 1 s, "
        "2 s, 4 s (RFC 6298); what is found so is another measure",
    )

    def _segments(self, **told: Any) -> Tcp:  # noqa: ANN401 - fields of Tcp
        return super()._segments(retransmit=self.retransmit, **told)
