"""Starting the programs beside the DUT's kernel: see ``devices.daemon``."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from dutperf.errors import SetupError
from dutperf.lab import processes, topology
from dutperf.lab.devices.daemon import Daemon
from dutperf.lab.state import Process, is_running

START_TIMEOUT_S = 5.0
POLL_S = 0.02


def start(
    daemon: Daemon,
    cpu: int | None,
    directory: Path,
    record: Callable[[Process], None],
) -> None:
    """Starts ``daemon`` and waits until it runs.

    ``directory`` takes its files. ``record`` is called before the program itself runs,
    which goes on after this process has ended, on ``cpu`` alone if one is given.

    Raises:
        SetupError: it ended, or said nothing.
    """
    name = Path(daemon.program).name
    settings, running, log = (
        directory / f"{name}.{kind}" for kind in ("conf", "run", "log")
    )
    settings.write_text(daemon.settings, "ascii")
    paths = {"settings": settings, "running": running, "directory": directory}
    arguments = [each.format_map(paths) for each in daemon.arguments]
    process = processes.start(
        [daemon.program, *arguments],
        namespace=topology.DUT,
        cpu=cpu,
        log=log,
        record=record,
    )
    deadline = time.monotonic() + START_TIMEOUT_S
    while not running.exists():
        if not is_running(process) or time.monotonic() > deadline:
            said = log.read_text("utf-8", errors="replace").strip()
            raise SetupError(
                f"{daemon.name} did not start: {said or 'it said nothing'}", daemon.hint
            )
        time.sleep(POLL_S)
