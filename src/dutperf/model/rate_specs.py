"""The throughput (RFC 2544 26.1): the fastest rate at which no frame is lost.

Some defaults depend on other keys: a search that judges by how much was lost needs its
trials to the end, and what belongs to one search is left out of the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv6Network, ip_address
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from dutperf.model.fields import (
    AUTO,
    Goal,
    GoalSpec,
    KeyedError,
    Listed,
    MostRepeats,
    OneOrMore,
    RepeatCount,
    Search,
    Width,
    distinct,
)
from dutperf.model.frames import IpVersions
from dutperf.model.loads import (
    AROUND_THROUGHPUT,
    STANDARD_STEP_PERCENT,
    FixedRate,
    LossCriterion,
    RateReference,
    ThroughputReference,
    falling_loads,
    parse_rate_reference,
)
from dutperf.model.procedure_keys import (
    Direction,
    ReferenceUse,
    RepeatNumber,
    RetransmitKeys,
    SearchedKeys,
    StreamKeys,
    TcpKeys,
    TimedStreamKeys,
    told,
)
from dutperf.model.traffic import DEFAULT_GROUP, Traffic
from dutperf.protocol.trial_messages import (
    MAX_TIMEOUTS,
    ConnectionEnd,
    Dns,
    Tcp,
)
from dutperf.stats import LOOKS

# Keys of procedures that count losses: a frame that is too late may be one.
#
# A frame timeout changes what throughput and frame loss mean, and every result says so
# (paper 004).


def scaled(value: float, digits: int) -> Decimal:
    """``value`` as it was written, times 10^digits, exactly."""
    return Decimal(str(value)).scaleb(digits)


def whole(value: float, digits: int, unit: str) -> float:
    """``value``, of which 10^digits make a whole number of ``unit``.

    Raises:
        ValueError: they do not.
    """
    if not scaled(value, digits).is_finite():
        raise ValueError("must be a finite number")
    if scaled(value, digits) % 1:
        raise ValueError(f"must be whole {unit}, not {value!r}")
    return value


def _check_ms(value: float) -> float:
    return whole(value, 6, "nanoseconds")


Milliseconds = Annotated[float, Field(gt=0, le=86_400_000), AfterValidator(_check_ms)]


class LossKeys(TimedStreamKeys):
    """What throughput and frame loss have in common."""

    frame_timeout_ms: Milliseconds | None = Field(
        default=None,
        description="frames slower than this count as lost; in milliseconds, and "
        "not RFC 2544's measure",
    )
    timeout_sweep_ms: Annotated[
        list[Milliseconds], Field(max_length=MAX_TIMEOUTS), Listed()
    ] = Field(
        default=[],
        description="what each of these frame timeouts would lose, too; from the "
        "same trials, in milliseconds",
    )

    @field_validator("timeout_sweep_ms")
    @classmethod
    def _each_once(cls, values: list[float]) -> list[float]:
        return distinct(values)

    @model_validator(mode="after")
    def _seen_to_the_end(self) -> Self:
        """After the last frame only the residual wait is left to be late in."""
        given = {
            "frame_timeout_ms": self.frame_timeout_ms or 0,
            "timeout_sweep_ms": max(self.timeout_sweep_ms, default=0),
        }
        for key, longest_ms in given.items():
            if longest_ms and longest_ms >= self.residual_wait_s * 1000:
                raise KeyedError(
                    (key,),
                    f"{longest_ms:g} ms is not below the wait for late frames, "
                    f"{self.residual_wait_s:g} s: raise residual_wait_s, or frames "
                    "that are late would be taken for lost",
                )
        return self

    takes_bursts = True

    @property
    def up_to_maximum(self) -> bool:
        """Whether the highest load is as much as the ports can offer."""
        return True

    @property
    def frame_timeout_ns(self) -> int | None:
        """The frame timeout, exactly."""
        given_ms = self.frame_timeout_ms
        return None if given_ms is None else int(scaled(given_ms, 6))

    @property
    def timeout_sweep_ns(self) -> list[int]:
        """Further timeouts to tell the loss by, rising."""
        return sorted(int(scaled(each_ms, 6)) for each_ms in self.timeout_sweep_ms)


_VERIFIED_PERCENT = 0.5
"""Larger losses are no rare ones: one pass among them is luck."""


def _check_percent(value: float) -> float:
    return whole(value, 7, "parts per billion")


class RateSearchKeys(LossKeys, SearchedKeys):
    """How a throughput is searched for, of whatever frames (RFC 2544 26.1)."""

    repeats: RepeatCount = Field(
        default=1,
        description="how often each test case is measured; the median counts; auto "
        "repeats until the median is settled",
    )
    interval_width: Width | None = Field(
        default=None,
        description="repeats auto: until the median is known so closely; width of"
        " its 95 % confidence interval, a percentage of the median, "
        "or frames per second; default: 1%",
    )
    max_repeats: MostRepeats | None = Field(
        default=None,
        description="repeats auto: how often at most: 8, 16, 32 or 64; default: 64",
    )
    loss_tolerance_percent: Annotated[
        float, Field(ge=0, lt=100), AfterValidator(_check_percent)
    ] = Field(
        default=0,
        description="share of a direction's frames that may be lost; in percent, "
        "and above 0 it is not RFC 2544's throughput",
    )
    search: Search = Field(
        default="narrowed",
        description="classic, narrowed, verified or mlrsearch; classic starts "
        "each repeat between nothing and the maximum; narrowed does "
        "so until repeats agree exactly, and while they do the others"
        " measure only the two rates that matter; verified repeats a "
        "trial that lost frames before it counts (ETSI GS NFV-TST "
        "009); mlrsearch has several goals (RFC 9971)",
    )
    verify_trials: Annotated[int, Field(ge=2, le=10)] | None = Field(
        default=None,
        description="search verified: trials with loss until a rate has failed; "
        "default: 2",
    )
    max_verify_loss_percent: Annotated[float, Field(gt=0, lt=100)] | None = Field(
        default=None,
        description="search verified: a rate that lost more fails at once; in "
        "percent; default: 0.5; null: no limit",
    )
    goals: Annotated[list[Goal], Field(max_length=20), Listed()] = Field(
        default=[],
        description="search mlrsearch: losses that are tolerated: 0, 0.5% or "
        "0.5%:50%; after the colon in how much of the time they may "
        "be more; default: 0",
    )
    early_stop: bool = Field(
        default=True,
        description="end a trial once it is lost; when more frames are lost than "
        "may be; not for mlrsearch, which needs to know how many",
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_search(cls, data: Any) -> Any:  # noqa: ANN401 - raw YAML
        return {**_defaults(data), **data} if isinstance(data, Mapping) else data

    @model_validator(mode="after")
    def _search_fits(self) -> Self:
        for trouble in self._troubles():
            raise trouble
        return self

    @property
    def most_repeats(self) -> int:
        """How often each cell is measured at most."""
        return self.repeats if self.repeats != AUTO else self.max_repeats or LOOKS[-1]

    @property
    def loss_tolerance_ppb(self) -> int:
        """The tolerated loss in parts per billion, exactly."""
        return int(scaled(self.loss_tolerance_percent, 7))

    @property
    def loss_criterion(self) -> LossCriterion:
        """By what its trials are judged."""
        return LossCriterion(
            self.frame_timeout_ms,
            self.loss_tolerance_percent,
            self.verify_trials,
            self.max_verify_loss_percent,
            tuple(self.goals),
        )

    @property
    def timed_goals(self) -> list[GoalSpec]:
        """The goals, with how long a rate is measured for each."""
        return [
            goal.model_copy(
                update={"duration_sum_s": goal.duration_sum(self.trial_duration_s)}
            )
            for goal in self.goals
        ]

    def _troubles(self) -> Iterator[KeyedError]:
        """What of its keys does not fit the others."""
        if self.repeats != AUTO:
            yield from self._only_auto("interval_width")
            yield from self._only_auto("max_repeats")
        elif self.interval_width is not None:
            yield from _too_narrow(self.interval_width, self.resolution)
        if self.search != "verified":
            yield from self._belongs("verified", "verify_trials")
            yield from self._belongs("verified", "max_verify_loss_percent")
        elif self.max_verify_loss_percent is not None and self.early_stop:
            yield KeyedError(
                ("early_stop",),
                "must be false with search verified: a trial that is ended early does "
                "not tell how much it would have lost (max_verify_loss_percent)",
            )
        if self.search != "mlrsearch":
            yield from self._belongs("mlrsearch", "goals")
        else:
            yield from self._mlr_troubles()
            yield from self._goal_troubles()

    def _belongs(self, search: Search, key: str) -> Iterator[KeyedError]:
        if getattr(self, key) != type(self).model_fields[key].default:
            yield KeyedError(
                (key,), f"belongs to search {search}, not to {self.search}"
            )

    def _only_auto(self, key: str) -> Iterator[KeyedError]:
        if getattr(self, key) is not None:
            yield KeyedError(
                (key,), "belongs to repeats auto, not to a number of repeats"
            )

    def _mlr_troubles(self) -> Iterator[KeyedError]:
        if self.early_stop:
            yield KeyedError(
                ("early_stop",),
                "must be false with mlrsearch, which needs whole trials",
            )
        if self.repeats != 1:
            yield KeyedError(
                ("repeats",),
                "must be 1 with mlrsearch: how often a rate is measured follows from "
                "its goals (duration_sum_s)",
            )
        if not self.resolution.endswith("%"):
            yield KeyedError(
                ("resolution",),
                "must be a percentage with mlrsearch (RFC 9971: goal width), not "
                f"{self.resolution} frames per second",
            )
        if self.loss_tolerance_percent:
            yield KeyedError(
                ("loss_tolerance_percent",),
                "must be left out with mlrsearch, where a goal says what may be lost: "
                f"{self.loss_tolerance_percent:.12g}%",
            )

    def _goal_troubles(self) -> Iterator[KeyedError]:
        if not self.goals:
            yield KeyedError(("goals",), "must have at least 1 entry, or be left out")
        trial_s = self.trial_duration_s
        seen = set()
        for goal in self.goals:
            duration_s = goal.duration_sum(trial_s)
            if duration_s < trial_s:
                yield KeyedError(
                    ("goals",),
                    f"duration_sum_s {duration_s:g} is less than one trial, "
                    f"{trial_s:g} s (trial_duration_s)",
                )
            if (goal.loss_percent, goal.exceed_percent, duration_s) in seen:
                yield KeyedError(
                    ("goals",), f"must not list {goal.loss_percent:.12g}% twice"
                )
            seen.add((goal.loss_percent, goal.exceed_percent, duration_s))


def _defaults(data: Mapping[str, Any]) -> dict[str, Any]:
    """Keys whose defaults depend on other keys."""
    found: dict[str, Any] = {}
    if data.get("search") == "verified":
        found |= {"verify_trials": 2, "max_verify_loss_percent": _VERIFIED_PERCENT}
    if data.get("search") == "mlrsearch":
        found["goals"] = [{}]
    verified = {**found, **data}.get("max_verify_loss_percent") is not None
    if data.get("search") == "mlrsearch" or verified:
        found["early_stop"] = False
    if data.get("repeats") == AUTO:
        width = _default_width(str(data.get("resolution")))
        found |= {"interval_width": width, "max_repeats": LOOKS[-1]}
    return found


def _default_width(resolution: str) -> str:
    """One percent, but never narrower than the resolution."""
    if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?%", resolution):
        return resolution if Fraction(resolution[:-1]) > 1 else "1%"
    return "1%"


def _too_narrow(width: str, resolution: str) -> Iterator[KeyedError]:
    """An interval that no search could reach, however often it is repeated."""
    number, unit = width.removesuffix("%"), width[-1:] == "%"
    known, known_unit = resolution.removesuffix("%"), resolution[-1:] == "%"
    if unit == known_unit and Fraction(number) < Fraction(known):
        yield KeyedError(
            ("interval_width",),
            f"must not be narrower than the resolution, {resolution}: no search knows "
            f"its result to {width}",
        )


# The frame loss rate (RFC 2544 26.3): loss over the whole range of loads.


Percent = Annotated[float, Field(gt=0, le=1000)]


class ThroughputSpec(RateSearchKeys):
    """The throughput (RFC 2544 26.1)."""

    procedure: Literal["throughput"] = Field(description=told("throughput"))


class MulticastThroughputSpec(RateSearchKeys):
    """The throughput of frames to one group (RFC 3918 4.3), whose members are right."""

    is_one_way = True

    procedure: Literal["multicast-throughput"] = Field(
        description=told("multicast-throughput")
    )
    direction: OneOrMore[Direction] = Field(
        default=["forward"],
        description="forward: the group's members are on the right side; reverse: on "
        "the left side; several: a test case of each",
    )

    traffic: OneOrMore[Traffic] = Field(
        default=[Traffic(group=DEFAULT_GROUP)],
        description="as of other procedures, to a group",
    )

    @field_validator("traffic")
    @classmethod
    def _to_a_group(cls, profiles: list[Traffic]) -> list[Traffic]:
        return [
            each if each.group else each.model_copy(update={"group": DEFAULT_GROUP})
            for each in profiles
        ]

    @model_validator(mode="after")
    def _on_one_side(self) -> Self:
        if "both" in self.direction:
            raise KeyedError(
                ("direction",),
                "must be forward or reverse: a group's members are on one side",
            )
        if self.flows or self.stateful:
            raise KeyedError(
                ("flows" if self.flows else "stateful",), "must be left out: one group"
            )
        return self


def _check_prefix(text: str) -> str:
    try:
        network = IPv6Network(text)
    except ValueError:
        raise ValueError(f"must be an IPv6 prefix, not {text[:60]!r}") from None
    if network.prefixlen not in _PREFIX_BITS:
        lengths = ", ".join(f"/{bits}" for bits in _PREFIX_BITS)
        raise ValueError(f"must be one of {lengths}, not a /{network.prefixlen}")
    return str(network)


def _check_server(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise ValueError(f"must be an IP address, not {text[:60]!r}") from None


_Share = Annotated[int, Field(ge=0, le=100)]
_PREFIX_BITS = (32, 40, 48, 56, 64, 96)
"""RFC 6052 2.2."""
_QUERY_MS = 1000
_QUERY_SIZES = {90, 110}
"""Of IPv4 and IPv6: ``config.sizes.query_size``."""


class QueryKeys(RateSearchKeys):
    """What throughput is of queries to a DNS server, one frame each (RFC 8219 9)."""

    is_one_way = True
    takes_beside = False
    takes_bursts = False
    without = (
        "frame_size",
        "flows",
        "stateful",
        *(
            f"traffic.{name}"
            for name in (
                "mix",
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

    direction: OneOrMore[Direction] = Field(
        default=["forward"],
        description="forward: the left side asks, the right one is the authority; "
        "reverse: the other way",
    )
    frame_timeout_ms: Milliseconds | None = Field(
        default=_QUERY_MS,
        description="queries that are answered later count as lost; in milliseconds; "
        "RFC 8219 9.2: at most 1,000",
    )
    cached_percent: OneOrMore[_Share] = Field(
        default=[0],
        description="of each hundred queries so many ask for names that the device has "
        "cached; several: a test case of each",
    )
    cached_names: Annotated[int, Field(ge=1000, le=1_000_000, multiple_of=100)] = Field(
        default=10_000,
        description="how many names are cached, for those queries",
    )
    server: Annotated[str, AfterValidator(_check_server)] | None = Field(
        default=None,
        description="the device's address, that is asked; default: the gateway's",
    )

    @field_validator("cached_percent")
    @classmethod
    def _cached_once(cls, values: list[int]) -> list[int]:
        return distinct(values)

    @property
    def loss_criterion(self) -> LossCriterion:
        """Of another timeout than RFC 8219's."""
        found = super().loss_criterion
        if self.frame_timeout_ms == _QUERY_MS:
            return replace(found, frame_timeout_ms=None)
        return found

    @property
    def shares(self) -> list[tuple[int, int]]:
        """Cached and with an AAAA, of each test case."""
        return [(cached, 0) for cached in self.cached_percent]

    @model_validator(mode="after")
    def _one_sided(self) -> Self:
        if "both" in self.direction:
            raise KeyedError(
                ("direction",), "must be forward or reverse: one side asks"
            )
        words = "must be left out: each frame is a query"
        if set(self.frame_size) - _QUERY_SIZES:
            raise KeyedError(("frame_size",), words)
        self._check_without(words)
        return self


