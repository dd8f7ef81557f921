"""``campaign.yaml``: what to measure, where, and how carefully.

A campaign expands to independent cells (testbed x procedure x IP version x traffic
profile x frame size x direction); each needs one testbed. The resolved campaign,
written beside the results, is itself a valid campaign.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from dutperf.config.fields import Name, OneOrMore, Strict, distinct
from dutperf.config.labs import LabKeys, LabOrName, lab_keys
from dutperf.config.presets import Preset, preset_keys
from dutperf.config.specs import ProcedureSpec
from dutperf.config.testbed import Testbed


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
    cores: OneOrMore[Cores] | None = Field(
        default=None,
        description="how many cores of the device are to be active (RFC 9693 5.2), or "
        "a list: each number makes a testbed of its own, NAME-4cores; needs the hook "
        "set_cores",
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
    def _cores_once(cls, numbers: list[int] | None) -> list[int] | None:
        return numbers and distinct(numbers)

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
    def _labs_or_testbeds(self) -> Self:
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
