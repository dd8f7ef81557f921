"""Text that means harm: to a terminal, to a page, and to who reads either."""

from __future__ import annotations

from report_sample import sample_environment, sample_results

from dutperf.protocol.result_messages import Reason
from dutperf.results import CellResult, Environment, HookRun, ResultsFile, TrialRecord
from dutperf.standards import Deviation

CLEAR = "\x1b[2J\x1b[H"
TITLE = "\x1b]0;owned\x07"
C1 = "\x9b31m"
TURNED = "\u202egnp.txt\u2066"
MARKUP = "[red]red[/red][link=x:y]:boom:"
SCRIPT = "<script>window.owned=1</script><img src=x onerror=window.owned=1>"
FORMULA = '=cmd|"/c calc"!A1'
NASTY = f"{CLEAR}{TITLE}{C1}{TURNED}\x7f{MARKUP}{SCRIPT}&amp;%{{x}}{FORMULA}"
"""All of them on one line."""
SHOWN = (
    r"\x1b[2J\x1b[H\x1b]0;owned\x07\x9b31m\u202egnp.txt\u2066\x7f"
    f"{MARKUP}{SCRIPT}&amp;%{{x}}{FORMULA}"
)
"""What a reader is to see of it."""


def hook_run(output: str = NASTY) -> HookRun:
    """A hook that failed, and all of whose words are hostile."""
    return HookRun(
        moment="after_trial",
        command=["echo", NASTY],
        host=f"dut{NASTY}",
        attempts=1,
        exit_code=2,
        ended="ended with exit code 2",
        output=output,
        duration_s=0.1,
    )


def hostile_results() -> ResultsFile:
    """A run whose every name, reason and setting is hostile."""
    results = sample_results()
    names = {cell.id: f"{cell.id}@{NASTY}" for cell in results.cells}
    return results.model_copy(
        update={
            "name": NASTY,
            "cells": [_cell(cell, names[cell.id]) for cell in results.cells],
            "trials": [_trial(each, names[each.cell]) for each in results.trials],
        }
    )


def hostile_environment() -> Environment:
    """A machine whose names are hostile."""
    environment = sample_environment()
    named = {"device": NASTY, "kernel_driver": NASTY, "dpdk_name": NASTY}
    return environment.model_copy(
        update={
            **dict.fromkeys(("os", "kernel", "cpu_model", "hugepages"), NASTY),
            "ports": [port.model_copy(update=named) for port in environment.ports],
        }
    )


def _cell(cell: CellResult, name: str) -> CellResult:
    deviation = Deviation(rfc=NASTY, requirement=NASTY, actual=NASTY, level="SHOULD")
    asked = cell.cell.model_copy(update={"id": NASTY, "series": NASTY})
    return cell.model_copy(
        update={
            "id": name,
            "cell": asked,
            "place": f"{NASTY}{cell.id}",
            "quantity": NASTY,
            "parameters": cell.parameters | {"traffic": NASTY, NASTY: NASTY},
            "reasons": [_reason()],
            "deviations": [deviation],
        }
    )


def _trial(trial: TrialRecord, name: str) -> TrialRecord:
    verdict = trial.result.verdict.model_copy(update={"reasons": [_reason()]})
    return trial.model_copy(
        update={
            "cell": name,
            "place": NASTY,
            "hooks": [hook_run()],
            "result": trial.result.model_copy(update={"verdict": verdict}),
        }
    )


def _reason() -> Reason:
    return Reason(code="hook_failed", message=NASTY, hint=NASTY)
