"""``python -m tools nics``: the steps on each model, as a table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dutperf.errors import DutperfError
from tools.nics.machine import MODELS, Model, running
from tools.nics.steps import STEPS, Step
from tools.nics.tester import Seen, Tester


def nics(
    model: Annotated[
        list[str] | None, typer.Option(help="of NICs; default: all, one after another")
    ] = None,
    step: Annotated[
        list[str] | None, typer.Option(help="those whose names begin so; default: all")
    ] = None,
) -> None:
    """What dutperf does on NICs that QEMU emulates: needs root and make nic-lab."""
    for name in model or ():
        if name not in MODELS:
            raise typer.BadParameter(f"{name} is none of {', '.join(MODELS)}")
    unexpected = 0
    for each in (MODELS[name] for name in model or MODELS):
        table = Table("step", "outcome", "message", title=each.name)
        for done, seen, took_s in _tried(each, tuple(step or ("",))):
            expected = done.expected_of(each.name)
            told = seen.outcome
            if told != expected:
                unexpected += 1
                told += f" (expected: {expected})"
            table.add_row(done.name, told, seen.message)
            line = f"{each.name}: {done.name}: {told}: {seen.message}"
            print(f"{line} ({took_s:.0f} s)", flush=True)  # noqa: T201
        Console().print(table)
    if unexpected:
        raise typer.Exit(1)


def _tried(model: Model, names: tuple[str, ...]) -> Iterator[tuple[Step, Seen, float]]:
    began = time.monotonic()
    with running(model) as machine:
        tester = Tester(machine, model)
        boot = Step("boot", lambda _: Seen("booted"), "booted")
        found = ", ".join(nic.pci for nic in tester.nics.values())
        yield boot, Seen("booted", found), time.monotonic() - began
        for step in STEPS:
            if step.always or step.name.startswith(names):
                began = time.monotonic()
                yield step, _seen(step, tester), time.monotonic() - began


def _seen(step: Step, tester: Tester) -> Seen:
    try:
        return step.run(tester)
    except DutperfError as error:
        return Seen("failed", error.message)