class Dns64Spec(QueryKeys):
    """How fast a DNS64 server answers (RFC 8219 9): throughput, of queries."""

    procedure: Literal["dns64"] = Field(description=told("dns64"))
    ip: OneOrMore[IpVersions] = Field(
        default=["6-4"],
        description="6-4: the authority is asked by IPv4; 6: by IPv6; clients of a "
        "DNS64 server have IPv6 (RFC 8219 9.1)",
    )
    aaaa_percent: OneOrMore[_Share] = Field(
        default=[0],
        description="of each hundred names so many have an AAAA of their own (RFC "
        "8219 9.2: first 0); several: a test case of each",
    )
    prefix: Annotated[str, AfterValidator(_check_prefix)] = Field(
        default="64:ff9b::/96",
        description="put before each A: 32, 40, 48, 56, 64 or 96 bits (RFC 6052 2.2)",
    )

    @field_validator("aaaa_percent")
    @classmethod
    def _shares_once(cls, values: list[int]) -> list[int]:
        return distinct(values)

    @property
    def dns(self) -> Dns:
        """What the engine is told."""
        network = IPv6Network(self.prefix)
        return Dns.model_validate(
            {
                "names": 0,
                "aaaa_percent": self.aaaa_percent[0],
                "prefix": str(network.network_address),
                "prefix_length": network.prefixlen,
            }
        )

    @property
    def shares(self) -> list[tuple[int, int]]:
        """Of names that are all cached it does not matter what they have (9.2)."""
        return [
            (cached, aaaa)
            for cached in self.cached_percent
            for aaaa in self.aaaa_percent[: 1 if cached == 100 else None]
        ]

    @model_validator(mode="after")
    def _clients_have_ipv6(self) -> Self:
        if wrong := [ip for ip in self.ip if ip not in (6, "6-4", "4-6")]:
            raise KeyedError(
                ("ip",), f"{wrong[0]} has no IPv6 clients: it must be 6-4 or 6"
            )
        return self


