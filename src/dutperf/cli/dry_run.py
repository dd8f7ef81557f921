"""What a campaign would do, without doing it: no root, no lab, no frame."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.table import Table

from dutperf.cli.failures import PatientConsole, show_notice
from dutperf.cli.json_print import print_versioned
from dutperf.cli.testbeds import planned_testbeds
from dutperf.config import Campaign, expand
from dutperf.config.phase2 import timing_of
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.run.campaign_run import all_notices, virtual_testbeds
from dutperf.run.estimate import ASSUMPTION, Estimate, estimate

NOTHING_STORED = InputError(
    "--dry-run measures and stores nothing",
    "leave it out, or else --output and --resume",
)
_PLAN_VERSION = 1
_MANY_CELLS = 1000
"""More of them take seconds, in which something is told."""
_AT_ONCE = 100


def show_plan(campaign: Campaign, *, as_json: bool) -> None:
    """Print the cells with the trials and the time that they are expected to take.

    Raises:
        InputError: what a run would refuse before its first frame.
    """
    planned = planned_testbeds(campaign)
    cells = expand(campaign, *(each.testbed for each in planned))
    found = _estimated(cells, virtual_testbeds(planned))
    for text in all_notices(campaign, planned, cells):
        show_notice(text)
    console = PatientConsole()
    if as_json:
        print_versioned(_PLAN_VERSION, _as_data(campaign, found))
        return
    for at in planned:
        here = [each for each in found if each.cell.testbed == at.testbed.name]
        if len(planned) > 1:
            kind = "lab" if at.lab else "testbed"
            console.out(f"{kind} {at.name}: {_effort(here)}", highlight=False)
        console.print(_table(here))
    console.out(f"{_effort(found)}; {ASSUMPTION}", highlight=False)


def _estimated(cells: Sequence[Cell], virtual: Collection[str]) -> list[Estimate]:
    if len(cells) <= _MANY_CELLS:
        return estimate(cells, virtual)
    found: list[Estimate] = []
    with PatientConsole(stderr=True).status("") as status:
        for first in range(0, len(cells), _AT_ONCE):
            status.update(f"{first:,} of {len(cells):,} cells")
            found += estimate(cells[first : first + _AT_ONCE], virtual)
    return found


def span(duration_s: float) -> str:
    """``45 s``, ``12 min``, ``3 h 20 min``, ``2 d 4 h``: rounded, as estimates are."""
    if duration_s < 100:
        return f"{duration_s:.0f} s"
    minutes = round(duration_s / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"


def _table(found: list[Estimate]) -> Table:
    table = Table()
    table.add_column("cell", overflow="fold")
    for name in ("repeats", "trials", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in found:
        most = each.most or each
        table.add_row(
            each.cell.id,
            _range(f"{each.repeats}", f"{most.repeats}"),
            _range(f"{each.trials:,}", f"{most.trials:,}"),
            _range(span(each.duration_s), span(most.duration_s)),
        )
    return table


def _effort(found: list[Estimate]) -> str:
    trials, duration_s = _totals(found)
    most_trials, most_s = _totals([each.most or each for each in found])
    return (
        f"{_counted(len(found), 'cell')}, "
        f"{_range(f'{trials:,}', f'{most_trials:,}')} trials, about "
        f"{_range(span(duration_s), span(most_s))}"
    )


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def _as_data(campaign: Campaign, found: list[Estimate]) -> dict[str, object]:
    return {
        "name": campaign.name,
        "cells": [
            {
                "id": each.cell.id,
                "place": each.cell.testbed,
                **_numbers([each]),
                **_phases(each.cell),
            }
            for each in found
        ],
        **_numbers(found),
        "assumption": ASSUMPTION,
    }


def _numbers(found: list[Estimate]) -> dict[str, float]:
    """``most_...`` only where repeats depend on the device."""
    trials, duration_s = _totals(found)
    numbers = {"trials": trials, "duration_s": round(duration_s, 3)}
    if any(each.most for each in found):
        trials, duration_s = _totals([each.most or each for each in found])
        numbers |= {"most_trials": trials, "most_duration_s": round(duration_s, 3)}
    return numbers


def _phases(cell: Cell) -> dict[str, dict[str, float]]:
    """Times of a cell on open connections, where R is a number."""
    timing, stateful = timing_of(cell), cell.phase2
    if timing is None or stateful is None:
        return {}
    return {
        "stateful": {
            "connections": stateful.connections,
            "phase1_rate_fps": timing.rate_fps,
            "wait_ms": timing.wait_ms,
            "phase2_after_ms": timing.start_ms,
            "needed_dut_timeout_s": round(timing.dut_timeout_s, 3),
        }
    }


def _totals(found: list[Estimate]) -> tuple[int, float]:
    return sum(e.trials for e in found), sum(e.duration_s for e in found)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
