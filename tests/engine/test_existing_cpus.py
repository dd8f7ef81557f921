from __future__ import annotations

import os

import pytest
from fake_cpus import put_on

from dutperf.engine.process import existing_cpus


def test_isolated_cpus_are_there_though_the_shell_has_them_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_on(monkeypatch, {0, 1}, isolated={5})
    assert existing_cpus() == {0, 1, 5}
    assert os.sched_getaffinity(0) == {0, 1}


def test_where_nobody_may_ask_they_are_the_shells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_pid: int, _cpus: object) -> None:
        raise PermissionError

    put_on(monkeypatch, {1})
    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    assert existing_cpus() == {1}


def test_of_this_machine_they_are_at_least_the_shells() -> None:
    own = os.sched_getaffinity(0)
    assert existing_cpus() >= own
    assert os.sched_getaffinity(0) == own
