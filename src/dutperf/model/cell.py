"""One thing to measure: a procedure at one choice of all that a campaign lists."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import Field

from dutperf.catalogue import PROCEDURES, Family, ProcedureName
from dutperf.model.fields import AUTO, Strict
from dutperf.model.frames import IpVersions
from dutperf.model.procedure_keys import Direction, ProcedureKeys, StreamKeys
from dutperf.model.specs import ProcedureSpec
from dutperf.model.stateful_keys import Stateful
from dutperf.model.traffic import Traffic
from dutperf.protocol.base import MAX_PAIRS

Spec = TypeVar("Spec", bound=ProcedureKeys)


class Cell(Strict):
    """What to measure at one testbed.

    ``spec`` is of this cell alone: with one IP version, size, profile, direction and
    number of connections. What beside it depends on the testbed stands here.
    ``frame_sizes`` are of the IPv6 frames where both IP versions occur, see
    ``config.sizes``; more than one: an IMIX, or
    those of a capture.
    """

    id: str
    testbed: str | None = None
    series: str | None = Field(
        default=None,
        description="name of what it has in common with test cases of other frame "
        "sizes and numbers of flows, or of its sweep; none: it has no such number",
    )
    spec: ProcedureSpec
    frame_sizes: list[int]
    direction: Direction
    stateful: Stateful | None = None
    pairs: Annotated[int, Field(ge=1, le=MAX_PAIRS)] = Field(
        default=1, description="ports on each side of the testbed"
    )
    seed: int
    throughput_cell: str | None = Field(
        default=None, description="id of the test case that finds the load"
    )
    connection_cell: str | None = Field(
        default=None, description="id of the test case that finds stateful.phase1_rate"
    )

    def spec_of(self, kind: type[Spec]) -> Spec:
        """``spec``, which is of that kind: its procedure is measured by it.

        Raises:
            TypeError: it is of another.
        """
        if not isinstance(self.spec, kind):
            raise TypeError(f"{self.id} is no {kind.__name__}")
        return self.spec

    def with_keys(self, **keys: Any) -> Cell:  # noqa: ANN401 - keys of the spec
        """The same with other ``keys`` of its spec."""
        return self.model_copy(update={"spec": self.spec.model_copy(update=keys)})

    @property
    def procedure(self) -> ProcedureName:
        """Its name."""
        return self.spec.procedure

    @property
    def family(self) -> Family:
        """Of its procedure."""
        return PROCEDURES[self.procedure].family

    @property
    def ip(self) -> IpVersions:
        """The IP version of its frames, or that of each side."""
        return self.spec.ip[0]

    @property
    def traffic(self) -> Traffic:
        """What is in its frames."""
        return self.spec.traffic[0]

    @property
    def repeats(self) -> int:
        """How often it is measured; with ``auto`` at most."""
        return self.spec.most_repeats

    @property
    def auto(self) -> bool:
        """Whether it is repeated only until the median is settled."""
        return self.spec.repeats == AUTO

    @property
    def phase2(self) -> Stateful | None:
        """The connections that are opened before each of its trials, if any are."""
        return self.stateful if isinstance(self.spec, StreamKeys) else None

    @property
    def grows(self) -> bool:
        """Whether its sweep may have further cells, by what is found."""
        sweep = self.spec.sweep
        return sweep is not None and sweep.refine > 0

    @property
    def imix(self) -> bool:
        """Whether the sizes are a sequence."""
        return self.traffic.imix is not None or self.traffic.pcap is not None
