"""Commands that show stored results elsewhere: files, pages, a web server."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Literal

import typer

from dutperf.cli import INTERRUPTED
from dutperf.cli.console import PatientConsole
from dutperf.config import expand, load_campaign
from dutperf.errors import DutperfError, InputError
from dutperf.model.cell import Cell
from dutperf.programs import TERMINATE
from dutperf.report import (
    BRIEF,
    OVERVIEW,
    export_histograms,
    print_pdf,
    write_brief,
    write_overview,
    write_report,
)
from dutperf.report.source import read_source
from dutperf.results import stored_campaign
from dutperf.results.storage import write_atomically

# ``dutperf export``: tables and figures of a run for other programs.


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
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="these columns of the table alone, in this order; several between "
        "commas; cell: the ids",
        show_default=False,
    ),
]
Caption = Annotated[
    str, typer.Option(metavar="TEXT", help="of a LaTeX table", show_default=False)
]
Label = Annotated[
    str, typer.Option(metavar="NAME", help="of a LaTeX table", show_default=False)
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
    directory: Directory,
    format_: As,
    tables: Keys = None,
    columns: Columns = None,
    caption: Caption = "",
    label: Label = "",
    output: File = None,
) -> None:
    """Write the tables of a run as CSV, Markdown or LaTeX, its figures as metrics."""
    names = [name.strip() for told in columns or [] for name in told.split(",")]
    _check(format_, tables or [], names, caption, label)
    text = _text(directory, format_, tables or [], names, (caption, label))
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


_LABEL = re.compile(r"[A-Za-z0-9:._-]{1,100}")


def _check(
    format_: Format, keys: list[str], names: list[str], caption: str, label: str
) -> None:
    """What is of one table, or of LaTeX, is of no other."""
    given = {"--table": keys, "--columns": names, "--caption": caption}
    given["--label"] = label
    for name in (name for name, told in given.items() if told):
        if format_ == "openmetrics":
            raise InputError(f"{name}: OpenMetrics has no tables", "leave it out")
        if name in ("--caption", "--label") and format_ != "tex":
            raise InputError(f"{name} is of LaTeX", "leave it out, or add --format tex")
        if len(keys) != 1 and name != "--table":
            raise InputError(f"{name} is of one table", "choose it: --table KEY")
    if label and not _LABEL.fullmatch(label):
        raise InputError(
            f"--label {label!r}: not a label of LaTeX",
            "give letters, digits and : . _ -, as in tab:throughput",
        )


def _text(
    directory: Path,
    format_: Format,
    keys: list[str],
    names: list[str],
    words: tuple[str, str],
) -> str:
    from dutperf import export  # noqa: PLC0415 - no other command needs it
    from dutperf.tables.table_model import markdown  # noqa: PLC0415 - the same

    source = read_source(directory)
    if format_ == "openmetrics":
        return export.openmetrics(source)
    found = export.tables_of(source, keys)
    if names:
        found = [export.with_columns(table, names) for table in found]
    if format_ == "csv":
        return (
            export.csv_table(found[0]) if len(keys) == 1 else export.csv_tables(found)
        )
    if format_ == "md":
        return "\n".join(map(markdown, found))
    if not names:
        found = [export.for_readers(table) for table in found]
    return "\n".join(export.latex(table, *words) for table in found)


# ``dutperf export-histograms``: delays for the tools of HdrHistogram.


def export_histograms_command(
    directory: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="a results directory")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="where to write; default: histograms in the results directory",
        ),
    ] = None,
) -> None:
    """Write the delays of each trial as an HdrHistogram log (.hlog)."""
    written = export_histograms(directory, out or directory / "histograms")
    console = PatientConsole()
    for path in written:
        console.out(path, highlight=False)


# ``dutperf report``: the pages of stored results.


def report(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIRECTORY...", help="results directories")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"an overview of all; of several directories: {OVERVIEW}",
        ),
    ] = None,
    brief: Annotated[
        bool, typer.Option("--brief", help=f"one A4 page of each run, {BRIEF}")
    ] = False,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="print them as PDF, too, by Chromium")
    ] = False,
) -> None:
    """Make report.html again from stored results; of several runs an overview, too."""
    write = write_brief if brief else write_report
    pages = [write(directory) for directory in directories]
    if output is not None or len(directories) > 1:
        pages.append(write_overview(directories, output or Path(OVERVIEW)))
    printed = [print_pdf(page) for page in pages] if pdf else []
    PatientConsole().out((printed or pages)[-1], highlight=False)


# ``dutperf serve``: the runs below a directory as local web pages.


def serve_command(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="runs below it are shown")
    ] = Path("results"),
    host: Annotated[
        str,
        typer.Option(
            metavar="HOST", help="where to listen; beyond this machine with a token"
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="0: any that is free")
    ] = 8219,
    otg: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="instead, a traffic generator for snappi, at a testbed's file, "
            "lab:NAME or simulated:FPS",
        ),
    ] = None,
    netconf: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="instead, a network tester for NETCONF clients, likewise",
        ),
    ] = None,
    keys: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="of --netconf: public keys of who may, as of sshd",
        ),
    ] = Path("~/.ssh/authorized_keys"),
) -> None:
    """Show runs in a browser: their reports, comparisons, and the one that goes on."""
    if (otg is not None or netconf is not None) and host != "127.0.0.1":
        raise InputError(
            f"--host {host}: who may have this tester send is on this machine",
            "leave --host out",
        )
    if otg is not None and netconf is not None:
        raise InputError("--otg and --netconf are two servers", "give one of them")
    if otg is not None:
        from dutperf.adapters.otg import serve_otg  # noqa: PLC0415 - as below

        serve_otg(otg, port, _tell)
        return
    if netconf is not None:
        from dutperf.adapters.netconf import serve_netconf  # noqa: PLC0415 - as below

        serve_netconf(netconf, port, keys.expanduser(), _tell)
        return
    # The web framework is loaded by nobody else.
    from dutperf.comparison.output import render  # noqa: PLC0415
    from dutperf.serve import serve  # noqa: PLC0415

    with _ended_by_signals():
        serve(directory, host, port, compare=render, planned=_planned, tell=_tell)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Nothing is written, so nothing waits for readers, or for a page half made."""
    signals = (signal.SIGINT, *TERMINATE)
    before = {each: signal.signal(each, _leave) for each in signals}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _leave(_signum: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def _tell(address: str) -> None:
    console = PatientConsole()
    console.out(address, highlight=False)
    console.file.flush()


def _planned(directory: Path) -> Sequence[Cell]:
    """Nothing where the campaign is lost, or is of another dutperf."""
    from dutperf.api.places import planned_testbeds  # noqa: PLC0415 - as above

    try:
        campaign = load_campaign(stored_campaign(directory), stored=True)
        return expand(campaign, *(at.testbed for at in planned_testbeds(campaign)))
    except DutperfError:
        return ()
