"""What is stored: ``results.json``, and the trial records of ``journal.jsonl``.

Reports read these and nothing else, so a report can be made again years later. The
schema version rises with every change that an old reader would misread.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from dutperf import __version__
from dutperf.engine.protocol import Reason, TrialRequest, TrialResult, VerdictKind

RESULTS_SCHEMA_VERSION = 1
ProcedureName = Literal["throughput", "frame-loss"]


class Stored(BaseModel):
    """Base of all stored values: immutable, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TrialRecord(Stored):
    """One finished trial; appended to the journal before the next one starts."""

    number: int = Field(ge=1, description="1-based position in the campaign")
    cell: str = Field(description="id of the cell it was run for")
    repeat: int = Field(ge=1, description="1-based repeat within the cell")
    attempt: int = Field(ge=1, description="2 and up: an invalid trial run again")
    load_fps: int = Field(description="intended load, per direction")
    started_at: str = Field(description="ISO 8601, UTC")
    request: TrialRequest
    result: TrialResult


class Deviation(Stored):
    """One point in which the run did less than the standard asks for."""

    rfc: str = Field(description="for example 'RFC 2544 24'")
    requirement: str
    actual: str


class RepeatResult(Stored):
    """One repeat: ``value`` is null when it could not be measured."""

    value: float | None
    verdict: VerdictKind
    reasons: list[Reason] = []
    trials: int = Field(description="number of trials it took")


class LoadPoint(Stored):
    """One point of a frame loss curve (RFC 2544 26.3)."""

    load_percent: float = Field(description="of the maximum load, 0-100")
    load_fps: int
    loss_percent: float | None = Field(description="median over the repeats")
    repeats: list[RepeatResult]


class CellResult(Stored):
    """The result of one cell: ``median`` over ``repeats``, in ``unit``.

    throughput: frames per second, per direction. frame-loss: percent lost at the
    highest load; the whole curve is in ``points``.
    """

    id: str
    procedure: ProcedureName
    quantity: str = Field(description="what the median is, in words")
    parameters: dict[str, str | int | float | bool | None]
    median: float | None
    unit: Literal["fps", "percent"]
    repeats: list[RepeatResult]
    verdict: VerdictKind = Field(description="pass: measured; invalid: not proven")
    reasons: list[Reason] = []
    deviations: list[Deviation] = []
    points: list[LoadPoint] = []


class ResultsFile(Stored):
    """``results.json``; the command line's ``--json`` prints it without ``trials``."""

    schema_version: Literal[1] = 1
    dutperf_version: str = Field(default=__version__, description="who wrote it")
    procedure: ProcedureName | Literal["campaign"]
    name: str
    created_at: str
    complete: bool = Field(description="false: the run was interrupted")
    cells: list[CellResult]
    trials: list[TrialRecord] = []
