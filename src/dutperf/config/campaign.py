"""``campaign.yaml``: what to measure, where, and how carefully.

A campaign expands to independent cells (place x procedure x IP version x traffic
profile x frame size x direction); each needs one testbed. The resolved campaign,
written beside the results, is itself a valid campaign.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from dutperf.config.delay_keys import (
    NEEDS_CONNECTIONS,
    ONLY_FOR,
    PHASE2,
    DelaySettings,
    Procedure,
    procedure_defaults,
)
from dutperf.config.fields import Listed, Name, OneOrMore, Strict, repeated
from dutperf.config.flow_count import FlowCount
from dutperf.config.frame_size import ALL_SIZES, SizeOrAll
from dutperf.config.labs import LabKeys, LabOrName, lab_keys
from dutperf.config.presets import Preset, preset_keys
from dutperf.config.search_keys import (
    RepeatCount,
    SearchSettings,
    Width,
    search_defaults,
)
from dutperf.config.stateful_keys import Stateful, StatefulKeys
from dutperf.config.testbed import Testbed
from dutperf.config.traffic import Traffic
from dutperf.config.versions import IpVersions

Direction = Literal["both", "forward", "reverse"]
Seconds = Annotated[float, Field(ge=0, le=86400)]
Percent = Annotated[float, Field(gt=0, le=1000)]


class TrialTimes(Strict):
    """The times of one trial (RFC 2544 23 and 24); the defaults are the RFC's."""

    trial_duration_s: Annotated[float, Field(ge=0.01, le=86400)] = Field(
        default=60,
        description="how long to send (RFC 2544 24: at least 60 s; latency: 120 s, "
        "RFC 8219 7.2)",
    )
    settle_wait_s: Seconds = Field(
        default=2, description="wait after the learning frames (RFC 2544 23 b)"
    )
    residual_wait_s: Seconds = Field(
        default=2, description="wait for late frames (RFC 2544 23 d)"
    )
    restabilise_wait_s: Seconds = Field(
        default=5, description="rest of the DUT before the next trial (RFC 2544 23 e)"
    )


def _check_spread(profile: Traffic) -> None:
    """Refuse what ``flows`` would overrule."""
    for key in ("flows", "ports", "addresses", "networks"):
        if getattr(profile, key) != Traffic.model_fields[key].default:
            raise ValueError(
                f"flows: says what varies, so leave traffic.{key} out; or give no flows"
            )


