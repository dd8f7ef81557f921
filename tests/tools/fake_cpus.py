"""A machine with other CPUs than this one, as the kernel's calls tell them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

import pytest


def put_on(
    monkeypatch: pytest.MonkeyPatch,
    shell: Iterable[int],
    isolated: Iterable[int] = (),
) -> None:
    """``shell``: those that we may run on; ``isolated``: who asks for them, too."""
    current = set(shell)
    there = current | set(isolated)

    def ask(_pid: int, cpus: Iterable[int]) -> None:
        nonlocal current
        given = there & set(cpus)
        if not given:
            raise OSError(errno.EINVAL, "Invalid argument")
        current = given

    monkeypatch.setattr(os, "sched_setaffinity", ask)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(current))
