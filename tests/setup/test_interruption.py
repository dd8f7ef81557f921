"""Signals that wait, and an answer to them that does not."""

from __future__ import annotations

import os
import signal
import time

import pytest

from dutperf.programs import postponed_signals


def test_a_postponed_interrupt_is_answered_at_once_and_once(
    capfd: pytest.CaptureFixture[str],
) -> None:
    told = ""

    def interrupted() -> None:
        nonlocal told
        with postponed_signals("in a moment"):
            for _ in range(4):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.02)
            deadline = time.monotonic() + 60
            while not told and time.monotonic() < deadline:
                time.sleep(0.01)
                told = capfd.readouterr().err

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert told == "in a moment\n"
    assert capfd.readouterr().err == ""
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_without_a_signal_nothing_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    with postponed_signals("in a moment"):
        pass
    assert capfd.readouterr().err == ""
