"""``dutperf export``: tables and figures of a run for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dutperf.cli.failures import PatientConsole
from dutperf.errors import InputError
from dutperf.report.source import read_source
from dutperf.results.storage import write_atomically

Format = Literal["csv", "md", "tex", "openmetrics"]

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="a results directory", show_default=False)
]
As = Annotated[
    Format,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="csv, md or tex: tables; openmetrics: figures",
        show_default=False,
    ),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="KEY",
        help="this table alone, for example throughput; may be repeated",
        show_default=False,
    ),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="where to write; default: standard output",
        show_default=False,
    ),
]


def export(
    directory: Directory, format_: As, tables: Keys = None, output: File = None
) -> None:
    """Write the tables of a run as CSV, Markdown or LaTeX, its figures as metrics."""
    text = _text(directory, format_, tables or [])
    if output is None:
        PatientConsole().out(text, end="", highlight=False)
        return
    if not output.parent.is_dir():
        raise InputError(
            f"cannot write {output}: there is no directory {output.parent}",
            "make it, or choose another --output",
        )
    write_atomically(output, text, "the results are not affected")
    PatientConsole().out(output, highlight=False)


def _text(directory: Path, format_: Format, keys: list[str]) -> str:
    from dutperf import export  # noqa: PLC0415 - no other command needs it
    from dutperf.tables.table_model import markdown  # noqa: PLC0415 - the same

    source = read_source(directory)
    if format_ == "openmetrics":
        if keys:
            raise InputError("--table: OpenMetrics has no tables", "leave it out")
        return export.openmetrics(source)
    found = export.tables_of(source, keys)
    if format_ == "csv":
        return (
            export.csv_table(found[0]) if len(keys) == 1 else export.csv_tables(found)
        )
    render = markdown if format_ == "md" else export.latex
    return "\n".join(map(render, found))