class DnsSpec(QueryKeys):
    """How fast a DNS resolver answers: throughput, of queries (as RFC 8219 9.2)."""

    procedure: Literal["dns"] = Field(description=told("dns"))
    ip: OneOrMore[IpVersions] = Field(
        default=[4],
        description="IP version of the clients: 4 or 6; by which the device asks the "
        "authority is its own to choose",
    )
    record: Literal["A", "AAAA"] = Field(
        default="A", description="what queries ask for; each name has one of it"
    )

    @property
    def dns(self) -> Dns:
        """What the engine is told: nothing is put before an A."""
        record: Literal["a", "aaaa"] = "a" if self.record == "A" else "aaaa"
        return Dns(names=0, aaaa_percent=100, prefix="::", record=record)

    @model_validator(mode="after")
    def _one_version(self) -> Self:
        if wrong := [ip for ip in self.ip if ip not in (4, 6)]:
            raise KeyedError(("ip",), f"{wrong[0]}: a resolver is asked by 4 or 6")
        return self


class TcpConnectionRateSpec(RetransmitKeys, RateSearchKeys):
    """How fast TCP connections may come (RFC 8219 8, RFC 3511 5.3)."""

    is_one_way = True
    without = ("flows", "stateful", *TcpKeys.without)

    procedure: Literal["tcp-connection-rate"] = Field(
        description=told("tcp-connection-rate")
    )
    direction: OneOrMore[Direction] = Field(
        default=["forward"],
        description="forward: the left side opens the connections; reverse: the right "
        "side; several: a test case of each",
    )
    until: ConnectionEnd = Field(
        default="closed",
        description="how far each connection goes; half_open: SYN, SYN-ACK; opened: "
        "the ACK, too; answered: a GET of HTTP/1.1 and its response after them; "
        "closed: both sides' FIN, too",
    )

    @property
    def tcp(self) -> Tcp:
        """What the engine is told."""
        return self._segments(until=self.until)

    @model_validator(mode="after")
    def _from_one_side(self) -> Self:
        if "both" in self.direction:
            raise KeyedError(
                ("direction",),
                "must be forward or reverse: connections are opened from one side",
            )
        return self


