"""The environment of a testbed's first trial stays; later changes are put beside."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dutperf.errors import InputError
from dutperf.results import Environment, TrialRecord
from dutperf.results.changes import differences, listed
from dutperf.results.model import RunPart
from dutperf.run.jobs import RunStore

_STEADY = {
    "dutperf_version",
    "engine_version",
    "dpdk_version",
    "kernel",
    "cpu_model",
    "cores_used",
    "main_core",
    "governor",
    "turbo",
    "dut",
    "stands_in",
}
"""Parts of the environment that should be the same in all of a run."""


def keep_environment(
    store: RunStore,
    environment: Environment,
    stored: Sequence[TrialRecord],
    notify: Callable[[str], None],
) -> None:
    """Store ``environment``, of the testbed that ``stored`` was measured at, if at all.

    Raises:
        InputError: the ports are not of the kind that the run began with.
    """
    began_in = store.environment(environment.place)
    if stored and began_in is None:
        notify("no environment is stored any more of where the run began")
    if not stored or began_in is None:
        store.write_environment(environment)
        return
    then, now = (_ports(e) for e in (began_in, environment))
    if changed := differences(then, now):
        raise InputError(
            f"the ports are not those that the run began with:\n{listed(changed, 3)}",
            "bring them back, or give --output with a new directory to start anew",
        )
    then, now = (e.model_dump(include=_STEADY) for e in (began_in, environment))
    changes = differences(then, now)
    for change in changes:
        notify(f"not as when the run began: {change}")
    part = RunPart(
        first_trial=len(store.records) + 1,
        started_at=environment.started_at,
        place=environment.place,
        changes=changes,
    )
    # A part that ended before its first trial has measured nothing.
    parts = [p for p in began_in.parts if p.first_trial < part.first_trial]
    store.write_environment(began_in.model_copy(update={"parts": [*parts, part]}))


def _ports(environment: Environment) -> dict[str, dict[str, object]]:
    """What of its ports decides how frames are sent and received."""
    return {
        port.label: port.model_dump(include={"driver", "kernel_driver", "mtu"})
        for port in environment.ports
    }
