"""The view ``findings``: what speaks against a result, or is to be known of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dutperf.query.columns import Column, View, of_run
from dutperf.query.runs import Run
from dutperf.tables import Subject

_ABOUT = {
    "altered": "frames",
    "unanswered": "queries",
    "routing_fell": "trials",
    "misdirected": "frames",
}
"""Kinds of findings that are not about a result's repeats."""


@dataclass(frozen=True)
class Row:
    """One finding; without ``cell`` it is of the whole testbed or run."""

    run: Run
    device: str
    cell: str
    about: str
    kind: str
    message: str
    remedy: str = ""


def _rows(run: Run) -> Iterator[Row]:
    for cell in run.cells:
        yield from _of_cell(run, cell)
    for testbed in run.source.testbeds:
        for check in testbed.environment.checks if testbed.environment else ():
            if check.is_finding:
                told = " ".join(part for part in (check.found, check.why) if part)
                yield Row(
                    run, testbed.name, "", "machine", check.name, told, check.cure
                )
    for failure in run.source.failures:
        for cell_id in failure.cells:
            yield Row(
                run,
                failure.testbed,
                cell_id,
                "run",
                "not_measured",
                failure.message,
                failure.hint,
            )
    if run.source.interruption:
        for trial in run.source.open_cells():
            yield Row(
                run,
                run.device(trial.place),
                trial.cell,
                "run",
                "not_finished",
                run.source.interruption,
            )


def _of_cell(run: Run, cell: Subject) -> Iterator[Row]:
    result = cell.result
    if result is None:
        return
    at = (run, cell.testbed, cell.id)
    for reason in result.reasons:
        yield Row(*at, "verdict", reason.code, reason.message, reason.hint)
    for finding in result.findings:
        about = _ABOUT.get(finding.kind, "repeats")
        yield Row(*at, about, finding.kind, finding.message)
    for deviation in result.deviations:
        told = f"{deviation.requirement}: {deviation.actual}"
        yield Row(*at, "deviation", deviation.rfc, told)


FINDINGS = View(
    "findings",
    "A row for each thing that a reader of results should know: verdicts, repeats "
    "that do not agree, deviations from the RFCs, the machine, what was not measured.",
    (
        *of_run(lambda row: row.run),
        Column(
            "device",
            "VARCHAR",
            "Name of the lab or testbed.",
            lambda row: row.device or None,
        ),
        Column(
            "cell",
            "VARCHAR",
            "Id of the cell; null: it is about all of them.",
            lambda row: row.cell or None,
        ),
        Column(
            "about",
            "VARCHAR",
            "verdict, repeats, frames, deviation, machine, run.",
            lambda row: row.about,
        ),
        Column(
            "kind",
            "VARCHAR",
            "The same for the same thing: a reason's code, a check's name, an RFC's "
            "section.",
            lambda row: row.kind,
        ),
        Column("message", "VARCHAR", "In words.", lambda row: row.message),
        Column("remedy", "VARCHAR", "What to do.", lambda row: row.remedy or None),
    ),
    _rows,
)
