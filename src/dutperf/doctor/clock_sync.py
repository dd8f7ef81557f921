"""Whether the counters of the tester's cores agree: the engine has looked.

A frame is stamped on the sender's core and judged on the receiver's. The engine hands
stamps back and forth between its cores and bounds how far they are apart.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from dutperf.doctor.check import Check
from dutperf.engine.process import choose_main_cpu, start_engine
from dutperf.errors import DutperfError
from dutperf.results.units import duration

_MEMORY_MB = 128
_GOOD_NS = 1_000
_BAD_NS = 100_000

Offset = Callable[[Sequence[int]], int]
"""CPUs -> how far their counters are apart at most, in nanoseconds."""


def engine_offset_ns(cpus: Sequence[int]) -> int:
    """Asks an engine on these CPUs, which opens no port.

    Raises:
        DutperfError: it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="dutperf-doctor-") as directory:
        engine = start_engine(
            worker_cpus=list(cpus),
            main_cpu=choose_main_cpu(list(cpus)),
            memory_mb=_MEMORY_MB,
            hugepages=False,
            namespace=None,
            log_path=Path(directory) / "log",
        )
        with engine as started:
            return started.hello().clock_offset_ns


def synchrony_check(cpus: Sequence[int], offset: Offset = engine_offset_ns) -> Check:
    """Of the tester's workers."""
    if len(cpus) == 1:
        return Check("counter_synchrony", "good", "one core sends and receives")
    if os.geteuid() != 0:
        return Check(
            "counter_synchrony", "unknown", "the engine looks, which needs root"
        )
    try:
        return told(offset(cpus))
    except DutperfError as error:
        why = "no engine starts on these cores, so nothing can be measured"
        return Check("counter_synchrony", "bad", error.message, why, error.hint)


def told(offset_ns: int) -> Check:
    """By what the engine found."""
    found = f"at most {duration(offset_ns)} apart"
    if offset_ns <= _GOOD_NS:
        return Check("counter_synchrony", "good", found)
    return Check(
        "counter_synchrony",
        "bad" if offset_ns >= _BAD_NS else "doubtful",
        found,
        "a delay is the difference of the stamps of two cores: it is wrong by as much",
        "use cores of one socket; of a virtual machine, ask for an invariant TSC and "
        "pinned CPUs",
    )