class ProcedureSpec(TrialTimes, DelaySettings, SearchSettings):
    """One procedure over a matrix of cells."""

    procedure: Procedure = Field(
        description="throughput (RFC 2544 26.1), frame-loss (RFC 2544 26.3), latency "
        "(RFC 8219 7.2), pdv (RFC 8219 7.3.1), ipdv (RFC 8219 7.3.2), "
        "connection-rate (RFC 9693 4.5, 4.6), table-capacity (RFC 9693 4.9) or "
        "teardown-rate (RFC 9693 4.8)"
    )
    places: list[Name] = Field(
        default=[],
        description="at which of the campaign's labs or testbeds, by their names; "
        "empty: at all of them",
    )
    ip: list[IpVersions] = Field(
        default=[],
        description="IP versions: 4, 6, or left-right 6-4, 4-6; empty: the translation "
        "that the testbed's virtual addresses are for, else all that both sides have",
    )
    frame_size: Annotated[list[SizeOrAll], Listed()] = Field(
        default=[],
        description="frame sizes in bytes with FCS; where IPv4 and IPv6 frames occur "
        "in one trial, of the IPv6 ones: IPv4 frames are 20 bytes shorter; all: those "
        "of RFC 2544 9.1, RFC 5180 5.1.1 and RFC 8219 5.1.1 that the MTU carries; "
        "empty: the smallest, 64 for IPv4 and 84 for IPv6",
    )
    direction: OneOrMore[Direction] = Field(
        default=["both"],
        description="forward: left to right; RFC 8219 5.3 asks for both at once; "
        "several: a cell of each",
    )
    resolution: Width = Field(
        default="0.1%",
        description="throughput: where the search stops; '5%' of the result, or "
        "frames per second, 1000",
    )
    max_rate_fps: Annotated[int, Field(ge=1, le=10**12)] | None = Field(
        default=None,
        description="highest load per direction; default: the testbed's, else the "
        "media's",
    )
    repeats: RepeatCount = Field(
        default=1,
        description="how often each cell is measured; the median counts (latency, pdv, "
        "ipdv: 20, RFC 8219 7.2); throughput: auto repeats until the median is settled",
    )
    load_percent: Annotated[list[Percent], Field(max_length=1000)] = Field(
        default=[],
        description="frame-loss: loads in percent of the maximum rate; empty: as "
        "load_step_percent says; with rate_fps: throughput in percent of that, which "
        "may be above 100, empty: 200 to 50",
    )
    load_step_percent: Annotated[float, Field(ge=0.1, le=10)] | None = Field(
        default=None,
        description="frame-loss: from 100 % down in steps of so much until two loads "
        "in a row are lossless (RFC 2544 26.3: at most 10; finer is encouraged); "
        "default: 10",
    )
    lag_limit_ms: Annotated[float, Field(gt=0, le=10000)] = Field(
        default=10, description="a sender ten times as far behind its schedule gives up"
    )
    burst_limit: Annotated[int, Field(ge=1, le=64)] = Field(
        default=32, description="most frames sent at once when behind the schedule"
    )

    flows: Annotated[list[FlowCount], Listed()] = Field(
        default=[],
        description="overload scalability (RFC 8219 10.2.1): a cell for each number of "
        "network flows that the frames are spread over; begin with 1, which the others "
        "are compared with",
    )
    traffic: OneOrMore[Traffic] = Field(
        default=[Traffic()],
        description="what the frames look like beside their size; several profiles, "
        "each with a name of its own: cells of each",
    )

    stateful: StatefulKeys | None = Field(
        default=None,
        description="connections through a stateful gateway (RFC 9693): "
        "connection-rate, table-capacity and teardown-rate are about these; other "
        "procedures are measured on them, opened anew before each trial",
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_procedure(cls, data: Any) -> Any:  # noqa: ANN401 - raw YAML
        if not isinstance(data, dict):
            return data
        defaults = procedure_defaults(
            data.get("procedure"), legacy=data.get("legacy") is True
        )
        return {**defaults, **search_defaults(data), **data}

    @field_validator("places", "ip", "frame_size", "direction", "load_percent", "flows")
    @classmethod
    def _distinct(cls, values: list[Any]) -> list[Any]:
        twice = repeated(values)
        if twice is not None:
            raise ValueError(f"must not list {values[twice]} twice")
        return values

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

    def is_for(self, place: str) -> bool:
        """Whether it is to be measured there."""
        return not self.places or place in self.places

    @model_validator(mode="after")
    def _one_kind_of_load(self) -> Self:
        if self.load_step_percent is not None:
            if self.procedure != "frame-loss":
                raise ValueError("load_step_percent belongs to frame-loss")
            if self.load_percent:
                raise ValueError("give load_percent or load_step_percent, not both")
            if self.rate_fps is not None:
                raise ValueError(
                    "load_step_percent is of the maximum rate: with rate_fps give "
                    "load_percent"
                )
        return self

    @model_validator(mode="after")
    def _loads_fit_procedure(self) -> Self:
        if self.load_percent and self.procedure != "frame-loss":
            raise ValueError(
                "load_percent belongs to frame-loss; a throughput search finds its "
                "loads itself, and the other procedures have a rate_fps"
            )
        highest = max(self.load_percent, default=0)
        if highest > 100 and not self.found_rate:
            raise ValueError(
                f"load_percent: {highest:g} is above 100: give rate_fps: throughput "
                "for loads in percent of the throughput"
            )
        return self

    @model_validator(mode="after")
    def _delays_fit(self) -> Self:
        for trouble in self.delay_troubles(
            self.procedure, self.trial_duration_s, self.residual_wait_s
        ):
            raise ValueError(trouble)
        return self

    @model_validator(mode="after")
    def _search_fits(self) -> Self:
        for trouble in self.search_troubles(
            self.procedure,
            self.repeats,
            self.resolution,
            self.trial_duration_s,
            self.loss_tolerance_percent,
        ):
            raise ValueError(trouble)
        return self

    @model_validator(mode="after")
    def _stateful_fits(self) -> Self:
        if self.stateful is None:
            if self.procedure in NEEDS_CONNECTIONS:
                raise ValueError(
                    f"stateful: is missing: {self.procedure} needs to know how many "
                    "connections to open (--connections)"
                )
            return self
        for trouble in [
            *self._misplaced_connections(self.stateful),
            *self._unfit_connections(self.stateful),
            *self._stateless(self.stateful),
        ]:
            raise ValueError(trouble)
        return self

    def _misplaced_connections(self, stateful: StatefulKeys) -> Iterator[str]:
        for key, field in StatefulKeys.model_fields.items():
            wanted = ONLY_FOR[f"stateful.{key}"]
            given = field.is_required() or getattr(stateful, key) != field.default
            if given and self.procedure not in wanted:
                names = " and ".join(sorted(wanted))
                yield f"stateful.{key}: belongs to {names}, not to {self.procedure}"
        if self.procedure in PHASE2 and stateful.phase1_rate is None:
            yield (
                "stateful.phase1_rate: is missing: how fast connections are opened "
                "before each trial, safely below the connection rate (--phase1-rate)"
            )

    def _unfit_connections(self, stateful: StatefulKeys) -> Iterator[str]:
        for profile in self.traffic:
            yield from stateful.troubles(self.procedure, profile.addresses)

    def _stateless(self, stateful: StatefulKeys) -> Iterator[str]:
        """Keys that a stateful test has no use for."""
        may_mix = self.procedure in PHASE2
        if not may_mix and self.direction not in (["both"], [stateful.direction]):
            yield (
                "direction: must be left out: stateful.initiator says who opens "
                "connections"
            )
        if self.flows:
            yield "flows: must be left out of a stateful test (stateful.connections)"
        for profile in self.traffic:
            if profile.networks != type(profile.networks)():
                yield (
                    "traffic: networks must be left out of a stateful test: "
                    "connections differ by ports and addresses (RFC 9693 4.1)"
                )
            if profile.imix or profile.flows:
                yield "traffic: imix and flows must be left out of a stateful test"
            if profile.has_background and not may_mix:
                yield f"traffic: mix must be left out of {self.procedure}"

    @model_validator(mode="after")
    def _flows_fit(self) -> Self:
        if self.flows:
            for profile in self.traffic:
                _check_spread(profile)
        return self

    @property
    def profiles(self) -> list[Traffic]:
        """The traffic of its cells, with each number of flows."""
        if not self.flows:
            return self.traffic
        return [each.with_flows(n) for each in self.traffic for n in self.flows]

    @model_validator(mode="after")
    def _one_kind_of_size(self) -> Self:
        if ALL_SIZES in self.frame_size and len(self.frame_size) > 1:
            raise ValueError("frame_size: all stands alone: it has the others in it")
        if self.frame_size and any(profile.imix for profile in self.traffic):
            raise ValueError("give frame_size or traffic.imix, not both")
        return self


def _place_kind(value: Any) -> str:  # noqa: ANN401 - raw YAML
    return "file" if isinstance(value, str) else "inline"


TestbedOrFile = Annotated[
    Annotated[Testbed, Tag("inline")] | Annotated[str, Tag("file")],
    Discriminator(_place_kind),
]


class Campaign(Strict):
    """What to measure, and where: at each of its places, a lab or a testbed."""

    schema_version: Literal[1] = Field(default=1, description="version of this format")
    name: Name = Field(description="name of the campaign, for results and reports")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(
        default=1, description="the same seed gives the same frames"
    )
    lab: OneOrMore[LabOrName] | None = Field(
        default=None,
        description="a lab by its name or by keys, or a list of these; instead of "
        "testbed",
    )
    testbed: OneOrMore[TestbedOrFile] | None = Field(
        default=None,
        description="a testbed, or the path of its file as seen from this one; or a "
        "list of these, whose names differ",
    )
    preset: Preset | None = Field(
        default=None,
        description="defaults of times, repeats, tags and resolution: standard (by the "
        "RFCs, 20 repeats) or quick (a second a trial, to look around)",
    )
    procedures: Annotated[list[ProcedureSpec], Field(min_length=1)] = Field(
        description="what to measure, in this order"
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_preset(cls, data: Any) -> Any:  # noqa: ANN401 - raw YAML
        if not isinstance(data, dict) or data.get("preset") not in get_args(Preset):
            return data
        procedures = data.get("procedures")
        if not isinstance(procedures, list):
            return data
        preset = data["preset"]
        filled = [
            {**preset_keys(preset, p), **p} if isinstance(p, dict) else p
            for p in procedures
        ]
        return {**data, "procedures": filled}

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.lab is None) == (self.testbed is None):
            raise ValueError("give exactly one of the keys lab and testbed")
        return self

    @property
    def labs(self) -> list[LabKeys]:
        """The labs, however they were given."""
        return [lab_keys(given) for given in self.lab or []]

    @property
    def testbeds(self) -> list[Testbed]:
        """The testbeds, once those given as files are loaded."""
        return [given for given in self.testbed or [] if isinstance(given, Testbed)]


class Cell(TrialTimes, DelaySettings, SearchSettings):
    """A procedure at one choice of place, IP versions, size, profile and direction.

    ``frame_sizes`` are of the IPv6 frames where both IP versions occur, see
    ``config.sizes``; more than one: an IMIX. ``load_percent`` falls strictly; it is
    empty for all but frame-loss. ``repeats`` is how often at most, where ``auto``.
    """

    id: str
    place: str | None = None
    procedure: Procedure
    ip: IpVersions
    frame_sizes: list[int]
    direction: Direction
    resolution: str
    max_rate_fps: int | None
    repeats: int
    load_percent: list[float]
    lag_limit_ms: float
    burst_limit: int
    traffic: Traffic
    stateful: Stateful | None = None
    seed: int
    throughput_cell: str | None = Field(
        default=None, description="id of the cell that finds rate_fps"
    )
    connection_cell: str | None = Field(
        default=None, description="id of the cell that finds stateful.phase1_rate"
    )

    @property
    def phase2(self) -> Stateful | None:
        """The connections that are opened before each of its trials, if any are."""
        return self.stateful if self.procedure in PHASE2 else None

    @property
    def auto(self) -> bool:
        """Whether it is repeated only until the median is settled."""
        return self.interval_width is not None

    @property
    def imix(self) -> bool:
        """Whether the sizes are a sequence."""
        return self.traffic.imix is not None
