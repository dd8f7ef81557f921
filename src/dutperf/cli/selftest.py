"""``dutperf selftest``: the tester measured by itself, its two ports crossed.

What is found is the tester's own limit: a device that is measured near it is not what
limits. The stateful rows are those of the stateful siitperf paper (Lencse 2023, Tables
3 to 5): the rate of phase 1, and of phase 2 in both directions and in each alone,
over the number of four-tuples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from dutperf.cli.exit_codes import INVALID
from dutperf.cli.measuring import watched
from dutperf.cli.options import DEFAULT_SEED, AsJson, Output
from dutperf.cli.summary import show_json
from dutperf.cli.table_print import entry_text
from dutperf.config import Campaign, Place, ProcedureSpec, Testbed
from dutperf.config.specs import SPECS
from dutperf.errors import InputError
from dutperf.procedures.events import OnEvent
from dutperf.report import write_report
from dutperf.results import CellResult, ResultsFile, spread_of, valued
from dutperf.run.campaign_run import run_campaign
from dutperf.run.engine_session import prepare_engine
from dutperf.run.local_executor import Surroundings
from dutperf.tables.figures import count

_MOST_FPS = 1_000_000_000
"""No tester offers that; the search begins with what it did offer."""
_LEFT = {
    "ipv4": {"address": "198.18.0.2", "gateway": "198.19.0.2"},
    "ipv6": {"address": "2001:2::2", "gateway": "2001:2:0:8000::2"},
}
_RIGHT = {
    "ipv4": {"address": "198.19.0.2", "gateway": "198.18.0.2"},
    "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2::2"},
}
_DIRECTIONS = ("both", "forward", "reverse")
_ROWS = {
    "connection-rate": "phase 1: each frame another four-tuple, learned",
    "both": "phase 2, both directions, per direction",
    "forward": "phase 2, initiator to responder",
    "reverse": "phase 2, responder to initiator",
}


def selftest(
    stateful: Annotated[
        bool,
        typer.Option(
            "--stateful", help="connections and learned four-tuples (RFC 9693)"
        ),
    ] = False,
    connections: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            max=2**32,
            metavar="N",
            help="how many; repeat the option for several; 12 bytes of memory each, "
            "IPv6 36",
            show_default="4000000",
        ),
    ] = None,
    ip: Annotated[int, typer.Option(min=4, max=6, help="IP version, 4 or 6")] = 4,
    cpus: Annotated[
        str, typer.Option(metavar="CPU[,CPU]", help="CPUs that send and receive")
    ] = "0",
    phase1_rate_fps: Annotated[
        int,
        typer.Option(
            "--phase1-rate", min=1, metavar="FPS", help="of phase 1 before phase 2"
        ),
    ] = 2_000_000,
    trial_duration_s: Annotated[
        float,
        typer.Option(
            "--trial-duration", min=0.05, max=3600, metavar="S", help="of phase 2"
        ),
    ] = 1.0,
    resolution: Annotated[
        str, typer.Option(metavar="WIDTH", help="of each search, like 1% or 1000")
    ] = "2%",
    repeats: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="of each search")
    ] = 3,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """What the tester itself can do: its two ports crossed, no device between them."""
    if not stateful:
        raise InputError(
            "selftest measures stateful traffic only: give --stateful",
            "for what each kind of frame costs: dutperf bench",
        )
    if ip not in {4, 6}:
        raise InputError(f"--ip: {ip} is no IP version", "give 4 or 6")
    testbed = _testbed(_numbers(cpus))
    common: dict[str, Any] = {
        "ip": [ip],
        "resolution": resolution,
        "max_rate_fps": _MOST_FPS,
        "repeats": repeats,
        "settle_wait_s": 0.1,
        "restabilise_wait_s": 0.05,
    }
    counts = {"connections": connections or [4_000_000]}
    specs = [
        {"procedure": "connection-rate", "stateful": counts, **common},
        {
            "procedure": "throughput",
            "direction": list(_DIRECTIONS),
            "trial_duration_s": trial_duration_s,
            "residual_wait_s": 0.3,
            "stateful": {**counts, "phase1_rate": phase1_rate_fps},
            **common,
        },
    ]
    campaign = Campaign(
        name="selftest-stateful",
        seed=DEFAULT_SEED,
        testbed=[testbed],
        procedures=[_spec(spec) for spec in specs],
    )
    results = watched(
        lambda on_event: _run(campaign, testbed, output, on_event),
        show_json if as_json else _show,
    )
    if results and any(_failed(cell) for cell in results.cells):
        raise typer.Exit(INVALID)


def _spec(keys: dict[str, Any]) -> ProcedureSpec:
    try:
        return SPECS[keys["procedure"]].model_validate(keys)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "options"
        raise InputError(
            f"{key}: {first['msg'].removeprefix('Value error, ')}",
            "see dutperf selftest --help",
        ) from None


def _numbers(cpus: str) -> list[int]:
    try:
        return [int(part) for part in cpus.split(",")]
    except ValueError:
        raise InputError(
            f"--cpus: {cpus[:40]!r} is no list of CPU numbers", "give one, or 0,1"
        ) from None


def _testbed(cpus: list[int]) -> Testbed:
    return Testbed.model_validate(
        {
            "name": "selftest",
            "description": "no device: the tester's ports, crossed",
            "cores": cpus,
            "translates": False,
            "left": {"port": {"ring": True}, **_LEFT},
            "right": {"port": {"ring": True}, **_RIGHT},
        }
    )


def _run(
    campaign: Campaign, testbed: Testbed, output: Path | None, on_event: OnEvent
) -> ResultsFile:
    around = Surroundings(open_engine=prepare_engine, write_report=write_report)
    return run_campaign(
        campaign,
        [Place(testbed=testbed)],
        around,
        on_event=on_event,
        kind="campaign",
        results_dir=output,
    )


def _failed(cell: CellResult) -> bool:
    """Crossed ports lose nothing: what ends a search must be the tester's limit."""
    return not cell.median or any(r.code in _TROUBLES for r in cell.reasons)


