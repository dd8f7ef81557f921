"""Starting the programs beside the DUT's kernel: see ``devices.daemon``."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from dutperf.errors import SetupError
from dutperf.lab import processes, topology
from dutperf.lab.devices.daemon import Daemon
from dutperf.lab.devices.routing_table import static_routes
from dutperf.lab.state import Process, is_running

TABLE_TIMEOUT_S = 60.0
TABLE_POLL_S = 0.2


def start(
    daemon: Daemon,
    namespace: str,
    cpu: int | None,
    directory: Path,
    record: Callable[[Process], None],
) -> None:
    """Starts ``daemon`` in ``namespace`` and waits until it runs.

    ``directory`` takes its files. ``record`` is called before the program itself runs,
    which goes on after this process has ended, on ``cpu`` alone if one is given.

    Raises:
        SetupError: it ended, or said nothing.
    """
    name = Path(daemon.program).name
    settings, running, log = (
        directory / f"{name}.{kind}" for kind in ("conf", "run", "log")
    )
    table = static_routes(daemon.table) if daemon.table else ""
    settings.write_text(daemon.settings + table, "ascii")
    paths = {"settings": settings, "running": running, "directory": directory}
    arguments = [each.format_map(paths) for each in daemon.arguments]
    process = processes.start(
        [daemon.program, *arguments],
        namespace=namespace,
        cpu=cpu,
        log=log,
        record=record,
    )
    processes.await_start(process, running.exists, daemon.name, log, daemon.hint)
    deadline = time.monotonic() + TABLE_TIMEOUT_S
    while daemon.table and not _all_routed(daemon.table, namespace):
        if not is_running(process) or time.monotonic() > deadline:
            raise SetupError(
                f"{daemon.name} has not put its {daemon.table:,} routes into "
                f"the kernel within {TABLE_TIMEOUT_S:g} s",
                daemon.hint,
            )
        time.sleep(TABLE_POLL_S)


def _all_routed(routes: int, namespace: str) -> bool:
    """Whether the DUT has so many of a daemon, of each IP version."""
    return all(
        count_routes(version, "bird", namespace) >= routes for version in ("-4", "-6")
    )


def count_routes(version: str, origin: str, namespace: str = topology.DUT) -> int:
    """How many of ``origin`` the DUT has; ``version``: -4 or -6."""
    listed = subprocess.run(
        ["ip", "-netns", namespace, version, "route", "show", "proto", origin],
        capture_output=True,
        check=True,
    )
    return listed.stdout.count(b"\n")
