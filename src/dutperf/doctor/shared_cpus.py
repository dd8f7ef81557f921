"""Whether somebody else works on the CPUs that a testbed uses: another lab's device."""

from __future__ import annotations

from collections.abc import Callable

from dutperf import busy
from dutperf.config import Testbed
from dutperf.doctor.check import Check, listed
from dutperf.lab.presence import others, present
from dutperf.lab.state import LabState, StateFile

_WHY = "a device works whenever it has frames, and some all the time: each takes time"


Sharing = Callable[[Testbed | None, set[int]], Check]


def sharing_check(testbed: Testbed | None, cores: set[int]) -> Check:
    """Of the labs that are up, and of what the user allows.

    ``cores``: the tester's; those of its lab's device count, too, if it is one.
    """
    own = _lab_of(testbed)
    cpus = cores | (own.device_cpus if own else set())
    labs = others(StateFile(name=own.name)) if own else list(present())
    shared = {s.title: cpus & s.device_cpus for _, s in labs if cpus & s.device_cpus}
    if shared:
        told = "; ".join(f"{listed(c)}: lab {name}" for name, c in shared.items())
        return Check(
            "shared_cpus",
            "bad",
            f"other labs work on the same CPUs: {told}",
            _WHY,
            "take them down, see 'dutperf lab status'",
        )
    if busy.choice() == "share":
        return Check(
            "shared_cpus",
            "doubtful",
            f"other runs may use the same CPUs: {busy.VARIABLE}=share",
            "what another run does on a CPU is missing here",
            f"unset {busy.VARIABLE}, or {busy.VARIABLE}=wait",
        )
    return Check("shared_cpus", "good", "no other lab works on the same CPUs")


def _lab_of(testbed: Testbed | None) -> LabState | None:
    """The lab that the testbed is of, if it is one that is up."""
    tester = testbed.namespace if testbed else None
    return next((s for _, s in present() if s.namespaces[0] == tester), None)
