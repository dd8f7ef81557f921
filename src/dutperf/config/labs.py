"""Which lab: its name, and what is chosen of it."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from dutperf.errors import InputError
from dutperf.model.fields import Name, Strict
from dutperf.protocol.port_messages import PortSpec
from dutperf.visible import lab_name

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
