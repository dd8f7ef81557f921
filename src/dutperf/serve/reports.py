"""The report of a run: the stored one, or one made of what is stored now."""

from __future__ import annotations

import threading
from functools import lru_cache

from dutperf.errors import InputError
from dutperf.plain_files import read_plain
from dutperf.report.page import REPORT, render
from dutperf.report.source import read_source
from dutperf.serve.runs import JOURNAL, RESULTS, Run, Stamp, check_files, stamps

_KEPT = 2
"""Each may have ten megabytes."""
_one_at_a_time = threading.Lock()


def report_of(run: Run) -> str | bytes:
    """The page, stored if that shows all that is stored; else made, in memory only.

    Raises:
        InputError: there is nothing to report on, or a file is damaged.
    """
    check_files(run)
    now = stamps(run)
    changed = {name: changed_ns for name, changed_ns, _ in now}
    newest = max(changed.get(name, 0) for name in (RESULTS, JOURNAL))
    if changed.get(REPORT, -1) >= newest:
        return _stored(run)
    with _one_at_a_time:
        return _made(run, now)


def _stored(run: Run) -> bytes:
    try:
        return read_plain(run.path / REPORT)
    except OSError as error:
        raise InputError(f"cannot read {REPORT}: {error.strerror}") from error


@lru_cache(maxsize=_KEPT)
def _made(run: Run, _now: tuple[Stamp, ...]) -> str:
    return render(read_source(run.path))
