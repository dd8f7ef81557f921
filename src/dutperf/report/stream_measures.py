"""Measured delays of a cell: every quantity of every stream, with its repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dutperf.report.text import shown, whole
from dutperf.results import CellResult, Measure
from dutperf.tables.figures import delay


@dataclass(frozen=True)
class MeasureView:
    """One quantity of one stream; a number, or why there is none."""

    measure: Measure

    @property
    def name(self) -> str:
        """For example TL."""
        return self.measure.name

    @property
    def result(self) -> str:
        """The median or mean of the repeats."""
        return shown(delay(self.measure.result))

    @property
    def repeats(self) -> list[str]:
        """The figure of each repeat."""
        return [shown(delay(figure)) for figure in self.measure.repeats]

    @property
    def taken_from(self) -> list[tuple[str, str]]:
        """Of each repeat: how many samples, and how many of them were lost, if any."""
        measure = self.measure
        return [
            (whole(samples), f"{whole(lost)} lost" if lost else "")
            for samples, lost in zip(measure.samples, measure.lost, strict=True)
        ]


@dataclass(frozen=True)
class StreamMeasures:
    """All quantities of one stream, in the order of the procedure."""

    direction: str
    stream: str
    measures: tuple[MeasureView, ...]

    def named(self, several: bool) -> str:
        """The direction, and the stream where there are ``several``."""
        return f"{self.direction}, {self.stream}" if several else self.direction


def by_stream(result: CellResult) -> list[StreamMeasures]:
    """The measures of a cell, those of each stream together."""
    found: dict[tuple[str, str], list[MeasureView]] = {}
    for measure in result.measures:
        place = (measure.direction, measure.stream)
        found.setdefault(place, []).append(MeasureView(measure))
    return [StreamMeasures(*place, tuple(views)) for place, views in found.items()]


def quantities(results: Sequence[CellResult]) -> dict[str, str]:
    """Names of all quantities, and what each of them is."""
    return {m.name: m.quantity for result in results for m in result.measures}