class FrameLossSpec(LossKeys):
    """Frame loss over offered load (RFC 2544 26.3)."""

    procedure: Literal["frame-loss"] = Field(description=told("frame-loss"))
    load_percent: Annotated[
        list[Percent], Field(min_length=1, max_length=1000), Listed()
    ] = Field(
        default=[],
        description="loads in percent of the maximum rate; default: as "
        "load_step_percent says; with rate_fps: in percent of that, which may be above "
        "100, default: 200 to 50",
    )
    load_step_percent: Annotated[float, Field(ge=0.1, le=10)] | None = Field(
        default=None,
        description="from 100 % down in such steps (RFC 2544 26.3: at most 10); "
        "until two loads in a row are lossless; finer is encouraged; "
        "default: 10",
    )
    rate_fps: ThroughputReference | None = Field(
        default=None,
        description="what 100 % is: throughput, or 90% of throughput; "
        "throughput is the one that the campaign finds before; "
        "default: the maximum rate",
    )
    repeats: RepeatNumber = Field(
        default=1, description="how often each load is measured; the median counts"
    )

    @field_validator("load_percent")
    @classmethod
    def _loads_once(cls, values: list[float]) -> list[float]:
        return distinct(values)

    @model_validator(mode="after")
    def _one_kind_of_load(self) -> Self:
        if self.load_step_percent is not None:
            if self.load_percent:
                raise ValueError("give load_percent or load_step_percent, not both")
            if self.rate_fps is not None:
                raise ValueError(
                    "load_step_percent is of the maximum rate: with rate_fps give "
                    "load_percent"
                )
        highest = max(self.load_percent, default=0)
        if highest > 100 and not self.rate_fps:
            raise KeyedError(
                ("load_percent",),
                f"{highest:g} is above 100: give rate_fps: throughput "
                "for loads in percent of the throughput",
            )
        return self

    @property
    def loads_percent(self) -> list[float]:
        """All loads, the highest first."""
        if self.load_percent:
            return sorted(self.load_percent, reverse=True)
        if self.rate_fps:
            return list(AROUND_THROUGHPUT)
        return falling_loads(self.load_step_percent or STANDARD_STEP_PERCENT)

    @property
    def rate_reference(self) -> RateReference | None:
        """What 100 % is, if it is known only when the throughput was found."""
        return None if self.rate_fps is None else parse_rate_reference(self.rate_fps)

    @property
    def reference_use(self) -> ReferenceUse:
        """What ``rate_reference`` is for."""
        return "full load"

    @property
    def most_repeats(self) -> int:
        """How often each load is measured at most."""
        return self.repeats

    @property
    def loss_criterion(self) -> LossCriterion:
        """By what its trials are judged."""
        return LossCriterion(frame_timeout_ms=self.frame_timeout_ms)