_TROUBLES = {"unstable", "nothing_passed", "connections_expire"}


def _show(console: Console, results: ResultsFile, report: Path | None) -> None:
    console.print(_table(results.cells))
    for cell in filter(_failed, results.cells):
        for reason in cell.reasons:
            console.print(f"{cell.id}: {reason.message}", markup=False, soft_wrap=True)
    if report:
        console.print(str(report), markup=False, soft_wrap=True)


def _table(cells: Sequence[CellResult]) -> Table:
    table = Table(title="The tester's own limits, stateful (ports crossed)")
    table.add_column("frames", overflow="fold")
    for name in ("four-tuples", "table, MiB", "median fps", "1st", "99th", "spread, N"):
        table.add_column(name, justify="right")
    for row in _rows(cells):
        table.add_row(*row)
    return table


def _rows(cells: Sequence[CellResult]) -> Iterator[list[str]]:
    for key, words in _ROWS.items():
        for cell in cells:
            if key not in {cell.procedure, cell.parameters.get("direction")}:
                continue
            if key in _DIRECTIONS and cell.procedure == "connection-rate":
                continue
            yield [words, *_figures(cell)]


def _figures(cell: CellResult) -> list[str]:
    connections = cell.parameters.get("connections")
    opened = connections if isinstance(connections, int) else 0
    bytes_each = 12 if cell.parameters.get("ip_right") == 4 else 36
    memory = f"{opened * bytes_each / 2**20:,.1f}"
    # What ends at the tester's limit is no lower bound here, but what is looked for.
    spread = spread_of(valued(cell.repeats)[0])
    if cell.median is None or spread is None:
        return [f"{opened:,}", memory, "-", "-", "-", "-"]
    return [
        f"{opened:,}",
        memory,
        entry_text(count(cell.median)),
        entry_text(count(spread.percentile_1)),
        entry_text(count(spread.percentile_99)),
        f"{spread.dispersion_percent:.1f} %, {spread.count}",
    ]
