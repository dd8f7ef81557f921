"""The key ``mpls`` of a side: a label, or a stack of them, outermost first."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dutperf.config.shorthand import Shorthand
from dutperf.protocol import MAX_LABEL, MAX_LABELS, MIN_LABEL, MplsLabel

SideLabels = Annotated[
    list[MplsLabel],
    Field(max_length=MAX_LABELS),
    Shorthand("label", MIN_LABEL, MAX_LABEL),
]
