"""``campaign.yaml``: what to measure, where, and how carefully.

A campaign expands to independent cells (testbed x procedure x IP version x traffic
profile x frame size x direction); each needs one testbed. The resolved campaign,
written beside the results, is itself a valid campaign.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from dutperf.config.testbed import Testbed
from dutperf.errors import InputError
from dutperf.model.fields import (
    KeyedError,
    Listed,
    Name,
    OneOrMore,
    Strict,
    distinct,
    written_number,
)
from dutperf.model.loads import parse_rate_per_flow
from dutperf.model.rate_specs import QueryKeys, RateSearchKeys
from dutperf.model.requirements import Requirement, requirement
from dutperf.model.specs import (
    SPECS,
    CapacitySearchKeys,
    FixedLoadKeys,
    LatencySpec,
    OutageSpec,
    PowerSpec,
    ProcedureSpec,
)
from dutperf.protocol.port_messages import PortSpec
from dutperf.visible import lab_name

# Which lab: its name, and what is chosen of it.


_OWN_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9-]{0,15}")
"""Namespaces, sockets and their paths are called so, too: there is room for that."""
DEFAULT_RULES = 100
MOST_RULES = 10_000

RuleCount = Annotated[int, Field(ge=1, le=MOST_RULES)]


class LabKeys(Strict):
    """A lab and what is chosen of it."""

    name: str = Field(
        description="name of the lab; of several labs at once DEVICE@NAME"
    )
    rules: RuleCount | None = Field(
        default=None,
        description="linux-firewall: how many filters it has, the last one matches; "
        f"default: {DEFAULT_RULES}, or those of the lab that is kept; 1 and 25 are "
        "those of RFC 2544 11.4",
    )

    behaviour: dict[str, Any] | None = Field(
        default=None,
        description="known-answer, known-answer-veth: what the device is told "
        "(docs/known-answer.md); needs a lab that is not kept",
    )
    connections: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None,
        description="gateways whose kernel keeps connections: how many its table "
        "holds; default: 1,000,000; needs a lab that is not kept",
    )
    label: Name | None = Field(
        default=None,
        description="tells it from other labs of the same name in the campaign: "
        "its results are named after both",
    )

    @property
    def device(self) -> str:
        """Which of the labs that there are."""
        return self.name.partition("@")[0]

    @property
    def own_name(self) -> str | None:
        """What tells it from other labs on the machine; None: it is the nameless one.

        Raises:
            InputError: it cannot be called that.
        """
        _, named, own = self.name.partition("@")
        if not named:
            return None
        if not _OWN_NAME.fullmatch(own):
            raise InputError(
                f"a lab cannot be named {own!r}",
                "give 1 to 16 letters, digits or '-', the first a letter or digit",
            )
        return own

    @property
    def testbed_name(self) -> str:
        """The name of the lab as a testbed, by which it is told from others."""
        return lab_name(self.name, self.rules, self.label)


def _lab_kind(value: Any) -> str:  # noqa: ANN401 - raw YAML
    return "keys" if isinstance(value, dict | LabKeys) else "name"


LabOrName = Annotated[
    Annotated[str, Tag("name")] | Annotated[LabKeys, Tag("keys")],
    Discriminator(_lab_kind),
]


def lab_keys(given: str | LabKeys) -> LabKeys:
    """A lab however it was given."""
    return LabKeys(name=given) if isinstance(given, str) else given


# How many frames the tester can have on their way through a kernel port.
#
# Over a kernel interface a sent frame keeps one of the tester's buffers until the
# device has freed it. What the device queues must be less than that, or the queue never
# overflows: the tester stands still instead, and the device never loses a frame
# (``docs/adr/0003-kernel-sockets.md``).


IN_FLIGHT_FRAMES: int = PortSpec.model_fields["in_flight_frames"].default
"""Of one port, with AF_XDP as with AF_PACKET: the plan leaves the engine's default."""


# Presets: ``standard`` conforms, ``quick`` is for looking around.
#
# A preset gives times, repeats, tags and resolution. In a campaign file these are
# defaults, and what a procedure says itself wins. Given with a file on the command line
# they win over the file.


Preset = Literal["standard", "quick"]

_REPEATS = 20
_QUICK_TAGS = 500  # the fewest of RFC 8219 7.2
_QUICK_RESIDUAL_S = 0.3
_QUICK_HOURS = 0.01
_QUICK_QUERIES_S = 5.0
"""A server that stores queries has a second more for them: 20 % of this."""
_BY_THE_BOOK = (
    "trial_duration_s",
    "settle_wait_s",
    "residual_wait_s",
    "restabilise_wait_s",
    "resolution",
    "step",
    "repeats",
    "tags",
    "first_tag_s",
    "overload_duration_s",
    "reduced_duration_s",
    "trigger_after_s",
)
_OF_REPEATS = {"repeats", "interval_width", "max_repeats"}


