"""What each procedure may be told: one model for each, and their union.

A key that a procedure does not have is unknown there. What several have in common is
defined once, in ``*_keys``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import Field, field_validator, model_validator

from dutperf.model.fields import (
    KeyedError,
    Listed,
    OneOrMore,
    Width,
    distinct,
    written_number,
)
from dutperf.model.hosts import Addresses, HostField
from dutperf.model.loads import (
    FixedRate,
    LoadRate,
    RateReference,
    parse_rate_per_flow,
    parse_rate_reference,
)
from dutperf.model.procedure_keys import (
    Direction,
    ProcedureKeys,
    ReferenceUse,
    RepeatNumber,
    RetransmitKeys,
    SearchedKeys,
    StreamKeys,
    Tagging,
    TcpKeys,
    TimedStreamKeys,
    TrialDuration,
    check_connections,
    told,
)
from dutperf.model.rate_specs import (
    BackToBackSpec,
    Dns64Spec,
    DnsSpec,
    FrameLossSpec,
    MulticastThroughputSpec,
    TcpConnectionRateSpec,
    ThroughputSpec,
)
from dutperf.model.stateful_keys import (
    BehaviourKeys,
    CapacityKeys,
    ConnectionKeys,
    IdleKeys,
    LimitKeys,
    LogKeys,
    OpenedKeys,
    RateKeys,
    TeardownKeys,
    WholeKeys,
)
from dutperf.model.traffic import Traffic
from dutperf.protocol.trial_messages import (
    ConnectionBegin,
    ConnectionEnd,
    Record,
    Tcp,
)

# Procedures about connections through a stateful gateway (RFC 9693).
#
# Their trials are phases: how long one takes follows from how many connections it opens
# and how fast, and only the initiator sends (RFC 9693 4.2).


class EstablishmentKeys(ProcedureKeys):
    """What procedures have that open connections and measure these."""

    stateful: ConnectionKeys
    repeats: RepeatNumber = Field(
        default=1,
        description="how often each test case is measured; the median counts",
    )

    @model_validator(mode="after")
    def _connections_fit(self) -> Self:
        check_connections(self.stateful, self.traffic)
        for number, profile in enumerate(self.traffic):
            if profile.has_background:
                raise KeyedError(
                    ("traffic", number, "mix"),
                    "must be left out: all frames of a phase are of connections",
                )
        return self

    @property
    def direction(self) -> list[Direction]:
        """Where the initiator sends."""
        return [self.stateful.direction]

    @property
    def trial_duration_s(self) -> float:
        """Of what is no phase: the shortest."""
        return 0.01

    @property
    def residual_wait_s(self) -> float:
        """The wait for late frames of each phase."""
        return self.stateful.timeout_ms / 1000

    @property
    def most_repeats(self) -> int:
        """How often each cell is measured at most."""
        return self.repeats


class ConnectionRateSpec(EstablishmentKeys, SearchedKeys):
    """Maximum connection establishment rate (RFC 9693 4.5, 4.6)."""

    procedure: Literal["connection-rate"] = Field(description=told("connection-rate"))
    stateful: RateKeys = Field(
        description="the connections, and whether each is validated"
    )


class CapacitySearchKeys(EstablishmentKeys, SearchedKeys):
    """What searches have that look for how many connections are held."""

    resolution: Width = Field(
        default="5%",
        description="of the connection rate that the search is made at; '5%' of it, "
        "or connections per second, 1000",
    )
    stateful: CapacityKeys = Field(description="the connections, and how many to try")


class TableCapacitySpec(CapacitySearchKeys):
    """Capacity of the connection tracking table (RFC 9693 4.9)."""

    procedure: Literal["table-capacity"] = Field(description=told("table-capacity"))


class TcpCapacitySpec(RetransmitKeys, CapacitySearchKeys):
    """How many TCP connections are held open (RFC 8219 8, RFC 3511 5.2)."""

    use = "request"

    procedure: Literal["tcp-capacity"] = Field(description=told("tcp-capacity"))


class TcpHalfOpenSpec(RetransmitKeys, CapacitySearchKeys):
    """How many TCP connections are held whose ACK has not come (RFC 3511 5.5)."""

    opens_until = "half_open"
    use = "ack"

    procedure: Literal["tcp-half-open"] = Field(description=told("tcp-half-open"))


class IdleTimeoutSpec(TcpKeys, EstablishmentKeys):
    """How long connections are kept that nobody uses (RFC 4787, RFC 5382 REQ-5)."""

    procedure: Literal["idle-timeout"] = Field(description=told("idle-timeout"))
    state: Literal["udp", "established", "half-open"] = Field(
        default="udp",
        description="of what waits; udp: a mapping, used by a frame of the responder; "
        "established: a TCP connection, used by a GET; half-open: one of which SYN and "
        "SYN-ACK have passed, used by its ACK",
    )
    hold_s: Annotated[int, Field(ge=1, le=86_400)] = Field(
        default=300, description="how long the last one waits"
    )
    stateful: IdleKeys = Field(
        default=IdleKeys(), description="the connections, and how they are opened"
    )

    @property
    def tcp(self) -> Tcp | None:
        """What the engine is told of the trial that opens them."""
        if self.state == "udp":
            return None
        until: ConnectionEnd = "opened" if self.state == "established" else "half_open"
        return self._segments(until=until)

    def used(self, opened_by: int) -> Tcp:
        """See ``TcpKeys``."""
        begin: ConnectionBegin = "ack" if self.state == "half-open" else "request"
        return self._used_by(begin, opened_by)

    def uses_per_s(self, connections: int) -> int:
        """How many are used a second: a whole number."""
        return max(1, connections // self.hold_s)

    @property
    def words(self) -> str:
        """What waits."""
        return {
            "udp": "a UDP mapping",
            "established": "an established TCP connection",
            "half-open": "a half-open TCP connection",
        }[self.state]

    @property
    def given_rate_fps(self) -> int | None:
        """New connections per second."""
        return self.stateful.phase1_rate

    @model_validator(mode="after")
    def _often_enough(self) -> Self:
        if (least := min(self.stateful.connections)) < self.hold_s:
            raise KeyedError(
                ("stateful", "connections"),
                f"{least} cannot be used at even distances over {self.hold_s} s: one "
                "a second is the least",
            )
        return self


class ObservedKeys(EstablishmentKeys):
    """What procedures have that open connections and look what became of each."""

    repeats: Literal[1] = Field(
        default=1, description="once: each line says how often it was seen"
    )
    stateful: WholeKeys

    @property
    def given_rate_fps(self) -> int | None:
        """New connections per second."""
        return self.stateful.phase1_rate


class NatBehaviourSpec(ObservedKeys):
    """What a NAT does with addresses and ports (RFC 4787)."""

    procedure: Literal["nat-behaviour"] = Field(description=told("nat-behaviour"))
    traffic: OneOrMore[Traffic] = Field(
        default=[
            Traffic(
                addresses=Addresses(left=HostField(hosts=4), right=HostField(hosts=2))
            )
        ],
        description="as of other procedures; 4 hosts of the initiator and 2 of the "
        "responder, if it says nothing of addresses",
    )
    stateful: BehaviourKeys = Field(
        default=BehaviourKeys(), description="the connections, and how they are opened"
    )


class PortLimitSpec(ObservedKeys):
    """How many ports and sessions a host may have (RFC 6888 REQ-4, REQ-5)."""

    procedure: Literal["port-limit"] = Field(description=told("port-limit"))
    traffic: OneOrMore[Traffic] = Field(
        default=[Traffic(addresses=Addresses(left=HostField(hosts=4)))],
        description="as of other procedures; 4 hosts of the initiator, if it says "
        "nothing of addresses",
    )
    stateful: LimitKeys = Field(
        default=LimitKeys(), description="the connections, and how they are opened"
    )


class NatLogSpec(EstablishmentKeys):
    """Whether a NAT logs each of its mappings (RFC 6888 4)."""

    procedure: Literal["nat-log"] = Field(description=told("nat-log"))
    repeats: Literal[1] = Field(
        default=1, description="once: what all tests have learned is counted together"
    )
    tests: Annotated[int, Field(ge=1, le=100)] = Field(
        default=2, description="how often connections are opened, and the log is read"
    )
    log_within_s: Annotated[float, Field(gt=0, le=600)] = Field(
        default=5,
        description="what is logged later than this after a test's end is late; what "
        "is not there after twice that is missing",
    )
    stateful: LogKeys = Field(
        default=LogKeys(), description="the connections, and how they are opened"
    )

    @property
    def given_rate_fps(self) -> int | None:
        """New connections per second."""
        return self.stateful.phase1_rate


class TcpUseKeys(RetransmitKeys, EstablishmentKeys, SearchedKeys):
    """What searches have for how fast open connections may be used."""

    stateful: OpenedKeys = Field(
        description="the connections, and how they are opened before each trial"
    )


class TcpRequestRateSpec(TcpUseKeys):
    """How fast GETs may come on open TCP connections (RFC 8219 8, RFC 3511 5.6)."""

    use = "request"

    procedure: Literal["tcp-request-rate"] = Field(description=told("tcp-request-rate"))


class TcpTeardownRateSpec(TcpUseKeys):
    """How fast open TCP connections may be closed (RFC 8219 8, RFC 3511 5.4)."""

    use = "fin"

    procedure: Literal["tcp-teardown-rate"] = Field(
        description=told("tcp-teardown-rate")
    )


class TeardownRateSpec(EstablishmentKeys):
    """Connection tear-down rate (RFC 9693 4.8)."""

    procedure: Literal["teardown-rate"] = Field(description=told("teardown-rate"))
    rate_fps: Annotated[int, Field(ge=1, le=10**12)] = Field(
        description="new connections per second, fewer than connection-rate finds"
    )
    repeats: RepeatNumber = Field(
        default=3, description="how often each test case is measured; the median counts"
    )
    stateful: TeardownKeys = Field(description="the connections, and how they go")

    @property
    def given_rate_fps(self) -> int | None:
        """New connections per second."""
        return self.rate_fps


# Procedures at a load that is given, not searched: latency, PDV and IPDV.
#
# Their defaults are those of RFC 8219 7.2 and 7.3.


class LoadKeys(TimedStreamKeys):
    """What procedures have that send at one load."""

    rate_fps: FixedRate = Field(
        description="load of each direction: frames per second, or throughput; "
        "throughput: the one that the campaign finds before (RFC 8219"
        " 7.2), throughput p25: a lower quantile of its repeats, 90% "
        "of throughput",
    )
    repeats: RepeatNumber

    @property
    def rate_reference(self) -> RateReference | None:
        """The load, if it is known only when the throughput was found."""
        rate_fps = self.rate_fps
        named = isinstance(rate_fps, str) and self.rate_per_flow_fps is None
        return parse_rate_reference(str(rate_fps)) if named else None

    @property
    def given_rate_fps(self) -> int | None:
        """The load, if it is given as a number, or one for each flow of a cell."""
        if self.rate_per_flow_fps is not None:
            return self.rate_per_flow_fps * (self.traffic[0].flows or 1)
        return self.rate_fps if isinstance(self.rate_fps, int) else None

    @property
    def rate_per_flow_fps(self) -> int | None:
        """What each flow adds to the load, if it grows with them."""
        rate_fps = self.rate_fps
        return parse_rate_per_flow(rate_fps) if isinstance(rate_fps, str) else None

    @property
    def most_repeats(self) -> int:
        """How often each cell is measured at most."""
        return self.repeats


class FixedLoadKeys(LoadKeys):
    """What procedures have that measure delays at one load."""

    rate_fps: LoadRate = Field(
        description="load of each direction: frames per second, or throughput; "
        "throughput: the one that the campaign finds before (RFC 8219"
        " 7.2), throughput p25: a lower quantile of its repeats, 90% "
        "of throughput; 1000 per flow: as many for each of the flows (RFC 8219 10.2.2)",
    )
    repeats: RepeatNumber = Field(
        default=20,
        description="how often each test case is measured; the median counts (RFC 8219 "
        "7.2: at least 20)",
    )

    takes_bursts = True

    @model_validator(mode="after")
    def _flows_have_rates(self) -> Self:
        spread = all(profile.flows for profile in self.profiles)
        if self.rate_per_flow_fps is not None and not spread:
            raise KeyedError(
                ("rate_fps",),
                f"{self.rate_fps} needs a number of flows",
                "give flows (--flows), or a rate that is that of all frames",
            )
        return self


def _of_a_short_trial(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Tags in the second half of a trial below 120 s, on every other frame at most."""
    trial_s, first_s, rate_fps = (
        written_number(str(keys.get(key)))
        for key in ("trial_duration_s", "first_tag_s", "rate_fps")
    )
    if trial_s is None or not 0 < trial_s < _LONG_S:
        return {}
    first_s = trial_s / 2 if first_s is None else first_s
    found: dict[str, Any] = {"first_tag_s": float(first_s)}
    if rate_fps is not None and first_s < trial_s:
        taggable = int(rate_fps * (trial_s - first_s))
        found["tags"] = min(_TAGS, max(1, taggable // 2))
    return found


_LONG_S = 120  # RFC 8219 7.2
_TAGS = 50_000
Percentile = Annotated[float, Field(gt=0, lt=100)]


class LatencySpec(FixedLoadKeys):
    """Typical and worst-case latency of tagged frames (RFC 8219 7.2)."""

    procedure: Literal["latency"] = Field(description=told("latency"))
    trial_duration_s: TrialDuration = Field(
        default=_LONG_S, description="how long to send (RFC 8219 7.2: at least 120 s)"
    )
    tags: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=_TAGS,
        description="tagged frames of each direction (RFC 8219 7.2: at least "
        "500); their delays are kept exactly; of a trial below 120 s at most every "
        "other frame",
    )
    first_tag_s: Annotated[float, Field(ge=0, le=86400)] = Field(
        default=60,
        description="when the first frame is tagged (RFC 8219 7.2: 60 s); of a trial "
        "below 120 s half of it",
    )
    rfc2544_latency: bool = Field(
        default=False,
        description="one tagged frame a trial, averaged (RFC 2544 26.2)",
    )

    percentiles: Annotated[list[Percentile], Listed()] = Field(
        default=[],
        description="more percentiles of the tags' delays than TL (50) and WCL (99.9): "
        "99, or a list",
    )

    @field_validator("percentiles")
    @classmethod
    def _each_once(cls, given: list[float]) -> list[float]:
        return distinct(given)

    @model_validator(mode="before")
    @classmethod
    def _one_tag(cls, data: Any) -> Any:  # noqa: ANN401 - raw YAML
        if not isinstance(data, Mapping):
            return data
        if data.get("rfc2544_latency") is True:
            data = {"tags": 1, **data}
        return {**_of_a_short_trial(data), **data}

    @model_validator(mode="after")
    def _tags_fit(self) -> Self:
        if self.rfc2544_latency and self.tags != 1:
            raise KeyedError(
                ("tags",),
                "must be 1, or left out, with rfc2544_latency (RFC 2544 26.2)",
            )
        if self.rfc2544_latency and self.percentiles:
            raise KeyedError(("percentiles",), "one tagged frame has none")
        if self.first_tag_s >= self.trial_duration_s:
            raise KeyedError(
                ("first_tag_s",),
                f"{self.first_tag_s:g} s is not before the end of the "
                f"trial, {self.trial_duration_s:g} s (trial_duration_s)",
            )
        return self

    @property
    def tagging(self) -> Tagging | None:
        """Which frames are tagged; None: none are (0 tags)."""
        return Tagging(self.tags, self.first_tag_s) if self.tags else None


class PdvSpec(FixedLoadKeys):
    """Packet delay variation (RFC 8219 7.3.1)."""

    procedure: Literal["pdv"] = Field(description=told("pdv"))


class IpdvSpec(FixedLoadKeys):
    """Inter-packet delay variation (RFC 8219 7.3.2)."""

    procedure: Literal["ipdv"] = Field(description=told("ipdv"))


# An outage (RFC 6201): how long the device forwards nothing.


TRIGGER_S = 15
"""What has to be forwarded before (RFC 6201 4)."""


_TURNS_AFTER = 3
"""A connection is told to be gone by two frames of it, and a turn may be cut."""


_MOST_FRAMES = Record().tracking_mb * 2**23


class OutageSpec(LoadKeys):
    """How long forwarding is interrupted (RFC 6201 4, RFC 2544 26.6, RFC 8219 7.7)."""

    procedure: Literal["outage"] = Field(description=told("outage"))
    rate_fps: FixedRate = Field(
        default="throughput",
        description="load of each direction; the throughput that the campaign finds "
        "before (RFC 6201 4), or frames per second",
    )
    trial_duration_s: TrialDuration = Field(
        default=120,
        description="how long to send; an outage that has not ended then is a lower "
        "bound",
    )
    trigger_after_s: Annotated[float, Field(ge=0, le=86400)] = Field(
        default=TRIGGER_S,
        description="when the testbed's hooks during_trial are run, or you are asked "
        "to act; since the stream began (RFC 6201 4: at least 15 s)",
    )
    repeats: RepeatNumber = Field(
        default=3,
        description="how often each test case is measured; the average counts (RFC "
        "6201 1.4: multiple trials)",
    )
    by_connection: bool = Field(
        default=False,
        description="tell of each connection of a stateful test how long it was out, "
        "and whether it came back; they take turns, in the order of their opening",
    )

    @model_validator(mode="after")
    def _turns_are_short(self) -> Self:
        if not self.by_connection:
            return self
        if self.stateful is None:
            raise KeyedError(
                ("by_connection",),
                "is for connections: open some (stateful: connections, phase1_rate), "
                "or leave it out",
            )
        if self.stateful.responder_order != "random":
            raise KeyedError(
                ("stateful", "responder_order"),
                "must be left out with by_connection: connections take turns",
            )
        responder = self.stateful.responder_direction
        if responder in self.direction:
            raise KeyedError(
                ("direction",),
                f"must not be {responder} with by_connection: the initiator sends, "
                "too, so that what becomes of its connections is learned",
            )
        if any(profile.load_shape or profile.burst_frames for profile in self.traffic):
            raise KeyedError(
                ("by_connection",),
                "is told to within a turn of the connections: leave load_shape and "
                "burst_frames out, so that turns are of one length",
            )
        rate_fps = self.given_rate_fps
        if (rate_fps or 0) * self.trial_duration_s > _MOST_FRAMES:
            raise KeyedError(
                ("by_connection",),
                f"needs a bit for each frame, and there are {_MOST_FRAMES:,} of each "
                "direction: send more slowly, or for a shorter time",
            )
        turn_s = max(self.stateful.connections) / rate_fps if rate_fps else 0
        room_s = min(
            self.trigger_after_s,
            (self.trial_duration_s - self.trigger_after_s) / _TURNS_AFTER,
        )
        if turn_s > room_s:
            raise KeyedError(
                ("by_connection",),
                f"a turn of all connections takes {turn_s:.3g} s: one has to end "
                f"before the interruption (trigger_after_s {self.trigger_after_s:g}), "
                f"and {_TURNS_AFTER} have to come after it; send faster, for longer, "
                "or open fewer connections",
            )
        return self

    @model_validator(mode="after")
    def _triggered_before_the_end(self) -> Self:
        if self.trigger_after_s >= self.trial_duration_s:
            raise KeyedError(
                ("trigger_after_s",),
                f"{self.trigger_after_s:g} s is not before the end of the trial, "
                f"{self.trial_duration_s:g} s (trial_duration_s)",
            )
        return self


# Power: watts without a load and with each (draft-ietf-bmwg-powerbench).


FULL_PERCENT = 100.0


class PowerSpec(LoadKeys):
    """Watts by load, and energy per bit and packet that the device forwards."""

    takes_beside = False
    without = ("flows", "stateful")

    procedure: Literal["power"] = Field(description=told("power"))
    rate_fps: FixedRate = Field(
        default="throughput",
        description="what 100 % of the loads is, of each direction; the throughput "
        "that the campaign finds before, 90% of throughput, or frames per second",
    )
    load_percent: Annotated[
        list[Annotated[float, Field(gt=0, le=FULL_PERCENT)]],
        Field(min_length=1),
        Listed(),
    ] = Field(
        default=[float(each) for each in range(10, 101, 10)],
        description="loads in percent of that, 100 among them, of which the figure is; "
        "the lowest comes first, after as long without a frame",
    )
    repeats: RepeatNumber = Field(
        default=1, description="how often each load is measured; the average counts"
    )

    @field_validator("load_percent")
    @classmethod
    def _loads_rise(cls, values: list[float]) -> list[float]:
        if max(values) < FULL_PERCENT:
            raise ValueError("must have 100 among them: the figure is of that load")
        return sorted(distinct(values))

    @model_validator(mode="after")
    def _of_a_stream(self) -> Self:
        self._check_without("must be left out: watts are those of one stream")
        return self

    @property
    def is_metered(self) -> bool:
        """The device's power is read in its trials."""
        return True


# A soak: one load for hours, in trials in a row.


MOST_SOAK_TRIALS = 50_000


class SoakSpec(LoadKeys):
    """What changes under a load that lasts for hours."""

    procedure: Literal["soak"] = Field(description=told("soak"))
    rate_fps: FixedRate = Field(
        default="90% of throughput",
        description="load of each direction; frames per second, or a share of the "
        "throughput that the campaign finds before",
    )
    hours: Annotated[float, Field(gt=0, le=1000)] = Field(
        default=24,
        description="how long the device is under load: so many trials in a row; the "
        "waits between them come on top",
    )
    repeats: Literal[1] = Field(
        default=1, description="once: each trial tells how it was meanwhile"
    )

    @property
    def trials(self) -> int:
        """How many fill the time, at least one."""
        return max(1, round(self.hours * 3600 / self.trial_duration_s))

    @model_validator(mode="after")
    def _is_bounded(self) -> Self:
        if self.trials > MOST_SOAK_TRIALS:
            raise KeyedError(
                ("hours",),
                f"{self.hours:g} hours are {self.trials:,} trials of "
                f"{self.trial_duration_s:g} s (trial_duration_s): at most "
                f"{MOST_SOAK_TRIALS:,}",
            )
        if self.stateful:
            raise KeyedError(
                ("stateful",),
                "must be left out: connections would be opened anew in each trial",
            )
        return self


# System recovery (RFC 2544 26.5): how long frames are lost after an overload.


OVERLOAD_PERCENT = 110
OVERLOAD_S = 60
"""As RFC 2544 26.5 has them."""


class SystemRecoverySpec(StreamKeys):
    """How long the device needs after an overload (RFC 2544 26.5, RFC 8219 7.6)."""

    procedure: Literal["system-recovery"] = Field(description=told("system-recovery"))
    throughput_fps: FixedRate = Field(
        default="throughput",
        description="what the overload is a share of; the throughput that the campaign "
        "finds before, or frames per second",
    )
    overload_percent: Annotated[float, Field(gt=100, le=1000)] = Field(
        default=OVERLOAD_PERCENT,
        description="the overload in percent of the throughput; never more than the "
        "maximum rate (RFC 2544 26.5: 110)",
    )
    overload_duration_s: TrialDuration = Field(
        default=OVERLOAD_S,
        description="how long the overload is sent (RFC 2544 26.5: at least 60 s)",
    )
    reduced_duration_s: TrialDuration = Field(
        default=60,
        description="how long half of the overload is sent after it; what is still "
        "lost in its last tenth makes the recovery a lower bound",
    )
    repeats: RepeatNumber = Field(
        default=10,
        description="how often each test case is measured; the average counts (RFC "
        "2544 26.5: a number of times)",
    )

    @property
    def trial_duration_s(self) -> float:
        """Of overload and reduced load together."""
        return self.overload_duration_s + self.reduced_duration_s

    @property
    def rate_reference(self) -> RateReference | None:
        """The throughput, if the campaign finds it before."""
        known = self.throughput_fps
        return parse_rate_reference(known) if isinstance(known, str) else None

    @property
    def reference_use(self) -> ReferenceUse:
        """The overload is a share of it."""
        return "overload"

    @property
    def up_to_maximum(self) -> bool:
        """The overload is as much as the ports can offer, if that is less."""
        return True

    @property
    def most_repeats(self) -> int:
        """How often each cell is measured at most."""
        return self.repeats


_Any: TypeAlias = (
    ThroughputSpec
    | MulticastThroughputSpec
    | Dns64Spec
    | DnsSpec
    | FrameLossSpec
    | BackToBackSpec
    | LatencySpec
    | PdvSpec
    | IpdvSpec
    | TcpConnectionRateSpec
    | TcpCapacitySpec
    | TcpRequestRateSpec
    | TcpTeardownRateSpec
    | TcpHalfOpenSpec
    | IdleTimeoutSpec
    | NatBehaviourSpec
    | PortLimitSpec
    | NatLogSpec
    | ConnectionRateSpec
    | TableCapacitySpec
    | TeardownRateSpec
    | SystemRecoverySpec
    | OutageSpec
    | PowerSpec
    | SoakSpec
)
ProcedureSpec = Annotated[_Any, Field(discriminator="procedure")]
SPECS: dict[str, type[_Any]] = {spec.named(): spec for spec in get_args(_Any)}
"""The model of each procedure, by its name."""
