"""``dutperf compare``: runs beside a baseline, and a gate for regressions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from dutperf.cli import INVALID, WORSE
from dutperf.cli.console import PatientConsole, print_versioned, show_notice
from dutperf.cli.options import AsJson
from dutperf.cli.summary import show_table
from dutperf.errors import InputError
from dutperf.results.storage import write_atomically
from dutperf.visible import visible

if TYPE_CHECKING:
    from dutperf.comparison import Comparison
    from dutperf.tables import Table

_VERSION = 1
_BETWEEN = Path(os.devnull, "--")
"""In the place of ``--``: no directory can be there."""

Directories = Annotated[
    list[Path],
    typer.Argument(
        metavar="A B... | BASE... -- NEW...",
        help="results directories: each beside A; or several runs of one device beside "
        "several of another",
        show_default=False,
    ),
]
Limit = Annotated[
    str | None,
    typer.Option(
        "--fail-if-worse",
        metavar="PERCENT",
        help="end with 4 if a figure is worse by more, such as 3%",
        show_default=False,
    ),
]
History = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="earlier runs of A's device stored there, at any depth, count as A, too",
        show_default=False,
    ),
]
Html = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="write a page, too", show_default=False),
]
Markdown = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="write Markdown, too; - prints it, and nothing else",
        show_default=False,
    ),
]
Junit = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="write the comparison as JUnit XML",
        show_default=False,
    ),
]


class SidesCommand(TyperCommand):
    """``--`` stands between two sides here; elsewhere no options follow it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - of typer's
        """With a word in its place that the parser leaves where it is."""
        told = [str(_BETWEEN) if each == "--" else each for each in args]
        return super().parse_args(ctx, told)


PARSER = SidesCommand
"""Of the command, see ``app``."""


def compare(
    directories: Directories,
    fail_if_worse: Limit = None,
    history: History = None,
    html: Html = None,
    markdown: Markdown = None,
    junit: Junit = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs with a baseline: differences, with their intervals."""
    from dutperf import comparison  # noqa: PLC0415 - for this command only

    limit = None if fail_if_worse is None else _percent(fail_if_worse)
    to_print = markdown == Path("-")
    if as_json and to_print:
        raise InputError("--json and --markdown - both print", "leave one out")
    sides = comparison.read_sides(_sides(directories))
    if history:
        sides = comparison.with_history(sides, history, show_notice)
    found = comparison.compare(sides)
    if html:
        _write(html, comparison.page_of(found, limit))
    if junit:
        _write(junit, comparison.junit(found, limit or 0.0))
    if markdown and not to_print:
        _write(markdown, _markdown(found, limit))
    if as_json:
        print_versioned(_VERSION, comparison.as_data(found, limit))
    elif to_print:
        PatientConsole().out(_markdown(found, limit), highlight=False, end="")
    else:
        _print(found, limit)
    if limit is not None:
        _end(found, limit)


def _sides(told: Sequence[Path]) -> list[list[Path]]:
    """Those between two ``--``; without any each for itself."""
    if _BETWEEN not in told:
        return [[each] for each in told]
    sides: list[list[Path]] = [[]]
    for each in told:
        if each == _BETWEEN:
            sides.append([])
        else:
            sides[-1].append(each)
    return sides


def _percent(told: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?%?", told):
        raise InputError(
            f"--fail-if-worse: {told!r} is no percentage", "give one such as 3%"
        )
    return float(told.removesuffix("%"))


def _end(found: Comparison, limit: float) -> None:
    """The gate: worse if one figure is, no gate at all if none can be judged."""
    judged = {each.judged(limit) for each in found.figures}
    if "worse" in judged:
        raise typer.Exit(WORSE)
    if "not_worse" not in judged:
        raise typer.Exit(INVALID)


def _write(path: Path, text: str) -> None:
    if not path.parent.is_dir():
        raise InputError(
            f"cannot write {path}: there is no directory {path.parent}", "make it"
        )
    write_atomically(path, text, "the results are not affected")


def _print(found: Comparison, limit: float | None) -> None:
    from dutperf.comparison import sentences  # noqa: PLC0415 - for this command only

    console = PatientConsole()
    for line in _runs(found):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for table in _tables(found, limit):
        console.print()
        show_table(console, table)
    console.print()
    for sentence in sentences(found, limit):
        console.print(sentence, markup=False, highlight=False)


def _tables(found: Comparison, limit: float | None) -> Iterator[Table]:
    from dutperf import comparison  # noqa: PLC0415 - for this command only

    yield from comparison.comparison_tables(found, limit)
    baseline, *others = found.sides
    for other in others:
        table = comparison.difference_table(comparison.differences_of(baseline, other))
        if table.rows:
            yield table


def _runs(found: Comparison) -> Iterator[str]:
    for run in found.runs:
        source = run.source
        stopped = f" {source.interruption}" if source.interruption else ""
        yield visible(
            f"{run.letter}: {run.directory} ({source.name}, {source.created_at}, "
            f"dutperf {source.written_by}){stopped}"
        )


def _markdown(found: Comparison, limit: float | None) -> str:
    from dutperf.comparison import sentences  # noqa: PLC0415 - for this command only
    from dutperf.tables.table_model import escaped, markdown  # noqa: PLC0415

    said = [
        f"* {escaped(line)}\n" for line in (*_runs(found), *sentences(found, limit))
    ]
    tables = (f"\n{markdown(table)}" for table in _tables(found, limit))
    return "".join(["## Runs compared\n\n", *said, *tables])
