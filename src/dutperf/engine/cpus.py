"""Which CPUs there are: those of the machine, not only those of the shell."""

from __future__ import annotations

import os

_MOST = 8192
"""As many as Linux can have."""


def existing_cpus() -> set[int]:
    """Those that a thread of ours may be put on.

    A CPU that is isolated (``isolcpus``) belongs to nobody's affinity until somebody
    asks for it; one that a container must not use is not given to who asks. So this
    thread asks for all, looks at what it got, and gives it back.
    """
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, range(_MOST))
    except OSError:  # a sandbox that lets nobody ask
        return before
    try:
        return os.sched_getaffinity(0)
    finally:
        os.sched_setaffinity(0, before)