def preset_keys(preset: Preset, procedure: Mapping[str, Any]) -> dict[str, Any]:
    """What the preset says for a procedure with these keys; nothing of an unknown one.

    Keys that depend on others are left to the defaults where the standard has none.
    """
    name = procedure.get("procedure")
    spec = SPECS.get(name) if isinstance(name, str) else None
    if spec is None:
        return {}
    found = _standard(spec) if preset == "standard" else _quick(spec, procedure)
    if procedure.get("search") == "mlrsearch":
        found["repeats"] = 1
    if procedure.get("rfc2544_latency") is True:
        found.pop("tags", None)
    return {key: value for key, value in found.items() if key in spec.model_fields}


def filled(preset: Preset, procedure: Mapping[str, Any]) -> dict[str, Any]:
    """``procedure`` with what the preset says of keys that it leaves out."""
    found = {**preset_keys(preset, procedure), **procedure}
    stateful = found.get("stateful")
    spec = SPECS.get(str(found.get("procedure")))
    is_capacity = spec is not None and issubclass(spec, CapacitySearchKeys)
    if preset == "quick" and is_capacity and isinstance(stateful, Mapping):
        found["stateful"] = {**_coarse(stateful.get("connections")), **stateful}
    return found


def _coarse(most: object) -> dict[str, int]:
    """A capacity to one percent of as many as may be tried; exact takes 20 tests."""
    given = most if isinstance(most, list) else [most]
    read = [written_number(str(each)) for each in given]
    known = [int(each) for each in read if each is not None]
    return {"error": max(1, min(known) // 100)} if known else {}


def with_preset(campaign: Campaign, preset: Preset) -> Campaign:
    """``campaign`` with what the preset says, whatever it said itself."""
    procedures = [_replaced(spec, preset) for spec in campaign.procedures]
    return campaign.model_copy(update={"procedures": procedures, "preset": preset})


def _standard(spec: type[ProcedureSpec]) -> dict[str, Any]:
    """RFC 2544 23 and 24, RFC 8219 7 and 12; the models' defaults conform."""
    fields = spec.model_fields
    found = {key: fields[key].default for key in _BY_THE_BOOK if key in fields}
    once = get_args(fields["repeats"].annotation) == (1,)
    if found["repeats"] == 1 and not once:
        found["repeats"] = _REPEATS
    return found


def _quick(spec: type[ProcedureSpec], procedure: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        "trial_duration_s": 1.0,
        "settle_wait_s": 0.1,
        "residual_wait_s": _residual_s(spec, procedure),
        "restabilise_wait_s": 0.1,
        "resolution": "5%",
        "step": "5%",
        "repeats": 3 if issubclass(spec, FixedLoadKeys) else 1,
        "overload_duration_s": 1.0,
        "reduced_duration_s": 1.0,
        "hours": _QUICK_HOURS,
    }
    if issubclass(spec, LatencySpec):
        found |= {"tags": _tags(procedure), "first_tag_s": 0.2}
    if issubclass(spec, QueryKeys):
        found |= {"trial_duration_s": _QUICK_QUERIES_S}
    if issubclass(spec, OutageSpec):
        found |= {"trial_duration_s": 20.0, "trigger_after_s": 1.0}
    if issubclass(spec, PowerSpec):
        found |= {"trial_duration_s": 10.0}
    return found


def _residual_s(spec: type[ProcedureSpec], procedure: Mapping[str, Any]) -> float:
    """Long enough that frames later than the timeouts are seen."""
    sweep = procedure.get("timeout_sweep_ms")
    timeout = spec.model_fields.get("frame_timeout_ms")
    timeouts = [
        procedure.get("frame_timeout_ms", timeout.default if timeout else None),
        *(sweep if isinstance(sweep, list) else []),
    ]
    known_ms = [t for t in timeouts if isinstance(t, int | float)]
    return max(_QUICK_RESIDUAL_S, 2 * max(known_ms, default=0) / 1000)


def _tags(procedure: Mapping[str, Any]) -> int:
    """At most every other frame of the second."""
    rate_fps = procedure.get("rate_fps")
    if isinstance(rate_fps, str):
        rate_fps = parse_rate_per_flow(rate_fps)
    if not isinstance(rate_fps, int):
        return _QUICK_TAGS
    return max(1, min(_QUICK_TAGS, rate_fps // 2))


def _replaced(spec: ProcedureSpec, preset: Preset) -> ProcedureSpec:
    keys = {key: getattr(spec, key) for key in spec.model_fields_set}
    given = {key: value for key, value in keys.items() if key not in _OF_REPEATS}
    if isinstance(spec, RateSearchKeys):
        given["goals"] = [
            goal.model_copy(update={"duration_sum_s": None}) for goal in spec.goals
        ]
    if isinstance(spec, CapacitySearchKeys) and preset == "quick":
        stateful = spec.stateful.model_dump(exclude_unset=True)
        given["stateful"] = {k: v for k, v in stateful.items() if k != "error"}
    return type(spec).model_validate(filled(preset, given | preset_keys(preset, given)))


def requiring(campaign: Campaign, texts: Sequence[str]) -> Campaign:
    """``campaign`` with more requirements; percentiles of delays are then measured.

    Raises:
        InputError: one is none, or of what is not measured.
    """
    if not texts:
        return campaign
    wanted = [requirement(text) for text in texts]
    percentiles = [
        float(each.figure[1:]) for each in wanted if _PERCENTILE.fullmatch(each.figure)
    ]
    given = {
        **dict(campaign),
        "require": [*campaign.require, *texts],
        "procedures": [
            spec.model_copy(
                update={
                    "percentiles": list(
                        dict.fromkeys([*spec.percentiles, *percentiles])
                    )
                }
            )
            if isinstance(spec, LatencySpec) and not spec.rfc2544_latency
            else spec
            for spec in campaign.procedures
        ],
    }
    for text, each in zip(texts, wanted, strict=True):
        if not any(_measures(spec, each) for spec in given["procedures"]):
            raise InputError(f"{text!r}: nothing here measures it", _what_does(each))
    return Campaign.model_validate(given)


_PERCENTILE = re.compile(r"p[0-9.]+")


def _measures(spec: ProcedureSpec, wanted: Requirement) -> bool:
    if spec.procedure != wanted.procedure:
        return False
    if isinstance(spec, LatencySpec):
        others = () if spec.rfc2544_latency else ("TL", "WCL")
        known = ("", *others, *(f"p{each:.12g}" for each in spec.percentiles))
        return wanted.figure in known
    return True


def _what_does(wanted: Requirement) -> str:
    if _PERCENTILE.fullmatch(wanted.figure):
        return f"give latency 'percentiles: [{wanted.figure[1:]}]'"
    return f"measure {wanted.procedure}, too"


def _testbed_kind(value: Any) -> str:  # noqa: ANN401 - raw YAML
    return "file" if isinstance(value, str) else "inline"


Cores = Annotated[int, Field(ge=1, le=4096)]
TestbedOrFile = Annotated[
    Annotated[Testbed, Tag("inline")] | Annotated[str, Tag("file")],
    Discriminator(_testbed_kind),
]


class Campaign(Strict):
    """What to measure, and where: at each of its testbeds or labs."""

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
    cores: OneOrMore[Cores] | Literal["all"] | None = Field(
        default=None,
        description="how many cores of the device are to be active (RFC 9693 5.2), or "
        "a list: each number makes a testbed of its own, NAME-4cores; all: 1, 2, 4 and "
        "so on, as many as this machine can spare for a lab; needs the hook set_cores; "
        "labs without it stay as they are beside those that have it",
    )
    require: Annotated[list[str], Listed()] = Field(
        default=[],
        description="what figures are to be, as 'throughput >= 200k' or 'p99 latency "
        "<= 500us': a run of which one is not ends with 4",
    )
    preset: Preset | None = Field(
        default=None,
        description="defaults of times, repeats, tags and resolution: standard (by the "
        "RFCs, 20 repeats) or quick (a second a trial, to look around)",
    )
    procedures: Annotated[list[ProcedureSpec], Field(min_length=1)] = Field(
        description="what to measure, in this order"
    )

    @field_validator("cores")
    @classmethod
    def _cores_once(
        cls, numbers: list[int] | Literal["all"] | None
    ) -> list[int] | Literal["all"] | None:
        return distinct(numbers) if isinstance(numbers, list) else numbers

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_preset(cls, data: Any) -> Any:  # noqa: ANN401 - raw YAML
        if not isinstance(data, dict) or data.get("preset") not in get_args(Preset):
            return data
        procedures = data.get("procedures")
        if not isinstance(procedures, list):
            return data
        preset = data["preset"]
        complete = [filled(preset, p) if isinstance(p, dict) else p for p in procedures]
        return {**data, "procedures": complete}

    @model_validator(mode="after")
    def _labs_or_testbeds(self) -> Self:
        if (self.lab is None) == (self.testbed is None):
            raise ValueError("give exactly one of the keys lab and testbed")
        if self.cores == "all" and self.lab is None:
            raise KeyedError(
                ("cores",),
                "all is for labs, whose device is on this machine",
                "give numbers",
            )
        return self

    @model_validator(mode="after")
    def _is_measured(self) -> Self:
        for number, text in enumerate(self.require):
            try:
                wanted = requirement(text)
            except InputError as error:
                raise KeyedError(
                    ("require", number), error.message, error.hint
                ) from None
            if not any(_measures(spec, wanted) for spec in self.procedures):
                missing = f"{text!r}: nothing here measures it"
                raise KeyedError(("require", number), missing, _what_does(wanted))
        return self

    @property
    def requirements(self) -> list[Requirement]:
        """What its figures are required to be."""
        return [requirement(text) for text in self.require]

    @property
    def labs(self) -> list[LabKeys]:
        """The labs, however they were given."""
        return [lab_keys(given) for given in self.lab or []]

    @property
    def testbeds(self) -> list[Testbed]:
        """The testbeds, once those given as files are loaded."""
        return [given for given in self.testbed or [] if isinstance(given, Testbed)]