# Back-to-back frames (RFC 9004): the longest burst that a device takes without loss.
#
# Bursts are sent at the maximum rate, so what can be chosen is how long they may be,
# and how the search for the longest one goes (ETSI GS NFV-TST 009 12.3).


class BackToBackSpec(StreamKeys):
    """The longest burst without loss (RFC 9004, RFC 2544 26.4)."""

    procedure: Literal["back-to-back"] = Field(description=told("back-to-back"))
    throughput_fps: FixedRate = Field(
        default="throughput",
        description="what frames leave the device's buffer at (RFC 9004 6.4); the"
        " buffer time is corrected by it; the throughput that the "
        "campaign finds before, or frames per second",
    )
    longest_burst_s: Annotated[float, Field(ge=0.0001, le=30)] = Field(
        default=2,
        description="how long the longest burst takes (RFC 9004 6.2: up to 30 s)",
    )
    step: Width = Field(
        default="1",
        description="where the search stops, in frames or '5%' of the burst; RFC "
        "9004 6.2: minimum step size",
    )
    verify_trials: Annotated[int, Field(ge=1, le=10)] = Field(
        default=2,
        description="trials with loss until a burst is too long; binary search "
        "with loss verification; 1: binary search",
    )
    max_verify_loss_percent: Annotated[float, Field(gt=0, le=100)] = Field(
        default=10,
        description="a burst that lost more is not tried again; in percent",
    )
    repeats: RepeatNumber = Field(
        default=50,
        description="how many searches; their average counts (RFC 2544 26.4: at least "
        "50)",
    )

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        for number, profile in enumerate(self.traffic):
            for key in ("imix", "pcap"):
                if getattr(profile, key) is None:
                    continue
                raise KeyedError(
                    ("traffic", number, key),
                    "must be left out: bursts have frames of one size (RFC 9004 3)",
                )
        return self

    @property
    def trial_duration_s(self) -> float:
        """Of the longest burst."""
        return self.longest_burst_s

    @property
    def rate_reference(self) -> RateReference | None:
        """The throughput, if the campaign finds it before."""
        known = self.throughput_fps
        return parse_rate_reference(known) if isinstance(known, str) else None

    @property
    def reference_use(self) -> ReferenceUse:
        """The buffer time is corrected by it."""
        return "correction"

    @property
    def up_to_maximum(self) -> bool:
        """Bursts are at the maximum rate."""
        return True

    @property
    def most_repeats(self) -> int:
        """How often each cell is measured at most."""
        return self.repeats
