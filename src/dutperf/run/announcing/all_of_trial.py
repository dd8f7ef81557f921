"""All that is announced in a trial: routes, changes of routes, management queries."""

from __future__ import annotations

from dutperf.config.cell import Cell
from dutperf.config.testbed import Testbed
from dutperf.protocol import Announcement
from dutperf.run.announcing.queries import queries
from dutperf.run.announcing.routes import routes


def announcements(testbed: Testbed, cell: Cell, duration_ns: int) -> list[Announcement]:
    """What a trial of ``duration_ns`` needs; nothing where nothing was asked for.

    Raises:
        InputError: as ``flows``.
    """
    return [
        *routes(testbed, cell, duration_ns),
        *queries(testbed, cell, duration_ns),
    ]
