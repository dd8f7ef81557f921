"""What a view is: its columns, and where each takes its values from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from dutperf.query.runs import Run

T = TypeVar("T")


@dataclass(frozen=True)
class Column(Generic[T]):
    """One column; ``type`` is DuckDB's, ``of`` takes its value from a row's source."""

    name: str
    type: str
    meaning: str
    of: Callable[[T], object]


@dataclass(frozen=True)
class View(Generic[T]):
    """One view; ``rows`` gives what of a run stands in it."""

    name: str
    meaning: str
    columns: Sequence[Column[T]]
    rows: Callable[[Run], Iterable[T]]


def of_run(run_of: Callable[[T], Run]) -> tuple[Column[T], ...]:
    """What each view says of the run."""
    return (
        Column(
            "run",
            "VARCHAR",
            "Directory of the run.",
            lambda row: str(run_of(row).path),
        ),
        Column(
            "campaign",
            "VARCHAR",
            "Name of the campaign.",
            lambda row: run_of(row).source.name,
        ),
        Column(
            "created_at",
            "TIMESTAMP",
            "When the run began, UTC.",
            lambda row: run_of(row).created_at,
        ),
    )
