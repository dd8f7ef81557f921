"""Reads a testbed's power meter while something lasts, each reading with its times."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dutperf.config.testbed import Hook, PowerMeter
from dutperf.errors import SetupError
from dutperf.results.power_results import MOST_W, Lasting, Metered, PowerReading
from dutperf.run.hook_runs import check, run_hooks

POWERCAP = Path("/sys/class/powercap")
"""Where Linux has RAPL's counters."""

_T = TypeVar("_T")
_NUMBER = r"([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)"
_PRINTED = re.compile(rf"{_NUMBER}(?: *(?:W|[Ww]atts?))?(?: +(\S+))?")
_OF_IPMI = re.compile(rf"Instantaneous power reading:\s*{_NUMBER}\s*Watts()")
_CLOCK_STEP_NS = 100_000_000
_MOST_TOLD = 100


@dataclass(frozen=True)
class Value:
    """What a meter says: watts, or joules of a counter."""

    watts: float | None = None
    joules: float | None = None
    stamp: str | None = None


Read = Callable[[], Value]
"""Asks the meter.

Raises:
    SetupError: it does not answer, or with no number of watts above 0.
"""


def _by_command(hook: Hook, told: PowerMeter) -> Read:
    scale = told.snmp.scale if told.snmp else 1.0

    def read() -> Value:
        runs = run_hooks([hook], "meter")
        check(runs)
        text = runs[0].output.strip().strip('"')
        found = (_OF_IPMI.search if told.ipmi else _PRINTED.fullmatch)(text)
        watts = float(found[1]) * scale if found else 0.0
        if not 0 < watts <= MOST_W:
            shown = repr(text[:_MOST_TOLD]) if text else "nothing"
            raise SetupError(f"{told.words} says {shown}, and no watts above 0", _TRY)
        return Value(watts=watts, stamp=found[2] if found and found[2] else None)

    return read


def _by_rapl(name: str) -> Read:
    """The counter of energy of a domain, its wraps undone."""
    folder = _rapl_folder(name)
    most_uj = _number_in(folder / "max_energy_range_uj")
    last_uj = _number_in(folder / "energy_uj")
    total_uj = 0

    def read() -> Value:
        nonlocal last_uj, total_uj
        now_uj = _number_in(folder / "energy_uj")
        total_uj += now_uj - last_uj + (most_uj if now_uj < last_uj else 0)
        last_uj = now_uj
        return Value(joules=total_uj / 1e6)

    return read


def _rapl_folder(name: str) -> Path:
    names = {each.parent: _text_in(each) for each in POWERCAP.glob("*/name")}
    found = [each for each, called in names.items() if name in (each.name, called)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(sorted(f"{p.name} ({called})" for p, called in names.items()))
    several = "several domains" if found else "no domain"
    raise SetupError(
        f"RAPL has {several} {name!r} in {POWERCAP}",
        f"one of: {known}" if known else "this machine shows none: take another meter",
    )


def _number_in(path: Path) -> int:
    text = _text_in(path)
    if not text.isdecimal():
        raise SetupError(f"{path} has no number, but {text[:_MOST_TOLD]!r}", _TRY)
    return int(text)


def _text_in(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise SetupError(f"{path} cannot be read: {why}", "run as root") from None


_TRY = "try the meter by hand; see power in the testbed"


class Meter:
    """A testbed's meter; ``open_meter`` makes one that answers."""

    def __init__(self, told: PowerMeter, read: Read) -> None:
        self._told = told
        self._read = read

    def beside(self, of: Lasting, act: Callable[[], _T]) -> tuple[_T, Metered]:
        """What ``act`` gives, and what was read from its begin to its end.

        Times are those of the monotonic clock, told as since 1970.
        """
        offset_ns = _offset_ns()
        readings: list[PowerReading] = []
        done = threading.Event()

        def sample() -> None:
            due_s = time.monotonic()
            while not done.wait(max(0.0, due_s - time.monotonic())):
                readings.append(self._reading(offset_ns))
                due_s = max(due_s, time.monotonic() - self._told.every_s)
                due_s += self._told.every_s

        thread = threading.Thread(target=sample, daemon=True)
        begin_ns = time.monotonic_ns() + offset_ns
        thread.start()
        try:
            found = act()
        finally:
            end_ns = time.monotonic_ns() + offset_ns
            done.set()
            thread.join()
        return found, Metered(
            of=of,
            begin_ns=begin_ns,
            end_ns=end_ns,
            clock_set=abs(_offset_ns() - offset_ns) > _CLOCK_STEP_NS,
            meter=self._told.words,
            accuracy_percent=self._told.accuracy_percent,
            accuracy_w=self._told.accuracy_w,
            averaging_s=self._told.averaging_s,
            readings=readings,
        )

    def _reading(self, offset_ns: int) -> PowerReading:
        asked_ns = time.monotonic_ns() + offset_ns
        value, failed = Value(), ""
        try:
            value = self._read()
        except SetupError as error:
            failed = error.message
        return PowerReading(
            asked_ns=asked_ns,
            answered_ns=time.monotonic_ns() + offset_ns,
            watts=value.watts,
            joules=value.joules,
            stamp=value.stamp,
            failed=failed,
        )


def open_meter(told: PowerMeter) -> Meter:
    """The meter, which has answered once.

    Raises:
        SetupError: it does not, or with something else than watts.
    """
    hook = told.hook
    read = _by_command(hook, told) if hook else _by_rapl(told.rapl or "")
    try:
        read()
    except SetupError as error:
        raise SetupError(f"the power meter: {error.message}", _TRY) from None
    return Meter(told, read)


def _offset_ns() -> int:
    return time.time_ns() - time.monotonic_ns()
